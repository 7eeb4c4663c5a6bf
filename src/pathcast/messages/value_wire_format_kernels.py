# mypy: allow-untyped-defs, allow-untyped-calls
"""The wire format of messages for kernels: numbers, values and skylines of one axis, as `wire_format.py` writes them.

Values are given as sortable keys (`joins/query/order_preserving_key_encoding.py`), with the encoding of their kind: a
tag and a number to subtract from the key. The key of a float is its bits, inverted below zero.

Invariant: the bytes are those of `wire_format.encode`. Whole numbers to be written are less than 2⁶² away from 0, so
that differences fit in a word.
Cost: a few nanoseconds per byte. The caller must reserve `VALUE` bytes per value.
"""

import numpy as np

from pathcast.kernels import part, rare

NULL, WHOLE, WHOLE_FLOAT, FLOAT, STRING, DATE, TIMESTAMP, BYTES, POINTS, SKYLINE = range(10)
SAME_COLUMN, MIXED_COLUMN = 0x7E, 0x7F
# The largest number of bytes of a value, including its tag.
VALUE = 11
_SIGN = np.int64(2**63 - 1)
_EXACT = float(1 << 53)


@part
def put_bytes(out, at, data, begin, end):
    """Copy some bytes; return the place of the next byte."""
    for place in range(begin, end):
        out[at + place - begin] = data[place]
    return at + end - begin


@part
def put_number(out, at, value):
    """Write a number from 0 up (uint64), 7 bits per byte."""
    while value > np.uint64(0x7F):
        out[at] = np.uint8((value & np.uint64(0x7F)) | np.uint64(0x80))
        value >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(value)
    return at + 1


@part
def put_signed(out, at, value):
    """Write a whole number (int64); small numbers of either sign take few bytes."""
    return put_number(out, at, np.uint64((value << np.int64(1)) ^ (value >> np.int64(63))))


@part
def _bits(key):
    """The bits of the float with this key."""
    return key if key >= 0 else key ^ _SIGN


@part
def _tag(key, tag):
    """The tag of a value; whole floats have their own tag."""
    if tag != FLOAT:
        return tag
    value = np.int64(_bits(key)).view(np.float64)
    return WHOLE_FLOAT if abs(value) < _EXACT and np.float64(np.int64(value)) == value else FLOAT


@part
def _integer(key, tag, less):
    """The whole number that stands for a value on the wire."""
    return np.int64(np.int64(_bits(key)).view(np.float64)) if tag == WHOLE_FLOAT else key - less


@rare
def _put_content(out, at, key, tag, less):
    if tag != FLOAT:
        return put_signed(out, at, _integer(key, tag, less))
    bits = np.uint64(_bits(key))
    for place in range(8):
        out[at + place] = np.uint8((bits >> np.uint64(8 * place)) & np.uint64(0xFF))
    return at + 8


@rare
def put_value(out, at, there, key, tag, less):
    """Write the tag and the bytes of a value, or NULL; `tag` is the tag of its kind, `FLOAT` for floats."""
    if not there:
        out[at] = np.uint8(NULL)
        return at + 1
    own = _tag(key, tag)
    out[at] = np.uint8(own)
    return _put_content(out, at + 1, key, own, less)


@rare
def put_column(out, at, keys, count, tag, less):
    """Write a column of points: one tag for all and differences, or a tag per value."""
    own = _tag(keys[0], tag)
    mixed = False
    for place in range(1, count):
        mixed |= _tag(keys[place], tag) != own
    out[at] = np.uint8(MIXED_COLUMN) if mixed else np.uint8(own)
    at += 1
    last = np.int64(0)
    for place in range(count):
        if mixed:
            at = put_value(out, at, True, keys[place], tag, less)
        elif own == FLOAT:
            at = _put_content(out, at, keys[place], own, less)
        else:
            value = _integer(keys[place], own, less)
            at = put_signed(out, at, value - last)
            last = value
    return at
