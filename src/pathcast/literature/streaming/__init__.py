"""Shared parts of the literature's streaming engines: start and end tags as events, bindings, value tests."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
