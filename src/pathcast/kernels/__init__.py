"""Kernels: Python functions over arrays, compiled once, cached on disk."""

from .cache import cache_folder
from .compile import kernel, part

__all__ = ["cache_folder", "kernel", "part"]
