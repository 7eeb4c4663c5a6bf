# mypy: allow-untyped-defs, allow-untyped-calls
"""Numbers of few bytes, for kernels: 7 bits per byte, the lowest first; the last byte has no eighth bit.

A reader has its place in `state[AT]`. A number without an end, or beyond `MOST_BITS` bits, sets `state[WRONG]` and
reads as 0, so that the caller checks once after reading several numbers.
"""

import numpy as np

from pathcast.kernels import part

# `state` of a reader: its place, whether a number was wrong, and why a structure was rejected.
AT, WRONG, WHY, S_ROWS = range(4)
MOST_BITS = 42


@part
def put_number(out, at, number):
    """Write a number; return the place after it."""
    while number >= 128:
        out[at] = number & 127 | 128
        number >>= 7
        at += 1
    out[at] = number
    return at + 1


@part
def take_number(data, end, state):
    """Read a number that ends before `end`."""
    at = state[AT]
    if at < end and data[at] < 128:
        state[AT] = at + 1
        return np.int64(data[at])
    number = np.int64(0)
    shift = 0
    while at < end and shift < MOST_BITS:
        byte = np.int64(data[at])
        number |= (byte & 127) << shift
        at += 1
        if byte < 128:
            state[AT] = at
            return number
        shift += 7
    state[WRONG] = 1
    state[AT] = end
    return np.int64(0)


@part
def put_bytes(out, at, source, start, length):
    """Copy bytes; return the place after them."""
    for byte in range(length):
        out[at + byte] = source[start + byte]
    return at + length
