"""Bitsets for kernels (`bitset_kernels.py`), made in Python."""

import numpy as np

from .bitset_kernels import Marks


def new_marks(count: int) -> Marks:
    """An empty set with room for the numbers below `count`, and some more: sets are replaced when numbers grow."""
    words = (count >> 6) + 64
    return Marks(np.zeros(words, dtype=np.uint64), np.zeros((words >> 6) + 1, dtype=np.uint64))
