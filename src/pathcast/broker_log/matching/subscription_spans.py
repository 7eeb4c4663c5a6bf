"""Subscription spans: which subscriptions are valid for which documents, for readers that follow a log.

    sequences          10 ───────── 40 ──────── 90 ──────▶
    put at 10           span 0: //a  [10, 40)
    put again at 40                 span 1: //b  [40, 90)
    ended at 90                                 nothing

A *span* is a version of a subscription with the subscriber that gets its deliveries. Spans are rows, numbered in the
order in which they began; a row is never removed, only its end changes, so a matcher over the patterns of the rows only
grows. `rebased` has the open spans alone.

A subscription may begin in the past (`from`). Its span has two parts: documents from its record on, and *history*,
those before its record. A reader that takes the log in steps gets the history in the step that has the record
(`history`), so what it delivers does not depend on where a step ends.

Invariant: document N of one of a span's feeds is a delivery of its subscription when `begin <= N < end`, it matches
the pattern, and its tenant's guard shows it. That is what the broker delivers to a reader that is never behind.
Cost: what `BrokerState.apply` costs, and a row per span.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct, structs

from ..broker_records import Meta, SubscriptionRecord, UnsubscriptionRecord
from ..broker_state import BrokerState
from ..subscriptions.standing_subscription import Version

# The end of a span that is open.
OPEN: Final = (1 << 63) - 1


class SubscriptionSpan(Struct, frozen=True, gc=False):
    """A version of a subscription, valid for documents `begin <= N < end`; `record` is the sequence of its record."""

    tenant: str
    id: str
    subscriber: str
    ordinal: int
    pattern: str
    feeds: tuple[str, ...]
    begin: int
    record: int
    end: int = OPEN


class SubscriptionSpans:
    """The spans of a log's subscriptions, as far as its records were applied; `state` is that of the log."""

    def __init__(self, state: BrokerState, rows: Iterable[SubscriptionSpan] | None = None) -> None:
        """`rows`: the spans that are open as of the state; without them, they are taken from the state."""
        self.state = state
        if rows is None:
            rows = (_span(key, each.current, state.head) for key, each in state.subscriptions.items())
        self.rows: list[SubscriptionSpan] = list(rows)
        self._open: dict[tuple[str, str], int] = {(row.tenant, row.id): at for at, row in enumerate(self.rows)}
        self.base = len(self.rows)  # the rows from here on came since
        self.ends: dict[int, int] = {}  # of rows before those

    def apply(self, sequence: int, meta: Meta | None) -> None:
        """Take the next record into account."""
        if not isinstance(meta, SubscriptionRecord | UnsubscriptionRecord):
            self.state.apply(sequence, meta)
            return
        key = meta.tenant, meta.id
        before = self._open.get(key)
        self.state.apply(sequence, meta)
        standing = self.state.subscriptions.get(key)
        if before is None:
            if standing is not None:
                self._begin(_span(key, standing.current, sequence))
            return
        row = self.rows[before]
        if standing is not None:
            span = _span(key, standing.current, sequence)
            if (span.ordinal, span.subscriber) == (row.ordinal, row.subscriber):
                return  # put again as it was
            self._begin(structs.replace(span, begin=max(span.begin, sequence)))
        else:
            del self._open[key]
        self.rows[before] = structs.replace(row, end=sequence)
        if before < self.base:
            self.ends[before] = sequence

    def _begin(self, span: SubscriptionSpan) -> None:
        self._open[span.tenant, span.id] = len(self.rows)
        self.rows.append(span)

    @property
    def changed(self) -> int:
        """How many rows came or ended since the base."""
        return len(self.rows) - self.base + len(self.ends)

    def rebased(self) -> "SubscriptionSpans":
        """The open spans alone, as the rows of a new base."""
        return SubscriptionSpans(self.state, (self.rows[at] for at in sorted(self._open.values())))

    def history(self, begin: int) -> list[int]:
        """The rows that came in a step of the log which begins at `begin`, and that concern documents before it."""
        later = enumerate(self.rows[self.base :], self.base)  # those before are as old as the base
        return [at for at, row in later if row.record >= begin > row.begin and row.end > row.begin]


def _span(key: tuple[str, str], version: Version, sequence: int) -> SubscriptionSpan:
    record = version.record
    return SubscriptionSpan(
        *key, record.subscriber, version.ordinal, record.pattern, record.feeds, version.begin, sequence
    )
