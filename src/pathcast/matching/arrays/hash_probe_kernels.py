# mypy: allow-untyped-defs, allow-untyped-calls
"""Hash tables with open addressing: the search that they share.

A table is an array of slots, a power of two of them; a slot holds the number of a row, or -1 if it is free. Rows are
never removed. The caller hashes the key and knows how to compare it with a row.

Invariant: at least one slot is free, otherwise a search for a missing key would not end.
Cost: none beside a loop written by hand: the comparison is a `part` and stands in the loop itself.
"""

import numpy as np

from pathcast.kernels import part


@part
def probe(slots, slot, is_same, key, table):
    """The row that is the same as `key`, and its slot; or -1 and the free slot where it belongs.

    `slot` is where the search begins. `is_same(row, key, table)` compares. The slot is read once per step, so that
    another thread may fill free slots meanwhile: the row that is returned is the row that was compared.
    """
    mask = len(slots) - 1
    while True:
        row = np.int64(slots[slot])
        if row < 0 or is_same(row, key, table):
            return row, slot
        slot = (slot + 1) & mask
