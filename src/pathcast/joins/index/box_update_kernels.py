# mypy: allow-untyped-defs, allow-untyped-calls
"""Updates of trees of boxes: insert and remove boxes one by one, and join two trees.

The arrays are those of `clustered_box_forest_kernels.py`. A full leaf is split. When a leaf becomes
empty, its sister replaces their parent; two leaves that together fill half a block are merged.

Cost: the depth of the tree, O(log n); a split or merge moves half a block.
"""

import numpy as np

from pathcast.kernels import Int64s, Writable, kernel, part, rare

from .box_id_hash_kernels import NONE, find, forget
from .clustered_box_forest_kernels import (
    AXES,
    BLOCK,
    CELL,
    CELLS,
    CHILD,
    COUNT,
    DEPTH,
    GREATEST,
    HALF,
    LEAST,
    PARENT,
    SIZE,
    BoxForest,
    BoxRows,
    build_tree,
    drop_leaf,
    drop_pair,
    fit_rows,
    gather,
    is_block,
    new_leaf,
    new_pair,
)


@rare
def _move(forest, source, target):
    """Give a node another number; the caller updates its parent."""
    bounds, links, owner = forest.bounds, forest.links, forest.owner
    for column in range(2 * AXES):
        bounds[target, column] = bounds[source, column]
    child = links[source, CHILD]
    links[target, CHILD] = child
    links[target, SIZE] = links[source, SIZE]
    if child >= 0:
        links[child, PARENT] = np.int32(target)
        links[child + 1, PARENT] = np.int32(target)
    else:
        cell = -1 - child
        for part_of in range(cell, cell + (CELLS if is_block(owner, cell) else 1)):
            owner[part_of] = np.int32(target)


@rare
def _fit_children(bounds, links, node):
    child = links[node, CHILD]
    for axis in range(AXES):
        bounds[node, 2 * axis] = min(bounds[child, 2 * axis], bounds[child + 1, 2 * axis])
        bounds[node, 2 * axis + 1] = max(bounds[child, 2 * axis + 1], bounds[child + 1, 2 * axis + 1])


@part
def _growth(bounds, node, box):
    """How much a node's bounds grow by a box, all coordinates together."""
    grown = 0.0
    for axis in range(AXES):
        low, high, key = bounds[node, 2 * axis], bounds[node, 2 * axis + 1], box[axis]
        if key < low:
            grown += np.float64(low) - np.float64(key)
        elif key > high:
            grown += np.float64(key) - np.float64(high)
    return grown


@rare
def _nearer(bounds, links, child, box):
    """The one of two sisters that grows less by a box; of equal ones the smaller."""
    left, right = _growth(bounds, child, box), _growth(bounds, child + 1, box)
    if left == right:
        return child if links[child, SIZE] <= links[child + 1, SIZE] else child + 1
    return child if left < right else child + 1


@rare
def _widen(bounds, node, box):
    for axis in range(AXES):
        bounds[node, 2 * axis] = min(bounds[node, 2 * axis], box[axis])
        bounds[node, 2 * axis + 1] = max(bounds[node, 2 * axis + 1], box[axis])


@kernel(late=True)
def sprout(forest: BoxForest) -> int:
    """Make an empty tree; return its root."""
    bounds, links = forest.bounds, forest.links
    root: int = new_pair(links, forest.head)
    links[root, PARENT] = np.int32(NONE)
    links[root, DEPTH] = links[root, SIZE] = np.int32(0)
    new_leaf(links, forest.owner, forest.head, root, 0)
    for axis in range(AXES):
        bounds[root, 2 * axis], bounds[root, 2 * axis + 1] = GREATEST, LEAST
    return root


