"""Paths added while documents are matched: pending first, then in the delta, then in the base."""

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from pathcast import Matcher, Subscriptions
from pathcast.matching import Tuning
from pathcast.matching.automaton.updates.immutable_index_state import Generation
from pathcast.matching.automaton.updates.index_updates import IndexUpdates
from pathcast.workloads import SubscriptionOptions, generate_documents, generate_subscriptions, news_schema
from tests.matching.automaton.promotion import at_rest

DOCUMENTS = list(generate_documents(news_schema(), 30, seed=5))
PATHS = generate_subscriptions(news_schema(), 500, SubscriptionOptions(max_depth=7, distinct=True), seed=6)
TREES = generate_subscriptions(news_schema(), 12, SubscriptionOptions(max_depth=5, predicates=1, distinct=True), seed=7)


# With this tuning, a few dozen pending paths count as many.
SOON = Tuning(most_pending_bits=256, fewest_marked=0)


def followed(first: int, paths: int, tuning: Tuning = SOON) -> tuple[Subscriptions, Matcher]:
    """Subscriptions to the first paths, and a matcher that has seen half of the documents."""
    subscriptions = Subscriptions(tuning=tuning)
    subscriptions.add_many(PATHS[:first])
    matcher = subscriptions.compile(engine="automaton")
    for document in DOCUMENTS[:15]:
        matcher.match(document)
    for number in range(first, first + paths):
        subscriptions.add(PATHS[number])
    matcher.match(DOCUMENTS[0])
    return subscriptions, matcher


def check(subscriptions: Subscriptions, matcher: Matcher) -> None:
    """On all documents the matcher answers like a newly built one."""
    anew = subscriptions.compile(engine="automaton")
    for document in DOCUMENTS:
        assert matcher.match(document).ids.tolist() == anew.match(document).ids.tolist()


def test_a_delta_knows_no_other_paths() -> None:
    _, matcher = followed(300, 60)
    made = at_rest(matcher)
    assert made.delta is not None and not made.pending.words
    states = made.delta.states
    assert (states.first_entry, states.entry_limit) == (300, 360)
    accepted = states.automaton.accepted[: states.automaton.accepted_begin[states.automaton.known]]
    assert len(accepted) and accepted.min() >= 300
    assert made.base.states.entry_limit == 300
    reached = states.arrays()["reached"]
    assert len(reached) and states.below[reached].all(), "nodes that lead to none of them are left out"
    assert np.count_nonzero(states.below) < np.count_nonzero(made.base.states.below)


def test_documents_with_new_label_paths_need_states_of_the_delta_as_well() -> None:
    subscriptions, matcher = followed(300, 60)
    made = at_rest(matcher)
    assert made.delta is not None
    before = made.delta.states.transitions
    check(subscriptions, matcher)
    assert made.delta.states.transitions > before


def test_answers_are_the_same_after_every_kind_of_promotion() -> None:
    subscriptions, matcher = followed(100, 0)
    kinds = set()
    for begin in range(100, 500, 20):
        subscriptions.add_many(PATHS[begin : begin + 20])
        matcher.match(DOCUMENTS[0])
        made = at_rest(matcher)
        kinds.add((made.delta is None, made.base.states.entry_limit))
        check(subscriptions, matcher)
    assert matcher.statistics()["promotions"] > len({limit for _, limit in kinds}) > 1
    assert {settled for settled, _ in kinds} == {True, False}


def test_a_document_may_match_more_paths_of_the_delta_than_there_is_room_for() -> None:
    subscriptions, matcher = followed(300, 0)
    ids = subscriptions.add_many([f"//x{number}/y/y/y/y" for number in range(60)])
    matcher.match(DOCUMENTS[0])
    assert at_rest(matcher).delta is not None
    scratch = matcher.engine._scratch.mine  # type: ignore[attr-defined]
    scratch.buffers = scratch.buffers._replace(entries=np.empty(16, dtype=np.int32))
    document = "".join(f"<x{number}><y><y><y><y/></y></y></y></x{number}>" for number in range(60))
    assert list(matcher.match(f"<r>{document}</r>")) == list(ids)


def test_there_is_room_for_every_step_of_a_pending_path() -> None:
    subscriptions, matcher = followed(10, 0, Tuning())
    names = [f"x{number}" for number in range(80)]
    for number, name in enumerate(names):
        path = "/".join([name, *"abc"][: 1 + number % 4])
        id = subscriptions.add(f"//{path}/e")
        document = f"<r><{name}><a><b><c><e/></c><e/></b><e/></a><e/></{name}></r>"
        assert list(matcher.match(document)) == [id]
    words = matcher.engine._updates.current.pending.words  # type: ignore[attr-defined]
    assert words == sum(2 + number % 4 for number in range(80)) + 63 >> 6


