"""DTDs: schemas read from them, and rejected DTDs."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pathcast.documents.schema.document_schema import Attribute
from pathcast.documents.schema.dtd_reader import LARGEST, read_dtd
from pathcast.errors import DocumentError, LimitError, PathcastError

NITF = Path(__file__).resolve().parents[3] / "shared/data/nitf/nitf-2-5.dtd"


@pytest.mark.parametrize(
    "model",
    [
        "(b)",
        "(b?, c*, d+)",
        "(b | c | d)",
        "((b, c)+, (d | b)?)",
        "(b, (c | d)*, b)",
        "(b, (c, d)*)",
        "(b | (c | d)+)",
        "(#PCDATA)",
        "(#PCDATA | b | c)*",
        "((b | c)*, (b | (c, d))?)",
    ],
)
def test_content_models_are_read_as_written(model: str) -> None:
    schema = read_dtd(f"<!ELEMENT a {model}> <!ELEMENT b EMPTY> <!ELEMENT c EMPTY> <!ELEMENT d EMPTY>")
    content = str(schema["a"].content)
    assert (content if content.startswith("(") else f"({content})") == model


def test_a_group_of_one_element_is_that_element() -> None:
    assert str(read_dtd("<!ELEMENT a ((b)+)> <!ELEMENT b EMPTY>")["a"].content) == "b+"


def test_kinds_of_content_are_told_apart() -> None:
    schema = read_dtd("<!ELEMENT a (b)> <!ELEMENT b ANY> <!ELEMENT c EMPTY> <!ELEMENT d (#PCDATA)>")
    assert [element.kind for element in schema] == ["children", "any", "empty", "mixed"]
    assert [element.has_text for element in schema] == [False, True, False, True]


def test_attributes_keep_type_use_value_and_choices() -> None:
    schema = read_dtd(
        """<!ELEMENT a EMPTY>
        <!NOTATION gif SYSTEM "gif">
        <!ATTLIST a
            i ID #IMPLIED  r IDREF #REQUIRED  s IDREFS #IMPLIED  e ENTITY #IMPLIED
            t NMTOKEN #IMPLIED  u NMTOKENS #IMPLIED
            k (x | y) "y"  n NOTATION (gif) #IMPLIED  f CDATA #FIXED "1 &lt; 2 &amp; 3"  d CDATA "">"""
    )
    assert {attribute.name: attribute for attribute in schema["a"].attributes} == {
        "i": Attribute("i", "ID"),
        "r": Attribute("r", "IDREF", "required"),
        "s": Attribute("s", "IDREFS"),
        "e": Attribute("e", "ENTITY"),
        "t": Attribute("t", "NMTOKEN"),
        "u": Attribute("u", "NMTOKENS"),
        "k": Attribute("k", "enumeration", "default", "y", ("x", "y")),
        "n": Attribute("n", "NOTATION", "implied", None, ("gif",)),
        "f": Attribute("f", "CDATA", "fixed", "1 < 2 & 3"),
        "d": Attribute("d", "CDATA", "default", ""),
    }


def test_parameter_entities_inside_the_text_are_resolved() -> None:
    schema = read_dtd(
        """<!ENTITY % leaf "c"> <!ENTITY % model "b?, %leaf;*"> <!ENTITY % marks "x CDATA #IMPLIED">
        <!ELEMENT a (%model;)> <!ELEMENT b EMPTY> <!ELEMENT c EMPTY> <!ATTLIST b %marks;>"""
    )
    assert str(schema["a"].content) == "(b?, c*)"
    assert schema["b"].attributes[0].name == "x"


def test_prefixes_belong_to_names() -> None:
    schema = read_dtd(
        '<!ELEMENT p:a (p:b?, c)> <!ELEMENT p:b EMPTY> <!ELEMENT c EMPTY> <!ATTLIST p:a xmlns:p CDATA #FIXED "urn:p">'
    )
    assert schema.children["p:a"] == ("p:b", "c")
    assert schema["p:a"].attributes[0].name == "xmlns:p"


def test_a_model_that_names_one_of_two_elements_with_different_prefixes_is_refused() -> None:
    with pytest.raises(DocumentError, match="'b' in a content model is ambiguous: the DTD declares b and q:b"):
        read_dtd("<!ELEMENT a (b)> <!ELEMENT b EMPTY> <!ELEMENT q:b EMPTY>")


@pytest.mark.parametrize("encode", [str, str.encode, lambda text: text.encode("utf-16")])
def test_text_comes_as_str_or_bytes(encode: Callable[[str], str | bytes]) -> None:
    assert read_dtd(encode("<!ELEMENT é (ß*)> <!ELEMENT ß EMPTY>")).root == "é"


def test_a_declared_encoding_is_used_for_bytes_and_past_for_str(tmp_path: Path) -> None:
    text = '<?xml version="1.0" encoding="ISO-8859-1"?><!ELEMENT é EMPTY>'
    file = tmp_path / "latin.dtd"
    file.write_bytes(text.encode("latin-1"))
    assert read_dtd(file).root == read_dtd(text).root == read_dtd("\ufeff" + text).root == "é"


