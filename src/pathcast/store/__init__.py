"""Store: compiled indexes on disk, as memory-mapped arrays with a checked manifest."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
