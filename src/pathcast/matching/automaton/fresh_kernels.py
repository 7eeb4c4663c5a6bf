# mypy: allow-untyped-defs, allow-untyped-calls
"""Fresh paths in kernels: some thousand plain paths at once, a bit for each of their steps.

    here  = (above << 1 & CHILD | higher << 1 & DEEP | first steps) & (bits of the element's name | WILD)

where `above` are the steps that end at the parent, `higher` those that end at it or above it. Words lie one after the
other, so a step's bit may be carried into the next word; the first bit of a path takes no carry.
"""

import numpy as np

from ...kernels import lowest_bit, rare
from ..marks_kernels import mark_with_summary

# Rows of the table: steps by their axis, first steps by theirs, last steps, and the names from ROWS on (0: any name).
CHILD, DEEP, FIRST_CHILD, FIRST_DEEP, LAST, WILD, ROWS = range(7)
# Planes of the levels: steps that end at the element, those that end at it or above, and all that ended anywhere.
HERE, HIGHER, SEEN, PLANES = range(4)
ONE = np.uint64(1)
TOP = np.uint64(63)


@rare
def mark_fresh(
    names, depths, symbols, begin, end, table, rows, entries, words, entry_limit, levels, marks, summary,
):  # fmt: skip
    """Mark the entries of the fresh paths that a document matches.

    `rows` gives each symbol's row of the table (0: no path asks for it), `entries` the entry whose path ends at each
    bit. `levels` has a row for each level of the document and one above.
    """
    for word in range(words):
        levels[HERE, 0, word] = 0
        levels[HIGHER, 0, word] = 0
        levels[SEEN, 0, word] = 0
    for element in range(begin, end):
        depth = depths[element]
        symbol = symbols[names[element]]
        row = rows[symbol] if symbol < len(rows) else 0
        if row >= table.shape[0]:
            row = 0  # a path that came later asks for it
        carry, carry_deep = np.uint64(0), np.uint64(0)
        for word in range(words):
            above, higher = levels[HERE, depth - 1, word], levels[HIGHER, depth - 1, word]
            here = (above << ONE | carry) & table[CHILD, word] | (higher << ONE | carry_deep) & table[DEEP, word]
            here |= table[FIRST_DEEP, word]
            if depth == 1:
                here |= table[FIRST_CHILD, word]
            named = table[WILD, word]
            if row:
                named |= table[row, word]
            here &= named
            levels[HERE, depth, word] = here
            levels[HIGHER, depth, word] = higher | here
            levels[SEEN, 0, word] |= here
            carry, carry_deep = above >> TOP, higher >> TOP
    for word in range(words):
        left = levels[SEEN, 0, word] & table[LAST, word]
        while left:
            entry = entries[64 * word + lowest_bit(left)]
            if entry < entry_limit:
                mark_with_summary(marks, summary, entry)
            left &= left - ONE
