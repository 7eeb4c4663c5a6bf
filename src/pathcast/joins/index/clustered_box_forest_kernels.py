# mypy: allow-untyped-defs, allow-untyped-calls
"""Trees of boxes for kernels: boxes in blocks, and above them nodes with bounds.

A box is a range on x and a range on y, as a point of four coordinates: low x, high x, low y, high y. A query asks which
points are in a window, a range for each coordinate (`window_query_kernels.py`).

A leaf has a block, filled from its first place on; a tree with few boxes has only one cell, so that disjoint boxes,
each a tree of its own, take little memory.

Invariant: bounds are exact. A block's cells all have its leaf as owner; beside a single cell lies none of the same.
A node with children has more than half a block of boxes, and some on either side. No child has more than three
quarters of its parent's boxes and two blocks when one comes, or `insert` says so.
Cost: adding and removing take the depth, which is O(log n); `build_tree` O(n log n).
"""

from typing import Any, NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Int64s, Matrix, Writable, kernel, part, rare

from .box_id_hash_kernels import NONE, find

CELL, CELLS = 4, 8
BLOCK = CELL * CELLS
AXES = 4
CHILD, PARENT, SIZE, DEPTH = 0, 1, 2, 3
NODES, FREE_NODE, BLOCKS, FREE_BLOCK, FREE_CELL, COUNT = 0, 1, 2, 3, 4, 5
# Half of a full block plus one; in bulk loads, blocks have spare room.
HALF, FILL = 17, 28
# Typed as in kernels, where a plain -2**63 would be unsigned.
LEAST: Any = np.int64(-(2**63))
GREATEST: Any = np.int64(2**63 - 1)


class BoxForest(NamedTuple):
    """The arrays of all trees; a cell is `CELL` places, a block `CELLS` cells.

    bounds      node → least and greatest of each coordinate, 64 bytes
    links       node → first of its two children, which stand side by side, or -1 - cell; parent; boxes; depth
    boxes, ids  place → coordinates, name
    owner       cell → its leaf, or -2 - the next free one
    slots       open-addressed table of places, by name
    head        counts and free lists (`NODES` …)
    """

    bounds: Writable[Matrix[Int64s]]
    links: Writable[Matrix[Int32s]]
    boxes: Writable[Matrix[Int64s]]
    ids: Writable[Int64s]
    owner: Writable[Int32s]
    slots: Writable[Int32s]
    head: Writable[Int64s]


class BoxRows(NamedTuple):
    """Boxes that are in no tree, one per row, with their names and the slots of the names."""

    boxes: Writable[Matrix[Int64s]]
    names: Writable[Int64s]
    slots: Writable[Int32s]


@rare
def new_pair(links, head):
    """Two nodes side by side, for sisters or a root."""
    pair = head[FREE_NODE]
    if pair >= 0:
        head[FREE_NODE] = links[pair, CHILD]
    else:
        pair = head[NODES]
        head[NODES] += 2
    return pair


@rare
def drop_pair(links, head, pair):
    """Free two sisters, or a root."""
    links[pair, CHILD] = np.int32(head[FREE_NODE])
    head[FREE_NODE] = pair


@rare
def _new_block(owner, head):
    cell = head[FREE_BLOCK]
    if cell >= 0:
        head[FREE_BLOCK] = -2 - owner[cell]
    else:
        cell = head[BLOCKS] * CELLS
        head[BLOCKS] += 1
    return cell


@rare
def _new_cell(owner, head):
    if head[FREE_CELL] < 0:
        first = _new_block(owner, head)
        for cell in range(first, first + CELLS):
            owner[cell] = np.int32(-2 - head[FREE_CELL])
            head[FREE_CELL] = cell
    cell = head[FREE_CELL]
    head[FREE_CELL] = -2 - owner[cell]
    return cell


@rare
def new_leaf(links, owner, head, node, size):
    """Make a node a leaf with room for this many boxes and some more; return its first cell."""
    if size <= CELL and links[node, PARENT] == NONE:
        cell = _new_cell(owner, head)
        owner[cell] = np.int32(node)
    else:
        cell = _new_block(owner, head)
        for part_of in range(cell, cell + CELLS):
            owner[part_of] = np.int32(node)
    links[node, CHILD] = np.int32(-1 - cell)
    return cell


@part
def is_block(owner, cell):
    """Whether a leaf's first cell is that of a block."""
    return owner[cell + 1] == owner[cell]


@rare
def drop_leaf(owner, head, cell):
    """Free a leaf's cells."""
    if not is_block(owner, cell):
        owner[cell] = np.int32(-2 - head[FREE_CELL])
        head[FREE_CELL] = cell
        return
    for part_of in range(cell + 1, cell + CELLS):
        owner[part_of] = np.int32(NONE)
    owner[cell] = np.int32(-2 - head[FREE_BLOCK])
    head[FREE_BLOCK] = cell


@rare
def fit_rows(bounds, node, rows, first, last):
    """The bounds of a node, from its boxes."""
    for axis in range(AXES):
        low, high = GREATEST, LEAST
        for at in range(first, last):
            low = min(low, rows[at, axis])
            high = max(high, rows[at, axis])
        bounds[node, 2 * axis] = low
        bounds[node, 2 * axis + 1] = high


# Building.


@part
def _swap(rows, one, other):
    boxes, names, slots = rows
    for axis in range(AXES):
        boxes[one, axis], boxes[other, axis] = boxes[other, axis], boxes[one, axis]
    names[one], names[other] = names[other], names[one]
    slots[one], slots[other] = slots[other], slots[one]


