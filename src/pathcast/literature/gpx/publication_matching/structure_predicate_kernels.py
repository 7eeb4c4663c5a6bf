# mypy: allow-untyped-defs, allow-untyped-calls
"""Predicate matching: the predicates on structure that the tuples of a publication satisfy (section 4.1).

A publication is a list of kept elements of a path, each with its tag, the tag's occurrence among those kept, and its
depth. There are two sets of satisfied predicates, so that those shared with the previous path outlive a single
publication.

Cost: one look-up per pair of tags, and one step per satisfied predicate.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Int64s, Writable, part
from pathcast.kernels.hash_table_kernels import first_slot, next_slot

from ..predicate_numbering_kernels import mixed

OCCURRENCE_BITS = 12


class Rows(NamedTuple):
    """Predicates by row: the cells for `=` start at `equal[r]`, those for `≥` at `least[r]`, up to the next row."""

    equal: Int64s
    least: Int64s
    cells: Int32s


class Distances(NamedTuple):
    """The rows of two tags: a hash table per first tag, starting at its `begins`."""

    begins: Int64s
    slots: Int32s
    keys: Int64s
    rows: Int32s


class Structure(NamedTuple):
    """The predicates on structure.

    A tag has one row for positions, and from its `end_begins` on one row per occurrence for positions from the end.
    """

    rows: Rows
    position_rows: Int32s
    distances: Distances
    end_begins: Int64s
    end_rows: Int32s


class Satisfied(NamedTuple):
    """The satisfied predicates: `epochs` from `base` on has the current epoch for each of them, `found` lists them."""

    epochs: Writable[Int64s]
    base: np.int64
    epoch: np.int64
    found: Writable[Int32s]


@part
def holds(predicate, satisfied, n):
    """Record a satisfied predicate, once; return their number."""
    epochs, base, epoch, found = satisfied
    if epochs[base + predicate] != epoch:
        epochs[base + predicate] = epoch
        found[n] = predicate
        n += 1
    return n


@part
def row_predicates(row, value, rows, satisfied, n):
    """The predicates of a row that a value from 1 up satisfies: the one for `=`, and those for `≥` up to it."""
    equal, least, end = rows.equal[row], rows.least[row], rows.equal[row + 1]
    if equal + value <= least:
        predicate = rows.cells[equal + value - 1]
        if predicate >= 0:
            n = holds(predicate, satisfied, n)
    for at in range(least, min(end, least + value)):
        predicate = rows.cells[at]
        if predicate >= 0:
            n = holds(predicate, satisfied, n)
    return n


@part
def distance_row_of(first, key, distances):
    """The row of two tags, or -1: the first tag selects a table, the rest is the key (Figure 1)."""
    begin = distances.begins[first]
    size = distances.begins[first + 1] - begin
    if size == 0:
        return np.int64(-1)
    mask = np.uint64(size - 1)
    slot = first_slot(mixed(key, 0), mask)
    while True:
        index = distances.slots[np.uint64(begin) + slot]
        if index < 0:
            return np.int64(-1)
        if distances.keys[index] == key:
            return np.int64(distances.rows[index])
        slot = next_slot(slot, mask)


@part
def tuple_predicates(from_kept, count, publication, structure, satisfied, n):
    """The predicates that positions and distances of the kept elements from `from_kept` on satisfy."""
    tags, occurrences, depths = publication
    position_rows = structure.position_rows
    for second in range(from_kept, count):
        tag = np.int64(tags[second])
        occurrence, at_depth = np.int64(occurrences[second]), np.int64(depths[second])
        if occurrence == 1 and position_rows[tag] >= 0:
            n = row_predicates(position_rows[tag], at_depth, structure.rows, satisfied, n)
        key = tag << 2 * OCCURRENCE_BITS | occurrence
        for before in range(second):
            whole_key = key | np.int64(occurrences[before]) << OCCURRENCE_BITS
            row = distance_row_of(np.int64(tags[before]), whole_key, structure.distances)
            if row >= 0:
                n = row_predicates(row, at_depth - depths[before], structure.rows, satisfied, n)
    return n


@part
def end_predicates(depth, only_fresh, count, publication, structure, satisfied, n):
    """The predicates that the number of elements below each tag satisfies, and the path's length (from the document).

    `only_fresh`: only those that this depth is the first to satisfy; the others were found earlier.
    """
    tags, occurrences, depths = publication
    end_begins, end_rows = structure.end_begins, structure.end_rows
    equal, least, cells = structure.rows
    for k in range(-1, count):
        tag, occurrence, below = np.int64(len(end_begins) - 2), np.int64(1), depth
        if k >= 0:
            tag, occurrence, below = np.int64(tags[k]), np.int64(occurrences[k]), depth - depths[k]
        at = end_begins[tag] + occurrence - 1
        if below > 0 and at < end_begins[tag + 1] and end_rows[at] >= 0:
            first, limit = least[end_rows[at]], equal[end_rows[at] + 1]
            for cell in range(first + below - 1 if only_fresh else first, min(limit, first + below)):
                if cells[cell] >= 0:
                    n = holds(cells[cell], satisfied, n)
    return n
