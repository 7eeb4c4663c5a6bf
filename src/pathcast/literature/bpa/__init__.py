"""The BPA engine: predicates on the positions of tags in document paths, and chains of their occurrences."""

from .engine import BPAEngine

__all__ = ["BPAEngine"]
