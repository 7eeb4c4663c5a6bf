"""Entries of a file: each element that a path selects as a document of its own, in a stream."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
