# mypy: allow-untyped-defs, allow-untyped-calls
"""Results as the GPX paper collects them: a bit vector with one bit for each query."""

import numpy as np

from pathcast.kernels import kernel

SIX, LOW_SIX, ONE = np.uint64(6), np.uint64(63), np.uint64(1)


@kernel("int64(ro_i8[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], u8[::1])")
def collect_bits(offsets, entries, begin, ids, bits):
    """For each document set the bits of all queries behind its entries, in a vector that is wiped before; how many."""
    found = 0
    for document in range(len(offsets) - 1):
        bits[:] = 0
        for index in range(offsets[document], offsets[document + 1]):
            entry = entries[index]
            for row in range(begin[entry], begin[entry + 1]):
                place = np.uint64(ids[row] - 1)
                bits[place >> SIX] |= ONE << (place & LOW_SIX)
                found += 1
    return found
