"""Positions and counts become tests of computed attributes; other expressions have no counted tree."""

import pytest

from pathcast.patterns import ComputedAttribute, Pattern, computed_attribute, parse

COUNTED = {
    "//p[2]/q": "//p[@position(p) = 2]/q",
    "/nitf//body.content[1]/hl2": "/nitf//body.content[@position(body.content) = 1]/hl2",
    "//p[position() >= 2][@x]/q": "//p[@position(p) >= 2][q]/@x",
    "//p[2 < position()]": "//p[@position(p) > 2]",
    "//p[last()]/q": "//p[@from-end(p) = 1]/q",
    "//p[last() - 1]": "//p[@from-end(p) = 2]",
    "//p[position() > last() - 2]": "//p[@from-end(p) < 3]",
    "//p[last() - position() = 1]": "//p[@from-end(p) = 2]",
    "//p[position() + 1 = 3]": "//p[@position(p) = 2]",
    "//p[last() = 3 and @x]": "//p[@total(p) = 3]/@x",
    "//p[-position() < -2]": "//p[@position(p) > 2]",
    "//p[position() = 2 or not(position() < 4)]": "//p[@position(p) = 2 or not(@position(p) < 4)]",
    "/a/*[2]/q": "/a/*[@position(*) = 2]/q",
    "//p[q[2] = 'x']": "//p/q[. = 'x'][@position(q) = 2]",
    "//p[2]/text()[1]": "//p[@position(p) = 2]/text()",
    "//p[1]": "//p",
    "//p[@x][last()]": "//p/@x",
    "(//p)[2]/q": "//p[@document-position(p) = 2]/q",
    "(//p)[last() - 1]/q": "//p[@document-from-end(p) = 2]/q",
    "/descendant::p[3]": "//p[@document-position(p) = 3]",
    "count(//p) >= 2": "//p[@document-position(p) = 2]",
    "count(//p) = 3": "//p[@document-total(p) = 3]",
    "count(/r/p) < 2": "/*[not(/r/p[@position(p) = 2])]",
    "//p[count(q) > 1.5]": "//p/q[@position(q) = 2]",
    "//p[count(q) <= 1]": "//p[not(q[@position(q) = 2])]",
    "//p[count(*) = 2]": "//p/*[@total(*) = 2]",
    "//p[3 != count(q)]": "//p[not(q[@total(q) = 3])]",
    "//p/following-sibling::p/q": "//p[@position(p) > 1]/q",
    "//*/preceding-sibling::p/q": "//p[@from-end-of-all(p) > 1]/q",
    "//p[@x]/following-sibling::*": "//p[@from-end-of-all(p) > 1]/@x",
    "//p[not(preceding-sibling::p)]": "//p[not(@position(p) > 1)]",
    "//p[following-sibling::*[1]]": "//p[@from-end-of-all(p) > 1]",
    "//p[count(preceding-sibling::*) = 2]": "//p[@position-of-all(p) = 3]",
}
"""Expressions, and their trees with computed attributes."""

OPAQUE = [
    "//p[@x][2]/q",
    "//p[2][3]",
    "//p[position() mod 2 = 1]",
    "//p[position() = last() div 2]",
    "//p[position() + 0.1 = 2.1]",
    "//p[position() - last() = 0.00000000000000001]",
    "//a/descendant::p[2]",
    "//p/ancestor::q[2]",
    "//p[text()[2] = 'x']",
    "//p/following-sibling::q[2]/r",
    "//p/following-sibling::q",
    "//p[count(a/q) > 2]",
    "//p[count(q[@x]) > 2]",
    "//p[count(@q) > 2]",
    "(a)[2]",
    "(//p/q)[2]",
    "//p[2 and position() = 1]",
    "//p[boolean(2)]",
    "//p[not(boolean(count(q)))]",
    "//p[last() and @x]",
    "count(//p) > count(//q)",
]
"""Expressions without counted trees."""


@pytest.mark.parametrize("expression", COUNTED)
def test_positions_and_counts_are_tests_of_computed_attributes(expression: str) -> None:
    pattern = parse(expression)
    assert pattern.expression
    assert str(Pattern(pattern.counted)) == COUNTED[expression]


@pytest.mark.parametrize("expression", OPAQUE)
def test_other_expressions_have_no_counted_tree(expression: str) -> None:
    pattern = parse(expression)
    assert pattern.expression
    assert pattern.counted is None


def test_a_tree_pattern_has_no_counted_tree() -> None:
    assert parse("//p[@x = 2]/q").counted is None


def test_names_keep_their_namespaces() -> None:
    counted = Pattern(parse("/f:a/f:b[2]", {"f": "urn:f"}).counted)
    assert counted.names == {"{urn:f}a", "{urn:f}b", "position({urn:f}b)"}
    assert Pattern(parse("/f:a/f:b[2]", "ignore").counted).names == {"a", "b", "position(b)"}


def test_names_in_the_expression_never_stand_for_computed_attributes() -> None:
    pattern = Pattern(parse("//n[2][@n0][@nn0]").counted)
    assert str(pattern) == "//n[@nn0][@position(n) = 2]/@n0"


def test_the_name_of_a_computed_attribute_tells_what_it_measures() -> None:
    attribute = ComputedAttribute("from-end", "{urn:f}a")
    assert computed_attribute(attribute.name) == attribute
    for name in ("position", "{urn:f}a", "text()", "a(b)"):
        assert computed_attribute(name) is None
