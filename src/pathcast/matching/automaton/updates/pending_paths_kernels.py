# mypy: allow-untyped-defs, allow-untyped-calls
"""Pending paths in kernels: some thousand plain paths at once, one bit per step.

    here  = (above << 1 & CHILD | higher << 1 & DEEP | first steps) & (bits of the element's name | WILD)

where `above` are the steps that end at the parent, `higher` those that end at it or above it. Words are consecutive, so
a step's bit may be carried into the next word; the first bit of a path takes no carry. A level starts with an empty
word, so that every word has a predecessor: this lets the processor compute several at once.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Matrix, UInt64s, kernel, lowest_bit, rare

from ...arrays.bitset_kernels import mark_with_summary

# Rows of the table: steps by axis, first steps by axis, last steps, and the names from ROWS on (0: any name).
CHILD, DEEP, FIRST_CHILD, FIRST_DEEP, LAST, WILD, ROWS = range(7)
# Planes of the levels: steps that end at the element, steps that end at it or above, and all that ended anywhere.
HERE, HIGHER, SEEN, PLANES = range(4)
# `sizes`: bits in use, and the next row for a name.
F_BITS, F_ROWS, F_SIZES = range(3)
ONE = np.uint64(1)
TOP = np.uint64(63)


class PendingBits(NamedTuple):
    """The pending paths as a walk reads them.

    `rows` has each symbol's row of the table (0: in no path), `entries` the entry whose path ends at each bit, or
    -1 - the pattern whose gate ends there; `words` is the number of used words per row.
    """

    table: Matrix[UInt64s]
    rows: Int32s
    entries: Int32s
    words: int


@kernel(
    "int64(ro_i4[::1], ro_i4[::1], int64, ro_i4[::1], ro_i4[::1], i8[::1], u8[:, ::1], i4[::1], i4[::1], i4[::1])",
    brief=True,
)
def put_pending(ends, codes, first, node_parent, node_step, sizes, table, rows, entries, symbols):
    """Add paths from number `first` on, given by their last nodes; return the first for which there is no room.

    A path counts only after its last step has its mark. Names in paths get their symbols.
    """
    for path in range(first, len(ends)):
        length, node = 0, ends[path]
        while node > 0:
            length += 1
            node = node_parent[node]
        bit = sizes[F_BITS] + length
        if bit > 64 * table.shape[1]:
            return np.int64(path)
        node = ends[path]
        for k in range(length - 1, -1, -1):
            step = node_step[node]
            node = node_parent[node]
            bit -= 1
            word, mask = bit >> 6, ONE << np.uint64(bit & 63)
            deep, symbol = step & 1, step >> 1
            if k:
                table[DEEP if deep else CHILD, word] |= mask
            else:
                table[FIRST_DEEP if deep else FIRST_CHILD, word] |= mask
            row = np.int64(WILD)
            if symbol:
                if rows[symbol] == 0:
                    if sizes[F_ROWS] == table.shape[0]:
                        return np.int64(path)  # the marks so far will be set again
                    rows[symbol] = sizes[F_ROWS]
                    sizes[F_ROWS] += 1
                row = np.int64(rows[symbol])
                symbols[symbol - 1] = symbol
            table[row, word] |= mask
            if k == length - 1:
                entries[bit] = codes[path]
        last = bit + length - 1
        table[LAST, last >> 6] |= ONE << np.uint64(last & 63)
        sizes[F_BITS] = last + 1
    return np.int64(len(ends))


@rare
def follow_pending(table, row, levels, depth, words):
    """The steps that end at an element, given those that end at its parent and above; `row`: the row of its name."""
    above, higher = levels[HERE, depth - 1], levels[HIGHER, depth - 1]
    here, higher_here, seen = levels[HERE, depth], levels[HIGHER, depth], levels[SEEN, 0]
    child, deep, first, wild, named = table[CHILD], table[DEEP], table[FIRST_DEEP], table[WILD], table[row]
    for word in range(words):
        up = above[word + 1] << ONE | above[word] >> TOP
        over = higher[word + 1] << ONE | higher[word] >> TOP
        found = (up & child[word] | over & deep[word] | first[word]) & (wild[word] | named[word])
        here[word + 1] = found
        higher_here[word + 1] = higher[word + 1] | found
        seen[word + 1] |= found


@rare
def mark_pending(elements, symbols, begin, end, pending, limits, scratch, gated):
    """Mark the entries of the pending paths that a document matches; return the number of gates with those it opens.

    A pattern whose gate is pending is listed among gates as -1 - its number. `levels` has a row per level of the
    document and one above. The row of an element is reused for following siblings with the same name. For this check,
    the plane `SEEN`, of which only the row above is needed, stores the table row at its start.
    """
    table, rows, words, levels = pending.table, pending.rows, pending.words, scratch.levels
    for plane in range(PLANES):
        for word in range(words + 1):
            levels[plane, 0, word] = 0
    seen = levels[SEEN, 0]
    deepest = levels.shape[1] - 1
    levels[SEEN, 1, 0] = 0
    for element in range(begin, end):
        depth = elements.depths[element]
        symbol = symbols[elements.names[element]]
        row = np.int64(rows[symbol]) if symbol < len(rows) else np.int64(0)
        if row == 0 or row >= table.shape[0]:
            row = np.int64(WILD)  # no path has the name, or only a later one
        if levels[SEEN, depth, 0] == np.uint64(row):
            continue
        levels[SEEN, depth, 0] = row
        if depth < deepest:
            levels[SEEN, depth + 1, 0] = 0
        levels[HERE, depth, 0] = levels[HIGHER, depth, 0] = 0
        follow_pending(table, row, levels, depth, words)
        if depth == 1:
            for word in range(words):
                found = table[FIRST_CHILD, word] & (table[WILD, word] | table[row, word])
                levels[HERE, 1, word + 1] |= found
                levels[HIGHER, 1, word + 1] |= found
                seen[word + 1] |= found
    for word in range(words):
        left = seen[word + 1] & table[LAST, word]
        while left:
            entry = pending.entries[64 * word + lowest_bit(left)]
            left &= left - ONE
            if 0 <= entry < limits.entries:
                mark_with_summary(scratch.marks, scratch.summary, entry)
            elif entry < 0 and -1 - entry < limits.patterns:
                scratch.base.gates[gated] = entry
                gated += 1
    return gated
