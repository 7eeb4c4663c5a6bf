"""Content networks: deliver messages to all subscribers whose filters match; send no payload twice over one link."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
