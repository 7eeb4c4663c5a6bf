"""Label paths: one number per root-to-element name sequence, the same for every document."""

import numpy as np
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


Tree = tuple[str, list["Tree"]]
trees: st.SearchStrategy[Tree] = st.recursive(
    st.sampled_from("abc").map(lambda n: (n, [])), lambda t: st.tuples(st.sampled_from("abc"), st.lists(t))
)


def xml(tree: Tree) -> str:
    return f"<{tree[0]}>{''.join(map(xml, tree[1]))}</{tree[0]}>"


@pytest.mark.slow
@given(st.lists(trees, min_size=1, max_size=4))
def test_an_elements_path_is_its_ancestors_names(forest: list[Tree]) -> None:
    paths = LabelPaths()
    for tree in forest:
        document = read(xml(tree))
        numbers = paths.add(document.batch)
        for element, number in enumerate(numbers.tolist()):
            assert "/" + "/".join(paths.labels(number)) == document.path(element)


def test_a_tree_is_made_of_its_parents_and_names() -> None:
    paths = LabelPaths.of(["a", "b"], np.array([-1, 0, 1], dtype=np.int32), np.array([0, 1, 1], dtype=np.int32))
    assert list(paths) == [("a",), ("a", "b"), ("a", "b", "b")]
    assert paths.add(read_batch([b"<a><b/><c/></a>"])).tolist() == [0, 1, 3]


@pytest.mark.parametrize(
    ("parents", "names", "reason"),
    [
        ([-1, 1], [0, 1], "must precede the label path"),
        ([-2], [0], "must precede the label path"),
        ([-1, 0, 0], [0, 1, 1], "label path 2 has the same parent and name as an earlier label path"),
        ([-1], [2], "name ids of label paths must be from 0 to"),
    ],
)
def test_what_makes_no_tree_is_refused(parents: list[int], names: list[int], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        LabelPaths.of(["a", "b"], np.array(parents, dtype=np.int32), np.array(names, dtype=np.int32))
    with pytest.raises(LimitError, match="capacity"):
        LabelPaths.of(["a"], np.array([-1], dtype=np.int32), np.array([0], dtype=np.int32), capacity=0)


def test_a_tree_takes_in_part_of_another() -> None:
    one, other = LabelPaths(), LabelPaths()
    one.add(read_batch([b"<a><c/></a>"]))
    other.add(read_batch([b"<a><b><c/></b><d/></a>", b"<c/>"]))
    wanted = other.closed(np.array([2], dtype=np.int32))
    assert wanted.tolist() == [0, 1, 2] and other.depth(wanted) == 3
    assert one.absorb(other, wanted).tolist() == [0, 2, 3, -1, -1]
    assert list(one) == [("a",), ("a", "c"), ("a", "b"), ("a", "b", "c")]


@pytest.mark.slow
@given(st.lists(trees, min_size=1, max_size=4))
def test_many_documents_at_once_have_the_paths_of_one_after_the_other(forest: list[Tree]) -> None:
    together, apart = LabelPaths(), LabelPaths()
    texts = list(map(xml, forest))
    numbers = together.add(read_batch(texts)).tolist()
    assert numbers == [number for text in texts for number in apart.add(read_batch([text])).tolist()]
    assert list(together) == list(apart)


def test_a_child_is_numbered_once() -> None:
    paths = LabelPaths()
    a = paths.child(-1, "a")
    assert (a, paths.child(a, "b"), paths.child(a, "b"), paths.child(-1, "a")) == (0, 1, 1, 0)
    for number in range(500):
        assert paths.child(a, f"n{number}") == number + 2
    assert paths.find("a", "n499") == 501
