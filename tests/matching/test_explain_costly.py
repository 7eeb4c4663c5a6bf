"""Explanations of expensive input: depth, width, long numbers, nested predicates."""

import pytest

import pathcast
from tests import oracle

from .test_explain import explained, findings


@pytest.mark.slow
def test_deep_documents_are_explained_without_recursion() -> None:
    depth = 10_000
    subscriptions = pathcast.Subscriptions(max_steps=depth)
    xpaths = ["//a//a[b = 'x']", "//a[contains(.//b, 'y')]//b", "/a" * 2_000 + "/c", "//*[. = 5]", "//a[not(b)]/b"]
    numbers = subscriptions.add_many(xpaths)
    matcher = subscriptions.compile(limits=pathcast.Limits(depth=2 * depth))
    document = "<a>" * depth + "<b>x</b>" + "</a>" * depth
    found = [matcher.explain(document, number) for number in numbers]
    assert [each.matches for each in found] == [True, False, False, False, False]
    assert [len(step.steps) for step in found] == [3, 1, 2_001, 1, 2]
    shown = {place.path for each in found for one in findings(each) for place in one.places}
    assert "/a" * 32 + "/…" + "/a" * 31 + "/b" in shown
    assert max(map(len, shown)) == 2 * 64 + 2


@pytest.mark.slow
def test_wide_documents_are_explained_in_one_go() -> None:
    document = "<a>" + "<b x='1'><c>5</c>t</b>" * 50_000 + "</a>"
    assert explained("//b[c = 6][@x]/d", document).nearest == "`c` is 5, wanted 6, line 1"
    assert explained("/a[not(b[c = 6 or @x = 2])]/b//text()", document).steps[-1].count == 100_000


def test_long_numbers_inside_each_other_are_read_quickly_and_rightly() -> None:
    document = "<a>1" * 300 + "2" * 100_000 + "</a>" * 300
    assert explained("//a[. < 5]", document).nearest == f"`a` is '{'1' * 60}…', wanted less than 5, line 1"
    assert explained("//a[. > 1e5]".replace("1e5", "1" + "0" * 300), document).matches


@pytest.mark.slow
@pytest.mark.parametrize(
    "value",
    [
        "1" * 5_000,
        "-" + "1" * 5_000,
        "0" * 5_000 + "5",
        "5." + "0" * 5_000,
        "0." + "0" * 5_000 + "5",
        "." + "1" * 5_000,
        "0" * 2_000 + "." + "0" * 300 + "1" * 2_000,
        " " * 3_000 + "5" + "\n" * 3_000,
        "5e" + "0" * 5_000 + "1",
        "5e" + "1" * 5_000,
        "5e-" + "1" * 5_000,
        "1" * 5_000 + "e-" + "1" * 5_000,
        "1" * 2_000 + "x",
    ],
    ids=lambda value: f"{value[:3]}…{value[-3:]}".strip(),
)
def test_a_long_number_is_the_number_that_lxml_reads(value: str) -> None:
    document = f"<a n='{value}'>{value}</a>"
    for condition in ("= 5", "!= 5", "< 0", "> 0", "> 1000", "= 50", "= 0", "= 0.11111111111111111"):
        for operand in (".", "@n", "text()"):
            xpath = f"/a[{operand} {condition}]"
            assert explained(xpath, document).matches == oracle.matches(xpath, document.encode()), xpath


def test_predicates_nested_to_the_limit_are_explained() -> None:
    xpath = "//a" + "[not(a" * 31 + ")]" * 31
    assert explained(xpath, "<a>" * 40 + "</a>" * 40).matches in {True, False}
    alternatives = " or ".join(f"@n = {number}" for number in range(90))
    assert len(explained(f"//a[{alternatives}]", "<a n='200'/>").misses) == 90
