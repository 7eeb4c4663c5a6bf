"""Transmission: topologies, links, and the cost of sending bytes over them. See README.md beside this file."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
