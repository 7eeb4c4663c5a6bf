"""Bit sets for kernels (`bitset_kernels.py`), created in Python."""

import numpy as np

from .bitset_kernels import Marks


def new_marks(count: int) -> Marks:
    """An empty set for the numbers below `count`, with some spare room: sets are replaced when numbers grow."""
    words = (count >> 6) + 64
    return Marks(np.zeros(words, dtype=np.uint64), np.zeros((words >> 6) + 1, dtype=np.uint64))
