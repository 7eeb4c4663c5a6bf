"""Explain: why a document matches a subscription, or what keeps it from matching."""

from .explain_match import explain
from .explanation import Elsewhere, Explanation, Finding, Place

__all__ = ["Elsewhere", "Explanation", "Finding", "Place", "explain"]
