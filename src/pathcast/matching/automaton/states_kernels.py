# mypy: allow-untyped-defs, allow-untyped-calls
"""States: the lazily determinised automaton over all plain paths, as arrays.

A state stands for everything that can still come of a label path: `reached`, the trie nodes whose path fits exactly
up to here, and `deep`, the nodes with a `//` step that fitted here or higher up and wait for a descendant. On a name
`a`:

    reached' = children of reached by /a and /*, children of deep by //a
    deep'    = deep and those of reached' that have a // step

A `deep` set is its parent set and what was added, so that a long chain of label paths shares one copy. A state's
matches are the entries of `reached`: an element with this label path satisfies just these.
"""

import numpy as np

from ...kernels import kernel, part
from ..trie_kernels import child

NONE = -1
KEY_A = np.uint64(0x9E3779B97F4A7C15)


@kernel("void(ro_i4[::1], ro_i4[::1], int64, int64, b1[::1])")
def mark_deep(node_parent, node_step, first, count, has_deep):
    """Mark the nodes that have a `//` step below, for the nodes from `first` on."""
    for node in range(first, count):
        if node_step[node] & 1:
            has_deep[node_parent[node]] = True


@kernel(
    "int64(ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_b1[::1], int64,"
    " ro_i4[::1], ro_i8[::1], int64, ro_i4[::1], ro_i4[::1], ro_i8[::1], int64,"
    " i8[::1], int64, i4[::1], i4[::1], i8[::1])"
)
def step_state(
    slots, node_parent, node_step, has_deep, symbol,
    reached_pool, reached_begin, state, deep_pool, deep_parent, deep_begin, deep,
    stamps, stamp, reached, added, sizes,
):  # fmt: skip
    """What state `state` becomes on `symbol`: fills `reached` and `added` (to its deep set), in no order, and `sizes`.

    `stamps` marks trie nodes by `stamp`, which is a fresh one. -1 when `reached` or `added` is too small.
    """
    n, room = 0, len(reached)
    for index in range(reached_begin[state], reached_begin[state + 1]):
        node = reached_pool[index]
        if n + 2 > room:
            return -1
        found = child(slots, node_parent, node_step, node, np.int32(0))
        if found >= 0:
            reached[n] = found
            n += 1
        if symbol > 0:
            found = child(slots, node_parent, node_step, node, np.int32(2 * symbol))
            if found >= 0:
                reached[n] = found
                n += 1
    current = deep
    while current >= 0:
        for index in range(deep_begin[current], deep_begin[current + 1]):
            node = deep_pool[index]
            stamps[node] = stamp
            if symbol > 0:
                if n + 1 > room:
                    return -1
                found = child(slots, node_parent, node_step, node, np.int32(2 * symbol + 1))
                if found >= 0:
                    reached[n] = found
                    n += 1
        current = deep_parent[current]
    m = 0
    for index in range(n):
        node = reached[index]
        if has_deep[node] and stamps[node] != stamp:
            added[m] = node
            m += 1
    sizes[0] = n
    sizes[1] = m
    return 0


@part
def transition_slot(state, symbol, mask):
    """Where the search for a transition begins."""
    mixed = (np.uint64(state) << np.uint64(32) ^ np.uint64(symbol)) * KEY_A
    return np.int64(mixed >> np.uint64(32) & np.uint64(mask))


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


@kernel("void(ro_i8[::1], ro_i4[::1], i8[::1], i4[::1])")
def put_transitions(fresh_keys, fresh_targets, keys, targets):
    """Put transitions (`state << 32 | symbol`, -1 for none) into a table with room for them."""
    mask = len(keys) - 1
    for index in range(len(fresh_keys)):
        key = fresh_keys[index]
        if key < 0:
            continue
        slot = transition_slot(key >> 32, key & 0xFFFFFFFF, mask)
        while keys[slot] >= 0 and keys[slot] != key:
            slot = (slot + 1) & mask
        targets[slot] = fresh_targets[index]
        keys[slot] = key
