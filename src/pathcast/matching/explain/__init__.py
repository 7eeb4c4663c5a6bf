"""Explain: why a document matches a subscription, or what keeps it from matching."""

from .explaining import explain
from .model import Elsewhere, Explanation, Finding, Place

__all__ = ["Elsewhere", "Explanation", "Finding", "Place", "explain"]
