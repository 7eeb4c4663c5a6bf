"""The broker: publish documents to it over HTTP, subscribe at it, and nothing that it accepted is lost."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
