# mypy: allow-untyped-defs, allow-untyped-calls
"""Places of names for kernels: an open-addressed table that holds places alone.

A name is compared with that of the place, so a slot takes four bytes. Whoever moves a box to another place finds its
slot before and writes the new place into it.

Invariant: `ids[slots[k]]` is a name that is found from its home on without an empty slot between; the table is at most
two thirds full, which is the caller's affair.
"""

import numpy as np

from pathcast.kernels import kernel, part, rare

NONE = -1
MIX, SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


@part
def _home(name, mask):
    return np.int64((np.uint64(name) * MIX) >> SHIFT) & mask


@rare
def find(slots, ids, name):
    """The slot that has the place of a name, or the empty one where it would be."""
    mask = len(slots) - 1
    slot = _home(name, mask)
    while slots[slot] >= 0 and ids[slots[slot]] != name:
        slot = (slot + 1) & mask
    return slot


@rare
def forget(slots, ids, slot):
    """Empty a slot; those behind it that would not be found any more move up."""
    mask = len(slots) - 1
    gap, slot = slot, (slot + 1) & mask
    while slots[slot] >= 0:
        home = _home(ids[slots[slot]], mask)
        if ((slot - home) & mask) >= ((slot - gap) & mask):
            slots[gap] = slots[slot]
            gap = slot
        slot = (slot + 1) & mask
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
    """Give each of some names, all different, a slot in an empty table; it holds the name's number for now."""
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
