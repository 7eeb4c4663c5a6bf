"""Any expression becomes a pattern: a tree that says the same, or an opaque pattern with a tree that says less."""

from random import Random

import pytest

from pathcast import Subscriptions
from pathcast.errors import PatternError
from pathcast.patterns import Pattern, parse
from pathcast.patterns.containment.pattern_containment import contains
from tests.generators.xpath import NAMESPACES, Expressions, document

TREES = {
    "/child::a/descendant::b": "/a//b",
    "/a | /b/c": "/*[/a or /b/c]",
    "a | b": "/*[//a or //b]",
    "/a[b | c]": "/a[b or c]",
    "not(//a)": "/*[not(//a)]",
    "/a[count(b) > 0]": "/a/b",
    "/a[0 = count(b)]": "/a[not(b)]",
    "/a[true()]": "/a",
    "/a[boolean(b) and 'x']": "/a/b",
    "//a = 5": "/*[//a = 5]",
}
"""Expressions that say the same as a tree pattern."""

WEAKER = {
    "//p[position() >= 2][@x]/q": "//p[@x]/q",
    "//p[2]/q = 'a'": "//p/q[. = 'a']",
    "//a/following-sibling::b[count(c) > 2]": "/*[//a][//b/c]",
    "normalize-space(//title) = 'Rain'": "//title",
    "/a[@x + 1 = 2]": "/a/@x",
    "/a[b = c]": "/a[b][c]",
    "/a[not(b[2])]": "/a",
    "/a[b or c[2]]": "/a[b or c]",
    "/a[b or position() = 1]": "/a",
    "/a/b/../c": "/*[/a/b][//c]",
    "/a/@*": "/a",
    "/a/node()/b": "/a//b",
    "(//a | //b)[2]/c": "/*[//a or //b][//c]",
    "string-length(//a) > 3": "//a",
    "string-length(//a) < 3": "/*",
    "date(//a/@d) > date('2024-01-01')": "//a/@d",
    "count(//a) != 2": "/*",
    "//a[lower-case(@x) = 'y']": "//a[@x]",
}
"""Opaque patterns, and the trees that find their candidates."""


@pytest.mark.parametrize("expression", TREES)
def test_an_expression_with_the_meaning_of_a_tree_is_that_tree(expression: str) -> None:
    assert parse(expression) == parse(TREES[expression])
    assert not parse(expression).expression


@pytest.mark.parametrize("expression", WEAKER)
def test_an_opaque_pattern_has_the_tree_that_its_expression_demands(expression: str) -> None:
    pattern = parse(expression)
    assert pattern.expression
    assert str(Pattern(pattern.root)) == str(parse(WEAKER[expression]))


def test_equal_expressions_are_one_pattern() -> None:
    assert parse("child::a[position()=2]") == parse(" a [ position() = 2.0 ] ")
    assert parse("/f:a[1]", {"f": "urn:f"}) == parse("/Q{urn:f}a[1]")
    assert parse("(a)") != parse("a")


@pytest.mark.parametrize("seed", range(20))
def test_the_text_of_a_pattern_parses_to_the_same_pattern(seed: int) -> None:
    expressions = Expressions(Random(seed))
    for _ in range(200):
        pattern = parse(expressions.subscription(), NAMESPACES)
        assert parse(str(pattern)) == pattern


@pytest.mark.parametrize("seed", range(10))
def test_every_document_that_matches_an_expression_has_its_tree(seed: int) -> None:
    random = Random(seed)
    texts = [Expressions(random).subscription() for _ in range(60)]
    patterns = [parse(text, NAMESPACES) for text in texts]
    whole, trees = Subscriptions(NAMESPACES), Subscriptions(NAMESPACES)
    whole.add_many(texts)
    trees.add_many([str(Pattern(pattern.root)) for pattern in patterns])
    documents = [document(random) for _ in range(12)]
    # Full evaluation of everything: as opaque patterns whose trees every document has.
    for exact, candidates in zip(
        whole.compile("reference").match_many(documents), trees.compile("reference").match_many(documents), strict=True
    ):
        assert set(exact) <= set(candidates)


def test_an_opaque_pattern_contains_only_itself() -> None:
    opaque = parse("/a/b[2]")
    assert contains(opaque, opaque)
    assert not contains(opaque, parse("/a/b"))
    assert contains(parse("/a"), opaque)
    assert not contains(parse("/a/c"), opaque)


REGULAR = ["//a[matches(., '(')]", "//a[matches(., '(?<=x)y')]", "//a[matches(., @x)]"]


@pytest.mark.parametrize("expression", REGULAR)
def test_a_regular_expression_must_be_one_of_re2(expression: str) -> None:
    with pytest.raises(PatternError) as caught:
        parse(expression)
    assert caught.value.column == 16
