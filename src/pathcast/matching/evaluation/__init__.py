"""Full evaluation: XPath 1.0 expressions that are more than tree patterns, on the nodes of candidate documents."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
