"""Containment, bounds and minimal forms never contradict lxml's matches on documents."""

import functools
from collections.abc import Iterator
from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.patterns import Pattern, parse
from pathcast.patterns.containment import pattern_containment as containment
from pathcast.patterns.containment.generalisation_steps import generalisations, size
from pathcast.patterns.containment.least_upper_bound import upper_bound
from pathcast.patterns.containment.pattern_containment import Facts, contains
from pathcast.patterns.containment.pattern_minimisation import minimised
from pathcast.patterns.containment.value_implication import excludes, implies
from pathcast.patterns.tree_pattern import Compare, Condition, StringTest
from pathcast.patterns.xpath_value_comparison import holds
from tests import oracle
from tests.generators.documents import COMMON, NUMBERS, WORDS
from tests.generators.rounds import drawn


def contained(general: str, special: str) -> bool:
    return contains(parse(general), parse(special))


@pytest.mark.parametrize(
    ("general", "special"),
    [
        ("//b", "/a/b"),
        ("/a//b", "/a/x/y/b"),
        ("/a", "/a/b"),
        ("/*//b", "//a/b"),
        ("//*/b", "/a/b"),
        ("/a/*/*", "/a//b/c"),
        ("/*", "/"),
        ("/*", "//@x"),
        ("/a[b]", "/a[c]/b/d"),
        ("//b[c]", "/a/b[c = 5]/d"),
        ("//a[@x >= 3]", "/a[@x >= 5]"),
        ("/a[@x]", "/a[@x = 'red']"),
        ("/a[@x != 4]", "/a[@x > 4]"),
        ("/a[contains(@x, 'e')]", "/a[@x = 'red']"),
        ("//@x", "/a/b/@x"),
        ("/a[b or c]", "/a[c]"),
        ("/a[b or c or d]", "/a[d or b]"),
        ("/a[*]", "/a[b or c/d]"),
        ("/a[not(b/c)]", "/a[not(b)]"),
        ("/a[not(b)]", "/a[not(b or c)]"),
        ("/a[not(. > 10)]", "/a[. = 5]"),
        ("/a[//b]", "/a/c/b"),
        ("//b", "/a[//b]"),
        ("/*[//c]//b", "//a/b[c]"),
        ("/a[contains(b, 'x')]", "/a[contains(b, 'xy')]"),
        ("/a/b", "/a[contains(b, 'x')]"),
        ("/a", "/a[b][not(.)]"),
    ],
)
def test_what_one_demands_the_other_implies(general: str, special: str) -> None:
    assert contained(general, special)


@pytest.mark.parametrize(
    ("general", "special"),
    [
        ("/a/b", "/a//b"),
        ("/a/b", "//a/b"),
        ("/a/b", "/a/*"),
        ("//a/*/b", "//a//b"),
        ("/a/*/*", "/a/b"),
        ("/a/b[c][d]", "/a[b/c][b/d]"),
        ("/a[@x >= 5]", "/a[@x >= 3]"),
        ("/a[@x != 5]", "/a[@x != 4]"),
        ("/a[not(@x = 5)]", "/a[@x != 4]"),
        ("/a[b]", "/a[b or c]"),
        ("/a[b]", "/a[not(not(b) and not(c))]"),
        ("/a[not(b)]", "/a[not(b/c)]"),
        ("/a[not(b)]", "/a"),
        ("/a[contains(b, 'x')]", "/a[b[contains(., 'x')]]"),
        ("/a/@x", "/a//@x"),
        ("/a/b", "/"),
        ("/a[text() = 5]", "/a[. = 5]"),
    ],
)
def test_what_does_not_follow_is_not_claimed(general: str, special: str) -> None:
    assert not contained(general, special)


tests_of_values = st.one_of(
    st.builds(
        Compare.with_number,
        st.sampled_from(["=", "!=", "<", "<=", ">", ">="]),
        st.sampled_from([-5.0, 0.0, 4.0, 5.0, 10.0, float("inf")]),
        st.just("?"),
    ),
    st.builds(Compare.with_string, st.sampled_from(["=", "!="]), st.sampled_from([*COMMON, "", "NaN"])),
    st.builds(
        StringTest, st.sampled_from(["contains", "starts-with"]), st.sampled_from(["r", "re", "red", "e", "5", "5."])
    ),
)


