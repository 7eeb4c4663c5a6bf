"""The effect of each operator on a document, and the operators that are rejected."""

import re

import pytest

from pathcast.documents import read
from pathcast.documents.schema.dtd_reader import read_dtd
from pathcast.errors import LimitError, MappingError
from pathcast.mediation import Downgrade, Exchange, Insert, Move, Operator, Rename, SchemaTree, ToElement, Upgrade
from pathcast.mediation.mappings.document_object_tree import item_of, to_bytes
from pathcast.mediation.mappings.mapping_operators import KINDS, as_plain, from_plain
from pathcast.mediation.mappings.object_tree_rewriter import rewrite
from pathcast.mediation.mappings.operators_by_schema_node import Plan

DTD = """
<!ELEMENT r (a*, x?)>
<!ELEMENT a (#PCDATA | b | c | d)*>
<!ATTLIST a k CDATA #IMPLIED l CDATA #IMPLIED>
<!ELEMENT b (e*)>
<!ELEMENT c (#PCDATA)>
<!ELEMENT d EMPTY>
<!ELEMENT e (#PCDATA)>
<!ELEMENT x EMPTY>
"""
TREE = SchemaTree.unfold(read_dtd(DTD.encode()))


def rewritten(document: str, *operators: Operator, tree: SchemaTree = TREE, limit: int = 1000) -> str:
    return to_bytes(rewrite(item_of(read(document)), Plan(tree, operators), limit=limit)).decode()


def some(*names: str) -> frozenset[str]:
    return frozenset(names)


def test_a_document_of_no_operators_stays_as_it_is() -> None:
    document = '<r><a k="1&amp;2&#10;">t<b/>u&lt;<c>v</c></a><unknown><b x="1">w</b></unknown></r>'
    assert rewritten(document) == document


