"""Groups of entries: entries that the same states accept are written together, and no answer changes."""

from collections import defaultdict
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pathcast import Matcher, Subscriptions
from pathcast.documents import read_batch
from pathcast.matching import SharedEntries, Tuning
from pathcast.matching.automaton.paths.jointly_accepted_entries import grouped
from pathcast.matching.automaton.paths.jointly_accepted_entries_kernels import Accepted, EntryGroups
from pathcast.store import offsets_of
from pathcast.workloads import SubscriptionOptions, generate_documents, generate_subscriptions, news_schema
from tests.matching.automaton.promotion import at_rest

DOCUMENTS = list(generate_documents(news_schema(), 40, seed=8))
PATHS = generate_subscriptions(news_schema(), 400, SubscriptionOptions(max_depth=7, distinct=True), seed=9)
SOON = Tuning(fewest_marked=0, shared_entries=2)
FIRST, LIMIT = 5, 25


def lists(begin: np.ndarray, values: np.ndarray) -> list[list[int]]:
    return [values[low:high].tolist() for low, high in pairwise(begin.tolist())]


def groups_of(states: list[list[int]]) -> EntryGroups:
    entries = np.array([entry for accepted in states for entry in accepted], dtype=np.int32)
    return grouped(Accepted(entries, offsets_of([len(accepted) for accepted in states]), FIRST, len(states)), LIMIT)


def compiled(xpaths: list[str], tuning: Tuning = SOON) -> tuple[Subscriptions, Matcher]:
    subscriptions = Subscriptions(tuning=tuning)
    subscriptions.add_many(xpaths)
    return subscriptions, subscriptions.compile(engine="automaton")


def with_groups(found: SharedEntries) -> list[list[int]]:
    """All entries of each document, those of its groups included."""
    groups = lists(found.group_offsets, found.groups)
    return [
        sorted([*own, *(entry for group in shared for entry in found.of_group(group).tolist())])
        for own, shared in zip(lists(found.offsets, found.entries), groups, strict=True)
    ]


def check(subscriptions: Subscriptions, matcher: Matcher, documents: list[bytes]) -> None:
    """The matcher finds what the reference engine finds, each entry once, whether documents come together or alone."""
    batch, reference = read_batch(documents), subscriptions.compile(engine="reference")
    wanted = [sorted(found) for found in lists(*reference.engine.match_batch(batch))]
    assert [sorted(found) for found in lists(*matcher.engine.match_batch(batch))] == wanted
    assert with_groups(matcher.view().match_shared(batch)) == wanted
    for document, entries in zip(documents, wanted, strict=True):
        assert matcher.match(document).ids.tolist() == [entry + 1 for entry in entries]


@given(st.lists(st.lists(st.integers(FIRST, LIMIT - 1), unique=True, max_size=12), max_size=8))
def test_a_group_is_what_the_same_states_accept(states: list[list[int]]) -> None:
    made = groups_of(states)
    accepting: dict[int, list[int]] = defaultdict(list)
    for state, accepted in enumerate(states):
        for entry in accepted:
            accepting[entry].append(state)
    together: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for entry in sorted(accepting):
        together[tuple(accepting[entry])].append(entry)
    members = lists(made.begin, made.entries)
    assert sorted(members) == sorted(together.values())
    for state, groups in enumerate(lists(made.state_begin, made.groups)):
        assert sorted(entry for group in groups for entry in members[group]) == sorted(states[state])
    assert made.known == len(states)


def test_documents_are_grouped_once_they_have_marked_enough() -> None:
    subscriptions, matcher = compiled(PATHS)
    for _ in range(4):
        check(subscriptions, matcher, DOCUMENTS[:10])
    states = at_rest(matcher).base.states
    assert 0 < states.groups.known == len(states) and not states.marked


def test_later_states_are_marked_until_they_are_grouped() -> None:
    subscriptions, matcher = compiled(PATHS)
    for _ in range(4):
        check(subscriptions, matcher, DOCUMENTS[:10])
    known = at_rest(matcher).base.states.groups.known
    assert known
    for _ in range(4):
        check(subscriptions, matcher, DOCUMENTS)
    assert at_rest(matcher).base.states.groups.known > known


def test_a_large_automaton_is_grouped_in_the_background() -> None:
    subscriptions, matcher = compiled(PATHS, Tuning(fewest_marked=0, grouped_at_once=0))
    for _ in range(4):
        check(subscriptions, matcher, DOCUMENTS)
    assert at_rest(matcher).base.states.groups.known
    check(subscriptions, matcher, DOCUMENTS)


def test_few_documents_are_not_worth_groups() -> None:
    subscriptions, matcher = compiled(PATHS[:20], Tuning())
    check(subscriptions, matcher, DOCUMENTS)
    assert not at_rest(matcher).base.states.groups.known


def test_large_groups_are_listed_and_small_ones_written() -> None:
    subscriptions, matcher = compiled(PATHS, Tuning(fewest_marked=0, shared_entries=5))
    for _ in range(4):
        check(subscriptions, matcher, DOCUMENTS)
    found = matcher.view().match_shared(read_batch(DOCUMENTS))
    sizes = [len(found.of_group(group)) for group in set(found.groups.tolist())]
    assert sizes and min(sizes) >= 5 and len(found.entries)


def test_groups_are_listed_while_states_are_dropped() -> None:
    subscriptions, matcher = compiled(PATHS, Tuning(fewest_marked=0, shared_entries=2, state_bytes=200_000))
    reference, within_a_batch = subscriptions.compile(engine="reference"), 0
    for begin in [*range(0, len(DOCUMENTS), 8)] * 2:
        for end in (begin + 8, begin + 16):
            batch, before = read_batch(DOCUMENTS[begin:end]), matcher.statistics()["evictions"]
            found = matcher.view().match_shared(batch)
            assert with_groups(found) == [sorted(each) for each in lists(*reference.engine.match_batch(batch))]
            within_a_batch += len(found.groups) > 0 and matcher.statistics()["evictions"] > before
    assert within_a_batch


def test_ids_are_copied_in_the_order_of_groups() -> None:
    subscriptions, matcher = compiled(
        [path for path in PATHS for _ in range(3)], Tuning(fewest_marked=0, changed_rows=7)
    )
    batch, reference = read_batch(DOCUMENTS), subscriptions.compile(engine="reference")
    wanted = [sorted(found) for found in lists(*reference.match_batch(batch))]
    for _ in range(4):
        assert [sorted(found) for found in lists(*matcher.match_batch(batch))] == wanted
    order, rows = at_rest(matcher).base.states.entry_order, subscriptions.expansion().rows
    assert len(order) and rows.by_group.place[order].tolist() == list(range(len(order)))
    subscriptions.remove(1)
    subscriptions.add(PATHS[1], id=5000)
    wanted = [sorted(found) for found in lists(*reference.match_batch(batch))]
    assert [sorted(found) for found in lists(*matcher.match_batch(batch))] == wanted


def test_the_delta_has_groups_of_its_own() -> None:
    subscriptions, matcher = compiled(PATHS[:300], Tuning(fewest_marked=0, most_pending_bits=256))
    for _ in range(4):
        check(subscriptions, matcher, DOCUMENTS)
    for number in range(300, 360):
        subscriptions.add(PATHS[number])
        matcher.match(DOCUMENTS[0])
    assert at_rest(matcher).delta is not None
    for _ in range(4):
        check(subscriptions, matcher, DOCUMENTS)
    made = at_rest(matcher)
    assert made.delta is not None and made.delta.states.groups.known and made.base.states.groups.known
