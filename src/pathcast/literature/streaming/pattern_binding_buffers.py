"""Room for bindings (`pattern_binding_table_kernels.py`), reused from document to document and doubled on demand."""

import numpy as np

from .pattern_binding_table_kernels import B_ROWS, BindingTable

# The parts of a node are bits of a word.
MOST_PARTS = 62
_AT_FIRST = 64


def binding_table(size: int = _AT_FIRST) -> BindingTable:
    """An empty table with this many slots."""
    return BindingTable(
        slots=np.empty(size, dtype=np.int32),
        slot_stamps=np.zeros(size, dtype=np.int64),
        bindings=np.empty((B_ROWS, size), dtype=np.int32),
        parts=np.empty(size, dtype=np.int64),
        counts=np.zeros(1, dtype=np.int64),
    )


def twice_as_large(table: BindingTable) -> BindingTable:
    """An empty table with twice the room."""
    return binding_table(2 * len(table.slots))