@pytest.mark.slow
@given(tests_of_values, tests_of_values)
@settings(deadline=None, max_examples=600)
def test_a_test_implies_or_excludes_another_only_if_no_value_objects(
    known: Compare | StringTest, other: Compare | StringTest
) -> None:
    values = [*COMMON, *NUMBERS, *WORDS, "4.5", "9", "11", "r", "re", "5.5", "-6", "1"]
    passing = [value for value in values if holds(known, value)]
    if implies(known, other):
        assert all(holds(other, value) for value in passing)
    if excludes(known, other):
        assert not any(holds(other, value) for value in passing)


SEEDS = range(1, 7)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_document_that_matches_the_special_pattern_matches_the_general_one(seed: int) -> None:
    this = drawn(seed, documents=8)
    for (special, theirs), (general, ours) in product(zip(this.patterns, this.matched, strict=True), repeat=2):
        if contains(general, special):
            assert theirs <= ours, (str(general), str(special))


@pytest.mark.parametrize("seed", SEEDS)
def test_generalised_patterns_contain_and_match_more(seed: int) -> None:
    this, random = drawn(seed, documents=8), Random(seed)
    for pattern, matched in zip(this.patterns, this.matched, strict=True):
        current = pattern
        for _ in range(4):
            options = list(generalisations(current))
            if not options:
                break
            _, change, after = random.choice(options)
            assert contains(after, current), (change, str(after), str(current))
            assert matched <= this.asked(after)
            current = after


def test_generalisation_ends_with_what_every_document_matches() -> None:
    pattern = parse("/a[b or c][@x = 5]//d[not(e)]/text()")
    while pattern.root is not None:
        *_, pattern = max(generalisations(pattern), key=lambda step: size(step[2]))
    assert str(pattern) == "/"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_bound_is_matched_by_what_matches_either(seed: int) -> None:
    this, random = drawn(seed, documents=8), Random(seed)
    for _ in range(60):
        one, other = random.randrange(len(this.patterns)), random.randrange(len(this.patterns))
        bound = upper_bound(this.patterns[one], this.patterns[other])
        assert size(bound) <= max(size(this.patterns[one]), size(this.patterns[other]))
        assert this.matched[one] | this.matched[other] <= this.asked(bound), (
            str(this.patterns[one]),
            str(this.patterns[other]),
            str(bound),
        )


@pytest.mark.parametrize("seed", SEEDS)
def test_a_minimal_pattern_matches_the_same(seed: int) -> None:
    this = drawn(seed, documents=8)
    for pattern, matched in zip(this.patterns, this.matched, strict=True):
        minimal = minimised(pattern)
        assert size(minimal) <= size(pattern)
        assert this.asked(minimal) == matched, (str(pattern), str(minimal))


@pytest.mark.parametrize(
    ("one", "other", "bound"),
    [
        ("/a/b[c]/d", "/a/x[c]/d/e", "/a/*[d]/c"),
        ("/a[@n >= 3]", "/a[@n >= 5]", "/a[@n >= 3]"),
        ("/a/b/c/d", "/a/c/d", "/a//c/d"),
        ("/a[x]/b", "/a[y]/b", "/a/b"),
        ("/a[not(b)]/c", "/a[not(b)][d]", "/a[not(b)]/*"),
        ("/a[@x = 1]", "/a[@x = 2]", "/a/@x"),
        ("/a", "/", "/"),
    ],
)
def test_bounds_keep_what_both_demand(one: str, other: str, bound: str) -> None:
    assert upper_bound(parse(one), parse(other)) == parse(bound)


@pytest.mark.parametrize(
    ("pattern", "minimal"),
    [
        ("/a[b]/b/c", "/a/b/c"),
        ("/a[.//c]/b/c", "/a/b/c"),
        ("/a[b][//a]", "/a/b"),
        ("/a[@x > 3][@x > 5]", "/a[@x > 5]"),
        ("/a[b or b/c][b]", "/a/b"),
        ("/a[b/c][b/d]", "/a[b/c][b/d]"),
    ],
)
def test_parts_that_follow_from_others_go(pattern: str, minimal: str) -> None:
    assert minimised(parse(pattern)) == parse(minimal)


