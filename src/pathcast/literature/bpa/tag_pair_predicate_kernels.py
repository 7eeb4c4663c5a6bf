# mypy: allow-untyped-defs, allow-untyped-calls
"""Encoding: what each step of the paths' trie implies for the positions of two tags."""

from pathcast.kernels import kernel
from pathcast.kernels.hash_table_kernels import free_slot, key_hash


@kernel("void(ro_i4[::1], ro_i4[::1], int64, i4[::1], i4[::1], b1[::1])")
def link_tags(parents, steps, count, above, gap, deep):
    """For each node of a trie the nearest node above it with a tag name (0: the document), the number of steps between
    the two, including the node itself, and whether one of these was a `//`.
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
    """Insert the numbers of distinct keys into a hash table with twice as many slots; empty slots hold -1."""
    for number in range(len(keys)):
        slots[free_slot(slots, key_hash(keys[number]))] = number
