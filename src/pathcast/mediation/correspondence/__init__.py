"""Correspondences: which node of one schema is which node of another, with the evidence for it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
