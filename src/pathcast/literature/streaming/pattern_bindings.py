"""Room for bindings (`pattern_bindings_kernels.py`), kept from document to document and doubled when one needs more."""

import numpy as np

from pathcast.kernels import AnyArray

from .pattern_bindings_kernels import B_ROWS

# The parts of a node are bits of a word.
MOST_PARTS = 62
_AT_FIRST = 64


class Bindings:
    """The arrays of a table of bindings."""

    def __init__(self) -> None:
        self.count = np.zeros(1, dtype=np.int64)
        self._make(_AT_FIRST)

    def _make(self, size: int) -> None:
        self.slots = np.empty(size, dtype=np.int32)
        self.stamps = np.zeros(size, dtype=np.int64)
        self.bindings = np.empty((B_ROWS, size), dtype=np.int32)
        self.parts = np.empty(size, dtype=np.int64)

    def double(self) -> None:
        """Twice the room, empty."""
        self._make(2 * len(self.slots))

    @property
    def arrays(self) -> tuple[AnyArray, ...]:
        """The arrays in the kernels' order."""
        return self.slots, self.stamps, self.bindings, self.parts, self.count
