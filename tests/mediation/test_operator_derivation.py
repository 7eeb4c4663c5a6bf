"""Operators follow from a correspondence, and transform documents into the global schema."""

import re

import pytest

from pathcast.documents import read
from pathcast.errors import LimitError, MappingError
from pathcast.mediation import (
    Downgrade,
    Exchange,
    Insert,
    Move,
    Operator,
    Rename,
    SchemaNode,
    SchemaTree,
    ToElement,
    Upgrade,
)
from pathcast.mediation.mappings.document_object_tree import item_of, to_bytes
from pathcast.mediation.mappings.schema_mapping import Mapping, read_tree

# A catalogue with one conflict of each kind: the names, an attribute, groups, a nesting too deep, one too flat, and an
# author above the article that the global schema has above the author.
LOCAL = read_tree("""
university
  faculty* @title
    department?
      head? #text
  course* @code
    name #text
    time? #text
    room? #text
    teacher
      office? #text
    assistant* #text
  author*
    born? #text
    article* @year
      heading #text
""")
GLOBAL = read_tree("""
university
  faculty* @label
  dept*
    head? #text
  course*
    code #text
    title #text
    schedule?
      time? #text
      place? #text
    instructor
      office? #text
      assistant* #text
  article*
    year? #text
    heading #text
    author
      born? #text
""")
SAME = {
    "university": "university",
    "university/faculty": "university/faculty",
    "university/faculty/@title": "university/faculty/@label",
    "university/faculty/department": "university/dept",
    "university/faculty/department/head": "university/dept/head",
    "university/course": "university/course",
    "university/course/@code": "university/course/code",
    "university/course/name": "university/course/title",
    "university/course/time": "university/course/schedule/time",
    "university/course/room": "university/course/schedule/place",
    "university/course/teacher": "university/course/instructor",
    "university/course/teacher/office": "university/course/instructor/office",
    "university/course/assistant": "university/course/instructor/assistant",
    "university/author": "university/article/author",
    "university/author/born": "university/article/author/born",
    "university/author/article": "university/article",
    "university/author/article/@year": "university/article/year",
    "university/author/article/heading": "university/article/heading",
}
OPERATORS: set[Operator] = {
    Exchange("university/author", "article"),
    Rename("university/faculty/@title", "label"),
    Rename("university/faculty/department", "dept"),
    Rename("university/course/name", "title"),
    Rename("university/course/room", "place"),
    Rename("university/course/teacher", "instructor"),
    ToElement("university/course", "code"),
    ToElement("university/author/article", "year"),
    Upgrade("university/faculty", frozenset({"department"})),
    Insert("university/course", ("schedule",), frozenset({"time", "room"})),
    Downgrade("university/course", frozenset({"assistant"}), "teacher"),
}
DOCUMENT = """<university>
<faculty title="F"><department><head>H</head></department></faculty>
<course code="c1"><name>N</name><time>9</time><room>R</room>
<teacher><office>O</office></teacher><assistant>A</assistant></course>
<author><born>1</born><article year="2"><heading>x</heading></article><article><heading>y</heading></article></author>
</university>""".replace("\n", "")
REWRITTEN = """<university>
<faculty label="F"/><dept><head>H</head></dept>
<course><code>c1</code><title>N</title>
<instructor><office>O</office><assistant>A</assistant></instructor>
<schedule><time>9</time><place>R</place></schedule></course>
<article><year>2</year><heading>x</heading><author><born>1</born></author></article>
<article><heading>y</heading><author><born>1</born></author></article>
</university>""".replace("\n", "")


def test_each_kind_of_conflict_has_its_operator() -> None:
    mapping = Mapping.derive("u", LOCAL, GLOBAL, SAME)
    assert set(mapping.operators) == OPERATORS
    assert len(mapping.operators) == len(OPERATORS)
    assert mapping.check() == []
    assert to_bytes(mapping.rewrite(item_of(read(DOCUMENT)))).decode() == REWRITTEN


def test_equal_schemas_need_no_operator() -> None:
    everything = {path: path for path in LOCAL.paths}
    assert Mapping.derive("u", LOCAL, LOCAL, everything).operators == ()


