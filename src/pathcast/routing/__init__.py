"""Routing: an overlay of routers that reuse each other's work. See README.md beside this file."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
