"""TOML files that users write: keys declared once, checked with all mistakes and their lines, documented from them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
