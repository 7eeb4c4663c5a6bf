# mypy: allow-untyped-defs, allow-untyped-calls
"""States: the lazily determinised automaton over all plain paths, as arrays that grow.

A state stands for everything that can still come of a label path: `reached`, the trie nodes whose path fits exactly
up to here, and `deep`, the nodes with a `//` step that fitted here or higher up and wait for a descendant. On a name
`a`:

    reached' = children of reached by /a and /*, children of deep by //a
    deep'    = deep and those of reached' that have a // step

A `deep` set is its parent set and what was added, so that a long chain of label paths shares one copy. A state's
matches are the entries of `reached`: an element with this label path satisfies just these. Sets are compared by an
order-free hash and then node by node, so nothing is ever sorted.

Nodes are looked at only if they lead to paths of some range of entries, or to gates: `below` has a word of marks for
each, 0 for one that does not, which also tells of most steps that there are none.

Invariant: rows are appended, never changed; `sizes` says how far they are filled, and a transition is written after
what it leads to. Whoever reads with an older size sees an older, complete automaton.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Int64s, kernel, part, rare

from ...table.path_trie_kernels import edge_slot

NONE = -1
# What a kernel gives for a state it could not make for want of room.
NO_ROOM = -2
KEY_A = np.uint64(0x9E3779B97F4A7C15)
KEY_B = np.uint64(0xC2B2AE3D27D4EB4F)

# `sizes`: how far each pool is filled, the last stamp of a node, and look-ups in the trie since somebody set it to 0.
N_STATES, N_REACHED, N_ACCEPTED, N_GATES, N_DEEPS, N_DEEP_POOL, N_TRANSITIONS, N_STAMP, N_WORK, N_SIZES = range(10)
ONE = np.uint64(1)
# The marks of a node: for its steps, two for each of so many groups of names; of them those of `//` steps; and the end
# of a path.
STEP_MARKS = 31
DEEP_STEPS, END = np.uint64(0x2AAAAAAAAAAAAAAA), np.uint64(1 << 62)


class Automaton(NamedTuple):
    """What a walk reads: `known` states, the transitions between them, and the entries and gates of each."""

    keys: Int64s
    targets: Int32s
    accepted: Int32s
    accepted_begin: Int64s
    gates: Int32s
    gates_begin: Int64s
    known: int


@part
def step_mark(step):
    """The mark of a step."""
    return ONE << np.uint64(2 * ((step >> 1) % STEP_MARKS) + (step & 1))


@kernel("void(ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], int64, int64, u8[::1])")
def mark_below(node_parent, node_step, entries, gate_of_node, first, limit, below):
    """Mark where paths with entries from `first` to `limit`, and gates, end, and the steps that lead to these."""
    for node in range(len(below) - 1, -1, -1):
        if first <= entries[node] < limit or gate_of_node[node] >= 0:
            below[node] |= END
        if node > 0 and below[node] != 0:
            below[node_parent[node]] |= step_mark(node_step[node])


@part
def child_below(slots, node_parent, node_step, count, parent, step):
    """The node below `parent` by `step` among the first `count`, or NONE; later ones may be in the making."""
    mask = len(slots) - 1
    slot = edge_slot(parent, step, mask)
    while True:
        node = slots[slot]
        if node < 0 or (node < count and node_parent[node] == parent and node_step[node] == step):
            return node
        slot = (slot + 1) & mask


@part
def mixed(node):
    """A node's share of the hash of a set."""
    value = np.uint64(node + 1) * KEY_A
    value ^= value >> np.uint64(32)
    return value * KEY_B


@part
def transition_slot(state, symbol, mask):
    """Where the search for a transition begins."""
    value = (np.uint64(state) << np.uint64(32) ^ np.uint64(symbol)) * KEY_A
    return np.int64(value >> np.uint64(32) & np.uint64(mask))


@part
def next_state(keys, targets, state, symbol):
    """The state that follows, or NONE when it has not been worked out."""
    mask = len(keys) - 1
    key = np.int64(state) << 32 | np.int64(symbol)
    slot = transition_slot(state, symbol, mask)
    while True:
        found = keys[slot]
        if found == key:
            return targets[slot]
        if found < 0:
            return np.int32(NONE)
        slot = (slot + 1) & mask


