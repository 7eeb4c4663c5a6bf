# mypy: allow-untyped-defs, allow-untyped-calls
"""Hash tables with open addressing: mixing, and the search for a slot.

A table is an array of 2^n slots; a slot holds the number of a row, or a negative number if it is free. The search for
a row begins at the first slot of its hash and continues slot by slot, wrapping around at the end (linear probing).
`probe`, `find_key`, `find_pair` and `free_slot` search such tables. Callers whose slots hold something else, whose
table is a piece of a larger array, or whose search may give up use `first_slot` and `next_slot`.

Slots and masks are unsigned, so the compiler omits the check for negative indexes.

Invariant: at least one slot is free; otherwise a search for a missing key would not end.
Cost: the same as a loop written by hand: all functions, including the comparison, are inlined into the kernel.
"""

import numpy as np

from pathcast.kernels import part

MIX_A, MIX_B = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
# Constants of the FNV-1a hash.
FNV_SEED, FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


@part
def key_hash(key):
    """A hash of one word."""
    return np.uint64(key) * MIX_A >> np.uint64(32)


@part
def pair_hash(first, second):
    """A hash of two words; its upper bits are mixed best."""
    hashed = np.uint64(first) * MIX_A ^ np.uint64(second) * MIX_B
    hashed ^= hashed >> np.uint64(31)
    return hashed * MIX_A


@part
def slot_mask(slots):
    """The mask of a table's slots."""
    return np.uint64(len(slots) - 1)


@part
def first_slot(hashed, mask):
    """Where the search for a hash begins."""
    return hashed & mask


@part
def next_slot(slot, mask):
    """The slot after a slot."""
    return (slot + np.uint64(1)) & mask


@part
def probe(slots, hashed, is_same, key, table):
    """The row that equals `key`, and its slot; or a negative number and the free slot where the row belongs.

    `is_same(row, key, table)` compares. Each step reads the slot once, so another thread may fill free slots
    concurrently: the returned row is the row that was compared.
    """
    mask = slot_mask(slots)
    slot = first_slot(hashed, mask)
    while True:
        row = np.int64(slots[slot])
        if row < 0 or is_same(row, key, table):
            return row, slot
        slot = next_slot(slot, mask)


@part
def is_same_key(row, key, keys):
    """Whether a row has this key."""
    return keys[row] == key


@part
def find_key(slots, hashed, key, keys):
    """`probe` for tables whose rows have one key each."""
    return probe(slots, hashed, is_same_key, key, keys)


@part
def is_same_pair(row, pair, columns):
    """Whether a row has these two keys."""
    return columns[0][row] == pair[0] and columns[1][row] == pair[1]


@part
def find_pair(slots, hashed, pair, columns):
    """`probe` for tables whose rows have two keys each, in two columns."""
    return probe(slots, hashed, is_same_pair, pair, columns)


@part
def free_slot(slots, hashed):
    """The free slot for a row that is not in the table."""
    mask = slot_mask(slots)
    slot = first_slot(hashed, mask)
    while slots[slot] >= 0:
        slot = next_slot(slot, mask)
    return slot