def test_pending_trees_come_into_the_delta_with_paths() -> None:
    subscriptions, matcher = followed(300, 0)
    subscriptions.add_many(TREES)
    subscriptions.add_many(PATHS[300:360])
    matcher.match(DOCUMENTS[0])
    made = at_rest(matcher)
    assert made.delta is not None and not made.pending.words
    assert made.patterns == made.delta.patterns == len(TREES)
    assert (made.delta.states.first_entry, made.delta.states.entry_limit) == (300, 360 + len(TREES))
    check(subscriptions, matcher)
    subscriptions.add_many(TREES[:2])
    check(subscriptions, matcher)


def test_a_name_that_only_the_delta_has_is_found() -> None:
    subscriptions, matcher = followed(300, 60)
    document = b"<news><unheard><of/></unheard></news>"
    assert at_rest(matcher).delta is not None
    ids = {subscriptions.add(xpath) for xpath in ("//unheard/of", "/news/*/of", "/*[unheard]")}
    assert ids <= set(matcher.match(document))
    subscriptions.add_many(PATHS[360:420])
    matcher.match(DOCUMENTS[0])
    assert at_rest(matcher).delta is not None
    assert ids <= set(matcher.match(document))


def test_what_comes_while_a_delta_is_made_is_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    subscriptions, matcher = followed(300, 0)
    work = IndexUpdates._delta

    def slowly(self: IndexUpdates, begun: Generation, *layout: Any) -> Any:
        made = work(self, begun, *layout)
        subscriptions.add_many([*PATHS[360:365], *TREES[:2]])
        self.refresh()
        return made

    monkeypatch.setattr(IndexUpdates, "_delta", slowly)
    subscriptions.add_many(PATHS[300:360])
    matcher.match(DOCUMENTS[0])
    made = at_rest(matcher)
    assert made.delta is not None and made.delta.states.entry_limit == 360 and made.entries == 367
    check(subscriptions, matcher)


def test_a_delta_that_outgrows_its_memory_goes_into_the_base() -> None:
    subscriptions, matcher = followed(300, 60)
    assert at_rest(matcher).delta is not None
    subscriptions.table.tuning = replace(SOON, state_bytes=400_000)
    random, names = Random(8), sorted({name for path in PATHS for name in path.split("/") if name.isalpha()})
    branches = [random.choices(names, k=7) for _ in range(600)]
    document = "".join("<" + "><".join(tags) + "></" + "></".join(reversed(tags)) + ">" for tags in branches)
    document = f"<{names[0]}>{document}</{names[0]}>"
    reference = subscriptions.compile(engine="reference")
    assert matcher.match(document).ids.tolist() == reference.match(document).ids.tolist()
    assert at_rest(matcher).delta is None
    check(subscriptions, matcher)


@pytest.mark.parametrize("words", [1 << 22, 200])
def test_pending_paths_are_found_at_any_depth(words: int) -> None:
    subscriptions, matcher = followed(10, 0, Tuning(level_words=words))
    for depth in (1, 300, 2, 900, 30):
        id = subscriptions.add(f"//x{depth}/x{depth}/y")
        nested = f"<x{depth}>" * depth
        document = f"<x{depth}>{nested}<y/>{nested.replace('<', '</')}</x{depth}>"
        assert id in matcher.match(document)
        check(subscriptions, matcher)
    made = matcher.engine._updates.current  # type: ignore[attr-defined]
    assert made.base.states.entry_limit == (10 if words > 200 else 14), "few words: those before a deep one are settled"


def test_the_fewer_paths_there_are_the_fewer_are_pending() -> None:
    for settled, pending, promoted in ((10, 180, False), (10, 230, True), (6400, 380, False), (6400, 450, True)):
        subscriptions = Subscriptions()
        subscriptions.add_many([f"/z{number}" for number in range(settled)])
        matcher = subscriptions.compile(engine="automaton")
        for number in range(pending):  # of five bits each
            subscriptions.add(f"/x{number}/y/y/y/y")
        matcher.match(DOCUMENTS[0])
        at_rest(matcher)
        assert matcher.statistics()["promotions"] == promoted


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_after_a_promotion_that_failed_there_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise MemoryError("no room for states")

    with monkeypatch.context() as failing:
        failing.setattr(IndexUpdates, "_delta", fails)
        subscriptions, matcher = followed(300, 60)
        assert at_rest(matcher).pending.words
    check(subscriptions, matcher)
    subscriptions.add(PATHS[360])
    matcher.match(DOCUMENTS[0])
    assert not at_rest(matcher).pending.words
    check(subscriptions, matcher)