@rare
def find_row(slots, hashes, hashed, pool, begin, above_of, above, fresh, fresh_end, stamps, stamp):
    """The row with this hash, this `above` and just the nodes fresh to fresh_end of the pool; -1 - slot for none.

    The fresh nodes bear `stamp`.
    """
    mask = len(slots) - 1
    slot = np.int64(hashed >> np.uint64(20) & np.uint64(mask))
    while True:
        row = np.int64(slots[slot])
        if row < 0:
            return -1 - slot
        if hashes[row] == hashed and above_of[row] == above and begin[row + 1] - begin[row] == fresh_end - fresh:
            same = True
            for index in range(begin[row], begin[row + 1]):
                if stamps[pool[index]] != stamp:
                    same = False
                    break
            if same:
                return row
        slot = (slot + 1) & mask


@rare
def reach(
    slots, node_parent, node_step, below, symbol, reached, reached_begin, state, deep_pool, deep_parent,
    deep_begin, deep, stamps, stamp, end, sizes,
):  # fmt: skip
    """Write the nodes reached from `state` on `symbol` behind the pool's `end`; its new end, or NO_ROOM.

    The nodes of the deep set get `stamp`.
    """
    room, node_count = len(reached), len(below)
    any_name, named, deeper = step_mark(np.int64(0)), step_mark(2 * symbol), step_mark(2 * symbol + 1)
    sizes[N_WORK] += 2 * (reached_begin[state + 1] - reached_begin[state])
    for index in range(reached_begin[state], reached_begin[state + 1]):
        node = reached[index]
        steps = below[node]
        if end + 2 > room:
            return np.int64(NO_ROOM)
        if steps & any_name != 0:
            found = child_below(slots, node_parent, node_step, node_count, node, np.int32(0))
            if found >= 0 and below[found] != 0:
                reached[end] = found
                end += 1
        if symbol > 0 and steps & named != 0:
            found = child_below(slots, node_parent, node_step, node_count, node, np.int32(2 * symbol))
            if found >= 0 and below[found] != 0:
                reached[end] = found
                end += 1
    current = deep
    while current >= 0:
        sizes[N_WORK] += deep_begin[current + 1] - deep_begin[current]
        for index in range(deep_begin[current], deep_begin[current + 1]):
            node = deep_pool[index]
            stamps[node] = stamp
            if symbol > 0 and below[node] & deeper != 0:
                if end + 1 > room:
                    return np.int64(NO_ROOM)
                found = child_below(slots, node_parent, node_step, node_count, node, np.int32(2 * symbol + 1))
                if found >= 0 and below[found] != 0:
                    reached[end] = found
                    end += 1
        current = deep_parent[current]
    return end


@rare
def follow(
    slots, node_parent, node_step, entries, below, gate_of_node, first_entry, entry_limit, state, symbol,
    sizes, reached, reached_begin, accepted, accepted_begin, gates, gates_begin, deep_of, hashes, state_slots,
    deep_pool, deep_begin, deep_parent, deep_hashes, deep_slots, stamps,
):  # fmt: skip
    """The state that `state` becomes on `symbol`, made now if there is none; NO_ROOM leaves all as it was."""
    states, begin = sizes[N_STATES], sizes[N_REACHED]
    deep = np.int64(deep_of[state])
    sizes[N_STAMP] += 1
    stamp = sizes[N_STAMP]
    end = reach(slots, node_parent, node_step, below, symbol, reached, reached_begin, state, deep_pool,
                deep_parent, deep_begin, deep, stamps, stamp, begin, sizes)  # fmt: skip
    # Room for one state more, for its rows at their largest, and for one deep set: tables stay half empty.
    fits = (
        end >= 0
        and states + 2 < len(reached_begin)
        and 2 * states + 2 < len(state_slots)
        and sizes[N_ACCEPTED] + (end - begin) <= len(accepted)
        and sizes[N_GATES] + (end - begin) <= len(gates)
        and sizes[N_DEEPS] + 2 < len(deep_begin)
        and 2 * sizes[N_DEEPS] + 2 < len(deep_slots)
        and sizes[N_DEEP_POOL] + (end - begin) <= len(deep_pool)
    )
    if not fits:
        return np.int64(NO_ROOM)
    # The deep set, with those of the reached nodes that are new to it.
    first, last = sizes[N_DEEP_POOL], sizes[N_DEEP_POOL]
    hashed = np.uint64(deep + 1) * KEY_B
    for index in range(begin, end):
        node = reached[index]
        if below[node] & DEEP_STEPS != 0 and stamps[node] != stamp:
            deep_pool[last] = node
            last += 1
            hashed += mixed(node)
    if last > first:
        sizes[N_STAMP] += 1
        stamp = sizes[N_STAMP]
        for index in range(first, last):
            stamps[deep_pool[index]] = stamp
        found = find_row(deep_slots, deep_hashes, hashed, deep_pool, deep_begin, deep_parent, deep, first, last,
                         stamps, stamp)  # fmt: skip
        if found < 0:
            row = sizes[N_DEEPS]
            deep_parent[row] = deep
            deep_hashes[row] = hashed
            deep_begin[row + 1] = last
            deep_slots[-1 - found] = row
            sizes[N_DEEP_POOL] = last
            sizes[N_DEEPS] = row + 1
            found = row
        deep = found
    # The state.
    sizes[N_STAMP] += 1
    stamp = sizes[N_STAMP]
    hashed = np.uint64(deep + 1) * KEY_B
    for index in range(begin, end):
        stamps[reached[index]] = stamp
        hashed += mixed(reached[index])
    found = find_row(state_slots, hashes, hashed, reached, reached_begin, deep_of, deep, begin, end, stamps, stamp)
    if found >= 0:
        return found
    n, m = sizes[N_ACCEPTED], sizes[N_GATES]
    for index in range(begin, end):
        node = reached[index]
        entry, gate = entries[node], gate_of_node[node]
        if first_entry <= entry < entry_limit:
            accepted[n] = entry
            n += 1
        if gate >= 0:
            gates[m] = gate
            m += 1
    sizes[N_REACHED], sizes[N_ACCEPTED], sizes[N_GATES] = end, n, m
    reached_begin[states + 1], accepted_begin[states + 1], gates_begin[states + 1] = end, n, m
    deep_of[states] = deep
    hashes[states] = hashed
    state_slots[-1 - found] = states
    sizes[N_STATES] = states + 1
    return states


