# mypy: allow-untyped-defs, allow-untyped-calls
"""Marks: a set of numbers as bits, read off in ascending order.

Marking removes duplicates and reading sorts, both at a few cycles a number: cheaper than any sorting while the bits fit
into the processor's cache.
"""

import numpy as np

from ..kernels import bit_count, lowest_bit, part


@part
def read_word(bits, base, written, out):
    """Write the places of the bits of one word; usually there are at most four, and then no branch depends on it."""
    count = bit_count(bits)
    for k in range(4):
        out[written + k] = base + lowest_bit(bits)
        bits &= bits - np.uint64(1)
    place = written + 4
    while bits:
        out[place] = base + lowest_bit(bits)
        bits &= bits - np.uint64(1)
        place += 1
    return written + count


@part
def read_marks(marks, out, written):
    """All marked entries, ascending; the marks are wiped."""
    for index in range(len(marks)):
        bits = marks[index]
        if bits:
            marks[index] = 0
            written = read_word(bits, index * 64, written, out)
    return written


@part
def read_few_marks(marks, summary, out, written):
    """As `read_marks`, by way of the summary."""
    for index in range(len(summary)):
        words = summary[index]
        if words:
            summary[index] = 0
            while words:
                at = index * 64 + lowest_bit(words)
                words &= words - np.uint64(1)
                bits = marks[at]
                marks[at] = 0
                written = read_word(bits, at * 64, written, out)
    return written
