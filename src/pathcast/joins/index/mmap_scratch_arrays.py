"""Scratch: large temporary arrays, whose memory returns to the system at once.

The allocator keeps ordinary freed memory for later, up to some 64 MB plus the gaps between live objects: with a million
subscriptions as much as half of their own memory.
"""

from mmap import mmap
from typing import Any

import numpy as np

from pathcast.kernels import AnyArray

# Mapping memory takes some microseconds, and whole pages.
_LARGE = 1 << 18


def scratch(shape: tuple[int, ...], kind: type[Any]) -> AnyArray:
    """An uninitialised array."""
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    if size < _LARGE:
        return np.empty(shape, kind)
    return np.frombuffer(mmap(-1, size), kind).reshape(shape)
