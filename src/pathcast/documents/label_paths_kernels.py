# mypy: allow-untyped-defs, allow-untyped-calls
"""Label paths for kernels: a tree with its edges in a hash table, one probe per step.

A node is its parent and its name; node numbers count as they come. The table of slots is open-addressed and at most
half full; the caller makes it larger.
"""

import numpy as np

from pathcast.kernels import Int32s, Int64s, Writable, kernel, part
from pathcast.kernels.hash_table_kernels import MIX_A, find_pair

NONE = -1
SHIFT = np.uint64(32)


@part
def edge_slot(slots, node_parent, node_name, parent, name):
    """The slot of an edge: it holds the child, or `NONE` where the child would go."""
    key = np.uint64(np.int64(parent) + 1) << SHIFT | np.uint64(np.uint32(name))
    mixed = key * MIX_A
    return find_pair(slots, mixed ^ mixed >> SHIFT, (parent, name), (node_parent, node_name))[1]


@kernel(late=True)
def walk_paths(
    names: Int32s,
    parents: Int32s,
    first: int,
    translate: Int32s,
    done: int,
    slots: Writable[Int32s],
    node_parent: Writable[Int32s],
    node_name: Writable[Int32s],
    count: Writable[Int64s],
    paths: Writable[Int32s],
) -> int:
    """Write the path of every element from `done` on; return the first element without room for a new node.

    Parents count from `first`: one below that is none.
    """
    room = min(len(node_parent), len(slots) >> 1)
    for element in range(done, len(names)):
        parent = parents[element] - first
        above = np.int32(NONE) if parent < 0 else paths[parent]
        name = translate[names[element]]
        slot = edge_slot(slots, node_parent, node_name, above, name)
        child = np.int32(slots[slot])
        if child == NONE:
            if count[0] >= room:
                return element
            child = np.int32(count[0])
            slots[slot] = child
            node_parent[child] = above
            node_name[child] = name
            count[0] += 1
        paths[element] = child
    return len(names)


@kernel(late=True)
def place_edges(node_parent: Int32s, node_name: Int32s, first: int, count: int, slots: Writable[Int32s]) -> None:
    """Enter the edges of the nodes from `first` on."""
    for node in range(first, count):
        slots[edge_slot(slots, node_parent, node_name, node_parent[node], node_name[node])] = np.int32(node)
