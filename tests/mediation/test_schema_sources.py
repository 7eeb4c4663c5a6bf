"""Schema trees from DTDs, XML Schemas and samples."""

import gzip
from pathlib import Path

import pytest

from pathcast.errors import LimitError, MappingError
from pathcast.mediation.schemas.schema_sources import infer_tree, open_schema, tree_of_dtd, tree_of_xsd

XSD = """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
<xs:complexType name="person"><xs:sequence><xs:element name="name" type="xs:string"/></xs:sequence>
  <xs:attribute name="id"/></xs:complexType>
<xs:element name="school"><xs:complexType><xs:sequence>
  <xs:element name="teacher" type="person" maxOccurs="unbounded"/>
  <xs:element name="student" type="person" minOccurs="0" maxOccurs="5"/>
  <xs:choice><xs:element name="motto" type="xs:string"/><xs:element name="seal"/></xs:choice>
</xs:sequence></xs:complexType></xs:element></xs:schema>"""
TREE = ["school", "  teacher+ @id", "    name #text", "  student* @id", "    name #text", "  motto? #text", "  seal?"]


@pytest.mark.slow
def test_from_an_xml_schema() -> None:
    found = str(tree_of_xsd(XSD)).splitlines()
    assert [line.replace("seal? #text", "seal?") for line in found] == TREE  # an element of any type may hold text


def test_from_samples_with_the_cardinalities_that_they_show() -> None:
    samples = [
        "<s><t id='1'><n>x</n></t><u/></s>",
        "<s><t><n>y</n><n>z</n></t><t k='2'/>\n</s>",
        "<s><t><n/></t>text<t><n/></t></s>",
    ]
    assert str(infer_tree(samples)).splitlines() == ["s #text", "  t+ @id @k", "    n* #text", "  u?"]


def test_by_the_ending_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.xsd").write_text(XSD)
    (tmp_path / "a.dtd").write_text("<!ELEMENT r (b)><!ELEMENT b EMPTY>")
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "1.xml").write_text("<r><b/></r>")
    (tmp_path / "samples" / "more").mkdir()
    (tmp_path / "samples" / "more" / "2.XML.gz").write_bytes(gzip.compress(b"<r/>"))
    assert open_schema(tmp_path / "a.xsd") == tree_of_xsd(XSD)
    assert str(open_schema(tmp_path / "a.dtd")) == "r\n  b"
    assert str(open_schema(tmp_path / "samples")) == "r\n  b?"
    assert str(open_schema(tmp_path / "samples" / "1.xml")) == "r\n  b"
    assert str(open_schema(tmp_path / "samples" / "more" / "2.XML.gz")) == "r"
    with pytest.raises(MappingError, match=r"a schema must be a \.dtd"):
        open_schema(tmp_path / "a.txt")


def test_what_can_t_be_a_tree_is_refused() -> None:
    with pytest.raises(MappingError, match="no documents given"):
        infer_tree([])
    with pytest.raises(MappingError, match="different roots: a, b"):
        infer_tree(["<a/>", "<b/>"])
    with pytest.raises(MappingError, match="the XML Schema is invalid"):
        tree_of_xsd("<xs:schema")
    recursive = XSD.replace('<xs:element name="seal"/>', '<xs:element ref="school"/>')
    with pytest.raises(MappingError, match="recursive at 'school/school', but"):
        tree_of_xsd(recursive, root="school")
    assert "school/school" not in tree_of_xsd(recursive, root="school", recursion="cut")
    with pytest.raises(MappingError, match="declares no element 'x'; use one of school"):
        tree_of_xsd(XSD, root="x")
    assert str(tree_of_dtd(b"<!ELEMENT r (b)><!ELEMENT b EMPTY>")) == "r\n  b"


def test_indented_names_are_a_schema(tmp_path: Path) -> None:
    (tmp_path / "good.tree").write_text("a\n  b? @k #text\n")
    assert str(open_schema(tmp_path / "good.tree")) == "a\n  b? @k #text"
    (tmp_path / "bad.tree").write_text("a\n      b\n")
    with pytest.raises(MappingError, match=r"bad.tree: line 2 of the schema, 'b', has the wrong indentation"):
        open_schema(tmp_path / "bad.tree")


def test_one_sample_is_not_taken_for_several() -> None:
    with pytest.raises(TypeError, match="infer_tree takes a list of documents"):
        infer_tree("<a/>")


RECURSIVE = """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
<xs:element name="part"><xs:annotation><xs:documentation>Something that is  built.</xs:documentation></xs:annotation>
<xs:complexType><xs:sequence><xs:element name="label" type="xs:string"/>
<xs:element ref="part" minOccurs="0" maxOccurs="unbounded"/></xs:sequence>
<xs:attribute name="no" type="number"/></xs:complexType></xs:element>
<xs:simpleType name="number"><xs:annotation><xs:documentation>Number of the part</xs:documentation></xs:annotation>
<xs:restriction base="xs:string"/></xs:simpleType></xs:schema>"""


def test_with_samples_the_tree_has_what_they_use(tmp_path: Path) -> None:
    (tmp_path / "a.xsd").write_text(RECURSIVE)
    (tmp_path / "a.dtd").write_text("<!ELEMENT part (label, part*)><!ELEMENT label (#PCDATA)>")
    (tmp_path / "a.tree").write_text("part\n  label #text\n")
    (tmp_path / "a.xml").write_text("<part no='1'><label>x</label><part no='2'><label>y</label></part></part>")
    with pytest.raises(MappingError, match="recursive at 'part/part', but mappings need trees; give samples, or cut"):
        open_schema(tmp_path / "a.xsd", root="part")
    found = open_schema(tmp_path / "a.xsd", samples=tmp_path / "a.xml")
    assert str(found).splitlines() == ["part @no", "  label #text", "  part @no", "    label #text"]
    assert found.samples["part/part/label"].values == ["y"]
    assert found.documentation == {
        "part": "Something that is built.", "part/@no": "Number of the part",
        "part/part": "Something that is built.", "part/part/@no": "Number of the part",
    }  # fmt: skip
    assert open_schema(tmp_path / "a.dtd", samples=tmp_path / "a.xml") == found
    assert open_schema(tmp_path / "a.tree", samples=tmp_path / "a.xml").samples == found.samples
    cut = tree_of_xsd(RECURSIVE, root="part", recursion="cut")
    assert cut.documentation == {"part": "Something that is built.", "part/@no": "Number of the part"}


def test_the_size_of_a_tree_is_bounded_by_the_caller(tmp_path: Path) -> None:
    (tmp_path / "a.xsd").write_text(XSD)
    assert len(open_schema(tmp_path / "a.xsd", limit=7)) == 7
    with pytest.raises(LimitError, match="more than 6 nodes"):
        open_schema(tmp_path / "a.xsd", limit=6)
