# mypy: allow-untyped-defs, allow-untyped-calls
"""The trie of plain paths as arrays: a node is a step below its parent, found by hashing (parent, step).

    /a/b, /a//c        node 0: the document      parent  step
                       node 1: /a                0       /a
                       node 2: /a/b              1       /b
                       node 3: /a//c             1       //c

A slot of the hash table holds only the child's number; its parent and step, stored per node, show whether it is the
right one. A node therefore costs 12 bytes and some 3 slots of 4 bytes.
"""

import numpy as np

from pathcast.kernels import kernel, part
from pathcast.kernels.hash_table_kernels import find_pair, free_slot, pair_hash

NONE = -1


@part
def edge_hash(parent, step):
    """The hash of an edge."""
    return pair_hash(parent, step) >> np.uint64(24)


@part
def child(slots, node_parent, node_step, parent, step):
    """The node below `parent` by `step`, or NONE."""
    return find_pair(slots, edge_hash(parent, step), (parent, step), (node_parent, node_step))[0]


@part
def enter_child(slots, node_parent, node_step, parent, step, count):
    """The node below `parent` by `step`, created if necessary; and the new node count."""
    node, slot = find_pair(slots, edge_hash(parent, step), (parent, step), (node_parent, node_step))
    if node < 0:
        slots[slot] = count
        node_parent[count] = parent
        node_step[count] = step
        node = count
        count += 1
    return node, count


@part
def insert_path(steps, begin, end, slots, node_parent, node_step, count):
    """Insert one path; return its last node, and the new node count."""
    node = np.int64(0)
    for at in range(begin, end):
        node, count = enter_child(slots, node_parent, node_step, node, steps[at], count)
    return node, count


@kernel("int64(ro_i4[::1], ro_i4[::1], i4[::1], i4[::1], i4[::1], int64, i4[::1])")
def insert_paths(steps, lengths, slots, node_parent, node_step, count, ends):
    """Insert paths, given as concatenated steps; `ends` receives each path's last node. Returns the new node count."""
    at = 0
    for path in range(len(lengths)):
        end = at + lengths[path]
        ends[path], count = insert_path(steps, at, end, slots, node_parent, node_step, count)
        at = end
    return count


@kernel("int64(ro_i4[::1], int64, i4[::1], i4[::1], i4[::1], i4[::1], int64, int64, i4[::1])", brief=True)
def enter_path(steps, length, slots, node_parent, node_step, node_entry, count, fresh, found):
    """Insert one path, with the entry `fresh` unless it has one; `found` gets last node and entry. The node count."""
    node, count = insert_path(steps, 0, length, slots, node_parent, node_step, count)
    if node_entry[node] < 0:
        node_entry[node] = fresh
    found[0], found[1] = node, node_entry[node]
    return count


@kernel("void(ro_i4[::1], ro_i4[::1], int64, i4[::1])", late=True)
def rebuild_slots(node_parent, node_step, count, slots):
    """Insert all edges into an empty table."""
    for node in range(1, count):
        slots[free_slot(slots, edge_hash(node_parent[node], node_step[node]))] = node


@kernel("int64(ro_i4[::1], i4[::1], int64, i4[::1])")
def number_paths(ends, node_entry, first, entries):
    """Give each path the entry of its last node, or a new one (from `first` on); return the next entry."""
    for path in range(len(ends)):
        if node_entry[ends[path]] < 0:
            node_entry[ends[path]] = first
            first += 1
        entries[path] = node_entry[ends[path]]
    return first


@kernel("int64(ro_i4[::1], ro_i4[::1], ro_i4[::1], i4[::1], i4[::1], i4[::1], int64, i4[::1])", late=True)
def merge_nodes(their_parent, their_step, names, slots, node_parent, node_step, count, moved):
    """Merge the nodes of another trie, translated by `names`; `moved` receives their new numbers. The new count."""
    moved[0] = 0
    for their in range(1, len(their_parent)):
        parent, step = moved[their_parent[their]], their_step[their]
        if step > 1:
            step = 2 * (names[(step >> 1) - 1] + 1) + (step & 1)
        moved[their], count = enter_child(slots, node_parent, node_step, parent, step, count)
    return count
