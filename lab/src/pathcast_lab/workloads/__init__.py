"""Workloads of the papers: course catalogues, tables and standing joins, random schemas, controlled first matches."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
