# mypy: allow-untyped-defs, allow-untyped-calls
"""Bindings: a node of a pattern at an element, with a bit for each of its parts found below.

For joins of a pattern's paths on the elements that they share, while the document is read. A binding is found by
hashing (node, element, the binding above it or -1); a slot counts only with the document's stamp, so that the next
document starts with an empty table.

Invariant: at most half of the slots are in use; without room the result is FULL, and the document restarts with more.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Int64s, Matrix, Writable, part
from pathcast.kernels.hash_table_kernels import first_slot, next_slot, pair_hash, slot_mask

# Rows of `bindings`.
B_NODE, B_ELEMENT, B_ABOVE, B_ROWS = range(4)
FULL = -2


class BindingTable(NamedTuple):
    """The bindings of a document, a hash table of them, and their number in `counts[0]`."""

    slots: Writable[Int32s]
    slot_stamps: Writable[Int64s]
    bindings: Writable[Matrix[Int32s]]
    parts: Writable[Int64s]
    counts: Writable[Int64s]


@part
def binding(node, element, above, stamp, table):
    """The binding of a node at an element, created if necessary; FULL if there is no room for it."""
    slots, slot_stamps, bindings, parts, counts = table
    mask = slot_mask(slots)
    slot = first_slot(pair_hash(np.int64(node) << 32 | np.int64(element), above) >> np.uint64(20), mask)
    while slot_stamps[slot] == stamp:
        at = np.int64(slots[slot])
        if bindings[B_NODE, at] == node and bindings[B_ABOVE, at] == above and bindings[B_ELEMENT, at] == element:
            return at
        slot = next_slot(slot, mask)
    count = counts[0]
    if 2 * count >= len(slots):
        return np.int64(FULL)
    slot_stamps[slot] = stamp
    slots[slot] = count
    bindings[B_NODE, count], bindings[B_ABOVE, count], bindings[B_ELEMENT, count] = node, above, element
    parts[count] = 0
    counts[0] = count + 1
    return np.int64(count)
