"""Subscriptions: a query, its subscriber, and the filters that a network needs."""

from collections.abc import Callable, Mapping
from typing import Any

from pathcast.messages import Filter, Message

from ..schemes.semijoin_templates import Form
from .join_graph_schema import Edge
from .select_join_query import Query


class Subscription:
    """A standing query.

    filters: registered with the network; a message is for the subscriber if one of them matches. forms: the forms of
    semijoins that the client keeps, by number. signature: set where join results are sent instead. choice: the edge
    that filters each table.
    """

    def __init__(
        self,
        id: int,
        subscriber: Any,
        query: Query,
        filters: tuple[Filter, ...],
        initial: Message | Callable[[], Message],
        forms: Mapping[int, Form] | None = None,
        signature: int | None = None,
        choice: Mapping[str, Edge | None] | None = None,
    ) -> None:
        self.id = id
        self.subscriber = subscriber
        self.query = query
        self.filters = filters
        self.forms: Mapping[int, Form] = forms or {}
        self.signature = signature
        self.choice = choice
        self._initial = initial

    @property
    def initial(self) -> Message:
        """The content at the time of subscribing; for a member of a batch, at the time of the first call."""
        return self.take_initial()

    def take_initial(self) -> Message:
        """Fix the initial content as it is now, unless it is fixed already."""
        if not isinstance(self._initial, Message):
            self._initial = self._initial()
        return self._initial

    def matches(self, message: Message) -> bool:
        """Whether a network delivers the message to this subscription."""
        return any(one.matches(message) for one in self.filters)

    def __repr__(self) -> str:
        return f"Subscription({self.id}, {self.subscriber!r}, {self.query.text!r})"
