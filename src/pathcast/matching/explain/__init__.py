"""Explain: why a document matches a subscription, or what keeps it from matching."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
