"""The server with its tables, and the clients that it keeps up to date."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
