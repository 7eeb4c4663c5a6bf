# mypy: allow-untyped-defs, allow-untyped-calls
"""Queries on semijoins in clusters: x is the base axis, y the filtering one, and each cluster a tree of boxes.

Anchors ascend, and the tree at `roots[k]` has boxes whose y ranges hold `anchors[k]`. So of the joining keys only the
two next to an anchor matter to its cluster (§3.1.1 of the select-join paper): a box is affected if it begins at the
lower one or before, or ends at the upper one or after, which is two windows without a box in common. A range within a
gap has its anchor there, so only clusters with anchors in a gap are looked at (Theorem 1, appendix B).

Cost: that of `window_query_kernels.py` for each cluster visited.
"""

import numpy as np

from pathcast.kernels import Bools, Int32s, Int64s, Matrix, Writable, kernel, part, rare

from .clustered_box_forest_kernels import CELL, CHILD, GREATEST, LEAST, SIZE
from .stabbing_partition_kernels import Clusters
from .window_query_kernels import Window, any_in, from_on, holding_x, least_in, list_in, nearest_keys, with_y

# Base events.


@rare
def list_nearest(anchors, keys, found):
    """The keys next to some anchor, ascending; how many. Keys ascend, and may be there twice."""
    count, at = 0, 0
    while at < len(anchors):
        has_below, below, has_above, above = nearest_keys(keys, anchors[at])
        if has_below and (count == 0 or found[count - 1] < below):
            found[count] = below
            count += 1
        if not has_above:
            break
        if count == 0 or found[count - 1] < above:
            found[count] = above
            count += 1
        # All anchors before `above` have these neighbours.
        at = at + 1 if anchors[at] == above else from_on(anchors, len(anchors), above)
    return count


@kernel(late=True)
def nearest(anchors: Int64s, keys: Int64s, found: Writable[Int64s]) -> int:
    """`list_nearest` for Python."""
    return int(list_nearest(anchors, keys, found))


@rare
def mark_gaps(clusters, x, keys, free):
    """Whether no box that holds x lies between two neighbours of some ascending keys."""
    trees, anchors, roots = clusters
    for gap in range(len(keys) - 1):
        low, high = keys[gap], keys[gap + 1]
        free[gap] = True
        cluster = from_on(anchors, len(anchors), low)
        while cluster < len(anchors) and anchors[cluster] < high:
            if anchors[cluster] > low:
                if any_in(trees, roots[cluster], holding_x(x, low + 1, GREATEST, LEAST, high - 1)):
                    free[gap] = False
                    break
            cluster += 1


@kernel(late=True)
def find_gaps(clusters: Clusters, x: int, keys: Int64s, free: Writable[Bools]) -> None:
    """`mark_gaps` for Python."""
    mark_gaps(clusters, x, keys, free)


@kernel(late=True)
def list_affected(clusters: Clusters, window: Window, keys: Int64s, places: Writable[Int64s]) -> int:
    """The places of the boxes whose x is in a window and whose y range holds a key; how many there are."""
    trees, anchors, roots = clusters
    count = 0
    for cluster in range(len(anchors)):
        root = roots[cluster]
        has_below, below, has_above, above = nearest_keys(keys, anchors[cluster])
        if has_below:
            count = list_in(trees, root, with_y(window, LEAST, below, LEAST, GREATEST), places, count)
        if has_above and not (has_below and below == above):
            least = below + 1 if has_below else LEAST
            count = list_in(trees, root, with_y(window, least, GREATEST, above, GREATEST), places, count)
    return count


@kernel(late=True)
def any_affected(clusters: Clusters, window: Window, keys: Int64s) -> bool:
    """Whether there is a box whose x is in a window and whose y range holds a key."""
    trees, anchors, roots = clusters
    for cluster in range(len(anchors)):
        root = roots[cluster]
        has_below, below, has_above, above = nearest_keys(keys, anchors[cluster])
        if has_below and any_in(trees, root, with_y(window, LEAST, below, LEAST, GREATEST)):
            return True
        if has_above and any_in(trees, root, with_y(window, LEAST, GREATEST, above, GREATEST)):
            return True
    return False


@kernel(late=True)
def any_unaffected(clusters: Clusters, x: int, keys: Int64s, low: int, high: int) -> bool:
    """Whether there is a box that holds x, whose y range holds no key, begins by `low` and ends from `high` on."""
    trees, anchors, roots = clusters
    for cluster in range(len(anchors)):
        has_below, below, has_above, above = nearest_keys(keys, anchors[cluster])
        if has_below and has_above and below == above:
            continue
        least, greatest = below + 1 if has_below else LEAST, above - 1 if has_above else GREATEST
        if least <= low and greatest >= high:
            if any_in(trees, roots[cluster], holding_x(x, least, low, high, greatest)):
                return True
    return False


