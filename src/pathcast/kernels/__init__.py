"""Kernels: Python functions over arrays, compiled once, cached on disk."""

from .cache import cache_folder
from .compile import kernel, part, rare, word
from .vectors import Bytes, leading

__all__ = ["Bytes", "cache_folder", "kernel", "leading", "part", "rare", "word"]
