"""TOML files that users write: keys are declared once; checks (all mistakes, with lines) and documentation follow."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