def test_inserts_are_one_for_each_parent_and_path() -> None:
    local, glob = read_tree("a\n  b\n  c\n  d"), read_tree("a\n  p\n    b\n    q\n      c\n      d")
    same = {"a": "a", "a/b": "a/p/b", "a/c": "a/p/q/c", "a/d": "a/p/q/d"}
    mapping = Mapping.derive("x", local, glob, same)
    assert mapping.operators == (
        Insert("a", ("p",), frozenset("b")),
        Insert("a", ("p", "q"), frozenset({"c", "d"})),
    )
    assert to_bytes(mapping.rewrite(item_of(read("<a><c/><b/><d/></a>")))) == b"<a><p><q><c/><d/></q><b/></p></a>"


def test_a_group_that_only_the_local_schema_has_is_left_empty() -> None:
    local, glob = read_tree("a\n  group\n    b #text\n    c"), read_tree("a\n  b #text\n  c")
    mapping = Mapping.derive("x", local, glob, {"a": "a", "a/group/b": "a/b", "a/group/c": "a/c"})
    assert mapping.operators == (Upgrade("a/group", frozenset({"b", "c"})),)
    assert mapping.check() == ["'a/group' has no counterpart in the global schema; it stays unchanged"]


def test_what_lies_in_another_branch_moves_there() -> None:
    local, glob = read_tree("a\n  b\n    c @k"), read_tree("a\n  b\n  d\n    e\n      c @k")
    mapping = Mapping.derive("x", local, glob, {"a": "a", "a/b": "a/b", "a/b/c": "a/d/e/c", "a/b/c/@k": "a/d/e/c/@k"})
    assert mapping.operators == (Move("a/b/c", "a", ("d", "e")),)
    assert mapping.check() == []
    assert to_bytes(mapping.rewrite(item_of(read("<a><b><c k='1'/></b></a>")))) == (
        b'<a><b/><d><e><c k="1"/></e></d></a>'
    )


def test_leaves_move_below_the_nearest_repeating_element() -> None:
    local = read_tree("r\n  g\n    item*\n      h\n        i @u\n          t #text")
    glob = read_tree("s\n  entry*\n    t #text\n    info\n      u #text")
    same = {"r": "s", "r/g/item": "s/entry", "r/g/item/h/i/t": "s/entry/t", "r/g/item/h/i/@u": "s/entry/info/u"}
    mapping = Mapping.derive("x", local, glob, same)
    assert not mapping.unexplained
    document = "<r><g><item><h><i u='1'><t>a</t></i></h></item><item><h><i u='2'><t>b</t></i></h></item></g></r>"
    assert to_bytes(mapping.rewrite(item_of(read(document)))) == (
        b"<s><g/><entry><h><i/></h><info><u>1</u></info><t>a</t></entry>"
        b"<entry><h><i/></h><info><u>2</u></info><t>b</t></entry></s>"
    )


def test_what_belongs_into_another_child_moves_into_it() -> None:
    local, glob = read_tree("r\n  a\n    b\n      c #text\n  d"), read_tree("r\n  a\n  d\n    c #text")
    mapping = Mapping.derive("x", local, glob, {"r": "r", "r/a": "r/a", "r/d": "r/d", "r/a/b/c": "r/d/c"})
    assert mapping.operators == (Move("r/a/b/c", "r", into="d"),)
    document = "<r><a><b><c>1</c></b></a><d/></r>"
    assert to_bytes(mapping.rewrite(item_of(read(document)))) == b"<r><a><b/></a><d><c>1</c></d></r>"


def test_what_no_operator_explains_is_told_and_left_alone() -> None:
    local, glob = read_tree("a\n  b\n    c @k"), read_tree("a @k\n  b\n    c")
    mapping = Mapping.derive("x", local, glob, {"a": "a", "a/b": "a/b", "a/b/c": "a/b/c", "a/b/c/@k": "a/@k"})
    assert mapping.operators == ()
    assert mapping.check() == [
        "'a/b/c/@k': no operator can move it to 'a/@k': its parent 'a/b/c' corresponds to 'a/b/c'; it stays unchanged"
    ]


