"""Subscriptions: a query, who asked, and what the network must know of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..messages import Filter, Message
from .forms import Form
from .query import Query


@dataclass(eq=False)
class Subscription:
    """A standing query.

    filters: what is registered with a network; a message is for the subscriber if one of them matches. initial: the
    content at the time of subscribing. forms: for each form of semijoin, by its number, what the client keeps of it.
    signature: set where join results are sent instead.
    """

    id: int
    subscriber: Any
    query: Query
    filters: tuple[Filter, ...]
    initial: Message
    forms: Mapping[int, Form] = field(default_factory=dict)
    signature: int | None = None

    def matches(self, message: Message) -> bool:
        """Whether a network delivers the message to this subscription."""
        return any(one.matches(message) for one in self.filters)
