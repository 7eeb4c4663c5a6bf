# mypy: allow-untyped-defs, allow-untyped-calls
"""The name table for kernels: open addressing from a name's bytes to its id.

One table for the known names and for the batch's own, which the scanner adds behind them. A name in a namespace is
hashed and stored as `{uri}local`. When a table has no room for a name, the caller makes it larger. After `MAX_PROBES`
the search gives up and the document goes to the expat reader, so that names made to collide cost a bounded time; a
known name that would need more is not in the table.
"""

import numpy as np

from pathcast.kernels import kernel, part, rare

from .scanner.character_kernels import PADDING, hash_name, same_bytes
from .scanner.layout_kernels import N_FULL, N_MOST, N_NAME_BYTES, N_NAMES

MAX_PROBES = 64
GIVEN_UP = -(2**31)
OPEN_BRACE, CLOSE_BRACE = 123, 125


@part
def find(slots, keys, stored, offsets, first, second, hashed, data, begin, end):
    """The number of a name; -1 - slot when it is not there but could be put at that slot; or GIVEN_UP."""
    mask = len(slots) - 1
    length = end - begin
    slot = np.int64(hashed & np.uint64(mask))
    for _ in range(MAX_PROBES):
        number = np.int64(slots[slot])
        if number < 0:
            return -1 - slot
        if keys[number, 0] == first and keys[number, 1] == second:
            at = offsets[number]
            if offsets[number + 1] - at == length and (length <= 16 or same_bytes(stored, at, data, begin, end)):
                return number
        slot = (slot + 1) & mask
    return np.int64(GIVEN_UP)


@rare
def add_name(slot, first, second, data, begin, end, slots, keys, stored, offsets, counts):
    """Put a name into the table, at the slot where `find` missed it: its number.

    -1 when there is no room for it, or the document has too many names.
    """
    number, used = counts[N_NAMES], counts[N_NAME_BYTES]
    if number >= counts[N_MOST]:
        return np.int64(-1)
    if number + 2 > len(offsets) or used + (end - begin) + PADDING > len(stored):
        counts[N_FULL] = 1
        return np.int64(-1)
    slots[slot] = number
    keys[number, 0] = first
    keys[number, 1] = second
    for p in range(begin, end):
        stored[used] = data[p]
        used += 1
    offsets[number + 1] = used
    counts[N_NAMES] = number + 1
    counts[N_NAME_BYTES] = used
    return number


@kernel("int64(ro_u1[::1], ro_i8[::1], i4[::1], u8[:, ::1])")
def index_names(stored, offsets, slots, keys):
    """Put all names into the table; how many are left out, as they need too many probes."""
    mask = len(slots) - 1
    left_out = 0
    for number in range(len(offsets) - 1):
        first, second, hashed = hash_name(stored, offsets[number], offsets[number + 1])
        keys[number, 0] = first
        keys[number, 1] = second
        slot = np.int64(hashed & np.uint64(mask))
        probes = 0
        while slots[slot] >= 0 and probes < MAX_PROBES:
            slot = (slot + 1) & mask
            probes += 1
        if probes < MAX_PROBES:
            slots[slot] = number
        else:
            left_out += 1
    return left_out
