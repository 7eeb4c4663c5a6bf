# mypy: allow-untyped-defs, allow-untyped-calls
"""Encoding: what each step of the paths' trie says about the places of two tags."""

import numpy as np

from pathcast.kernels import kernel


@kernel("void(ro_i4[::1], ro_i4[::1], int64, i4[::1], i4[::1], b1[::1])")
def link_tags(parents, steps, count, above, gap, deep):
    """For each node of a trie the nearest node above it with a tag name (0: the document), how many steps lie between
    the two, itself included, and whether one of these was a `//`.
    """
    for node in range(1, count):
        parent = parents[node]
        if parent == 0 or steps[parent] > 1:
            above[node] = parent
            gap[node] = 1
            deep[node] = steps[node] & 1 == 1
        else:
            above[node] = above[parent]
            gap[node] = gap[parent] + 1
            deep[node] = deep[parent] or steps[node] & 1 == 1


@kernel("void(ro_i8[::1], i4[::1])")
def index_pairs(keys, slots):
    """Put the numbers of distinct keys into a hash table with room for twice as many; empty slots hold -1."""
    mask = len(slots) - 1
    for number in range(len(keys)):
        slot = np.int64((np.uint64(keys[number]) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = number