@rare
def _divide(rows, first, last, middle, axis):
    """Order rows so that those before `middle` are not above it on an axis, and those after it not below."""
    boxes = rows.boxes
    low, high = first, last - 1
    while low < high:
        one, two, three = boxes[low, axis], boxes[(low + high) >> 1, axis], boxes[high, axis]
        pivot = max(min(one, two), min(max(one, two), three))
        left, right = low, high
        while left <= right:
            while boxes[left, axis] < pivot:
                left += 1
            while boxes[right, axis] > pivot:
                right -= 1
            if left <= right:
                _swap(rows, left, right)
                left += 1
                right -= 1
        if middle <= right:
            high = right
        elif middle >= left:
            low = left
        else:
            return


@part
def _axis(bounds, node, depth):
    """Coordinates in turn, except those in which all boxes of the node agree."""
    for more in range(AXES):
        axis = (depth + more) % AXES
        if bounds[node, 2 * axis] < bounds[node, 2 * axis + 1]:
            return axis
    return 0


@rare
def build_tree(forest, rows, first, last, root, fill, stack):
    """Put rows `first` to `last` below an empty node."""
    bounds, links, boxes, ids, owner, slots, head = forest
    stack[0], stack[1], stack[2] = first, last, root
    top = 1
    while top:
        top -= 1
        begin, end, node = stack[3 * top], stack[3 * top + 1], stack[3 * top + 2]
        size = end - begin
        links[node, SIZE] = np.int32(size)
        fit_rows(bounds, node, rows.boxes, begin, end)
        if size <= BLOCK:
            place = new_leaf(links, owner, head, node, size) * CELL
            for row in range(begin, end):
                for axis in range(AXES):
                    boxes[place, axis] = rows.boxes[row, axis]
                ids[place] = rows.names[row]
                slots[rows.slots[row]] = np.int32(place)
                place += 1
            continue
        depth = links[node, DEPTH]
        middle = begin + ((size + fill - 1) // fill + 1) // 2 * fill
        _divide(rows, begin, end, middle, _axis(bounds, node, depth))
        pair = new_pair(links, head)
        links[node, CHILD] = np.int32(pair)
        for child in range(pair, pair + 2):
            links[child, PARENT] = np.int32(node)
            links[child, DEPTH] = np.int32(depth + 1)
        stack[3 * top], stack[3 * top + 1], stack[3 * top + 2] = begin, middle, pair
        top += 1
        stack[3 * top], stack[3 * top + 1], stack[3 * top + 2] = middle, end, pair + 1
        top += 1


@kernel(late=True)
def plant(forest: BoxForest, rows: BoxRows, starts: Int64s, roots: Writable[Int32s], stack: Writable[Int64s]) -> None:
    """Make a tree for each stretch of rows, `starts` to the next; its root goes to `roots`."""
    links, head = forest.links, forest.head
    for tree in range(len(roots)):
        root = new_pair(links, head)
        links[root, PARENT] = np.int32(NONE)
        links[root, DEPTH] = np.int32(0)
        first, last = starts[tree], starts[tree + 1]
        build_tree(forest, rows, first, last, root, FILL, stack)
        roots[tree] = np.int32(root)
        head[COUNT] += last - first


@rare
def _copy_below(links, boxes, ids, rows, names, node, count, stack):
    """Copy all boxes below a node, and their names, after the first `count` rows; return the new count."""
    stack[0] = node
    top = 1
    while top:
        top -= 1
        here = stack[top]
        child = links[here, CHILD]
        if child >= 0:
            stack[top], stack[top + 1] = child, child + 1
            top += 2
            continue
        first = (-1 - child) * CELL
        for place in range(first, first + links[here, SIZE]):
            for axis in range(AXES):
                rows[count, axis] = boxes[place, axis]
            names[count] = ids[place]
            count += 1
    return count


@rare
def gather(forest, rows, node, stack):
    """Move all boxes below a node into rows; the node stays, empty."""
    count = _copy_below(forest.links, forest.boxes, forest.ids, rows.boxes, rows.names, node, 0, stack)
    for row in range(count):
        rows.slots[row] = np.int32(find(forest.slots, forest.ids, rows.names[row]))
    _drop_below(forest.links, forest.owner, forest.head, node, stack)
    return count


@rare
def _drop_below(links, owner, head, node, stack):
    stack[0] = links[node, CHILD]
    top = 1
    while top:
        top -= 1
        child = stack[top]
        if child < 0:
            drop_leaf(owner, head, -1 - child)
            continue
        one, other = links[child, CHILD], links[child + 1, CHILD]
        drop_pair(links, head, child)
        stack[top], stack[top + 1] = one, other
        top += 2


@kernel(late=True)
def rebuild(forest: BoxForest, rows: BoxRows, node: int, stack: Writable[Int64s]) -> None:
    """Rebuild the tree below a node; `rows` must have room for its boxes."""
    count = gather(forest, rows, node, stack)
    build_tree(forest, rows, 0, count, node, FILL, stack)


@kernel(late=True)
def read_out(
    forest: BoxForest,
    boxes: Writable[Matrix[Int64s]],
    names: Writable[Int64s],
    roots: Int32s,
    stack: Writable[Int64s],
) -> int:
    """Copy all boxes of some trees, and their names; return how many."""
    count = 0
    for root in roots:
        count = _copy_below(forest.links, forest.boxes, forest.ids, boxes, names, root, count, stack)
    return count
