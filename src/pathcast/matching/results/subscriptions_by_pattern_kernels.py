# mypy: allow-untyped-defs, allow-untyped-calls
"""Rows that are added and removed: laying them out by entry, adding to them, and writing those visible to a version.

An added row is three adjacent numbers: the link to the next row of the same entry (its number plus 1; 0 for none), its
id and its owner. `head` links to an entry's first row, `tail` to its last. A view knows the number of rows at its
creation: it does not follow links beyond that, so that it reads nothing that may be half written.

`died` has the stamp at which a row died, 0 for a live row: first the laid-out rows, then the added ones. `touched` has
a bit for each entry whose rows have changed since they were laid out: these are few, and for all others the bit makes a
look at the larger arrays unnecessary.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Int64s, UInt8s, UInt64s, Writable, kernel, part
from pathcast.kernels.hash_table_kernels import next_slot, slot_mask

from ..arrays.bitset_kernels import mark, read_marks

NEXT, ID, OWNER, CELLS = 0, 1, 2, 3


class DocumentEntries(NamedTuple):
    """The entries of documents, `offsets[i] : offsets[i + 1]` those of document `i`."""

    offsets: Int64s
    entries: Int32s


class EntryValues(NamedTuple):
    """The ids or owners of the laid-out rows, `begin[e] : begin[e + 1]` those of entry `e`.

    `single`: each entry has one row.
    """

    begin: Int64s
    values: Int32s
    single: bool


class IdsByGroup(NamedTuple):
    """The laid-out ids in another order: those of entry `e` are `ids[begin[place[e]] : begin[place[e] + 1]]`.

    Without places, there is no such copy.
    """

    place: Int32s
    begin: Int64s
    ids: Int32s


class EntryRanks(NamedTuple):
    """The distinct ranks of each entry's laid-out rows, `begin[e] : begin[e + 1]`; and the rank of each owner."""

    begin: Int64s
    ranks: Int32s
    of_owner: Int32s


class RowChanges(NamedTuple):
    """The changes of rows since they were laid out: entries touched, rows added, and when rows died."""

    touched: UInt8s
    head: Int32s
    added: Int32s
    died: Int32s


@kernel("void(ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], i8[::1], i4[::1], i4[::1])")
def lay_out(order, ids, entries, owners, begin, out_ids, out_owners):
    """Group subscriptions, taken in this order, by entry; those with entry -1 are gone.

    `begin` is all zero and receives the bounds: the rows of entry `e` are `begin[e] : begin[e + 1]`.
    """
    for index in range(len(entries)):
        if entries[index] >= 0:
            begin[entries[index] + 1] += 1
    for entry in range(1, len(begin)):
        begin[entry] += begin[entry - 1]
    # Each bound advances to the next while its entry fills up ...
    for index in range(len(order)):
        slot = order[index]
        entry = entries[slot]
        if entry >= 0:
            row = begin[entry]
            begin[entry] = row + 1
            out_ids[row] = ids[slot]
            out_owners[row] = owners[slot]
    # ... and back.
    for entry in range(len(begin) - 1, 0, -1):
        begin[entry] = begin[entry - 1]
    begin[0] = 0


@kernel("void(ro_i4[::1], ro_i8[::1], ro_i4[::1], i8[::1], i4[::1])", late=True)
def copy_ids(order, begin, ids, out_begin, out):
    """Copy the ids of all entries in this order."""
    written = 0
    for index in range(len(order)):
        entry = order[index]
        for row in range(begin[entry], begin[entry + 1]):
            out[written] = ids[row]
            written += 1
        out_begin[index + 1] = written


@kernel("void(ro_i4[::1], ro_i4[::1], ro_i4[::1], int64, i4[::1], i4[::1], i4[::1], u1[::1], i4[::1])", late=True)
def append_rows(entries, ids, owners, first, rows, head, tail, touched, live):
    """Add many rows, from number `first` on, and count them."""
    for index in range(len(entries)):
        entry = entries[index]
        at = (first + index) * CELLS
        rows[at + ID] = ids[index]
        rows[at + OWNER] = owners[index]
        if tail[entry] > 0:
            rows[(tail[entry] - 1) * CELLS + NEXT] = first + index + 1
        else:
            head[entry] = first + index + 1
        tail[entry] = first + index + 1
        touched[entry >> 3] |= 1 << (entry & 7)
        live[entry] += 1


@part
def lives(died, row, stamp):
    """Whether a row was live at a stamp. (0, never, becomes the largest of all numbers.)"""
    return np.uint32(died[row] - 1) >= np.uint32(stamp)


@part
def is_touched(touched, entry):
    """Whether an entry's rows have changed, or the entry is newer than all that were laid out."""
    word = entry >> 3
    return word < len(touched) and touched[word] >> (entry & 7) & 1 != 0


@part
def copy_values(values, begin, place, out, written):
    """Append `values[begin[place] : begin[place + 1]]`; return how many values are written now."""
    row, end = np.uint64(begin[place]), np.uint64(begin[place + 1])
    at = np.uint64(written)
    for index in range(end - row):
        out[at + index] = values[row + index]
    return written + np.int64(end - row)


@kernel(late=True)
def write_by_group(entries: Int32s, by_group: IdsByGroup, out: Writable[Int32s]) -> None:
    """The laid-out ids of these entries, one after the other."""
    written = np.int64(0)
    for index in range(len(entries)):
        written = copy_values(by_group.ids, by_group.begin, by_group.place[entries[index]], out, written)


