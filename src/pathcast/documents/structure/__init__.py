"""The structure of documents as bytes: one encoding, for links with a dictionary and for documents on their own."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