EXAMPLES: dict[str, tuple[str, str, list[Operator]]] = {
    "move into a new path": (
        "<r><a><b><e>1</e></b><c>2</c></a><x/></r>",
        "<r><a><b/></a><x/><p><e>1</e><c>2</c></p></r>",
        [Move("r/a/b/e", "r", ("p",)), Move("r/a/c", "r", ("p",))],
    ),
    "move to the end of an ancestor": (
        "<r><a><b><e>1</e></b></a><x/></r>", "<r><a><b/></a><x/><e>1</e></r>", [Move("r/a/b/e", "r")]
    ),
    "move into a child": (
        "<r><a><b><e>1</e></b></a><x/></r>", "<r><a><b/></a><x><e>1</e></x></r>", [Move("r/a/b/e", "r", into="x")]
    ),
    "move into a child that is missing": (
        "<r><a><b><e>1</e></b></a><a/></r>", "<r><a><b/></a><e>1</e><a/></r>", [Move("r/a/b/e", "r", into="x")]
    ),
    "move attributes": (
        "<r><a k='1' l='2'><c/></a><x/></r>",
        "<r><a><c/><l>2</l></a><x/><p><kk>1</kk></p></r>",
        [Move("r/a/@k", "r", ("p",), name="kk"), Move("r/a/@l", "r/a")],
    ),
    "rename": ("<r><a k='1'><b/></a></r>", '<r><A k="1"><b/></A></r>', [Rename("r/a", "A")]),
    "rename an attribute": ("<r><a k='1' l='2'/></r>", '<r><a K="1" l="2"/></r>', [Rename("r/a/@k", "K")]),
    "an attribute whose new name is taken": ("<r><a k='1' K='2'/></r>", '<r><a K="1"/></r>', [Rename("r/a/@k", "K")]),
    "rename the root": ("<r><a/></r>", "<R><a/></R>", [Rename("r", "R")]),
    "an element elsewhere keeps its name": ("<r><x/><z><a/></z></r>", "<r><x/><z><a/></z></r>", [Rename("r/a", "A")]),
    "to element": (
        "<r><a k='1' l=''>t<b/></a><a/></r>",
        "<r><a><l/><kk>1</kk>t<b/></a><a/></r>",
        [ToElement("r/a", "l"), ToElement("r/a", "k", "kk")],
    ),
    "insert": (
        "<r><a><b/>t<c>1</c><d/><c>2</c></a><a><d/></a></r>",
        "<r><a>t<d/><p><q><b/><c>1</c><c>2</c></q></p></a><a><d/></a></r>",
        [Insert("r/a", ("p", "q"), some("b", "c"))],
    ),
    "insert everything": (
        "<r><a>t<b/><y/>u</a><a>t</a></r>",
        "<r><a>tu<p><b/><y/></p></a><a>t</a></r>",
        [Insert("r/a", ("p",))],
    ),
    "inserts share the beginning of their paths": (
        "<r><a><b/><c/><b/></a></r>",
        "<r><a><p><q><b/><b/></q><c/></p></a></r>",
        [Insert("r/a", ("p", "q"), some("b")), Insert("r/a", ("p",), some("c"))],
    ),
    "upgrade": ("<r><a><b/>t<c/><d/></a><x/></r>", "<r><a>t<d/></a><b/><c/><x/></r>", [Upgrade("r/a", some("b", "c"))]),
    "upgrade everything": ("<r><a>t<b/><y/></a><a/></r>", "<r><a>t</a><b/><y/><a/></r>", [Upgrade("r/a")]),
    "what is upgraded goes where its old parent goes": (
        "<r><a><b><e>1</e></b><c/></a></r>",
        "<r><a><c/><p><b/><e>1</e></p></a></r>",
        [Upgrade("r/a/b", some("e")), Insert("r/a", ("p",), some("b"))],
    ),
    "upgrade out of what was the root": (
        "<r><a/><x/></r>",
        "<x><r/><a/></x>",
        [Exchange("r", "x"), Upgrade("r", some("a"))],
    ),
    "upgrade out of what is the root still": (
        "<r>t<a/></r>",
        "<r>t<a/></r>",
        [Exchange("r", "x"), Upgrade("r", some("a"))],
    ),
    "downgrade": (
        "<r><a><d/><b><e/></b>t<d/><b/></a></r>",
        "<r><a><b><e/><d/><d/></b>t<b/></a></r>",
        [Downgrade("r/a", some("d"), "b")],
    ),
    "downgrade without a place to go": (
        "<r><a>t<d/>u</a></r>",
        "<r><a>t<d/>u</a></r>",
        [Downgrade("r/a", some("d"), "b")],
    ),
    "downgrades in a row": (
        "<r><a><d/><c/><b/></a></r>",
        "<r><a><b><c><d/></c></b></a></r>",
        [Downgrade("r/a", some("d"), "c"), Downgrade("r/a", some("c"), "b")],
    ),
    "exchange": (
        "<r><a k='1'>t<b><e>1</e></b><c/><b/></a><a><c/></a></r>",
        '<r><b><e>1</e><a k="1">t<c/></a></b><b><a k="1">t<c/></a></b><a><c/></a></r>',
        [Exchange("r/a", "b")],
    ),
    "exchanges in a row": (
        "<r><a><b><e>1</e><e>2</e></b></a></r>",
        "<r><e>1<b><a/></b></e><e>2<b><a/></b></e></r>",
        [Exchange("r/a", "b"), Exchange("r/a/b", "e")],
    ),
    "after an exchange": (
        "<r><a><b><e>1</e></b><c/></a></r>",
        "<r><B><p><e>1</e></p></B><A><c/></A></r>",
        [Exchange("r/a", "b"), Rename("r/a", "A"), Rename("r/a/b", "B"), Upgrade("r/a/b", some("a")),
         Insert("r/a/b", ("p",), some("e"))],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_operator_does_what_it_says(name: str) -> None:
    document, expected, operators = EXAMPLES[name]
    assert rewritten(document, *operators) == expected


def test_attributes_get_their_names_all_at_once() -> None:
    document = "<r><a k='1' l='2'/></r>"
    swapped = rewritten(document, Rename("r/a/@k", "l"), Rename("r/a/@l", "k"))
    assert swapped == "<r><a l='1' k='2'/></r>".replace("'", '"')
    assert rewritten(document, Rename("r/a/@k", "l"), ToElement("r/a", "l")) == '<r><a l="1"><l>2</l></a></r>'


@pytest.mark.parametrize("name", EXAMPLES)
def test_operators_travel_as_plain_data(name: str) -> None:
    for operator in EXAMPLES[name][2]:
        assert from_plain(as_plain(operator)) == operator


REFUSED: dict[str, list[Operator]] = {
    "cannot apply move at 'r/a/b': its parent is the ancestor to move to; use insert or downgrade": [
        Move("r/a/b", "r/a", ("p",))
    ],
    "cannot apply move at 'r/a/b': 'r/x' is no ancestor of it; choose an ancestor": [Move("r/a/b", "r/x")],
    "cannot apply move at 'r/a/b': 'r' has no child 'y'; its children: a, x": [Move("r/a/b", "r", into="y")],
    "cannot apply move at 'r/a/b': 'a' contains it, or a path is given, too; choose another child": [
        Move("r/a/b", "r", into="a")
    ],
    "cannot apply move at 'r/a/b': another operator already moves it; remove one of the operators": [
        Insert("r/a", ("p",), some("b")), Move("r/a/b", "r")
    ],
    "cannot apply move at 'r/a/b/e': 'r/a/b' is part of an exchange; move it by exchanges alone": [
        Exchange("r/a", "b"), Move("r/a/b/e", "r")
    ],
    "cannot apply rename at 'r/z': the schema has no element 'r/z'; did you mean r/a or r/x?": [Rename("r/z", "Z")],
    "cannot apply rename at 'r/c': the schema has no element 'r/c'; did you mean r/a/c?": [Rename("r/c", "Z")],
    "cannot apply rename at 'r/a': 'r/a' is already renamed to 'A'; remove one of the operators": [
        Rename("r/a", "A"), Rename("r/a", "B")
    ],
    "cannot apply rename at 'r/a/@m': 'r/a' has no attribute 'm'; its attributes: k, l": [Rename("r/a/@m", "n")],
    "cannot apply rename at 'r/a/@k': 'r/a' would have two attributes 'l'; choose another name": [
        Rename("r/a/@k", "l")
    ],
    "cannot apply to-element at 'r/a': another operator already moves or renames 'r/a/@k'; remove one of them": [
        Rename("r/a/@k", "n"),
        ToElement("r/a", "k"),
    ],
    "cannot apply insert at 'r/a': 'r/a' has no child 'e'; its children: b, c, d": [Insert("r/a", ("p",), some("e"))],
    "cannot apply upgrade at 'r/a': another operator already moves the child 'b'; remove one of the operators": [
        Insert("r/a", ("p",), some("b")), Upgrade("r/a", some("b"))
    ],
    "cannot apply upgrade at 'r/a': another operator already moves all children; remove one of the operators": [
        Insert("r/a", ("p",)), Upgrade("r/a")
    ],
    "cannot apply insert at 'r/a': the new path is empty; give at least one element name": [Insert("r/a", ())],
    "cannot apply upgrade at 'r/a': the list of children is empty; name a child, or omit `children` to move all": [
        Upgrade("r/a", frozenset())
    ],
    "cannot apply upgrade at 'r': the children of the root cannot move up; choose another element": [
        Upgrade("r", some("a"))
    ],
    "cannot apply downgrade at 'r/a': 'b' cannot be moved into itself; remove it from children": [
        Downgrade("r/a", some("b", "c"), "b")
    ],
    "cannot apply downgrade at 'r/a': 'b' would end up inside itself; remove one of the downgrades": [
        Downgrade("r/a", some("b"), "c"), Downgrade("r/a", some("c"), "b")
    ],
    "cannot apply exchange at 'r/a': 'r/a' has no child 'e'; its children: b, c, d": [Exchange("r/a", "e")],
    "cannot apply exchange at 'r/a': 'r/a' is already exchanged with 'b'; remove one of the exchanges": [
        Exchange("r/a", "b"), Exchange("r/a", "c")
    ],
    "cannot apply exchange at 'r': 'a' may repeat, but a document has one root; choose another child": [
        Exchange("r", "a")
    ],
}  # fmt: skip


@pytest.mark.parametrize("reason", REFUSED)
def test_an_operator_that_does_not_fit_the_schema_is_refused(reason: str) -> None:
    with pytest.raises(MappingError, match=f"^{re.escape(reason)}$"):
        Plan(TREE, REFUSED[reason])


def test_children_that_an_exchange_brings_together_need_different_names() -> None:
    tree = SchemaTree.unfold(read_dtd(b"<!ELEMENT r (a, b)><!ELEMENT a (b*)><!ELEMENT b EMPTY>"))
    with pytest.raises(MappingError, match="'r' would have two children 'b'; rename one of them"):
        Plan(tree, [Exchange("r/a", "b")])


def test_the_root_is_exchanged_where_there_is_one_to_take_its_place() -> None:
    assert rewritten("<r><a/><x/></r>", Exchange("r", "x")) == "<x><r><a/></r></x>"
    with pytest.raises(MappingError, match="the document's root has 2 children 'x'"):
        rewritten("<r><x/><x/></r>", Exchange("r", "x"))


def test_a_document_of_another_schema_is_refused() -> None:
    with pytest.raises(MappingError, match="root element is 's', but its schema has the root 'r'"):
        rewritten("<s/>")


def test_a_document_that_exchanges_would_blow_up_is_refused() -> None:
    document = f"<r><a>{'<b/>' * 40}{'<c/>' * 40}</a></r>"
    assert rewritten(document, Exchange("r/a", "b"), limit=10_000).count("<c/>") == 1_600
    with pytest.raises(LimitError, match="more than 1,000 elements"):
        rewritten(document, Exchange("r/a", "b"))


@pytest.mark.parametrize(
    ("plain", "reason"),
    [
        ({"operator": "turn"}, "the key 'operator' must be one of"),
        ({"operator": "rename", "node": "r"}, "operator rename lacks the key 'name'"),
        (
            {"operator": "rename", "node": 3, "name": "x"},
            "the key 'node' of operator rename must be a non-empty string, got 3",
        ),
        (
            {"operator": "upgrade", "node": "r", "children": []},
            "the key 'children' of operator upgrade must be a list of at least one name",
        ),
        (
            {"operator": "upgrade", "node": "r", "into": "x"},
            "operator upgrade has the unknown key 'into'; use one of children, node",
        ),
    ],
)
def test_plain_data_that_is_no_operator_is_refused(plain: dict[str, object], reason: str) -> None:
    with pytest.raises(MappingError, match=re.escape(reason)):
        from_plain(plain)
    assert len(KINDS) == 7
