# mypy: allow-untyped-defs, allow-untyped-calls
"""The wire format of annotations, for kernels.

Numbers are written seven bits per byte, low bits first, the last byte below 128. The reader checks all input.

Last places: for each, the difference of its data pattern from the one before, and its place.

Bits beside others: a bit for each place that is not set in another bit string.
"""

import numpy as np

from pathcast.documents.structure.varint_kernels import put_number
from pathcast.kernels import kernel, part

LONGEST_NUMBER = 5
FINE, CUT, LONG, TWICE, PADDED = range(5)
AT, WHY, STATE = range(3)


@part
def take_number(data, state):
    """Read a number; `state` gets the reason if it is malformed."""
    number, at = np.int64(0), state[AT]
    for k in range(LONGEST_NUMBER):
        if at >= len(data):
            state[WHY] = CUT
            return np.int64(0)
        byte = np.int64(data[at])
        at += 1
        number |= (byte & 127) << (7 * k)
        if byte < 128:
            state[AT] = at
            if k > 0 and byte == 0:
                state[WHY] = PADDED
            return number
    state[WHY] = LONG
    return np.int64(0)


@kernel("int64(ro_i8[::1], ro_i8[::1], u1[::1])", late=True)
def write_last_places(patterns, places, out):
    """Write last places; return the number of bytes. `out` must have `LONGEST_NUMBER` bytes per number."""
    at, before = np.int64(0), np.int64(0)
    for k in range(len(patterns)):
        at = put_number(out, at, patterns[k] - before)
        at = put_number(out, at, places[k])
        before = patterns[k]
    return at


@kernel("void(ro_u1[::1], i8[::1], i8[::1], i8[::1])", late=True)
def read_last_places(data, patterns, places, state):
    """Fill `patterns` and `places`, reading from `state[AT]` on; `state` gets the end, or the reason for a failure."""
    pattern = np.int64(0)
    for k in range(len(patterns)):
        step = take_number(data, state)
        place = take_number(data, state)
        if k > 0 and step == 0 and state[WHY] == FINE:
            state[WHY] = TWICE
        if state[WHY] != FINE:
            return
        pattern += step
        patterns[k], places[k] = pattern, place


@kernel("int64(ro_b1[::1], ro_b1[::1], u1[::1])", late=True)
def pack_beside(holding, failed, out):
    """Write a bit for each place that has not failed into `out`, which is all zero; return the number of bits."""
    count = 0
    for k in range(len(failed)):
        if not failed[k]:
            out[count >> 3] |= np.uint8(holding[k]) << np.uint8(count & 7)
            count += 1
    return count


@kernel("int64(ro_u1[::1], int64, ro_b1[::1], b1[::1])", late=True)
def unpack_beside(packed, bits, failed, holding):
    """Read the bits that `pack_beside` wrote; return the number of places that have not failed, whatever `bits` is."""
    count = 0
    for k in range(len(failed)):
        holding[k] = False
        if not failed[k]:
            if count < bits:
                holding[k] = packed[count >> 3] >> np.uint8(count & 7) & 1
            count += 1
    return count
