"""Annotations: facts that a router adds to a document to save the next router work."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
