# mypy: allow-untyped-defs, allow-untyped-calls
"""States: the lazily determinised automaton over all plain paths, as arrays that grow.

A state represents every possible continuation of a label path: `reached`, the trie nodes whose path fits exactly up to
here, and `deep`, the nodes with a `//` step that fitted here or higher up and wait for a descendant. On a name `a`:

    reached' = children of reached by /a and /*, children of deep by //a
    deep'    = deep and those of reached' that have a // step

A `deep` set is stored as its parent set and the added nodes, so that a long chain of label paths shares one copy. A
state's matches are the entries of `reached`: an element with this label path satisfies exactly these. Sets are compared
by an order-independent hash and then node by node, so nothing is ever sorted.

A node is visited only if it leads to paths in the range of entries, or to gates: `below` has a word of marks per node,
0 for one that leads nowhere. The marks also exclude most missing steps.

Invariant: rows are appended, never changed; `sizes` counts the filled rows, and a transition is written after its
target. A reader with an older size sees an older, complete automaton.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Int64s, UInt64s, Writable, kernel, part, rare
from pathcast.kernels.hash_table_kernels import (
    MIX_A,
    MIX_B,
    first_slot,
    free_slot,
    key_hash,
    next_slot,
    probe,
    slot_mask,
)

from ...table.path_trie_kernels import edge_hash
from .jointly_accepted_entries_kernels import EntryGroups

NONE = -1
# Returned in place of a state that did not fit.
NO_ROOM = -2

# `sizes`: how far each pool is filled, the last stamp of a node, and trie look-ups since the counter was last reset.
N_STATES, N_REACHED, N_ACCEPTED, N_GATES, N_DEEPS, N_DEEP_POOL, N_TRANSITIONS, N_STAMP, N_WORK, N_SIZES = range(10)
ONE = np.uint64(1)
# The marks of a node: two for each of the STEP_MARKS groups of names of its steps, of which DEEP_STEPS are those of
# `//` steps; and END, the end of a path.
STEP_MARKS = 31
DEEP_STEPS, END = np.uint64(0x2AAAAAAAAAAAAAAA), np.uint64(1 << 62)


class Automaton(NamedTuple):
    """What a walk reads: the number of `known` states, their transitions, and the entries and gates of each.

    `groups` has the entries of the states that are grouped already.
    """

    keys: Int64s
    targets: Int32s
    accepted: Int32s
    accepted_begin: Int64s
    gates: Int32s
    gates_begin: Int64s
    known: int
    groups: EntryGroups


class PathTrie(NamedTuple):
    """The trie as a generation of states sees it: as many nodes as `below` has.

    `below` has the marks of each node, `gate_of_node` its gate or NONE. Only entries from `first_entry` to
    `entry_limit` count.
    """

    slots: Int32s
    parent: Int32s
    step: Int32s
    entry: Int32s
    below: UInt64s
    gate_of_node: Int32s
    first_entry: int
    entry_limit: int


class NodeSets(NamedTuple):
    """Sets of nodes, `nodes[begins[i] : begins[i + 1]]`, each with the number of its parent set, and a hash table."""

    nodes: Writable[Int32s]
    begins: Writable[Int64s]
    above: Writable[Int32s]
    hashes: Writable[UInt64s]
    slots: Writable[Int32s]


class WantedSet(NamedTuple):
    """A set to look for: its hash, its parent set, how many nodes it adds, and the stamp of exactly these nodes."""

    hashed: np.uint64
    above: int
    size: int
    stamps: Int64s
    stamp: int


class StatePools(NamedTuple):
    """All pools of a generation, for appending.

    A state is its reached nodes, with its deep set as parent; a deep set is the nodes it adds to its parent. `stamps`
    has one stamp per node.
    """

    sizes: Writable[Int64s]
    states: NodeSets
    deeps: NodeSets
    accepted: Writable[Int32s]
    accepted_begin: Writable[Int64s]
    gates: Writable[Int32s]
    gates_begin: Writable[Int64s]
    keys: Writable[Int64s]
    targets: Writable[Int32s]
    stamps: Writable[Int64s]


@part
def step_mark(step):
    """The mark of a step."""
    return ONE << np.uint64(2 * ((step >> 1) % STEP_MARKS) + (step & 1))


@kernel("void(ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], int64, int64, u8[::1])")
def mark_below(node_parent, node_step, entries, gate_of_node, first, limit, below):
    """Mark the nodes where gates and paths with entries from `first` to `limit` end, and the steps that lead there."""
    for node in range(len(below) - 1, -1, -1):
        if first <= entries[node] < limit or gate_of_node[node] >= 0:
            below[node] |= END
        if node > 0 and below[node] != 0:
            below[node_parent[node]] |= step_mark(node_step[node])


@part
def is_edge(node, edge, trie):
    """Whether a node counts and is below this parent by this step; another thread may be adding later nodes."""
    parent, step = edge
    return node < len(trie.below) and trie.parent[node] == parent and trie.step[node] == step


@part
def child_below(trie, parent, step):
    """The node below `parent` by `step` among those that count, or NONE."""
    return probe(trie.slots, edge_hash(parent, step), is_edge, (parent, step), trie)[0]


@part
def mixed(node):
    """A node's contribution to the hash of a set."""
    value = np.uint64(node + 1) * MIX_A
    value ^= value >> np.uint64(32)
    return value * MIX_B


