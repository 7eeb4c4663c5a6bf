# mypy: allow-untyped-defs, allow-untyped-calls
"""Clusters of boxes for kernels: the points that stab all y ranges, and the choice of a cluster for a box.

Anchors ascend; the tree at `roots[k]` has boxes whose y ranges contain `anchors[k]`. A greedy search finds the fewest
points that stab all ranges: the least high end, then the same among the ranges that begin after it.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Int64s, Matrix, Writable, kernel, part

from .box_id_hash_kernels import NONE
from .clustered_box_forest_kernels import AXES, GREATEST, LEAST
from .window_query_kernels import BoxTrees, beginning_from, from_on, least_in


class Clusters(NamedTuple):
    """Trees of boxes: each has a root, and an anchor that the y ranges of all its boxes contain. Anchors ascend."""

    trees: BoxTrees
    anchors: Int64s
    roots: Int32s


@kernel(late=True)
def fewest(clusters: Clusters) -> int:
    """The smallest number of points that stab every y range."""
    trees, anchors, roots = clusters
    count, least = 0, LEAST
    while True:
        best, best_low = GREATEST, LEAST
        found = False
        cluster = from_on(anchors, len(anchors), least)
        while cluster < len(anchors) and anchors[cluster] <= best:
            if trees.bounds[roots[cluster], 5] >= least:
                found = True
                best, best_low = least_in(trees, roots[cluster], beginning_from(least), best, best_low)
            cluster += 1
        if not found:
            return count
        count += 1
        if best == GREATEST:
            return count
        least = best + 1


@kernel(late=True)
def stab(rows: Matrix[Int64s], order: Int64s, anchors: Writable[Int64s]) -> int:
    """Write the fewest points that stab the y ranges of rows, given the order of their high ends; return how many.

    Points beyond the room in the array are counted but not written.
    """
    count, last = 0, LEAST
    for row in order:
        if count == 0 or rows[row, 2] > last:
            last = rows[row, 3]
            if count < len(anchors):
                anchors[count] = last
            count += 1
    return count


@kernel(late=True)
def partition(
    rows: Writable[Matrix[Int64s]],
    names: Writable[Int64s],
    anchors: Int64s,
    clusters: Writable[Int32s],
    starts: Writable[Int64s],
    ends: Writable[Int64s],
) -> None:
    """Sort rows by their clusters, in place; `starts` has the first row of each.

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


@kernel(late=True)
def choose_cluster(bounds: Matrix[Int64s], anchors: Writable[Int64s], roots: Int32s, low: int, high: int) -> int:
    """The cluster for a range: one whose anchor it contains, or one whose anchor may move into it; or -1.

    An anchor may lie anywhere in its zone, where all ranges of its cluster overlap. It stays between the anchors on
    either side, which are not in the range.
    """
    cluster: int = from_on(anchors, len(anchors), low)
    if cluster < len(anchors):
        if anchors[cluster] <= high:
            return cluster
        if bounds[roots[cluster], 5] <= high:
            anchors[cluster] = high
            return cluster
    if cluster > 0 and bounds[roots[cluster - 1], 6] >= low:
        anchors[cluster - 1] = min(bounds[roots[cluster - 1], 6], high)
        return cluster - 1
    return NONE
