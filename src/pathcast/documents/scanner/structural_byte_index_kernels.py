# mypy: allow-untyped-defs, allow-untyped-calls
"""Structural bytes: the places that a reader of plain markup has to visit, found 64 bytes at a time.

Inside a tag, from its `<` to the first `>`, every byte that cannot be part of a name is structural, the `>` included.
Outside, in text, only `<` and the bytes that do not stand for themselves are: `&`, `]`, control characters and all that
is not ASCII. So only a name, or nothing, lies between two neighbours inside a tag, and only plain text between a `>`
and a `<` that follows it.

This is the first stage of simdjson (Langdale, Lemire: Parsing Gigabytes of JSON per Second, VLDB Journal 2019), with
the inside of tags in place of the inside of strings. A processor that compresses vectors writes the places of 64 bytes
in half of the time (`set_bit_positions.py`). Tried and dropped: entries for fewer bytes (no opening quotes and no `/`
of end tags), and writing places in groups of 16 or 24; neither was faster.

Invariant: an index begins in text. All markup ends with `>`, so an index is in text again after any markup. Where `>`
occurs in a value, the rest of that tag counts as text: its closing quote is missing, and the tag is not plain.
Cost: 0.08 ns per byte of documents where every fourth byte is structural, half of it for the classes of bytes; 0.16 ns
without compression.
"""

from typing import Any

import numpy as np

from pathcast.kernels import (
    BEYOND,
    Bytes,
    apart,
    bit_count,
    can_compress,
    compress_positions,
    lowest_bit,
    matching,
    part,
    set_item,
)

from .character_kernels import EQUALS, GT, LT, PADDING, in_names, in_text

# An index covers this many bytes of a document, a multiple of 64.
WINDOW = 4096
# Entries after the last place of an index that may be read; they lead to the padding.
AHEAD = 8
# Without compression, places are written in groups of this many.
_GROUP = 8
ROOM = WINDOW + AHEAD + BEYOND
# Places are 32 bits wide: data with more bytes have no index.
_MOST_DATA = 1 << 31
_BLOCK = 64
_NONE, _ONE, _TOP = np.uint64(0), np.uint64(1), np.uint64(63)


@matching
def tag_openings(b: Bytes) -> Any:
    """`<`."""
    return b.equal(LT)


@matching
def tag_closings(b: Bytes) -> Any:
    """`>`."""
    return b.equal(GT)


@matching
def equals_signs(b: Bytes) -> Any:
    """`=`."""
    return b.equal(EQUALS)


name_places, plain_text_places = matching(in_names), matching(in_text)


@part
def write_places(places, count, bits, block):
    """Write the place of each set bit of a block; return how many places there are now."""
    most = count + bit_count(bits)
    while count < most:
        for entry in range(count, count + _GROUP):
            set_item(places, entry, block + lowest_bit(bits))
            bits &= bits - _ONE
        count += _GROUP
    return most


@apart
def index_structure(data, begin, end, places):
    """Write the structural places from `begin`, which is in text, to `end` or to the window's end; how many."""
    count, inside = np.int64(0), _NONE
    last = len(data) - _BLOCK
    if 0 <= last < _MOST_DATA:
        for block in range(begin, min(end, begin + WINDOW), _BLOCK):
            # The last bytes of the data have no 64 bytes after them: they are in the upper bits of an earlier block.
            start = min(block, last)
            moved = np.uint64(block - start)
            openings = tag_openings(data, start) >> moved
            closings = tag_closings(data, start) >> moved
            # The sum carries each opening over the bits that are set, as far as the next closing.
            between = ~closings
            total = between + openings + (inside >> _TOP)
            inside = between & ~total | openings
            bits = inside & ~(name_places(data, start) >> moved) | closings & total
            bits |= ~(inside | plain_text_places(data, start) >> moved)
            if end - block < _BLOCK:
                bits &= (_ONE << np.uint64(end - block)) - _ONE
            if can_compress():
                count = compress_positions(places, count, bits, block)
            else:
                count = write_places(places, count, bits, block)
    for entry in range(count, count + AHEAD):
        set_item(places, entry, len(data) - PADDING)
    return count
