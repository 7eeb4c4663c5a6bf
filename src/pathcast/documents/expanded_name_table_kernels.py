# mypy: allow-untyped-defs, allow-untyped-calls
"""The name table for kernels: open addressing from a name's bytes to its id.

One table for the known names and for the batch's own, which the scanner adds after them. A name in a namespace is
hashed and stored as `{uri}local`. When a table has no room for a name, the caller makes it larger. After `MAX_PROBES`
the search gives up and the document goes to the expat reader, so that names made to collide cost a bounded time; a
known name that would need more is not in the table.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Int64s, UInt8s, UInt64s, Writable, item, kernel, part, rare
from pathcast.kernels.hash_table_kernels import first_slot, next_slot, slot_mask

from .scanner.character_kernels import PADDING, hash_name, same_bytes
from .scanner.scanner_array_layout_kernels import N_FULL, N_MOST, N_NAME_BYTES, N_NAMES

MAX_PROBES = 64
GIVEN_UP = -(2**31)
OPEN_BRACE, CLOSE_BRACE = 123, 125


class NameIndex(NamedTuple):
    """A name table: the numbers of names by hash, the first 16 bytes of each name as two keys, and all their bytes.

    The keys of name `i` are `keys[2 * i]` and `keys[2 * i + 1]`, its bytes `stored[offsets[i] : offsets[i + 1]]`.
    """

    slots: Writable[Int32s]
    keys: Writable[UInt64s]
    stored: Writable[UInt8s]
    offsets: Writable[Int64s]


@part
def find(names, first, second, hashed, data, begin, end):
    """The number of a name; -1 - slot when it is unknown but could be put at that slot; or GIVEN_UP."""
    slots, keys, stored, offsets = names
    mask = slot_mask(slots)
    length = end - begin
    slot = first_slot(hashed, mask)
    for _ in range(MAX_PROBES):
        number = np.int64(slots[slot])
        if number < 0:
            return -1 - np.int64(slot)
        if item(keys, 2 * number) == first and item(keys, 2 * number + 1) == second:
            # Keys of fewer bytes end with a zero, which no name has.
            if length < 16:
                return number
            at = offsets[number]
            if offsets[number + 1] - at == length and (length == 16 or same_bytes(stored, at, data, begin, end)):
                return number
        slot = next_slot(slot, mask)
    return np.int64(GIVEN_UP)


@rare
def add_name(slot, first, second, data, begin, end, names, counts):
    """Put a name into the table, at the slot where `find` missed it; return its number.

    -1 when there is no room for it, or the document has too many names.
    """
    slots, keys, stored, offsets = names
    number, used = counts[N_NAMES], counts[N_NAME_BYTES]
    if number >= counts[N_MOST]:
        return np.int64(-1)
    if number + 2 > len(offsets) or used + (end - begin) + PADDING > len(stored):
        counts[N_FULL] = 1
        return np.int64(-1)
    slots[slot] = number
    keys[2 * number] = first
    keys[2 * number + 1] = second
    for p in range(begin, end):
        stored[used] = data[p]
        used += 1
    offsets[number + 1] = used
    counts[N_NAMES] = number + 1
    counts[N_NAME_BYTES] = used
    return number


@kernel
def index_names(stored: UInt8s, offsets: Int64s, slots: Writable[Int32s], keys: Writable[UInt64s]) -> int:
    """Put all names into the table; return how many are omitted because they need too many probes."""
    mask = slot_mask(slots)
    left_out = 0
    for number in range(len(offsets) - 1):
        first, second, hashed = hash_name(stored, offsets[number], offsets[number + 1])
        keys[2 * number] = first
        keys[2 * number + 1] = second
        slot = first_slot(hashed, mask)
        probes = 0
        while slots[slot] >= 0 and probes < MAX_PROBES:
            slot = next_slot(slot, mask)
            probes += 1
        if probes < MAX_PROBES:
            slots[slot] = number
        else:
            left_out += 1
    return left_out
