"""Assembled patterns equal the patterns of recursive descent, and so do the errors."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.errors import LimitError, PatternError
from pathcast.patterns import Namespaces, Pattern, parse
from pathcast.patterns.parsing.bounded_cache import Memo
from pathcast.patterns.parsing.cached_pattern_assembly import Assembler, assembler
from pathcast.patterns.parsing.recursive_descent import MAX_NESTING, MAX_STEPS, MAX_TREE_STEPS, Descent
from pathcast.patterns.parsing.xpath_parser import descended, parse_printed
from tests.corpus import cases, refusals
from tests.patterns.expressions import near_miss, paths

PREFIXES = {"p": "http://example.org/p"}
SLIPS_TRIED = 5000

Outcome = tuple[Pattern, str] | tuple[type, dict[str, object]]


def outcome(pattern: Pattern) -> Outcome:
    """A pattern, and what equality ignores: the texts of its numbers."""
    return pattern, str(pattern)


def refused(error: PatternError | LimitError) -> Outcome:
    return type(error), vars(error)


def quick(expression: str, namespaces: Namespaces, max_steps: int = MAX_STEPS) -> Outcome:
    try:
        return outcome(parse(expression, namespaces, max_steps=max_steps))
    except (PatternError, LimitError) as error:
        return refused(error)


def slow(expression: str, namespaces: Namespaces, max_steps: int = MAX_STEPS) -> Outcome:
    try:
        return outcome(descended(expression, namespaces, max_steps, MAX_NESTING))
    except (PatternError, LimitError) as error:
        return refused(error)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(paths(top=True), st.randoms(use_true_random=False))
def test_an_expression_is_assembled_to_what_descent_gives(expression: str, random: Random) -> None:
    for namespaces in (PREFIXES, None, "ignore"):
        wanted = slow(expression, namespaces)
        assert quick(expression, namespaces) == wanted
        assert quick(expression, namespaces) == wanted  # now its parts are known
    for _ in range(10):
        wrong = near_miss(expression, random)
        assert quick(wrong, PREFIXES) == slow(wrong, PREFIXES), wrong


KNOWN = [case.pattern for case in cases()] + [refusal.pattern for refusal in refusals()]


def test_all_cases_are_assembled_to_what_descent_gives() -> None:
    for expression in KNOWN:
        for namespaces in (None, PREFIXES, "ignore"):
            assert quick(expression, namespaces) == slow(expression, namespaces), expression


def test_a_slip_of_the_pen_gives_the_same_pattern_or_the_same_error() -> None:
    random = Random(3)
    good = 0
    for _ in range(SLIPS_TRIED):
        expression = near_miss(random.choice(KNOWN), random)
        wanted = slow(expression, PREFIXES)
        assert quick(expression, PREFIXES) == wanted, expression
        good += isinstance(wanted[0], Pattern)
    assert SLIPS_TRIED / 20 < good < SLIPS_TRIED * 2 / 3


@pytest.mark.parametrize(
    "expression",
    [
        "//x[a and b",
        "//x[a and bX",
        "//x[a and b[c[d[e[f]]]]",
        "//x[a and b[c[d[e[f]]]]]",
        "//x[/ and /b]",
        "//x[a = 5or b and c]",
        "//x[author and b or c and d]",
        "//x[a = '\ud800']",
        "/@a[.]/b",
        "/@a[. = 5]",
        "/a/@b[.]",
        "/text()[.]",
        "[a]",
        "//[a]",
        "//x[]",
        "",
    ],
)
def test_what_is_easily_cut_in_the_wrong_place_means_what_descent_says(expression: str) -> None:
    assert quick(expression, PREFIXES) == slow(expression, PREFIXES)


@pytest.mark.parametrize(
    "expression",
    [
        "/news[@lang = 'en'][head]//p/q",
        "a/b[@c='x']//d[e/f > 3 and not(g)]",
        "//a[text()='x and y'][@x='1'][@y>2]/b",
        "/a/*[.//b/c]//*[@d != -5]/@e",
        "//a[b[c[d]] or contains(e, 'x')]/text()",
        "/p:a[p:b/@p:c <= 1.5]",
        "//*//*[a]",
    ],
)
def test_usual_expressions_need_no_descent(expression: str) -> None:
    pattern = Assembler(PREFIXES).pattern(expression, MAX_TREE_STEPS)
    assert pattern is not None
    assert outcome(pattern) == slow(expression, PREFIXES)


def test_conditions_are_sorted_by_all_of_their_text() -> None:
    for expression in (
        "/a[b/z]/b/c",
        "/a[b]/b/c",
        "/a[b/c]/b/c",
        "/a[bb]/b/c",
        "/a[.//b = 5]//b",
        "/a[b[c]/d]/b[c]/d/e",
    ):
        assert quick(expression, None) == slow(expression, None)


def test_equal_numbers_without_a_text_of_their_own_are_one_condition() -> None:
    one, other = (f"@b = 0.{digits}" for digits in ("12345678901234567890123", "123456789012345678901230"))
    assert parse(f"/a[{one}]") == parse(f"/a[{other}]")
    assert quick(f"/a[{one}][{other}]", None) == slow(f"/a[{one}][{other}]", None)


@pytest.mark.parametrize("steps", [MAX_TREE_STEPS - 1, MAX_TREE_STEPS, MAX_TREE_STEPS + 1, MAX_STEPS, MAX_STEPS + 1])
def test_the_limits_are_those_of_descent(steps: int) -> None:
    for expression in ("/a" * steps, "/a" * (steps - 2) + "[b]/c", "/a[b" + "/b" * (steps - 3) + "]/c"):
        for most in (MAX_STEPS, steps - 1, steps):
            assert quick(expression, None, most) == slow(expression, None, most)
    printed = "/a" * (steps - 2) + "[b]/c"
    assert str(parse_printed(printed, None)) == str(
        Descent(printed, None, 2 * len(printed), 2 * len(printed)).pattern()
    )


def test_nesting_is_limited_as_in_descent() -> None:
    for depth in (1, 3, 4, 5, MAX_NESTING, MAX_NESTING + 1):
        for opening, closing in (("[b", "]"), ("[not(b", ")]"), ("[(b", ")]")):
            assert quick("/a" + opening * depth + closing * depth, None) == slow(
                "/a" + opening * depth + closing * depth, None
            )


def test_a_change_of_prefixes_changes_the_names() -> None:
    declared = {"p": "one"}
    assert parse("/p:a[p:b]", declared).names == {"{one}a", "{one}b"}
    declared["p"] = "two"
    assert parse("/p:a[p:b]", declared).names == {"{two}a", "{two}b"}
    with pytest.raises(PatternError, match="not declared"):
        parse("/p:a[p:b]", {"q": "one"})
    for number in range(20):
        assert parse("/p:a[p:b]", {"p": str(number)}).names == {f"{{{number}}}a", f"{{{number}}}b"}
    assert assembler({"p": "19"}) is assembler({"p": "19"})


@pytest.mark.parametrize("hostile", ['["', "[a", "['", "[a and ", "/a[", "[a]", "(", "//*[b]", "[not("])
def test_a_hostile_expression_costs_no_more_than_its_length(hostile: str) -> None:
    expression = "/a" + hostile * 5_000
    assert quick(expression, None) == slow(expression, None)


# The memo.


def test_a_memo_keeps_what_is_asked_for_and_forgets_the_rest() -> None:
    memo: Memo[int] = Memo(1 << 20)
    for number in range(10_000):
        memo.keep(f"/{number}", number)
        if memo.get("/0") is None:
            pytest.fail(f"forgotten after {number}")
    assert memo.get("/9999") == 9999
    assert memo.get("/1") is None
    assert 100 < len(memo) < (1 << 20) // 512


def test_a_memo_does_not_keep_what_is_too_large() -> None:
    memo: Memo[int] = Memo(1 << 20)
    memo.keep("x" * 10_000, 1)
    assert len(memo) == 0
