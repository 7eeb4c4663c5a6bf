"""Patterns that one element decides: found by states and bound tests alone, with the reference's results."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pathcast
from pathcast import Subscriptions
from pathcast.documents import DocumentBatch, Names, read_batch
from pathcast.matching import Tuning
from pathcast.matching.automaton.state_test_joins import ancestor_value_tests
from pathcast.matching.automaton.state_test_joins import state_value_join as joins
from pathcast.matching.automaton.state_test_joins.ancestor_value_tests import (
    alternatives_of,
    bound_tests,
    demand_at,
    spine_of,
)
from pathcast.matching.automaton.state_test_joins.state_value_join_kernels import join_documents
from pathcast.matching.automaton.state_test_joins.waiting_patterns_by_state_kernels import DOWN, NEGATED
from pathcast.patterns import parse
from pathcast.patterns.parsing.plain_path_encoder import PathEncoder

NAMES = ("a", "b", "c")
LITERALS = ("1", "2", "2.0", "-1", "'x'", "'1'", "' 2 '", "''")
OPERATORS = ("=", "=", "=", "<", "<=", ">", ">=")
VALUES = ("", "1", "2", " 2 ", "2.0", "-1", "x", "NaN", "1e0", "3")


OPERATIONS = ("{0} or {1}", "({0}) and {1}", "({0}) and not({1})", "{1} and not({0})", "not({0})")


@st.composite
def conditions(draw: st.DrawFn) -> str:
    def test() -> str:
        what = draw(st.sampled_from(["@k", "@l", "text()", "."]))
        return f"{what} {draw(st.sampled_from(OPERATORS))} {draw(st.sampled_from(LITERALS))}"

    text = test()
    for operation in draw(st.lists(st.sampled_from(OPERATIONS), max_size=3)):
        text = operation.format(text, test())
    return f"[{text}]"


@st.composite
def paths(draw: st.DrawFn) -> str:
    steps = draw(st.integers(1, 4))
    text = ""
    for _ in range(steps):
        text += draw(st.sampled_from(["/", "/", "//"])) + draw(st.sampled_from([*NAMES, "*"]))
        text += "".join(draw(st.lists(conditions(), max_size=2)))
    return text


@st.composite
def elements(draw: st.DrawFn, depth: int = 4) -> str:
    name = draw(st.sampled_from(NAMES))
    attributes = "".join(
        f" {key}='{draw(st.sampled_from(VALUES))}'" for key in draw(st.sets(st.sampled_from(["k", "l"])))
    )
    inside = draw(st.sampled_from(["", *VALUES]))
    if depth:
        for _ in range(draw(st.integers(0, 2))):
            inside += draw(elements(depth=depth - 1)) + draw(st.sampled_from(["", "1", "<![CDATA[2]]>", "&#120;"]))
    return f"<{name}{attributes}>{inside}</{name}>"


def equal_to_reference(subscriptions: Subscriptions, documents: list[str]) -> None:
    matcher, reference = subscriptions.compile(), subscriptions.compile(engine="reference")
    ours = [matches.ids.tolist() for matches in matcher.match_many(documents)]
    assert ours == [reference.match(document).ids.tolist() for document in documents]
    assert ours == [matcher.match(document).ids.tolist() for document in documents]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(paths(), min_size=1, max_size=30), st.lists(elements(), min_size=1, max_size=5))
def test_paths_with_values_are_what_the_reference_finds(patterns: list[str], documents: list[str]) -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(patterns)
    equal_to_reference(subscriptions, documents)


def some(seed: int, patterns: int = 300, documents: int = 30) -> tuple[list[str], list[str]]:
    """Random patterns and documents, without Hypothesis' cost."""
    chance = random.Random(seed)

    def test() -> str:
        what, operator = chance.choice(["@k", "@l", "text()", "."]), chance.choice(OPERATORS)
        return f"{what} {operator} {chance.choice(LITERALS)}"

    def predicate() -> str:
        return "[" + chance.choice([test(), test(), f"{test()} or {test()}", f"{test()} and not({test()})"]) + "]"

    def path() -> str:
        return "".join(
            chance.choice(["/", "/", "//"]) + chance.choice([*NAMES, "*"]) + predicate() * chance.randint(0, 1)
            for _ in range(chance.randint(1, 5))
        )

    def element(depth: int) -> str:
        name = chance.choice(NAMES)
        inside = "".join(element(depth - 1) for _ in range(chance.randint(0, 3))) if depth else ""
        return (
            f"<{name} k='{chance.choice(VALUES)}' l='{chance.choice(VALUES)}'>{chance.choice(VALUES)}{inside}</{name}>"
        )

    return [path() for _ in range(patterns)], [element(4) for _ in range(documents)]


