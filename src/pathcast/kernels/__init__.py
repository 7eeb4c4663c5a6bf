"""Kernels: Python functions over arrays, compiled once, cached on disk; and the types of arrays."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
