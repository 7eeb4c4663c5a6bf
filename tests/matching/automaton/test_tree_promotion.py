"""Trees added while documents are matched: pending first, then in the delta, then in the base."""

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pathcast import Matcher, Subscriptions, open_index
from pathcast.matching import Tuning
from pathcast.matching.automaton import AutomatonEngine
from pathcast.matching.automaton.verify.candidate_verifier import Verifier
from pathcast.workloads import SubscriptionOptions, generate_documents, generate_subscriptions, news_schema
from tests.matching.automaton.promotion import at_rest

DOCUMENTS = list(generate_documents(news_schema(), 20, seed=5))
JOINED = [
    xpath
    for predicates, nested in ((1, 0), (0, 1))
    for xpath in generate_subscriptions(
        news_schema(),
        80,
        SubscriptionOptions(max_depth=5, distinct=True, predicates=predicates, nested=nested),
        seed=8,
    )
    if "[" in xpath
][:150]
OTHERS = [
    "//*[not(.//@kind)]",
    "/news[head or @kind = 'brief']//paragraph",
    "//section[contains(., 'e')][not(table)]",
    "//person[@id != 'i3'][organisation]",
    "/news[head/title][@lang = 4]//function[text() > 3]",
    "//@id[. = 'i7']",
]


# With this tuning, a few pending trees count as many.
SOON = Tuning(pending_trees=6, fewest_marked=0)


def followed(first: list[str], then: list[str]) -> tuple[Subscriptions, Matcher]:
    """Subscriptions, and a matcher that has added the latter ones one by one."""
    subscriptions = Subscriptions(tuning=SOON)
    subscriptions.add_many(first)
    matcher = subscriptions.compile(engine="automaton")
    for document in DOCUMENTS[:10]:
        matcher.match(document)
    for xpath in then:
        subscriptions.add(xpath)
        matcher.match(DOCUMENTS[0])
        at_rest(matcher)
    return subscriptions, matcher


def check(subscriptions: Subscriptions, matcher: Matcher) -> None:
    """On all documents the matcher answers like the reference."""
    reference = subscriptions.compile(engine="reference")
    found = [matcher.match(document).ids.tolist() for document in DOCUMENTS]
    assert found == [reference.match(document).ids.tolist() for document in DOCUMENTS]
    assert any(found)


def test_a_delta_has_the_trees_that_the_base_lacks() -> None:
    subscriptions, matcher = followed(JOINED[:120], JOINED[120:134])
    made = at_rest(matcher)
    assert made.delta is not None and made.delta.patterns == 14 and not made.pending.words
    assert made.base.patterns == made.patterns - 14
    assert made.base.states.entry_limit == 120
    assert matcher.statistics()["pending patterns"] == 0 and matcher.statistics()["promotions"] == 2
    check(subscriptions, matcher)


def test_patterns_added_a_few_at_a_time_are_found_after_many_at_once() -> None:
    subscriptions = Subscriptions(tuning=Tuning(fewest_marked=0))
    matcher = subscriptions.compile(engine="automaton")
    for xpath in [*JOINED[:6], *OTHERS]:
        subscriptions.add(xpath)
        matcher.match(DOCUMENTS[0])
    assert at_rest(matcher).pending_trees == 6 + len(OTHERS)
    check(subscriptions, matcher)
    subscriptions.add_many([*JOINED[6:], "/news[head or table]"])
    check(subscriptions, matcher)  # some have programs alone, and precede those that have all
    engine = matcher.engine
    assert isinstance(engine, AutomatonEngine)
    assert engine._updates.settled().pending_trees == 0
    check(subscriptions, matcher)


def test_values_are_not_looked_up_for_pending_patterns_alone() -> None:
    subscriptions = Subscriptions()
    subscriptions.add("/a/b[@x = '1' or @y = '2'][c][d]")
    matcher = subscriptions.compile(engine="automaton")
    subscriptions.add("/a[d or e]")
    made = at_rest(matcher)
    assert matcher.match("<a><c><b x='1'/></c><d/></a>").ids.tolist() == [2]
    made = at_rest(matcher)
    assert made.pending_trees == 1 and made.base.trees is not None
    hits = made.base.trees.gated.access._tests.statistics.hits
    assert not hits.any()
    assert matcher.match("<a><b x='1'><c/><d/></b></a>").ids.tolist() == [1]
    assert hits.any()