def test_a_file_that_is_not_there_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"cannot read the DTD .*missing\.dtd: No such file"):
        read_dtd(tmp_path / "missing.dtd")


@pytest.mark.parametrize("address", ["{file}", "file://{file}", "http://127.0.0.1:9/x.dtd", "other.dtd"])
def test_external_parameter_entities_are_refused_and_not_read(address: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret.dtd"
    secret.write_text("<!ELEMENT secret EMPTY>")
    text = f'<!ENTITY % x SYSTEM "{address.format(file=secret)}"> %x; <!ELEMENT a ANY>'
    with pytest.raises(DocumentError, match="external entity .*, which is never read"):
        read_dtd(text)


def test_an_external_entity_that_is_only_declared_does_no_harm() -> None:
    assert read_dtd('<!ENTITY % x SYSTEM "x.dtd"> <!ENTITY y SYSTEM "y"> <!ELEMENT a EMPTY>').root == "a"


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("", "declares no element", None),
        ("<!-- nothing -->", "declares no element", None),
        ("<!ENTITY x 'y'>", "declares no element", None),
        ("hello", "the DTD is malformed", 1),
        ("<news/>", "the DTD is malformed", 1),
        ("<!ELEMENT a (b", "the DTD is malformed", 1),
        ("<!ELEMENT a (b, c | d)>", "the DTD is malformed", 1),
        ("<!ELEMENT a EMPTY>\n<!ELEMENT a EMPTY>", "Redefinition of element a", 2),
        ("\n\n<!ELEMENT a %missing;>", "Entity 'missing' not defined", 3),
        ("<!ELEMENT a EMPTY>\n<!ATTLIST a b CDATA>", "the DTD is malformed", 2),
        ("<!ENTITY e 'v'><!ELEMENT a EMPTY><!ATTLIST a b CDATA '&e;'>", "default value of attribute 'b' of 'a'", None),
    ],
)
def test_what_is_no_dtd_is_refused_with_reason_and_line(text: str, reason: str, line: int | None) -> None:
    with pytest.raises(DocumentError, match=reason) as caught:
        read_dtd(text)
    assert caught.value.line == line


def test_entities_that_explode_are_refused() -> None:
    bomb = "<!ENTITY % e0 'b,b,b,b,b,b,b,b,b,b'>" + "".join(
        f"<!ENTITY % e{at} '{','.join([f'&#37;e{at - 1};'] * 10)}'>" for at in range(1, 10)
    )
    with pytest.raises(DocumentError, match="amplification"):
        read_dtd(bomb + "<!ELEMENT a (%e9;)>")


@pytest.mark.parametrize("depth", [150, 100_000])
def test_models_nested_too_deep_are_refused(depth: int) -> None:
    with pytest.raises(PathcastError, match="deep"):
        read_dtd("<!ELEMENT a " + "(" * depth + "b,c" + "),d" * (depth - 1) + ")>")


def test_a_very_long_model_is_read() -> None:
    names = [f"n{at}" for at in range(5_000)]
    schema = read_dtd(f"<!ELEMENT a ({','.join(names)})>" + "".join(f"<!ELEMENT {name} EMPTY>" for name in names))
    assert schema.children["a"] == tuple(names)


def test_a_dtd_above_the_size_limit_is_refused() -> None:
    with pytest.raises(LimitError, match="the DTD has 16,777,217 bytes; at most 16,777,216 are allowed"):
        read_dtd("<!ELEMENT a EMPTY>".ljust(LARGEST + 1))


PIECES = [
    "<!ELEMENT ",
    "a",
    " ",
    "(",
    ")",
    "|",
    ",",
    "*",
    "#PCDATA",
    ">",
    "<!ATTLIST ",
    "CDATA ",
    "#IMPLIED",
    "'",
    "%",
    ";",
]
PIECES += [
    "<!ENTITY ",
    "<!--",
    "-->",
    "<![",
    "INCLUDE[",
    "]]>",
    "<?x ?>",
    "ANY",
    "EMPTY",
    "&#0;",
    "\x00",
    "é",
    "\ud800",
]


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join) | st.binary(max_size=60))
@example("<!ELEMENT a EMPTY><![INCLUDE[<!ELEMENT b EMPTY>]]>")
def test_whatever_is_given_is_read_or_refused_with_a_pathcast_error(text: str | bytes) -> None:
    with suppress(PathcastError):
        assert len(read_dtd(text)) >= 1


@pytest.mark.skipif(not NITF.exists(), reason="the NITF DTD is not here")
def test_nitf_is_read_whole() -> None:
    schema = read_dtd(NITF)
    assert (schema.root, len(schema), schema.attribute_count, schema.recursive) == ("nitf", 123, 513, True)
