"""The Spark session, the Java that it runs on, and its Python workers."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