@pytest.mark.slow
@pytest.mark.parametrize("heavy", [0, 3, 512])
@pytest.mark.parametrize("rows", [20, 1 << 20])
def test_however_regions_are_shared_or_forgotten(heavy: int, rows: int) -> None:
    patterns, documents = some(heavy + rows)
    subscriptions = Subscriptions(tuning=Tuning(heavy_gate=heavy, region_rows=rows, queued_tests=4))
    subscriptions.add_many(patterns)
    equal_to_reference(subscriptions, documents)


@pytest.mark.slow
def test_documents_without_states_are_verified() -> None:
    patterns, documents = some(3, documents=12)
    subscriptions = Subscriptions(tuning=Tuning(state_bytes=1))
    subscriptions.add_many([*patterns, *(f"//b{number}//a[@k = {number % 3}]" for number in range(1200))])
    matcher, reference = subscriptions.compile(), subscriptions.compile(engine="reference")
    deep = ["".join(f"<b{number}>" for number in range(seed, 1200, 3)) for seed in range(3)]
    closed = [
        text + document + "".join(f"</b{number}>" for number in reversed(range(seed, 1200, 3)))
        for seed, (text, document) in enumerate(zip(deep, documents, strict=False))
    ]
    together = [*documents[:10], *closed, *documents[10:]]
    ours = [matches.ids.tolist() for matches in matcher.match_many(together)]
    assert ours == [reference.match(document).ids.tolist() for document in together]
    assert matcher.statistics()["simulated"] or matcher.statistics()["evictions"]


@pytest.mark.slow
def test_documents_deeper_than_a_word_has_bits_are_verified() -> None:
    patterns, documents = some(7, patterns=150, documents=3)
    subscriptions = Subscriptions()
    subscriptions.add_many([*patterns, "//a[@k = 1]//b[@l = 2]//c", "//b[@k = 3]//a//b[text() = 2]"])
    deep = ["<a k='1'><b l='2'>" * half + text + "</b></a>" * half for half in (29, 30, 40) for text in documents]
    equal_to_reference(subscriptions, [*documents, *deep])


def test_they_are_saved_opened_and_added_to(tmp_path: Path) -> None:
    patterns, documents = some(5)
    subscriptions = Subscriptions()
    subscriptions.add_many(patterns[:200])
    matcher = subscriptions.compile()
    for document in documents[:10] * 30:
        matcher.match(document)  # so that patterns re-select their access predicates
    matcher.save(tmp_path / "index")
    opened = pathcast.open_index(tmp_path / "index")
    for step in (lambda: None, lambda: opened.subscriptions.add_many(patterns[200:])):
        step()
        wanted = opened.subscriptions.compile(engine="reference")
        for document in documents[:8]:
            assert opened.match(document).ids.tolist() == wanted.match(document).ids.tolist()


