"""Restart: the state and the indexes that a log adds up to, from a snapshot or a checkpoint and the records after it.

    snapshot ──▶ state and indexes ──records after it──▶ both as of the head
    checkpoint ──▶ state ──records after it──▶ state as of the head ──▶ indexes for the subscriptions in force

Matching of new documents can begin at once. Documents that are already in the log are matched again in the background
(delivery_index_rebuild.py).

Invariant: both ways lead to the same answers.
Cost: the records after the snapshot or checkpoint, some 15 µs per subscription and 0.1 µs per document: of documents,
only those of the deduplication window are looked at. Without a snapshot also 15 µs per subscription in force.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from pathcast.broker_log import (
    DOCUMENT,
    KINDS,
    BrokerState,
    DocumentRecord,
    FeedRecord,
    Meta,
    SubscriptionRecord,
    TenantRecord,
    UnsubscriptionRecord,
    is_outdated,
    meta_of,
)
from pathcast.log import Log, LogEntry

from .feed_index import FeedIndex
from .restart_snapshot import RestartSnapshot, Restored

_NOT_DOCUMENTS: Final = tuple(kind for kind in KINDS if kind != DOCUMENT)


def restored(log: Log, snapshot: RestartSnapshot | None = None, before: Restored | None = None) -> Restored:
    """State and indexes as of the head of a log; those of `before` are brought up to it."""
    if before is not None and before.state.head + 1 < log.first:
        before = None  # records that it lacks were trimmed
    found = before
    if found is None and snapshot is not None:
        found = snapshot.opened(log)
    if found is None:
        state = _state_at_checkpoint(log)
        for _ in _followed(log, state):
            pass
        return Restored(state, _indexes_for(state))
    found.state.published.drop_before(log.first)
    changes = _IndexChanges()
    for meta in _followed(log, found.state):
        changes.note(found.state, meta)
    changes.carry_out(found)
    return found


def renew(snapshot: RestartSnapshot, log: Log) -> None:
    """Write the snapshot of a log, which another process may be appending to, as of now."""
    snapshot.write(restored(log, snapshot), log)


def _followed(log: Log, state: BrokerState) -> Iterator[Meta]:
    """Apply the records after a state's head up to that of the log; yields each just before, documents excepted."""
    begin, end = state.head + 1, log.head + 1
    # The deduplication window has all that documents mean to the state.
    window = max(begin, end - state.published.size)
    for entry in log.read(begin, window, kinds=_NOT_DOCUMENTS, bodies=False):
        yield from _applied(entry, state)
    for entry in log.read(window, end, bodies=False):
        yield from _applied(entry, state)
    state.head = end - 1


def _applied(entry: LogEntry, state: BrokerState) -> Iterator[Meta]:
    meta = meta_of(entry)
    if meta is not None and not isinstance(meta, DocumentRecord):
        yield meta
    state.apply(entry.sequence, meta)


def _state_at_checkpoint(log: Log) -> BrokerState:
    checkpoint = log.checkpoint()
    if checkpoint is not None and log.first == 1 and is_outdated(checkpoint.data):
        checkpoint = None  # no record was trimmed, so they say the same
    state = BrokerState()
    if checkpoint is not None:
        state = BrokerState.restored(checkpoint.sequence, checkpoint.data)
        # The checkpoint has no deduplication window: the log itself has it.
        begin = max(log.first, log.head - state.published.size)
        for entry in log.read(begin, state.head + 1, kinds=(DOCUMENT,), bodies=False):
            meta = meta_of(entry)
            if isinstance(meta, DocumentRecord) and meta.id is not None:
                state.published.add(meta.publisher, meta.id, entry.sequence)
    return state


def _indexes_for(state: BrokerState) -> dict[str, FeedIndex]:
    """The index of each feed, with the patterns of the subscriptions in force."""
    standing = list(state.subscriptions.values())
    names = {name for each in standing for name in each.record.feeds} | set(state.feeds)
    patterns: dict[str, list[str]] = {name: [] for name in names}
    for each in standing:
        for name in each.record.feeds or names:
            patterns[name].append(each.record.pattern)
    indexes = {}
    for name, texts in patterns.items():
        index = indexes[name] = FeedIndex(state.limits_of(name))
        index.add([*texts, *state.guard_patterns()], None)
    return indexes


class _IndexChanges:
    """What some records mean to the indexes: how many more subscriptions use a pattern, or how many fewer."""

    def __init__(self) -> None:
        self._of_feed: dict[str, Counter[str]] = {}
        self._everywhere: Counter[str] = Counter()
        self._guards: list[str] = []

    def note(self, state: BrokerState, meta: Meta) -> None:
        """A record that is about to be applied to the state."""
        if isinstance(meta, SubscriptionRecord | UnsubscriptionRecord):
            before = state.subscriptions.get((meta.tenant, meta.id))
            if before is not None:
                self._count(before.record, -1)
            if isinstance(meta, SubscriptionRecord):
                self._count(meta, 1)
        elif isinstance(meta, FeedRecord) and meta.removed:
            self._of_feed.setdefault(meta.name, Counter())
        elif isinstance(meta, TenantRecord) and meta.pattern is not None:
            self._guards.append(meta.pattern)

    def _count(self, record: SubscriptionRecord, count: int) -> None:
        if not record.feeds:
            self._everywhere[record.pattern] += count
        for name in record.feeds:
            self._of_feed.setdefault(name, Counter())[record.pattern] += count

    def carry_out(self, restored: Restored) -> None:
        """Change the indexes; the state has all of the records."""
        state, indexes = restored
        new = [name for name in {*self._of_feed, *state.feeds} if name not in indexes]
        for index in indexes.values():
            index.add(self._guards, None)
            _change(index, self._everywhere)
        for name in new:  # it begins with what concerns every feed
            index = indexes[name] = FeedIndex(state.limits_of(name))
            index.add([each.record.pattern for each in state.subscriptions.everywhere()], None)
            index.add(state.guard_patterns(), None)
        for name, counts in self._of_feed.items():
            _change(indexes[name], counts)
        for name in self._of_feed:
            if not state.is_named(name):
                del indexes[name]
        for name, index in indexes.items():
            index.read_within(state.limits_of(name))


def _change(index: FeedIndex, counts: Counter[str]) -> None:
    index.add(counts.elements(), None)  # those with a positive count, as often
    for text, count in counts.items():
        if count < 0:
            index.remove(text, -count)
