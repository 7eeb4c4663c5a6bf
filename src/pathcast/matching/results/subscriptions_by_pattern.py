"""Subscriptions by pattern: the ids and subscribers of each entry, at every version since they were laid out.

    entry   0      1         2
    begin   0      1         3   4          laid out: compressed rows, from a snapshot or sorted by entry
    ids     17     2   40    9
                   ✝5                        died at stamp 5
    head    ·      │         └─▶ 44 ──▶ 51            added since, the oldest first

A row is visible at a stamp if it was added by then and had not died. Changes write rows of the next stamp, which no
reader sees yet, and publish the stamp and the number of rows by one assignment. Data that a reader sees therefore never
changes its meaning, and a view of a version is these two numbers. When added and dead rows have used up the space, all
rows are laid out again, as another `Rows`; views of the old one keep it.

Invariant: one thread writes at a time; any number of threads read meanwhile, without a lock. Data for a stamp is
complete before the stamp is published; unpublished data is not read, or makes no difference.
Cost: adding or removing a row takes some 1 µs, the latter by bisection among the entry's laid-out rows; laying out
1 million rows takes some 20 ms, after a quarter as many changes.
"""

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

import numpy as np

from pathcast.kernels import Int32s, Int64s
from pathcast.store import Texts

from ..tuning import Tuning
from .subscription_ids_by_entry_group import NO_COPY, ids_by_group
from .subscriptions_by_pattern_kernels import CELLS, ID, NEXT, OWNER, EntryValues, RowChanges, append_rows, lay_out

if TYPE_CHECKING:
    from ..table.pattern_table import PatternTable
    from .subscribers_of_document_batches import NameOrder, RankedRows


_NOTHING: Final = np.zeros(0, dtype=np.int32)
_NO_BITS: Final = np.zeros(0, dtype=np.uint8)


