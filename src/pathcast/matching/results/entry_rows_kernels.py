# mypy: allow-untyped-defs, allow-untyped-calls
"""Rows that come and go: laying them out by entry, adding to them, and writing out those that a version sees.

A row that was added is three numbers side by side: the link to the next row of the same entry (its number plus 1; 0
where there is none), its id and its owner. `head` links to an entry's first row, `tail` to its last. A view knows how
many rows there were when it was made: links that lead beyond these are not followed, so that nothing is read that may
be half written.

`died` has the stamp at which a row died, 0 for one that lives: first the rows that were laid out, then those that were
added. `touched` has a bit for each entry that anything has happened to since its rows were laid out: they are few, and
what is known of all others by a bit needs no look at the larger arrays.
"""

import numpy as np

from pathcast.kernels import kernel, part, rare

from ..arrays.bitset_kernels import mark, read_marks

NEXT, ID, OWNER, CELLS = 0, 1, 2, 3


@kernel("void(ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], i8[::1], i4[::1], i4[::1])")
def lay_out(order, ids, entries, owners, begin, out_ids, out_owners):
    """Put subscriptions, taken in this order, beside those of the same entry; those with entry -1 are gone.

    `begin` is all zero and gets the edges: the rows of entry `e` are `begin[e] : begin[e + 1]`.
    """
    for index in range(len(entries)):
        if entries[index] >= 0:
            begin[entries[index] + 1] += 1
    for entry in range(1, len(begin)):
        begin[entry] += begin[entry - 1]
    # Each edge moves on to the next one while its entry fills up ...
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
    """Whether a row was still there at a stamp. (0, never, becomes the largest of all numbers.)"""
    return np.uint32(died[row] - 1) >= np.uint32(stamp)


@rare
def sort_few(values, count):
    """Sort the first `count` values in place, by a heap."""
    end = count
    top = count // 2
    while end > 1:
        if top > 0:
            top -= 1
        else:
            end -= 1
            values[0], values[end] = values[end], values[0]
        hole = top
        while 2 * hole + 1 < end:
            larger = 2 * hole + 1
            if larger + 1 < end and values[larger + 1] > values[larger]:
                larger += 1
            if values[larger] <= values[hole]:
                break
            values[larger], values[hole] = values[hole], values[larger]
            hole = larger


@part
def is_touched(touched, entry):
    """Whether anything has happened to an entry's rows, or it is newer than all that were laid out."""
    word = entry >> 3
    return word < len(touched) and touched[word] >> (entry & 7) & 1 != 0


@rare
def merge_sorted(out, start, end, added, more):
    """Put the first `more` values of `added` into the ascending values from `start` to `end`, which grow by as many."""
    sort_few(added, more)
    left, right, place = end - 1, more - 1, end + more - 1
    while right >= 0:
        if left >= start and out[left] > added[right]:
            out[place] = out[left]
            left -= 1
        else:
            out[place] = added[right]
            right -= 1
        place -= 1


@kernel(
    "int64(ro_i8[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], boolean, ro_u1[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1],"
    " int64, int64, int64, i8[::1], i4[::1], i4[::1], int64)",
    late=True,
)
def visible_rows(
    offsets,
    entries,
    begin,
    values,
    single,
    touched,
    head,
    rows,
    died,
    stamp,
    count,
    cell,
    out_offsets,
    out,
    added,
    first,
):
    """The values of the rows behind each document's entries that are visible at a stamp, from document `first` on.

    `values` are those of the rows that were laid out (`single`: one an entry), `cell` says where an added row has its
    own. With room in `added`, for all added rows, these are sorted and merged into the laid-out ones, which must
    ascend; with none, values come in any order. Gives the first document whose values do not fit into `out`, or the
    number of documents. Entries that are newer than the rows have no rows.
    """
    laid_out = len(begin) - 1
    merging = len(added) > 0
    written = out_offsets[first]
    for document in range(first, len(offsets) - 1):
        start = written
        more = 0
        for index in range(offsets[document], offsets[document + 1]):
            entry = np.int64(np.uint32(entries[index]))
            row, end = np.int64(0), np.int64(0)
            if entry < laid_out:
                row, end = (entry, entry + 1) if single else (begin[entry], begin[entry + 1])
            if written + more + end - row > len(out):
                return document
            if not is_touched(touched, entry):
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
            link = head[entry]
            while 0 < link <= count:
                at = np.int64(link - 1) * CELLS
                if lives(died, len(values) + link - 1, stamp):
                    if written + more == len(out):
                        return document
                    if merging:
                        added[more] = rows[at + cell]
                        more += 1
                    else:
                        out[written] = rows[at + cell]
                        written += 1
                link = rows[at + NEXT]
        if more > 0:
            merge_sorted(out, start, written, added, more)
            written += more
        out_offsets[document + 1] = written
    return len(offsets) - 1