@pytest.mark.parametrize(
    ("xpath", "places"),
    {
        "/a[@k = 1]": [0],
        "/a[@k = 1]/b": [1],
        "/a[@k = 1]//b[@l > 2]/c": [DOWN + 1, 1],
        "//a[@k = 1]/b/c[text() = 'x']": [2, 0],
        "/a[b = 5]": [0],
        "/*[@k = 1]//b": [DOWN + 1],
        "//a[@k = 1]//b": [],
        "/a//*[@k = 1]": [],
        "/a//*/*[@k = 1]": [],
        "/*[. = 1]": [],
        "//a/*[. = 'x']": [0],
        "/*[. = 'x']//b[@k = 1]/c": [DOWN + 1, 1],
        "/a[@k]": [],
        "/a[@k != 1]": [],
        "/a[.//@k = 1]": [],
        "/a[@k = 1][b]/c": [],
        "/a[@k = 1 or @l = 1]": [],
        "/a[not(@l = 1)]": [],
        "/a[@k = 1][not(b)]": [],
        "/a[not(@l = 1)]/b[@k = 1]": [1 + NEGATED, 0],
    }.items(),
)
def test_what_one_element_decides(xpath: str, places: list[int]) -> None:
    names = Names()
    spine = spine_of(parse(xpath), PathEncoder(names))
    found = [] if spine is None else bound_tests(spine, lambda step, test: demand_at(step, test, names))
    assert [place for place, _ in found] == places


@pytest.mark.parametrize(
    ("xpath", "alternatives"),
    {
        "/a[@k = 1 or @l = 1]/b": [[1], [1]],
        "/a[@k[. = 1 or . = 2]]": [[0], [0]],
        "/a[@k = 1 or @l = 1]/b[@k = 2 or . = 'x' and @l = 3]": [[1, 0], [1, 0, 0], [1, 0], [1, 0, 0]],
        "/a[@k = 1][not(@l = 1 or @l = 2)]": [[0, NEGATED, NEGATED]],
        "/a[@k = 1][not(@l = 1 and @k = 2)]": [[0, NEGATED], [0, NEGATED]],
        "/a[@k = 1 or b]": [[], [0]],
        "/a[" + " or ".join(f"@k = {number}" for number in range(9)) + "]": [[]],
    }.items(),
)
def test_alternatives_that_one_element_decides(xpath: str, alternatives: list[list[int]]) -> None:
    names = Names()
    spine = spine_of(parse(xpath), PathEncoder(names))
    assert spine is not None
    found = [bound_tests(each, lambda step, test: demand_at(step, test, names)) for each in alternatives_of(spine)]
    assert sorted([sorted(place for place, _ in tests) for tests in found]) == sorted(map(sorted, alternatives))