class Rows:
    """Laid-out rows, and the rows added and removed since."""

    def __init__(self, begin: Int64s, ids: Int32s, owners: Int32s, names: Texts, version: int, tuning: Tuning) -> None:
        self.begin = begin
        self.ids = ids
        self.owners = owners
        self.names = names
        self.tuning = tuning
        self.table: PatternTable | None = None  # the table of their entries
        self.entry_count = len(begin) - 1
        self.single = len(ids) == self.entry_count and bool(np.all(begin == np.arange(len(begin))))
        self.largest = int(ids.max(initial=0))  # of all ids, and of those added since
        self.first = version  # the version of stamp 0
        self.published = 0, 0  # the last complete stamp, and the number of rows added by then
        self.head = self.tail = self.added = self.died = self.live = _NOTHING  # allocated by the first change
        self.touched = _NO_BITS
        # In the form that kernels read.
        self.laid_ids, self.laid_owners = (EntryValues(begin, values, self.single) for values in (ids, owners))
        self.changes = RowChanges(self.touched, self.head, self.added, self.died)
        # Of `subscribers_of_document_batches.py`, on first use; the order may be inherited from the previous rows.
        self.ranked: RankedRows | None = None
        self.name_order: NameOrder | None = None
        self.by_group = NO_COPY
        self._groups: Int32s = _NOTHING  # the entries in the order of that copy
        self._written = 0  # ids written since that copy was made
        self._room = tuning.changed_rows + len(ids) // 4
        self._stamp = 0
        self._count = 0
        self._dead = 0
        self._row_of: dict[int, int] = {}  # of the live ids added since

    @classmethod
    def laid_out(
        cls,
        order: Int64s,
        ids: Int32s,
        entries: Int32s,
        owners: Int32s,
        counts: tuple[int, int],
        names: Texts,
        version: int,
        tuning: Tuning,
    ) -> "Rows":
        """From the subscriptions' columns, ordered by id; entry -1 is gone. `counts`: of rows and of entries."""
        row_count, entry_count = counts
        begin = np.zeros(entry_count + 1, dtype=np.int64)
        row_ids, row_owners = np.empty(row_count, dtype=np.int32), np.empty(row_count, dtype=np.int32)
        lay_out(order, ids, entries, owners, begin, row_ids, row_owners)
        return cls(begin, row_ids, row_owners, names, version, tuning)

    # Reading.

    @property
    def version(self) -> int:
        """The current version of the subscriptions in these rows."""
        return self.first + self.published[0]

    @property
    def bytes(self) -> int:
        """The memory of the used rows."""
        laid_out = self.begin.nbytes + self.ids.nbytes + self.owners.nbytes
        laid_out += sum(array.nbytes for array in self.by_group)
        changes = (self.head, self.tail, self.died, self.live, self.touched)
        return laid_out + sum(column.nbytes for column in changes) + 4 * CELLS * self._count

    def count_written(self, ids: int, groups: Int32s) -> None:
        """Count ids that were written for documents, whose entries are in the order of `groups`."""
        if self.single or not len(groups) or groups is self._groups:
            return
        self._written += ids
        if self._written > 2 * len(self.ids):
            self._written, self._groups = 0, groups
            self.by_group = ids_by_group(self.begin, self.ids, groups)

    def live_counts(self, entry_count: int) -> Int32s:
        """The current number of subscriptions per entry."""
        counts = np.zeros(entry_count, dtype=np.int32)
        if self._stamp:
            known = self.live[:entry_count]
            counts[: len(known)] = known
        else:
            counts[: self.entry_count] = np.diff(self.begin)
        return counts

    def unused(self, entries: Int32s) -> list[int]:
        """Those of these entries that have no subscription now."""
        if not len(entries):
            return []
        self.open()
        counted = entries < len(self.live)
        used = self.live[entries[counted]] > 0
        return [*entries[counted][~used].tolist(), *entries[~counted].tolist()]

    # Changes. They become visible on `publish`, and must not fail half-way: call `has_room` before.

    def has_room(self, added: int, died: int, entry_count: int) -> bool:
        """Whether `added` rows can be added and `died` rows die, with this many entries; otherwise, lay out again."""
        return self._count + self._dead + added + died <= self._room and entry_count <= self.entry_count + self._room

    def open(self) -> None:
        """Allocate the arrays for changes. (All zero, so that untouched pages cost nothing.)"""
        if self.touched is not _NO_BITS:
            return
        entry_count = self.entry_count
        live = np.zeros(entry_count + self._room, dtype=np.int32)
        live[:entry_count] = np.diff(self.begin)
        self._begin, self._ids, self._live = self.begin.data, self.ids.data, live.data
        died = np.zeros(len(self.ids) + self._room, dtype=np.int32)
        added = np.zeros(CELLS * self._room, dtype=np.int32)
        head, tail = np.zeros(len(live), dtype=np.int32), np.zeros(len(live), dtype=np.int32)
        touched = np.zeros(len(live) + 7 >> 3, dtype=np.uint8)
        self._died, self._added, self._head, self._tail = died.data, added.data, head.data, tail.data
        self._touched = touched.data
        self.live, self.died, self.added, self.head, self.tail = live, died, added, head, tail
        self.touched = touched
        self.changes = RowChanges(touched, head, added, died)

    def add(self, entry: int, id: int, owner: int) -> int:
        """Add a row; return how many the entry had before."""
        row, added = self._count, self._added
        added[CELLS * row + ID], added[CELLS * row + OWNER] = id, owner
        last = self._tail[entry]
        if last:
            added[CELLS * (last - 1) + NEXT] = row + 1
        else:
            self._head[entry] = row + 1
        self._tail[entry] = self._count = row + 1
        self._touched[entry >> 3] |= 1 << (entry & 7)
        self._row_of[id] = row
        self.largest = max(self.largest, id)
        before = self._live[entry]
        self._live[entry] = before + 1
        return before

    def add_many(self, entries: Int32s, ids: Int32s, owners: Int32s) -> None:
        """Add rows."""
        first, self._count = self._count, self._count + len(ids)
        append_rows(entries, ids, owners, first, self.added, self.head, self.tail, self.touched, self.live)
        self._row_of.update(zip(ids.tolist(), range(first, self._count), strict=True))
        self.largest = max(self.largest, int(ids.max(initial=0)))

    def remove(self, entry: int, id: int) -> int:
        """Mark the row of an existing id as dead; return how many the entry has left."""
        row = self._row_of.pop(id, -1)
        if row >= 0:
            self._died[len(self.ids) + row] = self._stamp + 1
        else:
            self._died[bisect_left(self._ids, id, self._begin[entry], self._begin[entry + 1])] = self._stamp + 1
            self._touched[entry >> 3] |= 1 << (entry & 7)
        self._dead += 1
        left = self._live[entry] - 1
        self._live[entry] = left
        return left

    def publish(self) -> None:
        """Make the changes visible."""
        self._stamp += 1
        self.published = self._stamp, self._count