@rare
def _next_minimal(clusters, x, keys, least):
    """Of the boxes that hold x and a key and begin from `least` on, the first to end; of these the last to begin."""
    trees, anchors, roots = clusters
    best, best_low = GREATEST, LEAST
    found = False
    cluster = from_on(anchors, len(anchors), least)
    while cluster < len(anchors) and (not found or anchors[cluster] <= best):
        root = roots[cluster]
        has_below, below, has_above, above = nearest_keys(keys, anchors[cluster])
        for side in range(2):
            if (side == 0 and (not has_below or below < least)) or (side == 1 and not has_above):
                continue
            last_low, first_high = (below, LEAST) if side == 0 else (GREATEST, above)
            window = holding_x(x, least, last_low, first_high, GREATEST)
            if not found:
                found = any_in(trees, root, window)
            if found:
                best, best_low = least_in(trees, root, window, best, best_low)
        cluster += 1
    return found, best_low, best


@kernel(late=True)
def list_minimal(clusters: Clusters, x: int, keys: Int64s, least: int, found: Writable[Matrix[Int64s]]) -> int:
    """The y ranges that hold a key, of boxes that hold x, and hold no other such; from a low end on, ascending.

    How many; as many as there is room for when there may be more.
    """
    count = 0
    while count < len(found):
        there, low, high = _next_minimal(clusters, x, keys, least)
        if not there:
            break
        found[count, 0], found[count, 1] = low, high
        count += 1
        if low == GREATEST:
            break
        least = low + 1
    return count


# Filter events.


@part
def _uncovered(following, at):
    """The first row from one on that is not covered yet."""
    last = at
    while following[last] != last:
        last = following[last]
    while following[at] != last:
        after = following[at]
        following[at] = np.int32(last)
        at = after
    return last


@rare
def _cover(keys, following, low, high, most, found, count):
    """Add the keys from `low` to `high` that are not covered yet; return how many are found by then."""
    if count == 0:
        for at in range(len(keys) + 1):
            following[at] = np.int32(at)
    at = _uncovered(following, from_on(keys, len(keys), low))
    while at < len(keys) and keys[at] <= high and count < most:
        found[count] = np.int32(at)
        count += 1
        following[at] = np.int32(at + 1)
        at = _uncovered(following, at + 1)
    return count


@rare
def list_reached(clusters, low, y, high, keys, most, following, found):
    """Which keys lie in the x range of a box that holds y and lies within `low` … `high`; how many, up to `most`.

    Keys ascend. `following` has room for one more than there are. Trees whose x ranges contain no key that is still to
    be found are skipped, so that many boxes cost no more than a few wide ones.
    """
    (bounds, links, boxes, stack), anchors, roots = clusters
    count, last = 0, len(keys)
    cluster = from_on(anchors, len(anchors), low)
    while cluster < len(anchors) and anchors[cluster] <= high:
        stack[0] = roots[cluster]
        cluster += 1
        top = 1
        while top:
            top -= 1
            node = stack[top]
            outside_y = (bounds[node, 4] > y) | (bounds[node, 7] < y)
            if outside_y | (bounds[node, 5] < low) | (bounds[node, 6] > high):
                continue
            at = from_on(keys, last, bounds[node, 0])
            if count:
                at = _uncovered(following, at)
            if at == last or keys[at] > bounds[node, 3]:
                continue
            child = links[node, CHILD]
            if child >= 0:
                stack[top], stack[top + 1] = child, child + 1
                top += 2
                continue
            first = (-1 - child) * CELL
            for place in range(first, first + links[node, SIZE]):
                if low <= boxes[place, 2] <= y <= boxes[place, 3] <= high:
                    count = _cover(keys, following, boxes[place, 0], boxes[place, 1], most, found, count)
                    if count == most:
                        return count
    return count


@kernel(late=True)
def reach(
    clusters: Clusters,
    low: int,
    y: int,
    high: int,
    keys: Int64s,
    most: int,
    following: Writable[Int32s],
    found: Writable[Int32s],
) -> int:
    """`list_reached` for Python."""
    return int(list_reached(clusters, low, y, high, keys, most, following, found))


@kernel(late=True)
def list_window(clusters: Clusters, window: Window, places: Writable[Int64s]) -> int:
    """The places of the boxes in a window; how many there are."""
    trees, anchors, roots = clusters
    count = 0
    cluster = from_on(anchors, len(anchors), window.least_low_y)
    while cluster < len(anchors) and anchors[cluster] <= window.greatest_high_y:
        count = list_in(trees, roots[cluster], window, places, count)
        cluster += 1
    return count


@kernel(late=True)
def any_window(clusters: Clusters, window: Window) -> bool:
    """Whether there is a box in a window."""
    trees, anchors, roots = clusters
    cluster = from_on(anchors, len(anchors), window.least_low_y)
    while cluster < len(anchors) and anchors[cluster] <= window.greatest_high_y:
        if any_in(trees, roots[cluster], window):
            return True
        cluster += 1
    return False
