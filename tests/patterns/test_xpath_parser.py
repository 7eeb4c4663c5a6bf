"""Parsing and printing: equivalent expressions parse to equal patterns, and a printed pattern parses back to itself."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast import LimitError, PatternError
from pathcast.documents import Names
from pathcast.patterns import parse
from pathcast.patterns.parsing.plain_path_encoder import PathEncoder, path_text, pattern_of
from tests.patterns.expressions import paths, plain

SAME = [
    ("a/b", "//a/b", ".//a/./b", "./a/b", " a / b ", "//a/b/.", "//a/b//."),
    ("/", ".", "//.", "/.", ".//."),
    ("/a[b]/c", "/a[c]/b", "/a[b][c]", "/a[c and b]", "/a[c][b][c]", "/a[(b) and ((c))]"),
    ("/a//*/b", "/a/*//b", "/a//*//b"),
    ("/a//*", "/a/*", "/a[*]", "/a[.//*]"),
    ("//a[b = 5]", "//a[5 = b]", "//a/b[. = 5]", "//a[b[5 = .]]", "//a[b = 5.0]", "//a[b=05]"),
    ("//a[b < 5]", "//a[5 > b]", "//a[b < '5']", "//a[b < ' 5.0 ']"),
    ("//a[not(not(b))]", "//a[b]", "//a[b or b]", "//a[b or not(.)]"),
    ("//a[b or c]", "//a[c or b or c]", "//a[not(not(c or b))]"),
    ("//a[@b = 'x']", "//a[@b[. = 'x']]", "//a/@b[. = 'x']", '//a["x" = @b]'),
    ("//a[contains(b, '')]", "//a", "//a[starts-with(@b, '')]", "//a[.]"),
    ("//a[b < 'no number']", "//a[not(.)]", "//b[not(/)]", "/a[b[not(.)]]"),
    ("//a[contains(@b, 'x')]", "//a[@b[contains(., 'x')]]"),
    ("//a[/ = 'x']", "//a[/*[. = 'x']]"),
    ("//a[b = 0]", "//a[b = -0]", "//a[b = 0.0]"),
]


@pytest.mark.parametrize("group", SAME, ids=lambda group: group[0])
def test_expressions_that_mean_the_same_are_one_pattern(group: tuple[str, ...]) -> None:
    assert len({parse(expression) for expression in group}) == 1
    assert len({str(parse(expression)) for expression in group}) == 1


DIFFERENT = [
    ("/a", "//a"),
    ("//a[b = 5]", "//a[b = '5']"),
    ("//a/*/b", "//a//*/b"),
    ("//a[.//* = 'x']", "//a[* = 'x']"),
    ("//a[contains(b, 'x')]", "//a[b[contains(., 'x')]]"),
    ("//a[//b]", "//a[.//b]"),
    ("//a[/b]", "//a[b]"),
    ("//a[text() = 'x']", "//a[. = 'x']"),
    ("//a//@b", "//a/@b"),
    ("//*[@a]/b", "/*[@a]//b"),
    ("//a[not(b = 5)]", "//a[b != 5]"),
    ("//a[b and c]", "//a[b or c]"),
]


@pytest.mark.parametrize("pair", DIFFERENT, ids=lambda pair: pair[0])
def test_expressions_that_differ_are_two_patterns(pair: tuple[str, str]) -> None:
    assert parse(pair[0]) != parse(pair[1])


@pytest.mark.slow
@settings(max_examples=400)
@given(paths(top=True))
def test_a_printed_pattern_parses_back_to_the_same_pattern(expression: str) -> None:
    pattern = parse(expression, {"p": "http://example.org/p"})
    text = str(pattern)
    assert parse(text) == pattern
    assert str(parse(text)) == text


@pytest.mark.slow
@settings(max_examples=300)
@given(st.one_of(plain, plain.map(lambda text: text.lstrip("/")), paths(top=True)))
def test_bulk_loading_agrees_with_the_parser(expression: str) -> None:
    namespaces = {"p": "http://example.org/p"}
    table = Names()
    encoder = PathEncoder(table, namespaces)
    pattern = parse(expression, namespaces)
    steps = encoder.encode(expression)
    if steps is not None:
        assert pattern_of(steps, table) == pattern
        assert path_text(steps, table) == str(pattern)
        assert encoder.steps_of(pattern) == steps
    elif pattern.linear:
        assert pattern_of(encoder.steps_of(pattern) or (), table) == pattern


@pytest.mark.parametrize(
    "expression", ["", "/", "a/", "a//", "///a", "a b", "a/@b", "a[b]", ".", "*x", "a:b", "a/text()"]
)
def test_bulk_loading_leaves_what_is_not_plain_to_the_parser(expression: str) -> None:
    assert PathEncoder(Names()).encode(expression) is None


@pytest.mark.parametrize("uri", ["{x}", "urn:}{", "{{", "a b", "a'b]"])
def test_a_namespace_may_have_braces(uri: str) -> None:
    pattern = parse("/f:a[@f:b = 5]//f:c[f:d or f:e]", {"f": uri})
    assert parse(str(pattern)) == pattern
    names = Names()
    steps = PathEncoder(names, {"f": uri}).encode("/f:a//f:b")
    assert steps is not None
    assert parse(path_text(steps, names)) == parse("/f:a//f:b", {"f": uri})


def test_names_in_a_namespace_print_with_their_uri() -> None:
    pattern = parse("/f:a/@f:b", {"f": "http://example.org/f"})
    assert str(pattern) == "/Q{http://example.org/f}a/@Q{http://example.org/f}b"
    assert parse(str(pattern)) == pattern


def test_ignored_namespaces_leave_local_names() -> None:
    assert parse("/f:a/g:b", "ignore") == parse("/a/b")
    assert PathEncoder(Names(), "ignore").encode("/f:a") is not None


def test_a_pattern_names_what_it_mentions() -> None:
    assert parse("//a[@b = 1 or contains(c/d, 'x')]/*[not(//e)]").names == {"a", "b", "c", "d", "e"}
    assert parse("/a//b/*").linear is not None and parse("/a/@b").linear is None and parse("/").linear == ()


@pytest.mark.parametrize("expression", ["/a" * 257, "//a[" + "b/" * 256 + "c]"])
def test_too_many_steps_are_refused_with_the_way_to_allow_them(expression: str) -> None:
    with pytest.raises(
        LimitError,
        match=r"raise the limit with Subscriptions\(max_steps=…\)|not a plain path of elements; remove steps",
    ):
        parse(expression)
    assert str(parse("/a" * 257, max_steps=300)) == "/a" * 257


def test_deep_nesting_is_refused_at_once() -> None:
    with pytest.raises(LimitError, match="nested more than"):
        parse("//a" + "[b" * 100 + "]" * 100)
    with pytest.raises(LimitError, match="nested more than"):
        parse("//a[" + "(" * 5000 + "b" + ")" * 5000 + "]")
    with pytest.raises(LimitError, match="nested more than"):
        parse("//a[" + "not(" * 5000 + "b" + ")" * 5000 + "]")


def test_an_expression_of_another_type_is_refused() -> None:
    with pytest.raises(PatternError, match="got bytes"):
        parse(b"/a")  # type: ignore[arg-type]