@part
def transition_key(state, symbol):
    """A transition as one word."""
    return np.int64(state) << 32 | np.int64(symbol)


@part
def next_state(keys, targets, state, symbol):
    """The next state, or NONE if it has not been computed."""
    key, mask = transition_key(state, symbol), slot_mask(keys)
    slot = first_slot(key_hash(key), mask)
    while True:
        found = keys[slot]
        if found == key:
            return targets[slot]
        if found < 0:
            return np.int32(NONE)
        slot = next_slot(slot, mask)


@part
def is_wanted(row, wanted, sets):
    """Whether a set is the wanted one."""
    begin, end = sets.begins[row], sets.begins[row + 1]
    if sets.hashes[row] != wanted.hashed or sets.above[row] != wanted.above or end - begin != wanted.size:
        return False
    for index in range(begin, end):
        if wanted.stamps[sets.nodes[index]] != wanted.stamp:
            return False
    return True


@part
def set_hash(hashed):
    """The part of a set's hash that determines its slot."""
    return hashed >> np.uint64(20)


@rare
def locate_set(wanted, sets):
    """The wanted set and its slot, or -1 and the free slot for it."""
    return probe(sets.slots, set_hash(wanted.hashed), is_wanted, wanted, sets)


@rare
def reach(state, symbol, deep, stamp, end, trie, pools):
    """Write the nodes reached from `state` on `symbol` after the pool's `end`; return the new end, or NO_ROOM.

    The nodes of the deep set get `stamp`.
    """
    reached, reached_begin, below, sizes = pools.states.nodes, pools.states.begins, trie.below, pools.sizes
    deeps, stamps, room = pools.deeps, pools.stamps, len(reached)
    any_name, named, deeper = step_mark(np.int64(0)), step_mark(2 * symbol), step_mark(2 * symbol + 1)
    sizes[N_WORK] += 2 * (reached_begin[state + 1] - reached_begin[state])
    for index in range(reached_begin[state], reached_begin[state + 1]):
        node = reached[index]
        steps = below[node]
        if end + 2 > room:
            return np.int64(NO_ROOM)
        if steps & any_name != 0:
            found = child_below(trie, node, np.int32(0))
            if found >= 0 and below[found] != 0:
                reached[end] = found
                end += 1
        if symbol > 0 and steps & named != 0:
            found = child_below(trie, node, np.int32(2 * symbol))
            if found >= 0 and below[found] != 0:
                reached[end] = found
                end += 1
    current = deep
    while current >= 0:
        sizes[N_WORK] += deeps.begins[current + 1] - deeps.begins[current]
        for index in range(deeps.begins[current], deeps.begins[current + 1]):
            node = deeps.nodes[index]
            stamps[node] = stamp
            if symbol > 0 and below[node] & deeper != 0:
                if end + 1 > room:
                    return np.int64(NO_ROOM)
                found = child_below(trie, node, np.int32(2 * symbol + 1))
                if found >= 0 and below[found] != 0:
                    reached[end] = found
                    end += 1
        current = deeps.above[current]
    return end


@rare
def has_room(more, pools):
    """Whether one state and one deep set with `more` nodes fit, with tables at most half full."""
    sizes, states = pools.sizes, pools.sizes[N_STATES]
    return (
        states + 2 < len(pools.states.begins)
        and 2 * states + 2 < len(pools.states.slots)
        and sizes[N_ACCEPTED] + more <= len(pools.accepted)
        and sizes[N_GATES] + more <= len(pools.gates)
        and sizes[N_DEEPS] + 2 < len(pools.deeps.begins)
        and 2 * sizes[N_DEEPS] + 2 < len(pools.deeps.slots)
        and sizes[N_DEEP_POOL] + more <= len(pools.deeps.nodes)
    )