def test_deeply_nested_operators_are_read_once_per_operand(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "@k = 0"
    for number in range(1, 25):
        text = f"(@k = {number} or @l = {number}) and ({text} or @k = {-number})"
    spine = spine_of(parse(f"/a[{text}]"), PathEncoder(Names()))
    assert spine is not None
    calls, operands = [0], ancestor_value_tests._operands

    def counted(condition: Any) -> Any:
        calls[0] += 1
        assert calls[0] < 1_000
        return operands(condition)

    monkeypatch.setattr(ancestor_value_tests, "_operands", counted)
    assert alternatives_of(spine) == [spine]
    assert calls[0] > 50


def test_what_must_be_verified_is_looked_at_only_where_its_path_has_its_value() -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(["//a[@k = 1]//b", "/a[b[@k = 1]][c]", "/a[.//@k = 'x'][b = 2]", "/a[not(c)]/b[@l > 3]"])
    matcher, reference = subscriptions.compile(), subscriptions.compile(engine="reference")
    looked_at = []
    for document in (
        "<a k='1'><b/></a>",
        "<a><b k='1'/><c/></a>",
        "<a><c k='1'/><b l='3'>3</b></a>",
        "<a><b l='4'>2</b><c k='x'/></a>",
        "<c k='1' l='4'><b/></c>",
    ):
        before = matcher.statistics()["candidates"]
        assert matcher.match(document).ids.tolist() == reference.match(document).ids.tolist()
        looked_at.append(matcher.statistics()["candidates"] - before)
    assert looked_at == [1, 1, 0, 2, 0]


def test_nothing_is_verified_that_one_element_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(["/a[@k = 1]/b", "/a/b[@l >= 3][@k = 'x']", "//b[text() = 2]", "//a[@k = 1]//b[@l = 4]"])
    subscriptions.add_many(["/a[@k = 1 or @k = 3]/b[@l = 4 or @l = 5]", "/a[@k = 1]/b[@l = 4][not(@k = 'y' or . = 2)]"])
    matcher = subscriptions.compile()
    asked: list[int] = []
    verifier = matcher.engine._updates.current.base.trees.verifier  # type: ignore[attr-defined]
    verify = verifier.verify

    def count_and_verify(batch: DocumentBatch, *rest: Any) -> Any:
        asked.append(len(rest[1]))
        return verify(batch, *rest)

    monkeypatch.setattr(verifier, "verify", count_and_verify)
    assert matcher.match("<a k='1'><b l='4' k='x'/><b>2</b></a>").ids.tolist() == [1, 2, 3, 4, 5, 6]
    assert matcher.match("<a k='2'><b l='2' k='x'/><b>3</b></a>").ids.tolist() == []
    assert sum(asked) == 0


def test_a_chain_from_the_root_does_not_begin_further_down() -> None:
    """The chain waits for the rare test, below the root; its first step's test holds at another element.

    Without a check of the root's position, that element would match.
    """
    subscriptions = Subscriptions(tuning=Tuning(first_selection=8))
    subscriptions.add_many(["/a[@k = 1]//b[@l = 2]//c", "//a[@k = 1]//b[@l = 2]//c"])
    matcher = subscriptions.compile()
    for _ in range(20):
        assert not matcher.match("<a k='1'><b/></a>")
    assert matcher.match("<a><a k='1'><b l='2'><c/></b></a></a>").ids.tolist() == [2]
    assert matcher.match("<a k='1'><a><b l='2'><c/></b></a></a>").ids.tolist() == [1, 2]


def test_room_fits_the_regions_that_a_document_reads_whatever_other_threads_add(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Regions published after the buffers were fitted must not reach the kernel: it would write beyond its buffers."""
    subscriptions = Subscriptions()
    subscriptions.add_many(["/a/b[@k = 1]", "//b/c[@k = 2]"])
    matcher, called = subscriptions.compile(), []
    fit = joins._Scratch.fit

    def fit_before_another_thread_publishes(scratch: Any, *arguments: Any) -> None:
        fit(scratch, *arguments)
        found = matcher.engine._updates.current.base.trees.gated.joins.regions  # type: ignore[attr-defined]
        found.cover(joins._missing(found, np.arange(len(found.of), dtype=np.int32)))

    def check(*arguments: Any) -> Any:
        base, delta, _, room = arguments[4:8]
        called.append(len(base.patterns.regions.spans))
        for index in (base, delta):
            assert len(room.last.elements) >= len(index.patterns.regions.spans)
        return join_documents(*arguments)

    monkeypatch.setattr(joins._Scratch, "fit", fit_before_another_thread_publishes)
    monkeypatch.setattr(joins, "join_documents", check)
    assert matcher.match("<a><b k='1'><c k='2'/></b></a>").ids.tolist() == [1, 2]
    assert called[0] == 0 and called[-1] > 0


BELOW = "<x/>" * 70
TOO_LONG = " " * 5_000


@pytest.mark.parametrize(
    ("expression", "document"),
    [
        ("//b[@k = 1]//c/x", f"<r><b k='1'>{BELOW}</b><b k='1'><c><x/></c></b></r>"),
        ("//b[@k = 1]//c/x", f"<r><b k='1'><c><x/></c></b><b k='1'>{BELOW}</b></r>"),
        ("//b[@k = 1]", f"<r><b k='1'/>{'<a>' * 70}{'</a>' * 70}</r>"),
        ("//b[a]/c", f"<r><b><a/><c/></b><q>{TOO_LONG}<a>{TOO_LONG}</a></q></r>"),
    ],
    ids=["first too many below", "then too many below", "too deep", "too long"],
)
def test_what_a_join_finds_and_the_verifier_confirms_is_reported_once(expression: str, document: str) -> None:
    """A join finds the pattern at one element, and leaves another element, or the document, to the verifier."""
    subscriptions = Subscriptions()
    number = subscriptions.add(expression)
    subscriptions.add_many(["//q[r]/s", "//q[@k > 2]", "//q[. < 2]"])
    matcher = subscriptions.compile()
    for _ in range(2):
        assert matcher.match_batch(read_batch([document.encode()]))[1].tolist() == [number]
