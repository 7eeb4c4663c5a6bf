"""The parts of a document at which an expression holds: those that lxml selects, where an expression selects any."""

import pytest
from lxml import etree

from pathcast.documents import read
from pathcast.matching.explain import find_parts
from pathcast.patterns import parse

STORY = """<?xml version="1.0"?>
<!-- <title>not this</title> -->
<news xmlns:f="urn:f" lang="en">
  <head><title a='1 > 0' b="x/>">Räin &amp; <![CDATA[<title>]]></title><empty/><empty x="1"/></head>
  <body><p id="7">a/></p><p id="8" k="wet">It <em>poured</em>.<br/></p><f:p/></body>
</news>"""


def texts(expression: str, document: str = STORY, most: int = 1000) -> list[str]:
    data = document.encode()
    found = find_parts(read(data), parse(expression, {"f": "urn:f"}), {"f": "urn:f"}, most)
    assert len(found.parts) <= found.total
    return [data[part.begin : part.end].decode() for part in found.parts]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("//title", ["<title a='1 > 0' b=\"x/>\">Räin &amp; <![CDATA[<title>]]></title>"]),
        ("//title/@b", ['b="x/>"']),
        ("//title/@a", ["a='1 > 0'"]),
        ("/news/@lang", ['lang="en"']),
        ("//empty", ["<empty/>", '<empty x="1"/>']),
        ("//p[@id = 7]", ['id="7"']),
        ("//p[. = 'a/>']", ['<p id="7">a/></p>']),
        ("//p/text()", ["a/>", "It <em>poured</em>.<br/>"]),
        ("//f:p", ["<f:p/>"]),
        ("//p[@id]/em", ['id="8"', "<em>poured</em>"]),
        ("//body[p/em]//br", ["<em>poured</em>", "<br/>"]),
        ("//p[em or @missing]", ["<em>poured</em>"]),
        ("//p[not(em)]", ['<p id="7">a/></p>']),
        ("//p[//title]", ["<title a='1 > 0' b=\"x/>\">Räin &amp; <![CDATA[<title>]]></title>"]),
        ("//title[em]", []),
        ("/news/title", []),
        ("/", []),
    ],
)
def test_the_ends_of_all_branches_are_found_in_the_bytes(expression: str, expected: list[str]) -> None:
    assert texts(expression) == expected


@pytest.mark.parametrize("expression", ["//p", "/news/body/p", "//p[contains(., 'pour')]", "//head/*", "//em"])
def test_the_elements_are_those_that_lxml_selects(expression: str) -> None:
    tree = etree.fromstring(STORY.encode())
    expected = []
    for element in tree.xpath(expression):
        element.tail = None
        expected.append(etree.tostring(etree.fromstring(etree.tostring(element)), method="c14n"))
    given = [each if "xmlns" in each else each.replace("<f:p", '<f:p xmlns:f="urn:f"') for each in texts(expression)]
    parsed = [etree.tostring(etree.fromstring(each.encode()), method="c14n") for each in given]
    plain = [each.replace(b' xmlns:f="urn:f"', b"") for each in expected]
    assert [each.replace(b' xmlns:f="urn:f"', b"") for each in parsed] == plain


def test_only_the_first_parts_are_returned_and_all_are_counted() -> None:
    document = f"<r>{'<p/>' * 50}</r>".encode()
    found = find_parts(read(document), parse("//p"), None, 3)
    assert (found.total, [part.begin for part in found.parts]) == (50, [3, 7, 11])


def test_an_element_of_an_entity_is_its_reference() -> None:
    document = '<!DOCTYPE r [<!ENTITY e "<p>x</p>">]><r>&e;</r>'
    found = find_parts(read(document, entities="expand"), parse("//p"), None, 9)
    assert [document[part.begin : part.end] for part in found.parts] == ["&e;"]


def test_positions_are_those_in_utf_8_whatever_the_encoding() -> None:
    document = '<?xml version="1.0" encoding="utf-16"?><r>ä<p/></r>'
    read_document = read(document.encode("utf-16"))
    (part,) = find_parts(read_document, parse("//p"), None, 9).parts
    assert read_document.utf8[part.begin : part.end] == b"<p/>"
