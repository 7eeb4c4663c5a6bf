"""Schema trees: declarations unfolded into places."""

import pytest

from pathcast.documents.schema.dtd_reader import read_dtd
from pathcast.errors import LimitError, MappingError
from pathcast.mediation import SchemaTree
from pathcast.mediation.mappings.schema_mapping import read_tree
from pathcast.mediation.schemas.schema_tree import name_of, parent_of, steps_of


def tree(dtd: str, **options) -> SchemaTree:
    return SchemaTree.unfold(read_dtd(dtd.encode()), **options)


def test_shared_parts_are_unfolded_with_their_cardinalities() -> None:
    found = tree(
        """<!ELEMENT school (teacher+, student*, (motto | (name, name)?))>
        <!ELEMENT teacher (name, room?)> <!ATTLIST teacher id ID #REQUIRED>
        <!ELEMENT student (name)> <!ELEMENT name (#PCDATA)> <!ELEMENT room EMPTY> <!ELEMENT motto (#PCDATA)>"""
    )
    assert str(found).splitlines() == [
        "school",
        "  teacher+ @id",
        "    name #text",
        "    room?",
        "  student*",
        "    name #text",
        "  motto? #text",
        "  name* #text",
    ]
    assert list(found.paths)[1:3] == ["school/teacher", "school/teacher/name"]
    assert "school/room" not in found


def test_recursion_is_refused_or_cut() -> None:
    part = "<!ELEMENT a (b?)><!ELEMENT b (c, a*)><!ELEMENT c EMPTY>"
    with pytest.raises(MappingError, match="recursive at 'a/b/a', but"):
        tree(part)
    assert list(tree(part, recursion="cut").paths) == ["a", "a/b", "a/b/c"]


@pytest.mark.slow
def test_a_tree_beyond_the_limit_is_refused() -> None:
    levels = "".join(
        f"<!ELEMENT a{k} (b{k}, c{k})><!ELEMENT b{k} (a{k + 1})><!ELEMENT c{k} (a{k + 1})>" for k in range(30)
    )
    with pytest.raises(LimitError, match="more than 100,000 nodes"):
        tree(levels + "<!ELEMENT a30 EMPTY>")


def test_paths_may_hold_namespaces() -> None:
    path = "a/{http://x/y}b/@{urn:z}c"
    assert steps_of(path) == ("a", "{http://x/y}b", "@{urn:z}c")
    assert (parent_of(path), name_of(path)) == ("a/{http://x/y}b", "{urn:z}c")
    assert (parent_of("a"), name_of("a")) == ("", "a")


def test_a_folded_tree_unfolds_to_what_it_was_where_names_are_unique() -> None:
    found = read_tree("r @k\n  a+\n    b? #text\n  c* @l @m #text\n    d\n  e")
    # Mixed content has no counts.
    assert str(SchemaTree.unfold(found.folded())) == str(found).replace("    d", "    d*")


def test_nodes_of_one_name_are_declared_together() -> None:
    found = SchemaTree.unfold(read_tree("r\n  a\n    n @k\n  b\n    n #text\n      m").folded())
    assert str(found).splitlines() == [
        "r", "  a", "    n @k #text", "      m*", "  b", "    n @k #text", "      m*"
    ]  # fmt: skip