plain = st.lists(
    st.tuples(st.sampled_from(["/", "//"]), st.sampled_from(["a", "b", "c", "*"])), min_size=1, max_size=6
).map(lambda steps: parse("".join(axis + test for axis, test in steps)))


@pytest.mark.slow
@given(plain, plain)
@settings(deadline=None, max_examples=800)
def test_plain_paths_are_compared_as_trees_are(general: Pattern, special: Pattern) -> None:
    assert general.root is not None
    assert contains(general, special) == Facts(special).prove(general.root)


leaves = st.sampled_from(
    ["a", "b", "a/b", ".//b", "*", "@x", "@x = 5", "@x > 4", "@x != 5", "contains(a, '5')", "starts-with(a, '5')",
     "contains(.//b, '5')", "contains(a/b, '4')", "a = 5", "a > 4", ". = 5", "//b", "//b = 4", "a[b]/@x", "text()"]
)  # fmt: skip
statements = st.recursive(
    leaves,
    lambda parts: st.one_of(
        parts.map(lambda part: f"not({part})"),
        st.tuples(parts, st.sampled_from([" or ", " and "]), parts).map(lambda each: f"({''.join(each)})"),
    ),
    max_leaves=3,
)
SMALL = tuple(
    f"<r{at}>{before}{inside}{after}</r>"
    for at in ("", ' x="5"', ' x="4"')
    for before in ("", "5", "<a>5</a>", "<a/>", "<c><b>4</b></c>")
    for inside in ("", "<a><b>5</b></a>", "<a x='5'><b>4</b></a>", "<b>5</b>")
    for after in ("", "<a>4</a>", "<a><b>4</b></a>", "<b/>")
)


@functools.lru_cache(maxsize=5000)
def small_matches(text: str) -> frozenset[int]:
    question = oracle.ask(text)
    return frozenset(number for number, tree in enumerate(_small_trees()) if oracle.answer(question, tree))


@functools.cache
def _small_trees() -> list:
    return [oracle.read(text.encode()) for text in SMALL]


@pytest.mark.slow
@given(statements, st.lists(statements, min_size=1, max_size=2))
@settings(deadline=None, max_examples=1500)
def test_conditions_follow_only_where_no_document_objects(general: str, special: list[str]) -> None:
    one, other = f"/r[{general}]", "/r" + "".join(f"[{each}]" for each in special)
    if contained(one, other):
        assert small_matches(other) <= small_matches(one)


def test_a_path_too_tall_for_a_proof_is_only_compared_with_its_like() -> None:
    tall = "/a" * 250
    assert contained("//a", tall)
    assert not contained(tall + "/b", tall)


def test_a_hopeless_proof_is_given_up() -> None:
    many = "/a" + "".join(f"[b{n} or c{n}]" for n in range(14))
    assert not contained("/a[x]", many)


def test_patterns_too_large_for_a_product_have_a_bound_all_the_same() -> None:
    large, larger = parse("/a" * 150), parse("/a" * 200)
    assert upper_bound(large, larger) == large
    assert upper_bound(large, parse("/b" * 150)) == parse("/")


ALTERNATIVES = "".join(f"[b{number} or c{number}]" for number in range(30))
IMPLIED = "".join(f"[z > {number}]" for number in range(30))
UNEQUAL = "".join(f"[. != {number}]" for number in range(600))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("conditions", "most"), [(ALTERNATIVES + IMPLIED, 120_000), (UNEQUAL, 10)], ids=["alternatives", "values"]
)
def test_a_pattern_with_many_conditions_is_given_up_before_long(
    conditions: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pattern = parse("/a" + conditions)
    looked_at = 0
    facts = containment._facts

    def counted(conditions: tuple[Condition, ...]) -> Iterator[Condition]:
        nonlocal looked_at
        looked_at += 1
        assert looked_at < most
        return facts(conditions)

    monkeypatch.setattr(containment, "_facts", counted)
    assert contains(parse("/a" + conditions.partition("]")[2]), pattern)
    assert not contains(pattern, parse("/a" + conditions.partition("]")[2]))
    minimised(pattern)
