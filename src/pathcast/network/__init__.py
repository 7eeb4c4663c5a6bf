"""Content networks: messages to all whose filters match them, and no payload twice over one link."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