@kernel("int64(ro_i4[::1], ro_i8[::1], ro_u1[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], int64, int64, int64)", late=True)
def count_visible_rows(entries, begin, touched, head, rows, died, stamp, count, laid_out):
    """How many rows behind these entries are visible at a stamp, with `count` rows added to those `laid_out`."""
    total = 0
    for index in range(len(entries)):
        entry = entries[index]
        changed = is_touched(touched, entry)
        if entry < len(begin) - 1:
            if changed:
                for row in range(begin[entry], begin[entry + 1]):
                    total += lives(died, row, stamp)
            else:
                total += begin[entry + 1] - begin[entry]
        if changed:
            link = head[entry]
            while 0 < link <= count:
                total += lives(died, laid_out + link - 1, stamp)
                link = rows[np.int64(link - 1) * CELLS + NEXT]
    return total


@kernel(
    "int64(ro_i8[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_u1[::1], ro_i4[::1],"
    " ro_i4[::1], ro_i4[::1], int64, int64, u8[::1], i8[::1], i4[::1], int64)",
    late=True,
)
def distinct_visible_rows(
    offsets,
    entries,
    rank_begin,
    ranks,
    begin,
    owners,
    rank,
    touched,
    head,
    rows,
    died,
    stamp,
    count,
    marks,
    out_offsets,
    out,
    first,
):
    """For each document from `first` on the distinct ranks of the owners that are visible at a stamp, ascending.

    `ranks` are those of each entry's laid-out rows, for entries that nothing has happened to; for the others `rank` is
    asked for each row's owner. `marks` is all zero. Gives the first document whose ranks do not fit any more, or the
    number of documents.
    """
    laid_out = len(begin) - 1
    written = out_offsets[first]
    for document in range(first, len(offsets) - 1):
        total = 0
        for index in range(offsets[document], offsets[document + 1]):
            entry = entries[index]
            changed = is_touched(touched, entry)
            if entry < laid_out:
                if not changed:
                    for row in range(rank_begin[entry], rank_begin[entry + 1]):
                        mark(marks, ranks[row])
                    total += rank_begin[entry + 1] - rank_begin[entry]
                else:
                    for row in range(begin[entry], begin[entry + 1]):
                        if owners[row] >= 0 and lives(died, row, stamp):
                            mark(marks, rank[owners[row]])
                            total += 1
            link = head[entry] if changed else 0
            while 0 < link <= count:
                at = np.int64(link - 1) * CELLS
                owner = rows[at + OWNER]
                if owner >= 0 and lives(died, len(owners) + link - 1, stamp):
                    mark(marks, rank[owner])
                    total += 1
                link = rows[at + NEXT]
        if written + min(total, 64 * len(marks)) + 8 > len(out):
            for word in range(len(marks)):
                marks[word] = 0
            return document
        written = read_marks(marks, out, written)
        out_offsets[document + 1] = written
    return len(offsets) - 1


@kernel("void(ro_i4[::1], ro_i4[::1], int64, int64, i4[::1])", late=True)
def index_ids(ids, entries, first, shift, cells):
    """Enter the subscriptions from slot `first` on that are not gone: a cell holds a slot plus 1.

    A cell whose subscription has the same id is taken over: that one is gone.
    """
    mask = len(cells) - 1
    for slot in range(first, len(ids)):
        if entries[slot] < 0:
            continue
        place = np.int64(np.uint32(np.uint32(ids[slot]) * np.uint32(0x9E3779B1))) >> shift
        while cells[place] > 0 and ids[cells[place] - 1] != ids[slot]:
            place = (place + 1) & mask
        cells[place] = slot + 1
