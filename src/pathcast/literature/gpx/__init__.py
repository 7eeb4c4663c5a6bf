"""The engines of the GPX-Matcher: XPath expressions as conjunctions of Boolean predicates over document paths."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
