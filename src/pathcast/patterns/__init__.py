"""Patterns: XPath subscriptions as tree patterns, printing, and XPath 1.0's comparison of values."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
