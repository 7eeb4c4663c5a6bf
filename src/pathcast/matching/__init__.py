"""Matching: subscriptions, the engines that match documents against them, and the index on disk."""

from .engine_registry import engines
from .matcher import Matcher
from .results.matches import Matches
from .stored_index import open_index
from .subscriptions.subscriptions import Subscription, Subscriptions

__all__ = ["Matcher", "Matches", "Subscription", "Subscriptions", "engines", "open_index"]