@part
def put_transition(keys, targets, state, symbol, target):
    """Write a transition that is not there yet into a table with room."""
    mask = len(keys) - 1
    slot = transition_slot(state, symbol, mask)
    while keys[slot] >= 0:
        slot = (slot + 1) & mask
    targets[slot] = target
    keys[slot] = np.int64(state) << 32 | np.int64(symbol)


_POOLS = (
    " i8[::1], i4[::1], i8[::1], i4[::1], i8[::1], i4[::1], i8[::1], i4[::1], u8[::1], i4[::1],"
    " i4[::1], i8[::1], i4[::1], u8[::1], i4[::1], i8[::1], i8[::1], i4[::1]"
)


@kernel(
    "int64(int64, ro_i4[::1], ro_i4[::1], ro_i4[::1], int64, int64, i4[::1], int64,"
    " ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_u8[::1], ro_i4[::1], int64, int64," + _POOLS + ")"
)
def learn(
    begin, names, parents, symbols, first, end, states, most_work,
    slots, node_parent, node_step, entries, below, gate_of_node, first_entry, entry_limit,
    sizes, reached, reached_begin, accepted, accepted_begin, gates, gates_begin, deep_of, hashes, state_slots,
    deep_pool, deep_begin, deep_parent, deep_hashes, deep_slots, stamps, keys, targets,
):  # fmt: skip
    """Work out the states of a document's elements from `first` to `end`; the first there was no room or work for.

    `begin` is the document's first element, `states` gets each element's state.
    """
    for element in range(first, end):
        parent = parents[element]
        above = np.int64(0) if parent < 0 else np.int64(states[parent - begin])
        symbol = np.int64(symbols[names[element]])
        state = np.int64(next_state(keys, targets, above, symbol))
        if state < 0:
            if 2 * sizes[N_TRANSITIONS] + 2 > len(keys) or sizes[N_WORK] > most_work:
                return np.int64(element)
            state = follow(slots, node_parent, node_step, entries, below, gate_of_node, first_entry, entry_limit,
                           above, symbol, sizes, reached, reached_begin, accepted, accepted_begin, gates, gates_begin,
                           deep_of, hashes, state_slots, deep_pool, deep_begin, deep_parent, deep_hashes, deep_slots,
                           stamps)  # fmt: skip
            if state < 0:
                return np.int64(element)
            put_transition(keys, targets, above, symbol, state)
            sizes[N_TRANSITIONS] += 1
        states[element - begin] = state
    return end


@kernel("void(ro_i8[::1], ro_i4[::1], i8[::1], i4[::1])", late=True)
def copy_transitions(old_keys, old_targets, keys, targets):
    """Put all transitions into a larger table."""
    for index in range(len(old_keys)):
        key = old_keys[index]
        if key >= 0:
            put_transition(keys, targets, key >> 32, key & 0xFFFFFFFF, old_targets[index])


@kernel("void(ro_u8[::1], int64, i4[::1])", late=True)
def index_rows(hashes, count, slots):
    """Put the rows of a pool into a fresh table."""
    mask = len(slots) - 1
    for row in range(count):
        slot = np.int64(hashes[row] >> np.uint64(20) & np.uint64(mask))
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = row
