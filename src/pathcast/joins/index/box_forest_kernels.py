# mypy: allow-untyped-defs, allow-untyped-calls
"""Trees of boxes for kernels: boxes in blocks, and above them nodes with the bounds of what lies below.

A box is a range on x and a range on y, as a point of four coordinates: low x, high x, low y, high y. What is asked of
boxes is then whether points lie in a window, a range for each coordinate (`window_query_kernels.py`).

    boxes, ids   place → coordinates, name; a cell is `CELL` places, a block `CELLS` cells
    owner        cell → its leaf, or -2 - the next free one
    bounds       node → least and greatest of each coordinate, 64 bytes
    links        node → first of its two children, which stand side by side, or -1 - cell; parent; boxes; depth
    slots        open-addressed table of places, by name
    head         counts and free lists (`NODES` …)

A leaf has a block, the first places of which are taken; but a tree with few boxes has one cell, so that boxes which all
lie apart, each a tree, take little.

Invariant: bounds are exact. A block's cells all have its leaf as owner; beside a single cell lies none of the same.
A node with children has more than half a block of boxes, and some on either side. No child has more than three
quarters of its parent's boxes and two blocks when one comes, or `insert` says so.
Cost: adding and removing take the depth, which is O(log n); `build_tree` O(n log n).
"""

import numpy as np

from pathcast.kernels import kernel, part, rare

from .name_places_kernels import NONE, find

CELL, CELLS = 4, 8
BLOCK = CELL * CELLS
AXES = 4
CHILD, PARENT, SIZE, DEPTH = 0, 1, 2, 3
NODES, FREE_NODE, BLOCKS, FREE_BLOCK, FREE_CELL, COUNT = 0, 1, 2, 3, 4, 5
# Half of a block that is full and has one more; where many come at once, blocks have room for some more.
HALF, FILL = 17, 28
LEAST, GREATEST = np.int64(-(2**63)), np.int64(2**63 - 1)


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
    """Give two sisters, or a root, back."""
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
    """Make a node a leaf with room for so many boxes, and some more; its first cell."""
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
    """Give a leaf's cells back."""
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
def _swap(rows, names, at, one, other):
    for axis in range(AXES):
        rows[one, axis], rows[other, axis] = rows[other, axis], rows[one, axis]
    names[one], names[other] = names[other], names[one]
    at[one], at[other] = at[other], at[one]


@rare
def _divide(rows, names, at, first, last, middle, axis):
    """Order rows so that those before `middle` are not above it on an axis, and those after it not below."""
    low, high = first, last - 1
    while low < high:
        one, two, three = rows[low, axis], rows[(low + high) >> 1, axis], rows[high, axis]
        pivot = max(min(one, two), min(max(one, two), three))
        left, right = low, high
        while left <= right:
            while rows[left, axis] < pivot:
                left += 1
            while rows[right, axis] > pivot:
                right -= 1
            if left <= right:
                _swap(rows, names, at, left, right)
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
    """Coordinates in turn, but for those in which all boxes of the node agree."""
    for more in range(AXES):
        axis = (depth + more) % AXES
        if bounds[node, 2 * axis] < bounds[node, 2 * axis + 1]:
            return axis
    return 0


@rare
def build_tree(bounds, links, boxes, ids, owner, slots, head, rows, names, at, first, last, root, fill, stack):
    """Put rows `first` to `last` below a node that has nothing; `at` are the slots of their names."""
    stack[0], stack[1], stack[2] = first, last, root
    top = 1
    while top:
        top -= 1
        begin, end, node = stack[3 * top], stack[3 * top + 1], stack[3 * top + 2]
        size = end - begin
        links[node, SIZE] = np.int32(size)
        fit_rows(bounds, node, rows, begin, end)
        if size <= BLOCK:
            place = new_leaf(links, owner, head, node, size) * CELL
            for row in range(begin, end):
                for axis in range(AXES):
                    boxes[place, axis] = rows[row, axis]
                ids[place] = names[row]
                slots[at[row]] = np.int32(place)
                place += 1
            continue
        depth = links[node, DEPTH]
        middle = begin + ((size + fill - 1) // fill + 1) // 2 * fill
        _divide(rows, names, at, begin, end, middle, _axis(bounds, node, depth))
        pair = new_pair(links, head)
        links[node, CHILD] = np.int32(pair)
        for child in range(pair, pair + 2):
            links[child, PARENT] = np.int32(node)
            links[child, DEPTH] = np.int32(depth + 1)
        stack[3 * top], stack[3 * top + 1], stack[3 * top + 2] = begin, middle, pair
        top += 1
        stack[3 * top], stack[3 * top + 1], stack[3 * top + 2] = middle, end, pair + 1
        top += 1


@kernel(
    "void(i8[:, ::1], i4[:, ::1], i8[:, ::1], i8[::1], i4[::1], i4[::1], i8[::1], i8[:, ::1], i8[::1], i4[::1],"
    " ro_i8[::1], i4[::1], i8[::1])",
    late=True,
)
def plant(bounds, links, boxes, ids, owner, slots, head, rows, names, at, starts, roots, stack):
    """Make a tree for each stretch of rows, `starts` to the next; its root goes to `roots`."""
    for tree in range(len(roots)):
        root = new_pair(links, head)
        links[root, PARENT] = np.int32(NONE)
        links[root, DEPTH] = np.int32(0)
        first, last = starts[tree], starts[tree + 1]
        build_tree(bounds, links, boxes, ids, owner, slots, head, rows, names, at, first, last, root, FILL, stack)
        roots[tree] = np.int32(root)
        head[COUNT] += last - first


@rare
def _copy_below(links, boxes, ids, rows, names, node, count, stack):
    """Copy all boxes below a node, and their names, behind so many rows; how many there are then."""
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
def gather(links, boxes, ids, owner, slots, head, rows, names, at, node, stack):
    """Take all boxes below a node out into rows, with the slots of their names; the node stays, without anything."""
    count = _copy_below(links, boxes, ids, rows, names, node, 0, stack)
    for row in range(count):
        at[row] = np.int32(find(slots, ids, names[row]))
    _drop_below(links, owner, head, node, stack)
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


@kernel(
    "void(i8[:, ::1], i4[:, ::1], i8[:, ::1], i8[::1], i4[::1], i4[::1], i8[::1], i8[:, ::1], i8[::1], i4[::1],"
    " int64, i8[::1])",
    late=True,
)
def rebuild(bounds, links, boxes, ids, owner, slots, head, rows, names, at, node, stack):
    """Put what lies below a node in order again; `rows`, `names` and `at` have room for it."""
    count = gather(links, boxes, ids, owner, slots, head, rows, names, at, node, stack)
    build_tree(bounds, links, boxes, ids, owner, slots, head, rows, names, at, 0, count, node, FILL, stack)


@kernel("int64(i4[:, ::1], ro_i8[:, ::1], ro_i8[::1], i8[:, ::1], i8[::1], ro_i4[::1], i8[::1])", late=True)
def read_out(links, boxes, ids, rows, names, roots, stack):
    """All boxes of some trees as rows; how many."""
    count = 0
    for root in roots:
        count = _copy_below(links, boxes, ids, rows, names, root, count, stack)
    return np.int64(count)
