# mypy: allow-untyped-defs, allow-untyped-calls
"""Questions about semijoins in clusters: x is the base axis, y the filtering one, and each cluster a tree of boxes.

Anchors ascend, and the tree at `roots[k]` has boxes whose y ranges hold `anchors[k]`. So of the joining keys only the
two next to an anchor matter to its cluster (§3.1.1 of the select-join paper): a box is affected if it begins at the
lower one or before, or ends at the upper one or after, which is two windows without a box in common. A range within a
gap has its anchor there, so only clusters with anchors in a gap are looked at (Theorem 1, appendix B).

Cost: what `window_query_kernels.py` says for each cluster that is looked at.
"""

import numpy as np

from pathcast.kernels import kernel, part, rare

from .box_forest_kernels import CELL, CHILD, GREATEST, LEAST, SIZE
from .window_query_kernels import any_in, from_on, least_in, list_in, nearest_keys

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


@kernel("int64(ro_i8[::1], ro_i8[::1], i8[::1])", late=True)
def nearest(anchors, keys, found):
    """`list_nearest` for Python."""
    return np.int64(list_nearest(anchors, keys, found))


@rare
def mark_gaps(bounds, links, boxes, stack, anchors, roots, x, keys, free):
    """Whether no box that holds x lies between two neighbours of some ascending keys."""
    for gap in range(len(keys) - 1):
        low, high = keys[gap], keys[gap + 1]
        free[gap] = True
        cluster = from_on(anchors, len(anchors), low)
        while cluster < len(anchors) and anchors[cluster] < high:
            if anchors[cluster] > low and any_in(
                bounds, links, boxes, stack, roots[cluster], LEAST, x, x, GREATEST, low + 1, GREATEST, LEAST, high - 1
            ):
                free[gap] = False
                break
            cluster += 1


@kernel(
    "void(ro_i8[:, ::1], ro_i4[:, ::1], ro_i8[:, ::1], i8[::1], ro_i8[::1], ro_i4[::1], int64, ro_i8[::1], b1[::1])",
    late=True,
)
def find_gaps(bounds, links, boxes, stack, anchors, roots, x, keys, free):
    """`mark_gaps` for Python."""
    mark_gaps(bounds, links, boxes, stack, anchors, roots, x, keys, free)


@kernel(
    "int64(ro_i8[:, ::1], ro_i4[:, ::1], ro_i8[:, ::1], i8[::1], ro_i8[::1], ro_i4[::1], ro_i8[::1], ro_i8[::1],"
    " i8[::1])",
    late=True,
)
def list_affected(bounds, links, boxes, stack, anchors, roots, window, keys, places):
    """The places of the boxes whose x is in a window and whose y range holds a key; how many there are."""
    a, b, c, d = window[0], window[1], window[2], window[3]
    count = 0
    for cluster in range(len(anchors)):
        root = roots[cluster]
        has_below, below, has_above, above = nearest_keys(keys, anchors[cluster])
        if has_below:
            count = list_in(
                bounds, links, boxes, stack, root, a, b, c, d, LEAST, below, LEAST, GREATEST, places, count
            )  # fmt: skip
        if has_above and not (has_below and below == above):
            least = below + 1 if has_below else LEAST
            count = list_in(
                bounds, links, boxes, stack, root, a, b, c, d, least, GREATEST, above, GREATEST, places, count
            )  # fmt: skip
    return np.int64(count)


@kernel(
    "boolean(ro_i8[:, ::1], ro_i4[:, ::1], ro_i8[:, ::1], i8[::1], ro_i8[::1], ro_i4[::1], ro_i8[::1], ro_i8[::1])",
    late=True,
)
def any_affected(bounds, links, boxes, stack, anchors, roots, window, keys):
    """Whether there is a box whose x is in a window and whose y range holds a key."""
    a, b, c, d = window[0], window[1], window[2], window[3]
    for cluster in range(len(anchors)):
        root = roots[cluster]
        has_below, below, has_above, above = nearest_keys(keys, anchors[cluster])
        if has_below and any_in(bounds, links, boxes, stack, root, a, b, c, d, LEAST, below, LEAST, GREATEST):
            return True
        if has_above and any_in(bounds, links, boxes, stack, root, a, b, c, d, LEAST, GREATEST, above, GREATEST):
            return True
    return False


@kernel(
    "boolean(ro_i8[:, ::1], ro_i4[:, ::1], ro_i8[:, ::1], i8[::1], ro_i8[::1], ro_i4[::1], int64, ro_i8[::1], int64,"
    " int64)",
    late=True,
)
def any_unaffected(bounds, links, boxes, stack, anchors, roots, x, keys, low, high):
    """Whether there is a box that holds x, whose y range holds no key, begins by `low` and ends from `high` on."""
    for cluster in range(len(anchors)):
        has_below, below, has_above, above = nearest_keys(keys, anchors[cluster])
        if has_below and has_above and below == above:
            continue
        least, greatest = below + 1 if has_below else LEAST, above - 1 if has_above else GREATEST
        if least <= low and greatest >= high:
            root = roots[cluster]
            if any_in(bounds, links, boxes, stack, root, LEAST, x, x, GREATEST, least, low, high, greatest):
                return True
    return False