@kernel(late=True)
def visible_rows(
    documents: DocumentEntries,
    rows: EntryValues,
    by_group: IdsByGroup,
    changes: RowChanges,
    published: tuple[int, int],
    cell: int,
    out_offsets: Writable[Int64s],
    out: Writable[Int32s],
    first: int,
) -> int:
    """The values of the rows of each document's entries that are visible at a stamp, from document `first` on.

    `published` is the stamp, and the number of rows added by then; `cell` selects the value of an added row. With
    `by_group`, ids of unchanged entries are read from there. Returns the first document whose values do not fit into
    `out`, or the number of documents. Entries that are newer than the rows have no rows.
    """
    offsets, entries = documents
    begin, values, single = rows
    added, died = changes.added, changes.died
    stamp, count = published
    laid_out, copied = len(begin) - 1, len(by_group.place) > 0
    written = out_offsets[first]
    for document in range(first, len(offsets) - 1):
        for index in range(offsets[document], offsets[document + 1]):
            entry = np.int64(np.uint32(entries[index]))
            row, end = np.int64(0), np.int64(0)
            if entry < laid_out:
                row, end = (entry, entry + 1) if single else (begin[entry], begin[entry + 1])
            if written + end - row > len(out):
                return document
            if not is_touched(changes.touched, entry):
                if end > row and copied:
                    written = copy_values(by_group.ids, by_group.begin, by_group.place[entry], out, written)
                else:
                    while row < end:
                        out[np.uint64(written)] = values[np.uint64(row)]
                        written += 1
                        row += 1
                continue
            while row < end:
                if lives(died, row, stamp):
                    out[written] = values[row]
                    written += 1
                row += 1
            link = changes.head[entry]
            while 0 < link <= count:
                at = np.int64(link - 1) * CELLS
                if lives(died, len(values) + link - 1, stamp):
                    if written == len(out):
                        return document
                    out[written] = added[at + cell]
                    written += 1
                link = added[at + NEXT]
        out_offsets[document + 1] = written
    return len(offsets) - 1


@kernel(late=True)
def count_visible_rows(entries: Int32s, rows: EntryValues, changes: RowChanges, published: tuple[int, int]) -> int:
    """Count the rows of these entries that are visible at a stamp; `published`: stamp, and rows added by then."""
    begin, died = rows.begin, changes.died
    stamp, count = published
    total = 0
    for index in range(len(entries)):
        entry = entries[index]
        changed = is_touched(changes.touched, entry)
        if entry < len(begin) - 1:
            if changed:
                for row in range(begin[entry], begin[entry + 1]):
                    total += lives(died, row, stamp)
            else:
                total += begin[entry + 1] - begin[entry]
        if changed:
            link = changes.head[entry]
            while 0 < link <= count:
                total += lives(died, len(rows.values) + link - 1, stamp)
                link = changes.added[np.int64(link - 1) * CELLS + NEXT]
    return total


@kernel(late=True)
def distinct_visible_rows(
    offsets: Int64s,
    entries: Int32s,
    owners: EntryValues,
    ranked: EntryRanks,
    changes: RowChanges,
    published: tuple[int, int],
    marks: Writable[UInt64s],
    out_offsets: Writable[Int64s],
    out: Writable[Int32s],
    first: int,
) -> int:
    """For each document from `first` on the distinct ranks of the owners that are visible at a stamp, ascending.

    `published` is the stamp, and the number of rows added by then. The ranks of unchanged entries are known; for the
    others each row's owner is read. `marks` is all zero. Returns the first document whose ranks do not fit, or the
    number of documents.
    """
    begin, values, added, died = owners.begin, owners.values, changes.added, changes.died
    stamp, count = published
    laid_out = len(begin) - 1
    written = out_offsets[first]
    for document in range(first, len(offsets) - 1):
        total = 0
        for index in range(offsets[document], offsets[document + 1]):
            entry = entries[index]
            changed = is_touched(changes.touched, entry)
            if entry < laid_out:
                if not changed:
                    for row in range(ranked.begin[entry], ranked.begin[entry + 1]):
                        mark(marks, ranked.ranks[row])
                    total += ranked.begin[entry + 1] - ranked.begin[entry]
                else:
                    for row in range(begin[entry], begin[entry + 1]):
                        if values[row] >= 0 and lives(died, row, stamp):
                            mark(marks, ranked.of_owner[values[row]])
                            total += 1
            link = changes.head[entry] if changed else 0
            while 0 < link <= count:
                at = np.int64(link - 1) * CELLS
                owner = added[at + OWNER]
                if owner >= 0 and lives(died, len(values) + link - 1, stamp):
                    mark(marks, ranked.of_owner[owner])
                    total += 1
                link = added[at + NEXT]
        if written + min(total, 64 * len(marks)) + 8 > len(out):
            for word in range(len(marks)):
                marks[word] = 0
            return document
        written = read_marks(marks, out, written)
        out_offsets[document + 1] = written
    return len(offsets) - 1


@kernel("void(ro_i4[::1], ro_i4[::1], int64, int64, i4[::1])", late=True)
def index_ids(ids, entries, first, shift, cells):
    """Insert the live subscriptions from slot `first` on: a cell holds a slot plus 1.

    A cell with the same id is overwritten: its subscription is gone.
    """
    mask = slot_mask(cells)
    for slot in range(first, len(ids)):
        if entries[slot] < 0:
            continue
        place = np.uint64(np.uint32(np.uint32(ids[slot]) * np.uint32(0x9E3779B1))) >> np.uint64(shift)
        while cells[place] > 0 and ids[cells[place] - 1] != ids[slot]:
            place = next_slot(place, mask)
        cells[place] = slot + 1
