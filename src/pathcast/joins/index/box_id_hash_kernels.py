# mypy: allow-untyped-defs, allow-untyped-calls
"""Places of box ids for kernels: an open-addressed table that stores only places.

A name is compared with that of the place, so a slot takes four bytes. Code that moves a box to another place finds its
slot first and writes the new place into it.

Invariant: there is no empty slot between the home of the name `ids[slots[k]]` and slot k; the caller keeps the table at
most two thirds full.
"""

import numpy as np

from pathcast.kernels import kernel, rare
from pathcast.kernels.hash_table_kernels import find_key, first_slot, key_hash, next_slot, slot_mask

NONE = -1


@rare
def find(slots, ids, name):
    """The slot that has the place of a name, or the empty one where it would be."""
    return find_key(slots, key_hash(name), name, ids)[1]


@rare
def forget(slots, ids, slot):
    """Empty a slot; move later entries up that would no longer be found."""
    mask = slot_mask(slots)
    gap, slot = slot, next_slot(slot, mask)
    while slots[slot] >= 0:
        home = first_slot(key_hash(ids[slots[slot]]), mask)
        if ((slot - home) & mask) >= ((slot - gap) & mask):
            slots[gap] = slots[slot]
            gap = slot
        slot = next_slot(slot, mask)
    slots[gap] = NONE


@kernel("int64(ro_i4[::1], ro_i8[::1], int64)", late=True)
def place_of(slots, ids, name):
    """The place of a name, or -1."""
    return np.int64(slots[find(slots, ids, name)])


@kernel("boolean(ro_i4[::1], ro_i8[::1], ro_i8[::1])", late=True)
def any_known(slots, ids, names):
    """Whether one of some names has a place."""
    for name in names:
        if slots[find(slots, ids, name)] >= 0:
            return True
    return False


@kernel("void(i4[::1], ro_i8[::1], i4[::1])", late=True)
def enter(slots, names, at):
    """Give each of some distinct names a slot in an empty table; the slot holds the name's number for now."""
    for number in range(len(names)):
        slot = find(slots, names, names[number])
        slots[slot] = np.int32(number)
        at[number] = np.int32(slot)


@kernel("void(ro_i4[::1], ro_i8[::1], i4[::1])", late=True)
def enter_again(old, ids, slots):
    """Fill an empty table from another."""
    for slot in range(len(old)):
        if old[slot] >= 0:
            slots[find(slots, ids, ids[old[slot]])] = old[slot]