@pytest.mark.parametrize(
    ("correspondence", "reason"),
    [
        ({"a/z": "a"}, "invalid path in the local schema: the schema has no element 'a/z'; did you mean a/b?"),
        ({"a": "z"}, "invalid path in the global schema: the schema has no element 'z'; its root is 'a'"),
        ({"a": "a", "a/b": "a"}, "'a/b' and 'a' cannot both correspond to 'a'; remove one of them"),
        (
            {"a/b": "a/@k"},
            "'a/b' cannot correspond to 'a/@k': an element cannot become an attribute; choose an element",
        ),
        ({"a/@l": "a"}, "the local schema has no attribute 'l' at 'a' (its attributes: k); correct the correspondence"),
    ],
)
def test_a_correspondence_that_can_t_be_is_refused(correspondence: dict[str, str], reason: str) -> None:
    tree = read_tree("a @k\n  b")
    with pytest.raises(MappingError, match=f"^{re.escape(reason)}$"):
        Mapping.derive("x", tree, tree, correspondence)


def test_a_mapping_is_a_file_that_people_can_edit(tmp_path) -> None:
    mapping = Mapping.derive('ü "x"', LOCAL, GLOBAL, SAME, version=7)
    mapping.save(tmp_path / "u.toml")
    assert Mapping.open(tmp_path / "u.toml") == mapping
    fewer = mapping.edited(mapping.operators[:3])
    assert (fewer.version, len(fewer.operators)) == (8, 3)
    assert Mapping.read(fewer.write()) == fewer


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("name = ", "not valid TOML"),
        ("name = 'x'", "the key 'schema' is missing"),
        ("name = 3\nschema = 'a'", "the key 'name' must be a string, got 3"),
        ("nom = 'x'", "unknown key 'nom'"),
        ("name = 'x'\nschema = ''", "the text of the schema is empty"),
        ("name = 'x'\nschema = 'a b'", "line 1 of the schema is malformed: 'b' is neither @attribute nor #text"),
        ('name = "x"\nschema = """\na\nb"""', "line 2 of the schema, 'b', has the wrong indentation"),
        ("name = 'x'\nschema = 'a'\noperators = [3]", "operator 1 must be a table"),
        (
            "name = 'x'\nschema = 'a'\n[[operators]]\noperator = 'upgrade'",
            "invalid operator 1: operator upgrade lacks the key 'node'",
        ),
        (
            "name = 'x'\nschema = 'a'\n[correspondence]\na = 3",
            "the value of 'a' under the key 'correspondence' must be a string, got 3",
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path, text: str, reason: str) -> None:
    (tmp_path / "m.toml").write_text(text)
    with pytest.raises(MappingError, match=re.escape(reason)) as caught:
        Mapping.open(tmp_path / "m.toml")
    assert str(caught.value).startswith(str(tmp_path / "m.toml"))


def test_attributes_may_change_names_with_one_another_but_not_take_that_of_one_that_stays() -> None:
    local = read_tree("r\n  a @id @code @kind #text")
    mapping = Mapping.derive(
        "x", local, read_tree("r\n  a @code @number @kind"),
        {"r": "r", "r/a": "r/a", "r/a/@id": "r/a/@code", "r/a/@code": "r/a/@number", "r/a/@kind": "r/a/@kind"},
    )  # fmt: skip
    assert mapping.operators == (Rename("r/a/@id", "code"), Rename("r/a/@code", "number"))
    taken = {"r": "r", "r/a": "r/a", "r/a/@id": "r/a/@code", "r/a/@code": "r/a/@kind"}
    mapping = Mapping.derive("x", local, read_tree("r\n  a @code @kind"), taken)
    assert mapping.operators == ()
    assert mapping.unexplained == {
        "r/a/@code": "'r/a' already has an attribute 'kind'",
        "r/a/@id": "'r/a' already has an attribute 'code'",
    }


@pytest.mark.parametrize("address", ["http://example.org/a/b", "urn:a b", "urn:a\\b", 'urn:"""', "urn:a'b"])
def test_a_file_has_namespaces_as_they_are(address: str) -> None:
    a, b, k = (f"{{{address}}}{name}" for name in "abk")
    tree = SchemaTree(SchemaNode(a, children=(SchemaNode(b, "*", attributes=(k,), has_text=True),)))
    mapping = Mapping("x\x7f", tree, (Rename(f"{a}/{b}", "c"),))
    assert Mapping.read(mapping.write()) == mapping


def test_a_schema_too_large_for_a_table_of_its_names_is_refused() -> None:
    tree = read_tree("r\n" + "\n".join(f"  a{number}" for number in range(8200)))
    with pytest.raises(
        LimitError, match="the schema of 'x' has 8,201 elements and 8,201 names, and so 67,256,401 pairs; at most"
    ):
        Mapping("x", tree, ())
