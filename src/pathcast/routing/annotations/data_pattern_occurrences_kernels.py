# mypy: allow-untyped-defs, allow-untyped-calls
"""Label paths of a document and the data patterns that they end with, for kernels.

The patterns that a path ends with are cached: `memo[begin[path] : begin[path] + count[path]]`, shortest first. At a
path that is not cached yet (`UNKNOWN`), a kernel stops; the caller fills the cache and calls it again from there.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Bools, Int32s, Int64s, Matrix, Writable, kernel, part

UNKNOWN = -1


class Distinct(NamedTuple):
    """The distinct label paths of documents, each with its last element, to be filled."""

    ids: Writable[Int32s]
    last: Writable[Int32s]


class SeenPaths(NamedTuple):
    """The distinct label paths of documents, each with its last element."""

    ids: Int32s
    last: Int32s


class Endings(NamedTuple):
    """The patterns that label paths end with."""

    begins: Int64s
    counts: Int32s
    memo: Int32s


class Tree(NamedTuple):
    """Elements: those of document `d` from `offsets[d]` on; parents and ends."""

    offsets: Int64s
    parents: Int32s
    ends: Int32s


class Places(NamedTuple):
    """Last places of data patterns by row: from `offsets[row]` on, the patterns ascending."""

    offsets: Int64s
    patterns: Int32s
    places: Int64s

    @classmethod
    def none(cls, rows: int) -> "Places":
        """No last places."""
        return cls(np.zeros(rows + 1, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64))


class NewPlaces(NamedTuple):
    """`Places` to be filled."""

    offsets: Writable[Int64s]
    patterns: Writable[Int32s]
    places: Writable[Int64s]


@kernel("int64(ro_i4[::1], i8[::1], int64, i4[::1], i4[::1])", late=True)
def distinct_paths(paths, seen, stamp, ids, last):
    """Find the distinct paths of a document, each with its last element; return their number. `stamp` must be new."""
    found = 0
    for element in range(len(paths) - 1, -1, -1):
        path = paths[element]
        if seen[path] != stamp:
            seen[path] = stamp
            ids[found] = path
            last[found] = element
            found += 1
    return found


@kernel("int64(ro_i4[::1], int64, ro_i8[::1], ro_i4[::1], ro_i4[::1], b1[::1])", late=True)
def mark_endings(ids, first, begin, count, memo, marked):
    """Mark the patterns that paths from `first` on end with; return the index of the first unknown path, or the end."""
    for k in range(first, len(ids)):
        path = ids[k]
        if count[path] == UNKNOWN:
            return k
        for at in range(begin[path], begin[path] + count[path]):
            marked[memo[at]] = True
    return len(ids)


@kernel(
    "int64(ro_i4[::1], ro_i4[::1], int64, ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1],"
    " i8[::1])",
    late=True,
)
def find_last_places(ids, last, first, begin, count, memo, lengths, parents, ends, places):
    """As `mark_endings`; find for each pattern the number of start tags before the end of its last occurrence."""
    for k in range(first, len(ids)):
        path = ids[k]
        if count[path] == UNKNOWN:
            return k
        element, level = np.int64(last[k]), 1
        for at in range(begin[path], begin[path] + count[path]):
            while level < lengths[memo[at]]:
                element, level = np.int64(parents[element]), level + 1
            places[memo[at]] = max(places[memo[at]], np.int64(ends[element]))
    return len(ids)


@kernel("void(ro_i4[::1], ro_i4[::1], ro_b1[::1], b1[::1])", late=True)
def mark_wholes(parts, wholes, absent, gone):
    """Mark the wholes that have an absent part."""
    for k in range(len(parts)):
        if absent[parts[k]]:
            gone[wholes[k]] = True


@kernel(late=True)
def distinct_paths_of_each(
    paths: Int32s, offsets: Int64s, seen: Writable[Int64s], stamp: int, distinct: Distinct, begins: Writable[Int64s]
) -> int:
    """As `distinct_paths` for each document; return their total. Stamps from `stamp` on must be new."""
    found = 0
    for document in range(len(offsets) - 1):
        begins[document] = found
        for element in range(offsets[document + 1] - 1, offsets[document] - 1, -1):
            path = paths[element]
            if seen[path] != stamp + document:
                seen[path] = stamp + document
                distinct.ids[found] = path
                distinct.last[found] = element
                found += 1
    begins[len(offsets) - 1] = found
    return int(found)


@kernel(late=True)
def mark_absent_of_each(
    documents: Int64s, begins: Int64s, ids: Int32s, endings: Endings, absent: Writable[Matrix[Bools]]
) -> None:
    """For each of these documents the data patterns that do not occur; `absent` is all true."""
    for row in range(len(documents)):
        for k in range(begins[documents[row]], begins[documents[row] + 1]):
            path = ids[k]
            for at in range(endings.begins[path], endings.begins[path] + endings.counts[path]):
                absent[row, endings.memo[at]] = False


@part
def is_among_best(pattern, room, found, frequencies):
    """Whether a data pattern is among the `room` most beneficial ones: frequent, and with an early last place."""
    better = 0
    benefit = frequencies[pattern] / found[pattern]
    for other in range(len(found)):
        if found[other] > 0:
            rival = frequencies[other] / found[other]
            better += rival > benefit or (rival == benefit and other < pattern)
    return better < room


@kernel(late=True)
def last_places_of_each(
    documents: Int64s,
    begins: Int64s,
    distinct: SeenPaths,
    endings: Endings,
    lengths: Int32s,
    elements: Tree,
    frequencies: Int32s,
    rooms: Int64s,
    found: Writable[Int64s],
    out: NewPlaces,
) -> None:
    """For each of these documents the last places of its most beneficial data patterns, at most `rooms` of them.

    `found` is scratch, all 0, with a place for each data pattern.
    """
    filled = 0
    for row in range(len(documents)):
        out.offsets[row] = filled
        if rooms[row] == 0:
            continue
        first = elements.offsets[documents[row]]
        for k in range(begins[documents[row]], begins[documents[row] + 1]):
            path = distinct.ids[k]
            element, level = np.int64(distinct.last[k]), 1
            for at in range(endings.begins[path], endings.begins[path] + endings.counts[path]):
                pattern = endings.memo[at]
                while level < lengths[pattern]:
                    element, level = np.int64(elements.parents[element]), level + 1
                found[pattern] = max(found[pattern], np.int64(elements.ends[element]) - first)
        occurring = 0
        for pattern in range(len(found)):
            occurring += found[pattern] > 0
        for pattern in range(len(found)):
            if found[pattern] > 0 and (
                occurring <= rooms[row] or is_among_best(pattern, rooms[row], found, frequencies)
            ):
                out.patterns[filled], out.places[filled] = pattern, found[pattern]
                filled += 1
        for pattern in range(len(found)):
            found[pattern] = 0
    out.offsets[len(documents)] = filled


@kernel("void(ro_i4[::1], ro_i4[::1], ro_b1[:, ::1], b1[:, ::1])", late=True)
def mark_wholes_of_each(parts, wholes, absent, gone):
    """For each row the wholes that have an absent part."""
    for row in range(len(absent)):
        for k in range(len(parts)):
            if absent[row, parts[k]]:
                gone[row, wholes[k]] = True
