"""Label paths: one number per root-to-element name sequence, the same for every document."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathcast import LimitError
from pathcast.documents import LabelPaths, Names, read, read_batch


def test_paths_are_numbered_as_they_appear() -> None:
    paths = LabelPaths()
    first = paths.add(read_batch([b"<a><b/><b><c/></b></a>", b"<a><c/></a>"]))
    assert first.tolist() == [0, 1, 1, 2, 0, 3]
    assert list(paths) == [("a",), ("a", "b"), ("a", "b", "c"), ("a", "c")]
    assert paths.parent(2) == 1 and paths.parent(0) == -1


def test_paths_mean_names_not_a_batchs_numbers() -> None:
    paths = LabelPaths()
    paths.add(read_batch([b"<a><b/></a>"]))
    again = paths.add(read_batch([b"<a><b/><x/></a>"], names=Names(["x", "b", "a"])))
    assert again.tolist() == [0, 1, 2]
    assert paths.find("a", "b") == 1 and paths.find("b") is None and paths.find("a", "nowhere") is None


def test_hostile_documents_cannot_grow_the_tree_for_ever() -> None:
    paths = LabelPaths(capacity=10)
    with pytest.raises(LimitError, match="capacity"):
        paths.add(read_batch([b"<a>" + b"".join(b"<n%d/>" % k for k in range(20)) + b"</a>"]))


trees = st.recursive(
    st.sampled_from("abc").map(lambda n: (n, [])), lambda t: st.tuples(st.sampled_from("abc"), st.lists(t))
)


def xml(tree: tuple[str, list]) -> str:  # type: ignore[type-arg]
    return f"<{tree[0]}>{''.join(map(xml, tree[1]))}</{tree[0]}>"


@given(st.lists(trees, min_size=1, max_size=4))
def test_an_elements_path_is_its_ancestors_names(forest: list[tuple[str, list]]) -> None:  # type: ignore[type-arg]
    paths = LabelPaths()
    for tree in forest:
        document = read(xml(tree))
        numbers = paths.add(document.batch)
        for element, number in enumerate(numbers.tolist()):
            assert "/" + "/".join(paths.labels(number)) == document.path(element)
