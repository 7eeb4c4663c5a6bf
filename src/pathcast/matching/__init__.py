"""Matching: subscriptions, the engines that match documents against them, and the index on disk."""

from .index import open_index
from .matcher import Matcher
from .matches import Matches
from .registry import engines
from .subscriptions import Subscription, Subscriptions

__all__ = ["Matcher", "Matches", "Subscription", "Subscriptions", "engines", "open_index"]
