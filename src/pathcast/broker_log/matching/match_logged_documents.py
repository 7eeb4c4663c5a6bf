"""Match documents of a log as the broker does: by the subscriptions, guards and mappings valid at each one's sequence.

    documents ──match all patterns of the rows──▶ (document, row) ──feed, begin <= N < end, guard──▶ deliveries

All patterns that are valid for any of the documents are matched in one call, and what is outside a row's validity is
dropped. The rows are those of `SubscriptionSpans`: pure data, so any process can have them.

Invariant: the answer for a document depends on the document, the rows, guards and mappings alone, not on the documents
beside it. `tests/broker_log` compares it with the broker over random histories.
Cost: that of reading and matching; then a few operations on arrays per match.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pathcast.documents import Reader
from pathcast.errors import PathcastError
from pathcast.kernels import Bools, Int32s, Int64s
from pathcast.matching import Matcher

from ..document_groups_from_log import LoggedDocuments
from ..effective_feed_settings import UNLIMITED
from ..feed_mediators import MediatorSpans
from ..tenant_visibility_guards import GuardSpans
from .subscription_spans import SubscriptionSpan


class Validity(NamedTuple):
    """For which documents each row is valid: `begin <= N < end`, on the feeds `feed_sets[feeds[row]]` (all if none)."""

    begin: Int64s
    end: Int64s
    feeds: Int32s
    feed_sets: tuple[tuple[str, ...], ...]
    tenants: Int32s
    tenant_names: tuple[str, ...]

    @classmethod
    def of(cls, rows: Sequence[SubscriptionSpan]) -> "Validity":
        """The validity of some spans."""
        feed_sets: dict[tuple[str, ...], int] = {}
        tenants: dict[str, int] = {}
        return cls(
            np.array([row.begin for row in rows], dtype=np.int64),
            np.array([row.end for row in rows], dtype=np.int64),
            np.array([feed_sets.setdefault(row.feeds, len(feed_sets)) for row in rows], dtype=np.int32),
            tuple(feed_sets),
            np.array([tenants.setdefault(row.tenant, len(tenants)) for row in rows], dtype=np.int32),
            tuple(tenants),
        )

    def followed_by(self, later: "Validity") -> "Validity":
        """These rows, then others."""
        sets = {each: at for at, each in enumerate(self.feed_sets)}
        names = {each: at for at, each in enumerate(self.tenant_names)}
        feeds = np.array([sets.setdefault(each, len(sets)) for each in later.feed_sets], dtype=np.int32)
        tenants = np.array([names.setdefault(each, len(names)) for each in later.tenant_names], dtype=np.int32)
        return Validity(
            np.concatenate((self.begin, later.begin)),
            np.concatenate((self.end, later.end)),
            np.concatenate((self.feeds, feeds[later.feeds])),
            tuple(sets),
            np.concatenate((self.tenants, tenants[later.tenants])),
            tuple(names),
        )

    def ended(self, ends: Mapping[int, int]) -> "Validity":
        """The same rows, of which some have other ends."""
        end = self.end.copy()
        end[np.fromiter(ends.keys(), np.int64, len(ends))] = np.fromiter(ends.values(), np.int64, len(ends))
        return self._replace(end=end)

    def only(self, rows: Iterable[int]) -> "Validity":
        """The same rows, of which only some are valid."""
        end = np.full(len(self.end), 0, dtype=np.int64)
        chosen = np.fromiter(rows, np.int64)
        end[chosen] = self.end[chosen]
        return self._replace(end=end)


class Deliveries(NamedTuple):
    """Documents, by place, and the row that gets each; and the errors of documents that cannot be matched, by place."""

    documents: Int64s
    rows: Int64s
    errors: Mapping[int, PathcastError]


class LogMatcher:
    """Matches documents against the patterns of rows, and of guards.

    Row r is the subscription with the id r + 1 in `matcher`, which may have more rows than are asked for. One thread.
    """

    def __init__(self, matcher: Matcher, rows: int) -> None:
        """`rows`: how many the matcher has."""
        self._matcher = matcher
        self._subscriptions = matcher.subscriptions
        self._own = rows  # the rows whose id follows from their number
        self._added: list[int] = []  # ids of the rows after those
        self._guards: dict[str, int] = {}  # ids
        self._lookup = np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        return self._own + len(self._added)

    def add(self, patterns: Sequence[str]) -> None:
        """The patterns of further rows."""
        if patterns:
            self._added += self._subscriptions.add_many(patterns)
            self._lookup = np.empty(0, dtype=np.int64)

    def guard(self, patterns: Iterable[str]) -> None:
        """Have the patterns of guards matched, too."""
        for pattern in patterns:
            if pattern not in self._guards:
                self._guards[pattern] = self._subscriptions.add(pattern)
                self._lookup = np.empty(0, dtype=np.int64)

    def match(
        self,
        feed: str,
        documents: LoggedDocuments,
        validity: Validity,
        guards: Mapping[str, GuardSpans],
        mediators: MediatorSpans,
    ) -> Deliveries:
        """The deliveries of documents of a feed; those of a document are in the order of rows."""
        self.guard(
            span.record.pattern for spans in guards.values() for span in spans if span.record.pattern is not None
        )
        offsets, ids, errors = self._matches(documents, mediators)
        places = np.repeat(np.arange(len(offsets) - 1, dtype=np.int64), np.diff(offsets))
        rows = self._row_of(ids)
        sequences = np.array(documents.sequences, dtype=np.int64)
        kept = np.flatnonzero((rows >= 0) & (rows < len(validity.begin)))
        in_place, in_rows = places[kept], rows[kept]
        of_feed = np.array([not each or feed in each for each in validity.feed_sets], dtype=np.bool_)
        at = sequences[in_place]
        valid = of_feed[validity.feeds[in_rows]] & (validity.begin[in_rows] <= at) & (at < validity.end[in_rows])
        in_place, in_rows = in_place[valid], in_rows[valid]
        for tenant, spans in guards.items():
            if spans and tenant in validity.tenant_names:
                visible = self._visible(spans, sequences, places, ids)
                hidden = (validity.tenants[in_rows] == validity.tenant_names.index(tenant)) & ~visible[in_place]
                in_place, in_rows = in_place[~hidden], in_rows[~hidden]
        order = np.lexsort((in_rows, in_place))
        return Deliveries(in_place[order], in_rows[order], errors)

    def _matches(
        self, documents: LoggedDocuments, mediators: MediatorSpans
    ) -> tuple[Int64s, Int32s, Mapping[int, PathcastError]]:
        """The ids that each document matches, whatever it costs: it was accepted."""
        view, names = self._matcher.view(), self._subscriptions.table.names
        if documents.schemas:
            from .mediated_documents import mappings_of, match_mediated

            found = match_mediated(view, names, documents.bodies, mappings_of(documents, mediators), UNLIMITED)
            return found.offsets, found.patterns, found.errors
        batch = Reader(names, UNLIMITED, "refuse").read(documents.bodies)
        offsets, ids = view.within(UNLIMITED).match_ids(batch)
        return offsets, ids, batch.errors

    def _row_of(self, ids: Int32s) -> Int64s:
        """The rows with these ids; -1 for guards."""
        if len(self._lookup) == 0:
            most = max([self._own, *self._added[-1:], *self._guards.values()])
            self._lookup = np.full(most + 1, -1, dtype=np.int64)
            self._lookup[1 : self._own + 1] = np.arange(self._own)
            self._lookup[self._added] = np.arange(self._own, len(self))
        return self._lookup[ids]

    def _visible(self, spans: GuardSpans, sequences: Int64s, places: Int64s, ids: Int32s) -> Bools:
        """Which of the documents a tenant with these guards sees."""
        begins = np.array([span.begin for span in spans], dtype=np.int64)
        in_force = begins.searchsorted(sequences, side="right") - 1
        visible = np.ones(len(sequences), dtype=np.bool_)
        for number, span in enumerate(spans):
            if span.record.pattern is not None:
                concerned = in_force == number
                matched = np.zeros(len(sequences), dtype=np.bool_)
                matched[places[ids == self._guards[span.record.pattern]]] = True
                visible[concerned] = matched[concerned]
        return visible
