"""Needs name exactly the values that patterns depend on."""

import pytest

from pathcast.errors import MessageError
from pathcast.patterns import parse
from pathcast.routing.table.needed_document_values import Needs


def needs_of(*patterns: str) -> Needs:
    return Needs.of(map(parse, patterns))


@pytest.mark.parametrize(
    ("pattern", "attributes", "texts", "values"),
    [
        ("/a/b", [], [], []),
        ("/a[b]//c[d/e]", [], [], []),
        ("/a/b/@x", [("b", "x")], [], []),
        ("/a/*[@x = '1']", [("*", "x")], [], []),
        ("/a//@x", [("*", "x")], [], []),
        ("/a[@x and @y > 5]/b", [("a", "x"), ("a", "y")], [], []),
        ("/a[not(@x)]", [("a", "x")], [], []),
        ("/a[b = 5]", [], [], ["b"]),
        ("/a[. = 'x' or b/c < 3]", [], [], ["a", "c"]),
        ("/a/text()", [], ["a"], []),
        ("/a[text() = 'x']/b", [], ["a"], []),
        ("/a//text()", [], [], ["a"]),
        ("//a[contains(., 'x')]", [], [], ["a"]),
        ("//a[contains(b/c, 'x')]", [], [], ["c"]),
        ("//a[contains(b/@c, 'x')]", [("b", "c")], [], []),
        ("//a[starts-with(text(), 'x')]", [], ["a"], []),
        ("//a[//b/@c = 'x']", [("b", "c")], [], []),
        ("//a[contains(//b[@c], 'x')]", [("b", "c")], [], ["b"]),
        ("//@x", [("*", "x")], [], []),
        ("//text()[. = 'x']", [], ["*"], []),
    ],
)
def test_a_pattern_needs_what_it_asks_about(pattern, attributes, texts, values):
    found = needs_of(pattern)
    if pattern.startswith("//text()"):  # every text node, one way or the other
        assert "*" in found.texts | found.values
        return
    assert found == Needs(frozenset(attributes), frozenset(texts), frozenset(values))


def test_needs_are_joined_and_travel():
    one, other = needs_of("/a/@x", "/a[b = 1]"), needs_of("/a/text()")
    both = one | other
    assert both == needs_of("/a/@x", "/a[b = 1]", "/a/text()") and both.attribute_names == ("x",)
    assert Needs.decode(both.encode()) == both and Needs.decode(both.encode()).version == both.version
    assert both.version != one.version and bool(both) and not Needs()
    assert Needs.decode(Needs(local=True).encode()).local
    odd = needs_of(*(f"//Q{{{uri}}}a[@Q{{{uri}}}x = 1][. = 2]/text()" for uri in ("a b", "a\nb", "a\\sb", "\\")))
    assert Needs.decode(odd.encode()) == odd
    with pytest.raises(ValueError, match="cannot combine"):
        one | Needs(local=True)


@pytest.mark.parametrize(
    "data", [b"", b"half", b"full\nx", b"full\n@ a", b"full\nt ", b"full\n\xff", b"full\nv a b", b"full\nv a\\"]
)
def test_what_are_no_needs_is_refused(data):
    with pytest.raises(MessageError, match="needed values"):
        Needs.decode(data)


def test_absolute_paths_on_attributes_and_texts_are_looked_into():
    for xpath in ("//*/text()[/c[@x = 5]]", "//@y[not(/c[@x = 5])]", "//@y[. = 1 or /c/@x = 5]"):
        assert ("c", "x") in Needs.of([parse(xpath)]).attributes
    assert Needs.of([parse("//@y[contains(/c/d, 'z')]")]).values == {"d"}
