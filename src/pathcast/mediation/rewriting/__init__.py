"""Rewriting of element arrays, of label paths, and of subscriptions."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
