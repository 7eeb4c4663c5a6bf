"""A broker's log: the kinds of its records, and the state that they add up to, for the broker and all other readers."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
