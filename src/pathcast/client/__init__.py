"""Clients of a broker: publish, subscribe, and receive, from Python."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
