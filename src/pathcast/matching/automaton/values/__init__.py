"""Values: access predicates, the index of value tests, and patterns that one element decides."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
