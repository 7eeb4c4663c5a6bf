# mypy: allow-untyped-defs, allow-untyped-calls
"""Label paths of a document and the data patterns that they end with, for kernels.

The patterns that a path ends with are cached: `memo[begin[path] : begin[path] + count[path]]`, shortest first. At a
path that is not cached yet (`UNKNOWN`), a kernel stops; the caller fills the cache and calls it again from there.
"""

import numpy as np

from pathcast.kernels import kernel

UNKNOWN = -1


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