@kernel(late=True)
def insert(forest: BoxForest, rows: BoxRows, root: int, name: int, box: Int64s, stack: Writable[Int64s]) -> int:
    """Add a box with a new name to a tree; return the highest node that is now out of balance, or -1.

    `rows` must have room for a block plus one.
    """
    bounds, links, boxes, ids, owner, slots, head = forest
    slot = find(slots, ids, name)
    node, heavy = root, np.int64(NONE)
    while True:
        _widen(bounds, node, box)
        links[node, SIZE] += np.int32(1)
        child = links[node, CHILD]
        if child < 0:
            break
        chosen = _nearer(bounds, links, child, box)
        if heavy < 0 and 4 * (links[chosen, SIZE] + 1) > 3 * links[node, SIZE] + 8 * BLOCK:
            heavy = np.int64(node)
        node = chosen
    size, cell = links[node, SIZE] - 1, -1 - links[node, CHILD]
    head[COUNT] += 1
    if size < (BLOCK if is_block(owner, cell) else CELL):
        place = cell * CELL + size
        for axis in range(AXES):
            boxes[place, axis] = box[axis]
        ids[place] = name
        slots[slot] = np.int32(place)
        return int(heavy)
    links[node, SIZE] = np.int32(size)
    gather(forest, rows, node, stack)
    for axis in range(AXES):
        rows.boxes[size, axis] = box[axis]
    rows.names[size], rows.slots[size] = name, np.int32(slot)
    build_tree(forest, rows, 0, size + 1, node, HALF, stack)
    return int(heavy)


@kernel(late=True)
def remove(forest: BoxForest, name: int) -> int:
    """Remove an existing box from its tree; return the root if the tree is now empty, otherwise -1."""
    bounds, links, boxes, ids, owner, slots, head = forest
    slot = find(slots, ids, name)
    place = np.int64(slots[slot])
    node = np.int64(owner[place // CELL])
    cell = -1 - np.int64(links[node, CHILD])
    forget(slots, ids, slot)
    last = cell * CELL + links[node, SIZE] - 1
    if place != last:
        slots[find(slots, ids, ids[last])] = np.int32(place)
        for axis in range(AXES):
            boxes[place, axis] = boxes[last, axis]
        ids[place] = ids[last]
    head[COUNT] -= 1
    links[node, SIZE] -= np.int32(1)
    if links[node, SIZE] == 0 and links[node, PARENT] == NONE:
        drop_leaf(owner, head, cell)
        drop_pair(links, head, node)
        return int(node)
    fit_rows(bounds, node, boxes, cell * CELL, cell * CELL + links[node, SIZE])
    node = np.int64(links[node, PARENT])
    while node >= 0:
        links[node, SIZE] -= np.int32(1)
        if links[node, SIZE] * 2 <= BLOCK:
            _make_leaf(forest, node)
        else:
            _shrink(forest, node)
        node = np.int64(links[node, PARENT])
    return NONE


@rare
def _shrink(forest, node):
    """Fit a node to its children; if one of them is empty, the other replaces the node."""
    links, head = forest.links, forest.head
    pair = links[node, CHILD]
    for empty in range(2):
        if links[pair + empty, SIZE] == 0:
            drop_leaf(forest.owner, head, -1 - links[pair + empty, CHILD])
            _move(forest, pair + 1 - empty, node)
            drop_pair(links, head, pair)
            return
    _fit_children(forest.bounds, links, node)


@rare
def _make_leaf(forest, node):
    """Put the few boxes of two leaves into the block of the first."""
    bounds, links, boxes, ids, owner, slots, head = forest
    pair = links[node, CHILD]
    cell, other = -1 - links[pair, CHILD], -1 - links[pair + 1, CHILD]
    place = cell * CELL + links[pair, SIZE]
    for source in range(other * CELL, other * CELL + links[pair + 1, SIZE]):
        slots[find(slots, ids, ids[source])] = np.int32(place)
        for axis in range(AXES):
            boxes[place, axis] = boxes[source, axis]
        ids[place] = ids[source]
        place += 1
    drop_leaf(owner, head, other)
    drop_pair(links, head, pair)
    links[node, CHILD] = np.int32(-1 - cell)
    for part_of in range(cell, cell + CELLS):
        owner[part_of] = np.int32(node)
    fit_rows(bounds, node, boxes, cell * CELL, place)


@kernel(late=True)
def graft(forest: BoxForest, root: int, other: int) -> None:
    """Join two trees under the root of the first."""
    links, head = forest.links, forest.head
    pair = new_pair(links, head)
    _move(forest, root, pair)
    _move(forest, other, pair + 1)
    for child in range(pair, pair + 2):
        links[child, PARENT] = np.int32(root)
        links[child, DEPTH] = np.int32(links[root, DEPTH] + 1)
    links[root, CHILD] = np.int32(pair)
    links[root, SIZE] = np.int32(links[pair, SIZE] + links[pair + 1, SIZE])
    _fit_children(forest.bounds, links, root)
    drop_pair(links, head, other)
