"""Restart: the state and the indexes that a log's checkpoint and the records after it add up to.

    checkpoint ──▶ state ──records after it──▶ state as of the head ──▶ indexes for the subscriptions in force

Matching of new documents can begin at once. Documents that are already in the log are matched again in the background
(rebuild.py).
"""

from pathcast.broker_log import DOCUMENT, BrokerState, DocumentRecord, meta_of
from pathcast.log import Log

from .feed_index import FeedIndex


def state_of(log: Log, state: BrokerState | None = None) -> BrokerState:
    """The state as of the head of a log; an earlier `state` is brought up to it."""
    if state is None or state.head + 1 < log.first:
        state = _state_at_checkpoint(log)
    for entry in log.read(state.head + 1, bodies=False):
        state.apply(entry.sequence, meta_of(entry))
    return state


def _state_at_checkpoint(log: Log) -> BrokerState:
    checkpoint = log.checkpoint()
    if checkpoint is not None and log.first == 1 and BrokerState.is_outdated(checkpoint.data):
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


def indexes_for(state: BrokerState) -> dict[str, FeedIndex]:
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
        index.add([*texts, *state.guard_patterns()], state.head + 1, rebuilt=True)
    return indexes