def test_what_is_joined_is_not_verified_once_it_is_promoted(monkeypatch: pytest.MonkeyPatch) -> None:
    _, matcher = followed(JOINED[:120], JOINED[120:134])
    assert at_rest(matcher).delta is not None
    verified: list[int] = []
    verify = Verifier.verify

    def count_and_verify(*given: Any) -> Any:
        verified.append(len(given[3]))
        return verify(*given)

    monkeypatch.setattr(Verifier, "verify", count_and_verify)
    assert any(max(matcher.match(document).ids.tolist()) > 120 for document in DOCUMENTS)
    assert set(verified) == {0}


CHAINS = [
    "//*[@id = 'i6']//paragraph",
    "/news[@kind = 'brief' or @kind = 'report']/head",
    "//person[@id = 'i3']//text()[. = '4']",
    "/news//section[@id = 'i2']//*[@id = 'i7']",
    "//paragraph[not(@lang = 4)][@id = 'i1']",
    "/news[@serial <= 3]//date[. <= 2]",
    "//section[@kind = 'x' or title]//paragraph[@id > 1]",
]
# Left to the verifier: deeper than twigs and chains are followed, and with a value too long to assemble.
ODD = [
    b"<news serial='2' kind='brief'><head/>" + b"<section id='i2'>" * 70 + b"<paragraph id='i7'/>" + b"</section>" * 70,
    b"<news serial='1'><head><title>4</title><date>" + b" " * 5_000 + b"<date>1</date></date></head>",
]


def odd_documents() -> list[bytes]:
    return [*DOCUMENTS, *[document + b"</news>" for document in ODD]]


@pytest.mark.parametrize("seed", range(3))
def test_base_and_delta_together_find_what_the_reference_finds(seed: int) -> None:
    patterns = [*JOINED, *OTHERS, *CHAINS]
    Random(seed).shuffle(patterns)
    subscriptions, matcher = followed(patterns[:140], patterns[140:154])
    made = at_rest(matcher)
    assert made.delta is not None and made.delta.trees is not None and len(made.delta.trees.gated.joins)
    assert made.base.trees is not None and len(made.base.trees.gated.joins)
    reference = subscriptions.compile(engine="reference")
    expected = [reference.match(document).ids.tolist() for document in odd_documents()]
    assert [matcher.match(document).ids.tolist() for document in odd_documents()] == expected
    assert [found.ids.tolist() for found in matcher.match_many(odd_documents())] == expected
    assert at_rest(matcher).delta is made.delta


def test_base_and_delta_look_up_a_value_once() -> None:
    _, matcher = followed(["/a[@k = 1]/b", *JOINED[:119]], ["/a[@k = 1]/c", *JOINED[120:133]])
    made = at_rest(matcher)
    assert made.delta is not None and made.delta.trees is not None and made.base.trees is not None
    of_delta, of_base = (index.trees.gated.joins.tests for index in (made.delta, made.base) if index.trees)
    assert of_delta.table.size >= of_base.table.size
    before = int(of_delta.statistics.hits.sum())
    assert matcher.match("<a k='1'><b/><c/></a>").ids.tolist() == [1, 121]
    assert int(of_delta.statistics.hits.sum()) == before + 1


