"""Expansion: from matching patterns to the ids and subscribers to notify.

The ids of each pattern are stored together (`subscriptions_by_pattern.py`). A thousand equal subscriptions cost the
engine one entry; their ids are written only if the caller asks for ids.

An expansion is a view of the rows at one version, and keeps its meaning whatever is added and removed later. Entries
added to the table after that version expand to nothing.

Cost: none to create; expanding copies the rows of each entry, and the ids of one document are then sorted, some 3 ns
per id. If rows have changed since they were laid out, each entry costs one more memory access.
"""

import threading

import numpy as np

from pathcast.kernels import Int32s, Int64s, UInt64s

from .match_expansion_kernels import measure_rows, order_ids, pick, write_rows
from .subscription_ids_by_entry_group import NO_COPY
from .subscriptions_by_pattern import Rows
from .subscriptions_by_pattern_kernels import (
    ID,
    OWNER,
    DocumentEntries,
    count_visible_rows,
    visible_rows,
    write_by_group,
)

# Ids are sorted by marking them, unless a document has fewer than `Tuning.marked_ids`, or there are more than 64
# numbers to mark per existing id (and some).
_SPARSE = 1 << 12


class _Marks(threading.local):
    """One bit per id, and one per 64 of them, none set; one set per thread."""

    def __init__(self) -> None:
        self.marks = self.summary = np.zeros(0, dtype=np.uint64)

    def up_to(self, largest: int) -> tuple[UInt64s, UInt64s]:
        """Marks for the ids up to the largest."""
        words = (largest >> 6) + 1
        if not words <= len(self.marks) <= 4 * words:
            self.marks = np.zeros(words + (words >> 2), dtype=np.uint64)
            self.summary = np.zeros(len(self.marks) + 63 >> 6, dtype=np.uint64)
        return self.marks, self.summary


_MARKS = _Marks()


class Expansion:
    """Ids and subscribers of each pattern entry, at one version of the subscriptions."""

    __slots__ = ("added", "rows", "stamp")

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.stamp, self.added = rows.published

    @property
    def version(self) -> int:
        """The version of the subscriptions."""
        return self.rows.first + self.stamp

    @property
    def ids(self) -> Int32s:
        """All ids, ascending."""
        return self.ids_of(np.arange(max(self.rows.entry_count, len(self.rows.head)), dtype=np.int32))

    def count(self, entries: Int32s) -> int:
        """The number of subscriptions of these entries."""
        laid_out = self.are_laid_out(entries)
        if laid_out and self.rows.single:
            return len(entries)
        if laid_out:
            offsets = np.array([0, len(entries)], dtype=np.int64)
            return int(measure_rows(offsets, entries, self.rows.begin, np.empty(2, dtype=np.int64)))
        rows = self.rows
        return count_visible_rows(entries, rows.laid_ids, rows.changes, (self.stamp, self.added))

    def ids_of(self, entries: Int32s) -> Int32s:
        """Their ids, ascending, read-only."""
        ids = self._values_of(entries, ID)
        if len(ids) < self.rows.tuning.marked_ids:
            ids.sort()
        else:
            ids = self.ordered(np.array([0, len(ids)], dtype=np.int64), ids)
        ids.flags.writeable = False
        return ids

    def ordered(self, offsets: Int64s, ids: Int32s) -> Int32s:
        """The ids of documents, ascending in each."""
        largest = self.rows.largest
        few = len(ids) < self.rows.tuning.marked_ids * (len(offsets) - 1)
        if few or largest >> 6 > _SPARSE + len(self.rows.ids) + self.added:
            for begin, end in zip(offsets.tolist(), offsets[1:].tolist(), strict=False):
                ids[begin:end].sort()
            return ids
        out = np.empty(len(ids) + 8, dtype=np.int32)
        order_ids(offsets, ids, *_MARKS.up_to(largest), out)
        return out[: len(ids)]

    def ids_of_all(self, offsets: Int64s, entries: Int32s) -> tuple[Int64s, Int32s]:
        """The ids of many documents, in no particular order: document `i` has `ids[offsets[i] : offsets[i + 1]]`."""
        if not self.are_laid_out(entries):
            return self._visible(offsets, entries, ID)
        by_group = self.rows.by_group
        if not len(by_group.place):
            return self._laid_out(offsets, entries, self.rows.ids)
        out_offsets = np.zeros(len(offsets), dtype=np.int64)
        out = np.empty(measure_rows(offsets, entries, self.rows.begin, out_offsets), dtype=np.int32)
        write_by_group(entries, by_group, out)
        return out_offsets, out

    def subscribers_of(self, entries: Int32s) -> list[str]:
        """The names of their subscribers, each once, sorted."""
        found = self._values_of(entries, OWNER)
        owners = np.unique(found)
        return sorted(self.rows.names[owner] for owner in owners[owners >= 0].tolist())

    def are_laid_out(self, entries: Int32s) -> bool:
        """Whether documents with these entries see rows as laid out: none changed, no entry is newer."""
        return not self.stamp and int(entries.max(initial=-1)) < self.rows.entry_count

    def _values_of(self, entries: Int32s, cell: int) -> Int32s:
        """The ids or owners of the entries of one document."""
        rows = self.rows
        values = rows.ids if cell == ID else rows.owners
        laid_out = self.are_laid_out(entries)
        if laid_out and rows.single:
            out = np.empty(len(entries), dtype=np.int32)
            pick(entries, values, out)
            return out
        offsets = np.array([0, len(entries)], dtype=np.int64)
        return (self._laid_out(offsets, entries, values) if laid_out else self._visible(offsets, entries, cell))[1]

    def _laid_out(self, offsets: Int64s, entries: Int32s, values: Int32s) -> tuple[Int64s, Int32s]:
        if self.rows.single:
            out = np.empty(len(entries), dtype=np.int32)
            pick(entries, values, out)
            return offsets, out
        out_offsets = np.zeros(len(offsets), dtype=np.int64)
        out = np.empty(measure_rows(offsets, entries, self.rows.begin, out_offsets), dtype=np.int32)
        write_rows(entries, self.rows.begin, values, out)
        return out_offsets, out

    def _visible(self, offsets: Int64s, entries: Int32s, cell: int) -> tuple[Int64s, Int32s]:
        """The visible rows' ids or owners."""
        rows = self.rows
        laid_out, changes = rows.laid_ids if cell == ID else rows.laid_owners, rows.changes
        by_group = rows.by_group if cell == ID else NO_COPY
        out_offsets = np.zeros(len(offsets), dtype=np.int64)
        out = np.empty(64 + len(entries) * (1 + len(laid_out.values) // max(1, rows.entry_count)), dtype=np.int32)
        done = 0
        while True:
            published = self.stamp, self.added
            done = visible_rows(
                DocumentEntries(offsets, entries), laid_out, by_group, changes, published, cell, out_offsets, out, done
            )
            if done == len(offsets) - 1:
                return out_offsets, out[: out_offsets[-1]]
            larger = np.empty(2 * len(out), dtype=np.int32)
            larger[: out_offsets[done]] = out[: out_offsets[done]]
            out = larger
