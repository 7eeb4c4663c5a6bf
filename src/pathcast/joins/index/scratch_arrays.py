"""Scratch: large arrays that are needed for a moment, in memory that goes back to the system at once.

What is freed in the ordinary way is kept by the allocator for later, up to some 64 MB and whatever lies between things
that live on: with a million subscriptions as much as half of what they take.
"""

from mmap import mmap
from typing import Any

import numpy as np

from pathcast.kernels import AnyArray

# Mapping memory takes some microseconds, and whole pages.
_LARGE = 1 << 18


def scratch(shape: tuple[int, ...], kind: type[Any]) -> AnyArray:
    """An array with anything in it."""
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    if size < _LARGE:
        return np.empty(shape, kind)
    return np.frombuffer(mmap(-1, size), kind).reshape(shape)
