"""The reference engine: the plainest correct embedding of a tree pattern into the element arrays."""

from .reference_engine import ReferenceEngine

__all__ = ["ReferenceEngine"]