@pytest.mark.parametrize(
    ("pattern", "document"),
    [
        ("/a[@k = 7]/c", "<a k='7'><c/></a>"),
        ("/a[b[@k = 1]][c]", "<a><b k='1'/><c/></a>"),
        ("//b[@k = 1]//c/x", f"<a><b k='1'>{'<x/>' * 70}</b><b k='1'><c><x/></c></b></a>"),
        ("//b[@k = 1]//c/x", f"<a><b k='1'><c><x/></c></b><b k='1'>{'<x/>' * 70}</b></a>"),
        ("//b[@k = 1]//c/x", f"<a><b k='1'>{'<x/>' * 70}<c><x/></c></b></a>"),
    ],
    ids=[
        "a value seen before",
        "to verify",
        "a chain, undecided first",
        "a chain, undecided then",
        "a chain, undecided",
    ],
)
def test_what_only_the_delta_waits_for_is_found(pattern: str, document: str) -> None:
    subscriptions = Subscriptions(tuning=SOON)
    subscriptions.add_many(["/a[@k = 1]/c", "/a[b[@k = 2]][d]", "//b[@k = 2]//c/y", *JOINED[:100]])
    matcher = subscriptions.compile(engine="automaton")
    assert matcher.match(document).ids.tolist() == []
    number = subscriptions.add(pattern)
    for xpath in JOINED[101:110]:
        subscriptions.add(xpath)
        matcher.match("<a/>")
        at_rest(matcher)
    made = at_rest(matcher)
    assert made.delta is not None and made.base.patterns < number <= made.base.patterns + made.delta.patterns
    assert matcher.match(document).ids.tolist() == [number]
    assert [found.ids.tolist() for found in matcher.match_many([document] * 2)] == [[number]] * 2


@pytest.mark.slow
def test_when_they_are_many_they_are_laid_out_with_all_others() -> None:
    subscriptions, matcher = followed(JOINED[:100], JOINED[100:145])
    made = at_rest(matcher)
    assert made.base.patterns > 100
    assert made.delta is None or made.delta.patterns < 45
    check(subscriptions, matcher)


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 1, 90], ids=str)
def test_answers_are_the_same_after_each_change(first: int) -> None:
    later = [xpath for pair in zip(JOINED[90:], OTHERS * 10, strict=True) for xpath in pair]
    paths = generate_subscriptions(news_schema(), 40, SubscriptionOptions(max_depth=5, distinct=True), seed=11)
    subscriptions, matcher = followed(JOINED[:first], [])
    ids = list[int]()
    kinds = set[bool]()
    for number, xpath in enumerate(later[:40]):
        ids += subscriptions.add(xpath), subscriptions.add(paths[number])
        if number % 3 == 2:
            subscriptions.remove(ids.pop(number % len(ids)))
        kinds.add(at_rest(matcher).delta is None)
        if number % 5 == 4:
            check(subscriptions, matcher)
        else:
            matcher.match(DOCUMENTS[number % 20])
    assert kinds == {True, False}


@pytest.mark.slow
def test_an_index_that_is_saved_has_them_with_all_others(tmp_path: Path) -> None:
    subscriptions, matcher = followed(JOINED[:120], [*OTHERS, *JOINED[120:128]])
    assert at_rest(matcher).delta is not None
    matcher.save(tmp_path / "index")
    assert at_rest(matcher).settled
    check(subscriptions, matcher)
    opened = open_index(tmp_path / "index")
    check(opened.subscriptions, opened)


@pytest.mark.slow
def test_without_room_for_their_states_documents_are_simulated() -> None:
    subscriptions, matcher = followed(JOINED[:120], [*OTHERS, *JOINED[120:128]])
    assert at_rest(matcher).delta is not None
    subscriptions.table.tuning = replace(SOON, state_bytes=1)
    check(subscriptions, matcher)
    assert matcher.statistics()["simulated"] > 0


def test_a_thread_that_gets_few_turns_reads_what_others_add_meanwhile() -> None:
    subscriptions = Subscriptions(tuning=Tuning(pending_trees=100_000))
    subscriptions.add("/a[b][c]")
    matcher = subscriptions.compile(engine="automaton")
    assert isinstance(matcher.engine, AutomatonEngine)
    updates = matcher.engine._updates

    def add(count: int, kind: str) -> None:
        for number in range(count):
            subscriptions.add(f"/a[@{kind} = {number}]")
            if number % 20 == 0:
                updates.refresh()
        updates.refresh()

    add(1_000, "early")
    assert updates._trees is not None
    waiting, turns = len(updates._trees), 0
    while updates._has_more_to_read(waiting):
        turns += 1
        add(20, f"late{turns}")  # more than the least that is read in a turn
    assert turns < 40
    assert len(updates._trees) - updates._trees.placed < 600
