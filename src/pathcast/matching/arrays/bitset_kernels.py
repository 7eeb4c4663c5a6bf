# mypy: allow-untyped-defs, allow-untyped-calls
"""Bit sets: numbers as bits, read in ascending order.

Marking removes duplicates and reading sorts, both at a few cycles per number: cheaper than sorting while the bits fit
into the processor's cache.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import UInt64s, Writable, bit_count, lowest_bit, part

ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
SIX, TWELVE, LOW_SIX = np.uint64(6), np.uint64(12), np.uint64(63)


class Marks(NamedTuple):
    """A set of numbers: one bit per number, and in the summary one bit per non-empty word."""

    bits: Writable[UInt64s]
    summary: Writable[UInt64s]


@part
def mark(marks, number):
    """Add a number to the set. (It is unsigned: for a signed index, Numba checks for negative values and counts them
    from the end.)
    """
    place = np.uint64(number)
    marks[place >> SIX] |= ONE << (place & LOW_SIX)


@part
def mark_with_summary(marks, summary, number):
    """As `mark`, and also mark the word in the summary."""
    place = np.uint64(number)
    marks[place >> SIX] |= ONE << (place & LOW_SIX)
    summary[place >> TWELVE] |= ONE << (place >> SIX & LOW_SIX)


@part
def unmark(marks, number):
    """Remove a number from the set; its word may stay marked in a summary."""
    place = np.uint64(number)
    marks[place >> SIX] &= ~(ONE << (place & LOW_SIX))


@part
def is_marked(marks, number):
    """Whether a number is in the set."""
    place = np.uint64(number)
    return marks[place >> SIX] >> (place & LOW_SIX) & ONE != 0


@part
def read_word(bits, base, written, out):
    """Write the positions of a word's bits; up to four bits need no branch that depends on their count.

    Up to four positions beyond the valid ones may be overwritten.
    """
    count = np.uint64(bit_count(bits))
    out[written] = base + np.int32(lowest_bit(bits))
    bits &= bits - ONE
    out[written + ONE] = base + np.int32(lowest_bit(bits))
    bits &= bits - ONE
    out[written + TWO] = base + np.int32(lowest_bit(bits))
    bits &= bits - ONE
    out[written + THREE] = base + np.int32(lowest_bit(bits))
    bits &= bits - ONE
    if bits:
        place = written + FOUR
        while bits:
            out[place] = base + np.int32(lowest_bit(bits))
            bits &= bits - ONE
            place += ONE
    return written + count


@part
def read_marks(marks, out, written):
    """Write all marked numbers, ascending, and clear the marks."""
    place = np.uint64(written)
    for index in range(len(marks)):
        bits = marks[index]
        marks[index] = 0
        place = read_word(bits, np.int32(index * 64), place, out)
    return np.int64(place)


@part
def read_few_marks(marks, summary, out, written):
    """As `read_marks`, using the summary."""
    place = np.uint64(written)
    for index in range(len(summary)):
        words = summary[index]
        if words:
            summary[index] = 0
            while words:
                at = np.uint64(index * 64 + lowest_bit(words))
                words &= words - ONE
                bits = marks[at]
                marks[at] = 0
                place = read_word(bits, np.int32(at << SIX), place, out)
    return np.int64(place)
