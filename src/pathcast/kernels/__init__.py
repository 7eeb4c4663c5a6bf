"""Kernels: Python functions over arrays, compiled once, cached on disk."""

from .arrays import (
    AnyArray,
    Bools,
    Cube,
    Floats,
    Int8s,
    Int32s,
    Int64s,
    Matrix,
    UInt8s,
    UInt32s,
    UInt64s,
    Writable,
)
from .bits import bit_count, lowest_bit
from .cache import cache_folder
from .compile import apart, kernel, part, rare, word
from .memory_prefetch import prefetch
from .vectors import Bytes, leading

__all__ = [
    "AnyArray",
    "Bools",
    "Bytes",
    "Cube",
    "Floats",
    "Int8s",
    "Int32s",
    "Int64s",
    "Matrix",
    "UInt8s",
    "UInt32s",
    "UInt64s",
    "Writable",
    "apart",
    "bit_count",
    "cache_folder",
    "kernel",
    "leading",
    "lowest_bit",
    "part",
    "prefetch",
    "rare",
    "word",
]
