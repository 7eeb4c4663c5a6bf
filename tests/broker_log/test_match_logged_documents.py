"""Documents of a log matched by validity get the deliveries that the broker makes."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from pathcast import Subscriptions
from pathcast.broker_log import (
    BrokerState,
    LogMatcher,
    SubscriptionRecord,
    SubscriptionSpans,
    UnsubscriptionRecord,
    Validity,
    groups_of_documents,
    meta_of,
)
from pathcast.log import Log

from .log_history import Delivery, history_in


class Follower:
    """Reads a log in steps, with nothing but the functions of broker_log."""

    def __init__(self, log: Log, seed: int) -> None:
        self.log = log
        self._random = random.Random(seed)
        self._spans = SubscriptionSpans(BrokerState())
        self._rebase()
        self._read_to = 0

    def _rebase(self) -> None:
        """Compile the open spans, or read them from a checkpoint."""
        state = self._spans.state
        if self._random.random() < 0.5:
            self._spans = self._spans.rebased()
        else:
            self._spans = SubscriptionSpans(BrokerState.restored(state.head, state.checkpoint()))
        subscriptions = Subscriptions()
        subscriptions.add_many([row.pattern for row in self._spans.rows])
        self._matcher = LogMatcher(subscriptions.compile(), len(self._spans.rows))
        self._base = Validity.of(self._spans.rows)

    def step(self, end: int) -> set[Delivery]:
        """What documents up to `end`, and subscriptions that came with them, mean."""
        begin = self._read_to + 1
        for entry in self.log.read(begin, end + 1, bodies=False):
            self._spans.apply(entry.sequence, meta_of(entry))
        self._read_to = end
        rows = self._spans.rows
        self._matcher.add([row.pattern for row in rows[len(self._matcher) :]])
        validity = self._base.ended(self._spans.ends).followed_by(Validity.of(rows[self._spans.base :]))
        found = list(self._deliveries(begin, end, validity))
        if history := self._spans.history(begin):
            found += self._deliveries(1, begin - 1, validity.only(history))
        assert len(found) == len(set(found))
        if self._random.random() < 0.3:
            self._rebase()
        return set(found)

    def _deliveries(self, begin: int, end: int, validity: Validity) -> Iterator[Delivery]:
        state, rows = self._spans.state, self._spans.rows
        for group in groups_of_documents(self.log, begin, end + 1):
            for feed, documents in group.items():
                mediators = state.mediators.get(feed, ())
                found = self._matcher.match(feed, documents, validity, state.guards, mediators)
                assert not found.errors
                for place, row in zip(found.documents.tolist(), found.rows.tolist(), strict=True):
                    sequence = documents.sequences[place]
                    if sequence >= state.expired.get(feed, 0):
                        yield rows[row].tenant, rows[row].id, sequence, rows[row].subscriber


@pytest.mark.parametrize("seed", range(8))
def test_deliveries_by_validity_are_those_of_the_broker(tmp_path: Path, seed: int) -> None:
    """Subscriptions, guards, mediators and limits change, and documents expire, between and within steps."""
    with history_in(tmp_path, seed) as history:
        follower = Follower(history.broker.log, seed)
        total = settled = 0
        while settled < 40:
            if history.act() and history.random.random() < 0.9:
                continue
            expected, end = history.settle(), history.broker.log.head
            assert follower.step(end) == expected
            total += len(expected)
            settled += 1
        assert total > 20


def _record(id: str, pattern: str, subscriber: str = "ada", begin: int | None = None) -> SubscriptionRecord:
    return SubscriptionRecord("t", id, subscriber, pattern, pattern, begin=begin)


def test_a_span_begins_with_its_record_and_ends_with_the_next() -> None:
    spans = SubscriptionSpans(BrokerState())
    records: list[SubscriptionRecord | UnsubscriptionRecord]
    records = [_record("s", "//a"), _record("s", "//a"), _record("s", "//b", begin=1), UnsubscriptionRecord("t", "s")]
    for sequence, record in enumerate(records, 10):
        spans.apply(sequence, record)
    assert [(row.pattern, row.begin, row.end) for row in spans.rows] == [("//a", 10, 12), ("//b", 12, 13)]
    assert (spans.ends, spans.changed, spans.rebased().rows) == ({}, 2, [])


def test_another_subscriber_is_another_span_with_the_same_documents() -> None:
    spans = SubscriptionSpans(BrokerState())
    for sequence, subscriber in ((3, "ada"), (5, "bob")):
        spans.apply(sequence, _record("s", "//a", subscriber, begin=1))
    assert [(row.subscriber, row.begin, row.end) for row in spans.rows[:1]] == [("ada", 1, 5)]
    assert (spans.rows[1].subscriber, spans.rows[1].begin) == ("bob", 5)
    assert (spans.history(3), spans.history(4)) == ([0], [])


def test_ends_of_a_base_are_kept_beside_it() -> None:
    spans = SubscriptionSpans(BrokerState())
    spans.apply(1, _record("s", "//a"))
    spans = spans.rebased()
    spans.apply(2, UnsubscriptionRecord("t", "s"))
    assert (spans.base, spans.ends, spans.rows[0].end) == (1, {0: 2}, 2)
    assert Validity.of(spans.rebased().rows).begin.tolist() == []
