"""Patterns: XPath subscriptions as tree patterns, printing, and XPath 1.0's comparison of values."""

from .parsing.parse import Namespaces, parse
from .tree_pattern import Pattern

__all__ = ["Namespaces", "Pattern", "parse"]
