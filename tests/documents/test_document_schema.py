"""Consequences of declarations: children, heights, roots."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathcast.documents.schema.document_schema import Element, Particle, Schema
from pathcast.documents.schema.dtd_reader import read_dtd
from pathcast.errors import DocumentError


def test_children_come_once_and_in_declared_order() -> None:
    schema = read_dtd("<!ELEMENT a (c, (b | c)*, d?)> <!ELEMENT b EMPTY> <!ELEMENT c EMPTY> <!ELEMENT d EMPTY>")
    assert schema.children == {"a": ("c", "b", "d"), "b": (), "c": (), "d": ()}


def test_undeclared_children_are_not_children() -> None:
    schema = read_dtd("<!ELEMENT a (b | ghost)> <!ELEMENT b EMPTY>")
    assert schema.children["a"] == ("b",)


def test_any_holds_every_declared_element() -> None:
    schema = read_dtd("<!ELEMENT a ANY> <!ELEMENT b EMPTY>")
    assert schema.children["a"] == ("a", "b")
    assert schema["a"].has_text


@pytest.mark.parametrize(
    ("model", "height"),
    [
        ("EMPTY", 1),
        ("ANY", 1),
        ("(#PCDATA)", 1),
        ("(#PCDATA | a)*", 1),
        ("(a?)", 1),
        ("(a*, leaf?)", 1),
        ("(leaf)", 2),
        ("(two)", 3),
        ("(leaf, two)", 3),
        ("(leaf | two)", 2),
        ("(two | three)+", 3),
        ("(a | three)", 4),
        ("((leaf, a) | (two, two))", 3),
        ("(ghost | leaf)", 2),
        ("(a)", None),
        ("(ghost)", None),
        ("(leaf, ghost)", None),
        ("(leaf, (a | ghost))", None),
    ],
)
def test_height_is_that_of_the_lowest_tree(model: str, height: int | None) -> None:
    schema = read_dtd(
        f"<!ELEMENT a {model}> <!ELEMENT leaf EMPTY> <!ELEMENT two (leaf)> <!ELEMENT three (leaf?, two, leaf)>",
        root="a",
    )
    assert schema.height("a") == height


def test_mutual_recursion_without_an_end_has_no_height() -> None:
    schema = read_dtd("<!ELEMENT a (b)> <!ELEMENT b (c)> <!ELEMENT c (a)> <!ELEMENT d (a | e)> <!ELEMENT e EMPTY>")
    assert [schema.height(name) for name in "abcde"] == [None, None, None, 2, 1]


def test_shallowest_takes_what_is_required_once_and_the_lowest_alternative() -> None:
    schema = read_dtd(
        "<!ELEMENT a (b?, c+, (d | e), (e, c)*, (d | c | e)+)> <!ELEMENT b EMPTY> <!ELEMENT c EMPTY> <!ELEMENT d (a)>"
        "<!ELEMENT e (c)>"
    )
    assert schema.shallowest("a") == ("c", "e", "c")


def test_an_alternative_is_as_low_as_the_lowest_in_it() -> None:
    schema = read_dtd("<!ELEMENT a (e | ((c | d), e?))> <!ELEMENT c EMPTY> <!ELEMENT d (a)> <!ELEMENT e (c)>")
    assert schema.shallowest("a") == ("c",)


def test_shallowest_of_an_endless_element_is_refused() -> None:
    with pytest.raises(DocumentError, match="no finite document has an element 'a'"):
        read_dtd("<!ELEMENT a (a)>").shallowest("a")


MODELS = st.recursive(
    st.sampled_from("abcdef").map(str),
    lambda inner: st.tuples(
        st.lists(inner, min_size=1, max_size=3), st.sampled_from([",", "|"]), st.sampled_from(["", "?", "*", "+"])
    ).map(lambda parts: "(" + parts[1].join(parts[0]) + ")" + parts[2]),
    max_leaves=6,
)


@pytest.mark.slow
@given(st.lists(MODELS, min_size=6, max_size=6))
def test_children_of_the_shallowest_expansion_are_strictly_lower(models: list[str]) -> None:
    schema = read_dtd("".join(f"<!ELEMENT {name} ({model})>" for name, model in zip("abcdef", models, strict=True)))
    for name in "abcdef":
        height = schema.height(name)
        if height is not None:
            below = [schema.height(child) or 0 for child in schema.shallowest(name)]
            assert height == 1 + max(below, default=0)
            assert all(below)


def test_the_root_is_the_element_that_no_other_holds() -> None:
    schema = read_dtd("<!ELEMENT b (c*)> <!ELEMENT c EMPTY> <!ELEMENT a (b)>")
    assert schema.root == "a"
    assert schema.roots == ("a",)


def test_of_several_roots_the_one_with_the_widest_reach_comes_first() -> None:
    schema = read_dtd("<!ELEMENT stray EMPTY> <!ELEMENT main (x, y)> <!ELEMENT x EMPTY> <!ELEMENT y EMPTY>")
    assert schema.roots == ("main", "stray")
    assert schema.root == "main"


def test_an_endless_root_gives_way_to_one_that_can_end() -> None:
    schema = read_dtd("<!ELEMENT endless (endless, x, y)> <!ELEMENT x EMPTY> <!ELEMENT y EMPTY> <!ELEMENT fine (x)>")
    assert schema.roots == ("endless", "fine")
    assert schema.root == "fine"


def test_a_cycle_on_top_gives_its_first_declared_element_as_root() -> None:
    schema = read_dtd("<!ELEMENT x (y?)> <!ELEMENT y (x?)> <!ELEMENT b (a?, x?)> <!ELEMENT a (b?)>")
    assert schema.roots == ("b",)


def test_a_root_that_is_not_declared_is_refused() -> None:
    with pytest.raises(DocumentError, match="does not declare the root element 'z'"):
        read_dtd("<!ELEMENT a EMPTY>", root="z")


def test_another_root_keeps_the_declarations() -> None:
    schema = read_dtd("<!ELEMENT a (b)> <!ELEMENT b EMPTY>")
    assert schema.with_root("b").root == "b"
    assert list(schema.with_root("b")) == list(schema)
    assert schema.with_root("b") != schema


@pytest.mark.parametrize(
    ("dtd", "recursive"),
    [
        ("<!ELEMENT a (b)> <!ELEMENT b EMPTY>", False),
        ("<!ELEMENT a (a?)>", True),
        ("<!ELEMENT a (b?)> <!ELEMENT b (a?)>", True),
    ],
)
def test_recursion_is_seen(dtd: str, recursive: bool) -> None:
    assert read_dtd(dtd).recursive is recursive


def test_a_schema_pickles_to_an_equal_one() -> None:
    schema = read_dtd("<!ELEMENT a (b+ | #PCDATA)> <!ELEMENT b EMPTY>".replace("(b+ | #PCDATA)", "(#PCDATA | b)*"))
    copy = pickle.loads(pickle.dumps(schema))
    assert copy == schema
    assert hash(copy) == hash(schema)
    assert copy.height("a") == schema.height("a")


def test_a_schema_can_be_made_by_hand() -> None:
    schema = Schema([Element("a", "children", Particle("element", "+", "b")), Element("b", "mixed", Particle("text"))])
    assert (schema.root, schema.height("a"), str(schema["a"].content)) == ("a", 2, "b+")


def test_an_element_declared_twice_is_refused() -> None:
    with pytest.raises(DocumentError, match="'a' is declared twice"):
        Schema([Element("a"), Element("a")])


def test_a_very_deep_schema_needs_no_recursion() -> None:
    levels = 5_000
    text = "".join(f"<!ELEMENT e{at} (e{at + 1})>" for at in range(levels)) + f"<!ELEMENT e{levels} EMPTY>"
    schema = read_dtd(text)
    assert schema.height("e0") == levels + 1
    assert schema.root == "e0"
    assert len(schema.reachable("e0")) == levels + 1
    assert not schema.recursive
