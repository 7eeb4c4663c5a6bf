"""Name tables for kernels: open addressing from a name's bytes to its id.

Two tables: the known names, shared and only read, and the batch's own, which the scanner fills. A name is looked up as
an optional namespace URI and a local part, and stored as `{uri}local`. After `MAX_PROBES` the search gives up and the
document goes to the expat reader, so that names made to collide cost a bounded time.
"""

import numpy as np

from ..kernels import kernel, part
from .bytes_kernels import hash_on, mixed, FNV_START

MAX_PROBES = 64
OPEN_BRACE, CLOSE_BRACE = 123, 125


@part
def same_name(stored, begin, end, uris, uri, uri_end, data, local, local_end):
    """Whether the stored bytes spell this name."""
    length = local_end - local
    if uri < uri_end:
        if end - begin != length + (uri_end - uri) + 2 or stored[begin] != OPEN_BRACE:
            return False
        begin += 1
        for k in range(uri_end - uri):
            if stored[begin + k] != uris[uri + k]:
                return False
        begin += uri_end - uri
        if stored[begin] != CLOSE_BRACE:
            return False
        begin += 1
    elif end - begin != length:
        return False
    for k in range(length):
        if stored[begin + k] != data[local + k]:
            return False
    return True


@part
def find(slots, hashes, stored, offsets, hashed, uris, uri, uri_end, data, local, local_end):
    """The number of a name; -1 - slot when it is not there but could be put at that slot; -2**31 for giving up."""
    mask = len(slots) - 1
    slot = np.int64(mixed(hashed) & np.uint64(mask))
    for _ in range(MAX_PROBES):
        number = slots[slot]
        if number < 0:
            return -1 - slot
        if hashes[number] == hashed and same_name(
            stored, offsets[number], offsets[number + 1], uris, uri, uri_end, data, local, local_end
        ):
            return np.int64(number)
        slot = (slot + 1) & mask
    return np.int64(-(2**31))


@kernel("int64(ro_u1[::1], ro_i8[::1], int64, i4[::1], u8[::1])")
def index_names(stored, offsets, first, slots, hashes):
    """Put the names from number `first` on into the table; -1 when one would need too many probes, else 0."""
    mask = len(slots) - 1
    for number in range(first, len(offsets) - 1):
        hashed = hash_on(stored, offsets[number], offsets[number + 1], FNV_START)
        hashes[number] = hashed
        slot = np.int64(mixed(hashed) & np.uint64(mask))
        probes = 0
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
            probes += 1
            if probes >= MAX_PROBES:
                return -1
        slots[slot] = number
    return 0
