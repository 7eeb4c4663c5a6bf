"""Kernels: Python functions over arrays, compiled once, cached on disk."""

from .bits import bit_count, lowest_bit
from .cache import cache_folder
from .compile import apart, kernel, part, rare, word
from .memory_prefetch import prefetch
from .vectors import Bytes, leading

__all__ = [
    "Bytes",
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