@rare
def deepened(deep, stamp, begin, end, below, pools):
    """The deep set plus those reached nodes, from `begin` to `end`, that are new to it: they lack `stamp`."""
    sizes, deeps, stamps, reached = pools.sizes, pools.deeps, pools.stamps, pools.states.nodes
    first, last = sizes[N_DEEP_POOL], sizes[N_DEEP_POOL]
    hashed = np.uint64(deep + 1) * MIX_B
    for index in range(begin, end):
        node = reached[index]
        if below[node] & DEEP_STEPS != 0 and stamps[node] != stamp:
            deeps.nodes[last] = node
            last += 1
            hashed += mixed(node)
    if last == first:
        return deep
    sizes[N_STAMP] += 1
    stamp = sizes[N_STAMP]
    for index in range(first, last):
        stamps[deeps.nodes[index]] = stamp
    found, slot = locate_set(WantedSet(hashed, deep, last - first, stamps, stamp), deeps)
    if found < 0:
        row = sizes[N_DEEPS]
        deeps.above[row] = deep
        deeps.hashes[row] = hashed
        deeps.begins[row + 1] = last
        deeps.slots[slot] = row
        sizes[N_DEEP_POOL] = last
        sizes[N_DEEPS] = row + 1
        found = row
    return found


@rare
def follow(state, symbol, trie, pools):
    """The state that follows `state` on `symbol`, created if necessary; NO_ROOM changes nothing."""
    sizes, sets, stamps = pools.sizes, pools.states, pools.stamps
    reached = sets.nodes
    states, begin = sizes[N_STATES], sizes[N_REACHED]
    deep = np.int64(sets.above[state])
    sizes[N_STAMP] += 1
    stamp = sizes[N_STAMP]
    end = reach(state, symbol, deep, stamp, begin, trie, pools)
    if end < 0 or not has_room(end - begin, pools):
        return np.int64(NO_ROOM)
    deep = deepened(deep, stamp, begin, end, trie.below, pools)
    sizes[N_STAMP] += 1
    stamp = sizes[N_STAMP]
    hashed = np.uint64(deep + 1) * MIX_B
    for index in range(begin, end):
        stamps[reached[index]] = stamp
        hashed += mixed(reached[index])
    found, slot = locate_set(WantedSet(hashed, deep, end - begin, stamps, stamp), sets)
    if found >= 0:
        return found
    n, m = sizes[N_ACCEPTED], sizes[N_GATES]
    for index in range(begin, end):
        node = reached[index]
        entry, gate = trie.entry[node], trie.gate_of_node[node]
        if trie.first_entry <= entry < trie.entry_limit:
            pools.accepted[n] = entry
            n += 1
        if gate >= 0:
            pools.gates[m] = gate
            m += 1
    sizes[N_REACHED], sizes[N_ACCEPTED], sizes[N_GATES] = end, n, m
    sets.begins[states + 1], pools.accepted_begin[states + 1], pools.gates_begin[states + 1] = end, n, m
    sets.above[states] = deep
    sets.hashes[states] = hashed
    sets.slots[slot] = states
    sizes[N_STATES] = states + 1
    return states


@part
def put_transition(keys, targets, state, symbol, target):
    """Write a new transition into a table with room."""
    key = transition_key(state, symbol)
    slot = free_slot(keys, key_hash(key))
    targets[slot] = target
    keys[slot] = key


@kernel
def learn(
    names: Int32s,
    parents: Int32s,
    symbols: Int32s,
    begin: int,
    first: int,
    end: int,
    most_work: int,
    trie: PathTrie,
    pools: StatePools,
    states: Writable[Int32s],
) -> int:
    """Compute the states of a document's elements from `first` to `end`; return the first that exceeded room or work.

    `begin` is the document's first element, `states` receives each element's state.
    """
    sizes, keys, targets = pools.sizes, pools.keys, pools.targets
    for element in range(first, end):
        parent = parents[element]
        above = np.int64(0) if parent < 0 else np.int64(states[parent - begin])
        symbol = np.int64(symbols[names[element]])
        state = np.int64(next_state(keys, targets, above, symbol))
        if state < 0:
            if 2 * sizes[N_TRANSITIONS] + 2 > len(keys) or sizes[N_WORK] > most_work:
                return element
            state = follow(above, symbol, trie, pools)
            if state < 0:
                return element
            put_transition(keys, targets, above, symbol, state)
            sizes[N_TRANSITIONS] += 1
        states[element - begin] = state
    return end


@kernel("void(ro_i8[::1], ro_i4[::1], i8[::1], i4[::1])", late=True)
def copy_transitions(old_keys, old_targets, keys, targets):
    """Copy all transitions to a larger table."""
    for index in range(len(old_keys)):
        key = old_keys[index]
        if key >= 0:
            put_transition(keys, targets, key >> 32, key & 0xFFFFFFFF, old_targets[index])


@kernel("void(ro_u8[::1], int64, i4[::1])", late=True)
def index_rows(hashes, count, slots):
    """Insert the rows of a pool into an empty table."""
    for row in range(count):
        slots[free_slot(slots, set_hash(hashes[row]))] = row
