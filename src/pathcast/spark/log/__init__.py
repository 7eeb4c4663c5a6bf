"""A broker's log as a data source of Spark, `format("pathcast")`, and matching that a broker leaves to Spark."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
