"""Subscribers of whole batches: names as numbers in alphabetical order, each written once per document.

Per entry, the distinct subscribers of its laid-out rows, by the rank of their names. A document's subscribers are then
the marked ranks of its entries, which are distinct and in the order of their names.

The ranks are computed when subscribers are first needed, and kept with the rows. A new name is inserted in its place,
and the ranks after it move up; entries whose rows have changed are read row by row.

Cost: sorting all names once, 1 µs each; afterwards nothing per change, and some 10 ns per known name and row when
there are new names.
"""

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from pathcast.kernels import Int32s, Int64s, UInt64s

from .match_expansion import Expansion
from .match_expansion_kernels import distinct_rows
from .subscriptions_by_pattern import Rows
from .subscriptions_by_pattern_kernels import EntryRanks, distinct_visible_rows


@dataclass(frozen=True, slots=True, eq=False)
class NameOrder:
    """Names in alphabetical order, and the rank of each owner's name among them."""

    names: list[str]
    rank: Int32s

    @classmethod
    def of(cls, known: list[str]) -> "NameOrder":
        """The order of all names, given by owner."""
        order = sorted(range(len(known)), key=known.__getitem__)
        rank = np.empty(len(known), dtype=np.int32)
        rank[order] = np.arange(len(known), dtype=np.int32)
        return cls([known[owner] for owner in order], rank)

    def extended(self, fresh: list[str]) -> tuple["NameOrder", Int32s]:
        """The order with more names, of the owners that follow; and the new rank of each old rank."""
        order = sorted(range(len(fresh)), key=fresh.__getitem__)
        places = np.array([bisect_left(self.names, fresh[place]) for place in order], dtype=np.int64)
        known = np.arange(len(self.names))
        moved = (known + np.searchsorted(places, known, side="right")).astype(np.int32)
        names: list[str] = []
        done = 0
        for place, at in zip(order, places.tolist(), strict=True):
            names += self.names[done:at]
            names.append(fresh[place])
            done = at
        names += self.names[done:]
        rank = np.empty(len(names), dtype=np.int32)
        rank[: len(known)] = moved[self.rank]
        rank[len(known) + np.array(order)] = places + np.arange(len(fresh))
        return NameOrder(names, rank), moved


@dataclass(frozen=True, slots=True, eq=False)
class RankedRows:
    """The distinct subscribers of each entry as laid out, as ranks in an order of names."""

    order: NameOrder
    begin: Int64s
    ranks: Int32s

    @classmethod
    def of(cls, rows: Rows) -> "RankedRows":
        """The ranks for some rows, with at least all names that are known now."""
        ranked = rows.ranked
        order = ranked.order if ranked is not None else rows.name_order or NameOrder.of(list(rows.names))
        fresh = rows.names[len(order.names) :]
        if len(fresh) > len(order.names):
            order, ranked = NameOrder.of(list(rows.names)), None
        elif fresh:
            order, moved = order.extended(fresh)
            ranked = None if ranked is None else cls(order, ranked.begin, moved[ranked.ranks])
        rows.ranked = ranked = ranked or cls._laid_out(rows, order)
        return ranked

    @classmethod
    def _laid_out(cls, rows: Rows, order: NameOrder) -> "RankedRows":
        entries = np.repeat(np.arange(len(rows.begin) - 1, dtype=np.int64), np.diff(rows.begin))
        named = rows.owners >= 0
        pairs = np.unique(entries[named] << 32 | order.rank[rows.owners[named]])
        begin = np.searchsorted(pairs >> 32, np.arange(len(rows.begin))).astype(np.int64)
        return cls(order, begin, (pairs & 0xFFFFFFFF).astype(np.int32))


class SubscriberRows:
    """The subscribers of each entry at one version, as ranks into `names`, which is sorted."""

    def __init__(self, expansion: Expansion) -> None:
        self._expansion = expansion
        self._ranked = RankedRows.of(expansion.rows)

    @property
    def names(self) -> list[str]:
        """Names by rank; some may have no subscription left. A new list whenever the names change."""
        return self._ranked.order.names

    def of_all(self, offsets: Int64s, entries: Int32s) -> tuple[Int64s, Int32s]:
        """The subscribers of many documents: those of document `i` are `ranks[offsets[i] : offsets[i + 1]]`, sorted."""
        out_offsets = np.zeros(len(offsets), dtype=np.int64)
        out = np.empty(1024 + 16 * len(offsets), dtype=np.int32)
        marks = np.zeros(len(self.names) + 63 >> 6, dtype=np.uint64)
        done = 0
        while True:
            done = self._write(offsets, entries, marks, out_offsets, out, done)
            if done == len(offsets) - 1:
                return out_offsets, out[: out_offsets[-1]]
            larger = np.empty(2 * len(out) + 64 * len(marks), dtype=np.int32)
            larger[: out_offsets[done]] = out[: out_offsets[done]]
            out = larger

    def _write(
        self,
        offsets: Int64s,
        entries: Int32s,
        marks: UInt64s,
        out_offsets: Int64s,
        out: Int32s,
        first: int,
    ) -> int:
        """Write the ranks of documents from `first` on; return the first that did not fit, or their number."""
        ranked, rows = self._ranked, self._expansion.rows
        if self._expansion.are_laid_out(entries):
            return int(distinct_rows(offsets, entries, ranked.begin, ranked.ranks, marks, out_offsets, out, first))
        known = EntryRanks(ranked.begin, ranked.ranks, ranked.order.rank)
        published = self._expansion.stamp, self._expansion.added
        return distinct_visible_rows(
            offsets, entries, rows.laid_owners, known, rows.changes, published, marks, out_offsets, out, first
        )
