# mypy: allow-untyped-defs, allow-untyped-calls
"""Predicate matching: the predicates on structure that the tuples of a publication satisfy (section 4.1).

A publication is a list of kept elements of a path, each with its tag, the tag's occurrence among those kept, and its
depth. `truths` are: which predicates are satisfied (those with the publication's epoch), where the ones in use begin,
the epoch, and the list of the satisfied. There are two truths, so that what a path has in common with the one before
outlasts a publication of its own.

Cost: a look-up for every two tags, and a step for each predicate that is satisfied.
"""

import numpy as np

from pathcast.kernels import part

from .predicate_kernels import mixed

OCCURRENCE_BITS = 12
ONE = np.uint64(1)


@part
def holds(predicate, truths, n):
    """Note that a predicate is satisfied, once; how many are."""
    truth, base, epoch, found = truths
    if truth[base + predicate] != epoch:
        truth[base + predicate] = epoch
        found[n] = predicate
        n += 1
    return n


@part
def row_predicates(row, value, rows, truths, n):
    """The predicates of a row that a value from 1 up satisfies: the one for `=`, and those for `≥` up to it."""
    row_equal, row_least, cells = rows
    equal, least, end = row_equal[row], row_least[row], row_equal[row + 1]
    if equal + value <= least:
        predicate = cells[equal + value - 1]
        if predicate >= 0:
            n = holds(predicate, truths, n)
    for at in range(least, min(end, least + value)):
        predicate = cells[at]
        if predicate >= 0:
            n = holds(predicate, truths, n)
    return n


@part
def distance_row_of(first, key, distances):
    """The row of two tags, or -1: a table per first tag, in it the key of the rest (Figure 1)."""
    distance_begin, distance_slots, distance_keys, distance_row = distances
    begin = distance_begin[first]
    size = distance_begin[first + 1] - begin
    if size == 0:
        return np.int64(-1)
    mask = np.uint64(size - 1)
    slot = mixed(key, 0) & mask
    while True:
        index = distance_slots[np.uint64(begin) + slot]
        if index < 0:
            return np.int64(-1)
        if distance_keys[index] == key:
            return np.int64(distance_row[index])
        slot = (slot + ONE) & mask


@part
def tuple_predicates(from_kept, count, publication, structure, truths, n):
    """What the positions and distances of the kept elements from `from_kept` on satisfy."""
    kept_tag, kept_occurrence, kept_depth = publication
    rows, position_row, distances, _ = structure
    for second in range(from_kept, count):
        tag = np.int64(kept_tag[second])
        occurrence, at_depth = np.int64(kept_occurrence[second]), np.int64(kept_depth[second])
        if occurrence == 1 and position_row[tag] >= 0:
            n = row_predicates(position_row[tag], at_depth, rows, truths, n)
        key = tag << 2 * OCCURRENCE_BITS | occurrence
        for before in range(second):
            row = distance_row_of(
                np.int64(kept_tag[before]), key | np.int64(kept_occurrence[before]) << OCCURRENCE_BITS, distances
            )
            if row >= 0:
                n = row_predicates(row, at_depth - kept_depth[before], rows, truths, n)
    return n


@part
def end_predicates(depth, only_fresh, count, publication, structure, truths, n):
    """What the number of elements below each tag satisfies, and, seen from the document, the path's length.

    `only_fresh`: those that this depth is the first to satisfy; the others were found when they were.
    """
    kept_tag, kept_occurrence, kept_depth = publication
    rows, _, _, (end_begin, end_row) = structure
    row_equal, row_least, cells = rows
    for k in range(-1, count):
        tag, occurrence, below = np.int64(len(end_begin) - 2), np.int64(1), depth
        if k >= 0:
            tag, occurrence, below = np.int64(kept_tag[k]), np.int64(kept_occurrence[k]), depth - kept_depth[k]
        at = end_begin[tag] + occurrence - 1
        if below > 0 and at < end_begin[tag + 1] and end_row[at] >= 0:
            least, limit = row_least[end_row[at]], row_equal[end_row[at] + 1]
            for cell in range(least + below - 1 if only_fresh else least, min(limit, least + below)):
                if cells[cell] >= 0:
                    n = holds(cells[cell], truths, n)
    return n
