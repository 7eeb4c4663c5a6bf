"""Results: from the entries that an engine reports to the ids and subscribers of each document."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
