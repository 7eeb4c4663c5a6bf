"""Values: access predicates, the table of value tests, and the gates of patterns with predicates."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
