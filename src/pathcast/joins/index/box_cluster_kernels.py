# mypy: allow-untyped-defs, allow-untyped-calls
"""Clusters of boxes for kernels: which points stab all y ranges, and to which of them a box goes.

Anchors ascend; the tree at `roots[k]` has boxes whose y ranges hold `anchors[k]`. The fewest points that stab all
ranges are found greedily: the least high end, then again among the ranges that begin after it.
"""

import numpy as np

from pathcast.kernels import kernel, part

from .box_forest_kernels import AXES, GREATEST, LEAST
from .name_places_kernels import NONE
from .window_query_kernels import from_on, least_in


@kernel("int64(ro_i8[:, ::1], ro_i4[:, ::1], ro_i8[:, ::1], i8[::1], ro_i8[::1], ro_i4[::1])", late=True)
def fewest(bounds, links, boxes, stack, anchors, roots):
    """How many points it takes to have one in every y range: the least high end, again among what it leaves."""
    count, least = 0, LEAST
    while True:
        best, best_low = GREATEST, LEAST
        found = False
        cluster = from_on(anchors, len(anchors), least)
        while cluster < len(anchors) and anchors[cluster] <= best:
            if bounds[roots[cluster], 5] >= least:
                found = True
                best, best_low = least_in(
                    bounds, links, boxes, stack, roots[cluster], LEAST, GREATEST, LEAST, GREATEST, least, GREATEST,
                    LEAST, GREATEST, best, best_low
                )  # fmt: skip
            cluster += 1
        if not found:
            return np.int64(count)
        count += 1
        if best == GREATEST:
            return np.int64(count)
        least = best + 1


@kernel("int64(ro_i8[:, ::1], ro_i8[::1], i8[::1])", late=True)
def stab(rows, order, anchors):
    """The fewest points that stab the y ranges of rows, given the order of their high ends; how many.

    They are written as far as there is room.
    """
    count, last = 0, LEAST
    for row in order:
        if count == 0 or rows[row, 2] > last:
            last = rows[row, 3]
            if count < len(anchors):
                anchors[count] = last
            count += 1
    return np.int64(count)


@kernel("void(i8[:, ::1], i8[::1], ro_i8[::1], i4[::1], i8[::1], i8[::1])", late=True)
def partition(rows, names, anchors, clusters, starts, ends):
    """Put rows in the order of their clusters, in place; `starts` says where each begins.

    A row's cluster is that of the first anchor from its low y on.
    """
    for cluster in range(len(starts)):
        starts[cluster] = 0
    for row in range(len(names)):
        clusters[row] = np.int32(from_on(anchors, len(anchors), rows[row, 2]))
        starts[clusters[row] + 1] += 1
    for cluster in range(len(anchors)):
        starts[cluster + 1] += starts[cluster]
        ends[cluster] = starts[cluster]
    for cluster in range(len(anchors)):
        row = ends[cluster]
        while row < starts[cluster + 1]:
            other = clusters[row]
            if other == cluster:
                row += 1
                continue
            place = ends[other]
            ends[other] += 1
            _swap(rows, names, clusters, row, place)
        ends[cluster] = row


@part
def _swap(rows, names, clusters, one, other):
    for axis in range(AXES):
        rows[one, axis], rows[other, axis] = rows[other, axis], rows[one, axis]
    names[one], names[other] = names[other], names[one]
    clusters[one], clusters[other] = clusters[other], clusters[one]


@kernel("int64(ro_i8[:, ::1], i8[::1], ro_i4[::1], int64, int64)", late=True)
def choose_cluster(bounds, anchors, roots, low, high):
    """The cluster for a range: one whose anchor it holds, or one whose anchor may move into it; or -1.

    An anchor may lie anywhere in its zone, where all ranges of its cluster overlap. It stays between the anchors on
    either side, which are not in the range.
    """
    cluster = from_on(anchors, len(anchors), low)
    if cluster < len(anchors):
        if anchors[cluster] <= high:
            return np.int64(cluster)
        if bounds[roots[cluster], 5] <= high:
            anchors[cluster] = high
            return np.int64(cluster)
    if cluster > 0 and bounds[roots[cluster - 1], 6] >= low:
        anchors[cluster - 1] = min(bounds[roots[cluster - 1], 6], high)
        return np.int64(cluster - 1)
    return np.int64(NONE)
