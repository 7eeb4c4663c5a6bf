"""Patterns: XPath subscriptions as tree patterns, printing, and XPath 1.0's comparison of values."""

from .model import Pattern
from .parse import Namespaces, parse

__all__ = ["Namespaces", "Pattern", "parse"]
