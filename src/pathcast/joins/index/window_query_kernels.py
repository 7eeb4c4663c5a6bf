# mypy: allow-untyped-defs, allow-untyped-calls
"""Windows on trees of boxes: whether a box is in the window, which boxes are, and which has the least high y.

A window is a range for each of a box's four coordinates (`clustered_box_forest_kernels.py`): least and greatest low x,
high x, low y, high y. "Holds x" is low x up to x and high x from x on; "within y₁ … y₂" is low y from y₁ on and high y
up to y₂.

Cost: the nodes on the window's border; a node inside the window ends a search for one box.
"""

from typing import NamedTuple

from pathcast.kernels import Int32s, Int64s, Matrix, Writable, part, rare

from .clustered_box_forest_kernels import CELL, CHILD, GREATEST, LEAST, SIZE


class BoxTrees(NamedTuple):
    """The nodes and boxes of trees (`BoxForest`), and room for a search."""

    bounds: Matrix[Int64s]
    links: Matrix[Int32s]
    boxes: Matrix[Int64s]
    stack: Writable[Int64s]


class Window(NamedTuple):
    """A range for each coordinate, both ends included."""

    least_low_x: int
    greatest_low_x: int
    least_high_x: int
    greatest_high_x: int
    least_low_y: int
    greatest_low_y: int
    least_high_y: int
    greatest_high_y: int


@part
def holding_x(x, least_low_y, greatest_low_y, least_high_y, greatest_high_y):
    """The window of the boxes that hold x, and whose y ranges have their ends in these ranges."""
    return Window(LEAST, x, x, GREATEST, least_low_y, greatest_low_y, least_high_y, greatest_high_y)


@part
def beginning_from(least_low_y):
    """The window of the boxes whose y ranges begin from here on."""
    return Window(LEAST, GREATEST, LEAST, GREATEST, least_low_y, GREATEST, LEAST, GREATEST)


@part
def with_y(window, least_low_y, greatest_low_y, least_high_y, greatest_high_y):
    """A window with other ranges on y."""
    a, b, c, d, _, _, _, _ = window
    return Window(a, b, c, d, least_low_y, greatest_low_y, least_high_y, greatest_high_y)


@part
def _apart(bounds, node, window):
    """Whether no box of a node can be in a window."""
    a, b, c, d, e, f, g, h = window
    return (
        (bounds[node, 4] > f)
        | (bounds[node, 5] < e)
        | (bounds[node, 6] > h)
        | (bounds[node, 7] < g)
        | (bounds[node, 0] > b)
        | (bounds[node, 1] < a)
        | (bounds[node, 2] > d)
        | (bounds[node, 3] < c)
    )


@part
def _whole(bounds, node, window):
    """Whether every box of a node is in a window."""
    a, b, c, d, e, f, g, h = window
    return (
        (bounds[node, 0] >= a)
        & (bounds[node, 1] <= b)
        & (bounds[node, 2] >= c)
        & (bounds[node, 3] <= d)
        & (bounds[node, 4] >= e)
        & (bounds[node, 5] <= f)
        & (bounds[node, 6] >= g)
        & (bounds[node, 7] <= h)
    )


@part
def _in(boxes, place, window):
    """Whether a box is in a window."""
    a, b, c, d, e, f, g, h = window
    return (
        (boxes[place, 2] >= e)
        & (boxes[place, 2] <= f)
        & (boxes[place, 3] >= g)
        & (boxes[place, 3] <= h)
        & (boxes[place, 0] >= a)
        & (boxes[place, 0] <= b)
        & (boxes[place, 1] >= c)
        & (boxes[place, 1] <= d)
    )


@rare
def any_in(trees, root, window):
    """Whether a tree has a box in a window."""
    bounds, links, boxes, stack = trees
    if _apart(bounds, root, window):
        return False
    stack[0] = root
    top = 1
    while top:
        top -= 1
        node = stack[top]
        if _whole(bounds, node, window):
            return True
        child = links[node, CHILD]
        if child >= 0:
            for sister in range(child, child + 2):
                if not _apart(bounds, sister, window):
                    stack[top] = sister
                    top += 1
            continue
        first = (-1 - child) * CELL
        for place in range(first, first + links[node, SIZE]):
            if _in(boxes, place, window):
                return True
    return False


@rare
def list_in(trees, root, window, places, count):
    """Write the places of a tree's boxes in a window, from `count` on and as far as there is room; the new count."""
    bounds, links, boxes, stack = trees
    stack[0] = root
    top = 1
    while top:
        top -= 1
        node = stack[top]
        if _apart(bounds, node, window):
            continue
        child = links[node, CHILD]
        if child >= 0:
            stack[top], stack[top + 1] = child, child + 1
            top += 2
            continue
        first = (-1 - child) * CELL
        whole = _whole(bounds, node, window)
        for place in range(first, first + links[node, SIZE]):
            if whole or _in(boxes, place, window):
                if count < len(places):
                    places[count] = place
                count += 1
    return count


@rare
def least_in(trees, root, window, best, best_low):
    """The least high y of a tree's boxes in a window, and the greatest low y that comes with it, if it is less.

    `best` and `best_low` are the least so far; `best_low` below every key when there is none yet.
    """
    bounds, links, boxes, stack = trees
    stack[0] = root
    top = 1
    while top:
        top -= 1
        node = stack[top]
        low, high = bounds[node, 5], bounds[node, 6]
        if high > best or (high == best and low <= best_low) or _apart(bounds, node, window):
            continue
        child = links[node, CHILD]
        if child >= 0:
            # The more promising sister is on top of the stack and visited first.
            swapped = bounds[child, 6] < bounds[child + 1, 6]
            stack[top], stack[top + 1] = child + swapped, child + 1 - swapped
            top += 2
            continue
        first = (-1 - child) * CELL
        for place in range(first, first + links[node, SIZE]):
            low, high = boxes[place, 2], boxes[place, 3]
            if (high < best or (high == best and low > best_low)) and _in(boxes, place, window):
                best, best_low = high, low
    return best, best_low


@part
def from_on(keys, count, key):
    """How many of ascending keys are less."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@part
def nearest_keys(keys, anchor):
    """The greatest key up to an anchor and the least from it on; beyond all keys where there is none, and whether."""
    at = from_on(keys, len(keys), anchor)
    has_above = at < len(keys)
    above = keys[at] if has_above else GREATEST
    if has_above and above == anchor:
        return True, above, True, above
    has_below = at > 0
    below = keys[at - 1] if has_below else LEAST
    return has_below, below, has_above, above