@rare
def _next_minimal(bounds, links, boxes, stack, anchors, roots, x, keys, least):
    """Of the boxes that hold x and a key and begin from `least` on, the first to end; of these the last to begin."""
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
            if not found:
                found = any_in(
                    bounds, links, boxes, stack, root, LEAST, x, x, GREATEST, least, last_low, first_high, GREATEST
                )
            if found:
                best, best_low = least_in(
                    bounds, links, boxes, stack, root, LEAST, x, x, GREATEST, least, last_low, first_high, GREATEST,
                    best, best_low
                )  # fmt: skip
        cluster += 1
    return found, best_low, best


@kernel(
    "int64(ro_i8[:, ::1], ro_i4[:, ::1], ro_i8[:, ::1], i8[::1], ro_i8[::1], ro_i4[::1], int64, ro_i8[::1], int64,"
    " i8[:, ::1])",
    late=True,
)
def list_minimal(bounds, links, boxes, stack, anchors, roots, x, keys, least, found):
    """The y ranges that hold a key, of boxes that hold x, and hold no other such; from a low end on, ascending.

    How many; as many as there is room for when there may be more.
    """
    count = 0
    while count < len(found):
        there, low, high = _next_minimal(bounds, links, boxes, stack, anchors, roots, x, keys, least)
        if not there:
            break
        found[count, 0], found[count, 1] = low, high
        count += 1
        if low == GREATEST:
            break
        least = low + 1
    return np.int64(count)


# Filter events.


@part
def _uncovered(following, at):
    """The first row from one on that nobody covers yet."""
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
    """Take up the keys from `low` to `high` that nobody has yet; how many are found then."""
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
def list_reached(bounds, links, boxes, stack, anchors, roots, low, y, high, keys, most, following, found):
    """Which keys lie in the x range of a box that holds y and lies within `low` … `high`; how many, up to `most`.

    Keys ascend. `following` has room for one more than there are. Trees whose x ranges hold no key that is still to be
    found are left out, so that a few wide boxes are as good as many.
    """
    count, last = 0, len(keys)
    cluster = from_on(anchors, len(anchors), low)
    while cluster < len(anchors) and anchors[cluster] <= high:
        stack[0] = roots[cluster]
        cluster += 1
        top = 1
        while top:
            top -= 1
            node = stack[top]
            if (
                (bounds[node, 4] > y)
                | (bounds[node, 5] < low)
                | (bounds[node, 6] > high)
                | (bounds[node, 7] < y)
            ):  # fmt: skip
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


@kernel(
    "int64(ro_i8[:, ::1], ro_i4[:, ::1], ro_i8[:, ::1], i8[::1], ro_i8[::1], ro_i4[::1], int64, int64, int64,"
    " ro_i8[::1], int64, i4[::1], i4[::1])",
    late=True,
)
def reach(bounds, links, boxes, stack, anchors, roots, low, y, high, keys, most, following, found):
    """`list_reached` for Python."""
    return np.int64(
        list_reached(bounds, links, boxes, stack, anchors, roots, low, y, high, keys, most, following, found)
    )


@kernel(
    "int64(ro_i8[:, ::1], ro_i4[:, ::1], ro_i8[:, ::1], i8[::1], ro_i8[::1], ro_i4[::1], ro_i8[::1], i8[::1])",
    late=True,
)
def list_window(bounds, links, boxes, stack, anchors, roots, window, places):
    """The places of the boxes in a window; how many there are."""
    a, b, c, d, e, f, g, h = (
        window[0], window[1], window[2], window[3], window[4], window[5], window[6], window[7]
    )  # fmt: skip
    count = 0
    cluster = from_on(anchors, len(anchors), e)
    while cluster < len(anchors) and anchors[cluster] <= h:
        count = list_in(
            bounds, links, boxes, stack, roots[cluster], a, b, c, d, e, f, g, h, places, count
        )  # fmt: skip
        cluster += 1
    return np.int64(count)


@kernel("boolean(ro_i8[:, ::1], ro_i4[:, ::1], ro_i8[:, ::1], i8[::1], ro_i8[::1], ro_i4[::1], ro_i8[::1])", late=True)
def any_window(bounds, links, boxes, stack, anchors, roots, window):
    """Whether there is a box in a window."""
    a, b, c, d, e, f, g, h = (
        window[0], window[1], window[2], window[3], window[4], window[5], window[6], window[7]
    )  # fmt: skip
    cluster = from_on(anchors, len(anchors), e)
    while cluster < len(anchors) and anchors[cluster] <= h:
        if any_in(bounds, links, boxes, stack, roots[cluster], a, b, c, d, e, f, g, h):
            return True
        cluster += 1
    return False
