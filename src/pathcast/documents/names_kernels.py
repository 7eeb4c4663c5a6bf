# mypy: allow-untyped-defs, allow-untyped-calls
"""Name tables for kernels: open addressing from a name's bytes to its id.

Two tables: the known names, shared and only read, and the batch's own, which the scanner fills. A name in a namespace
is hashed and stored as `{uri}local`. After `MAX_PROBES` the search gives up and the document goes to the expat
reader, so that names made to collide cost a bounded time; a known name that would need more is not in the table.
"""

import numpy as np

from ..kernels import kernel, part, rare
from .bytes_kernels import PADDING, hash_name, same_bytes
from .tables_kernels import N_OWN, N_OWN_BYTES

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
def own_name(first, second, hashed, data, begin, end, own_slots, own_keys, own_bytes, own_offsets, counts):
    """The number of a name among the batch's own, given now if it had none; -1 for giving up."""
    found = find(own_slots, own_keys, own_bytes, own_offsets, first, second, hashed, data, begin, end)
    if found >= 0:
        return found
    number, used = counts[N_OWN], counts[N_OWN_BYTES]
    if found == GIVEN_UP or number + 2 >= len(own_offsets) or used + (end - begin) + PADDING > len(own_bytes):
        return -1
    own_slots[-1 - found] = number
    own_keys[number, 0] = first
    own_keys[number, 1] = second
    for p in range(begin, end):
        own_bytes[used] = data[p]
        used += 1
    own_offsets[number + 1] = used
    counts[N_OWN] = number + 1
    counts[N_OWN_BYTES] = used
    return number


@kernel("int64(ro_u1[::1], ro_i8[::1], int64, i4[::1], u8[:, ::1])")
def index_names(stored, offsets, begin, slots, keys):
    """Put the names from number `begin` on into the table; how many are left out, as they need too many probes."""
    mask = len(slots) - 1
    left_out = 0
    for number in range(begin, len(offsets) - 1):
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
