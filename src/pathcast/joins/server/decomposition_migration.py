"""Migration: subscriptions move to other decompositions, and their clients with them (§4 of the select-join paper).

A client's content of a base table is its semijoin with one neighbour, and differs from the semijoin with another. The
message to a subscription that moves has its new forms and the difference of the contents.

Costs are those of the model or of a simulation (`semijoin_decomposition_optimizer.py`). In both cases, subscriptions
move only if the decompositions in use cost clearly more than the best: moving has its own cost, and estimates are
noisy.

Invariant: costs are fixed from one regrouping to the next, so that equal queries share groups.
Cost: O(subscriptions × tables) to compare; for each subscription that moves, its contents twice.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pathcast.messages import Message

from ..query.columnar_subscription_registry import Registry
from ..query.join_subscription import Subscription
from ..query.select_join_query import Query
from ..query.semijoin_decomposition_optimizer import (
    SAMPLED_SUBSCRIPTIONS,
    Option,
    Preferences,
    Statistics,
    choose,
    simulated,
    total,
)
from ..schemes.reserved_message_attributes import FORMS
from ..schemes.row_listing_messages import Listing
from ..schemes.semijoin_group_deltas import IndexMaker
from ..schemes.semijoin_scheme import Choice, SemijoinScheme
from ..schemes.semijoin_templates import subscription_filters, write_forms

ESTIMATES = ("model", "simulation")


@dataclass(frozen=True)
class Regrouping:
    """The subscriptions that moved, and the messages to deliver."""

    subscriptions: list[Subscription]
    messages: list[Message]


class Decompositions:
    """Which neighbour filters which table of each subscription."""

    def __init__(
        self, statistics: Statistics, subscriptions: Registry, index: IndexMaker, preferred: Preferences | None
    ) -> None:
        self._statistics = statistics
        self._subscriptions = subscriptions
        self._index = index
        self._preferred = preferred or {}
        self._costs: Mapping[Option, float] | None = None

    def choose(self, query: Query) -> Choice:
        """The decomposition of a new subscription."""
        if self._costs is None:
            self._costs = self._statistics.costs()
        return self._chosen(query, self._costs)

    def _chosen(self, query: Query, costs: Mapping[Option, float]) -> Choice:
        return choose(query, costs, self._preferred)

    def costs(self, by: str, scheme: SemijoinScheme) -> dict[Option, float]:
        """The cost of every option by current statistics."""
        if by == "model":
            return self._statistics.costs()
        ids = [one.id for one in self._subscriptions.single if one.choice]
        ids += [id for batch in self._subscriptions.batches for id in batch]
        step = max(1, len(ids) // SAMPLED_SUBSCRIPTIONS)
        queries = [(id, self._subscriptions[id].query) for id in ids[::step]]
        return simulated(self._statistics, queries, scheme, self._index)

    def drift(self, costs: Mapping[Option, float]) -> float:
        """The cost of the decompositions in use, as a multiple of the best ones."""
        used = best = 0.0
        for query, choice, count in self._in_use():
            used += count * total([choice], costs)
            best += count * total([self._chosen(query, costs)], costs)
        if best:
            return used / best
        return float("inf") if used else 1.0

    def _in_use(self) -> Iterable[tuple[Query, Choice, int]]:
        """Queries with their decompositions, and how many subscriptions have both."""
        for one in self._subscriptions.single:
            if one.choice:
                yield one.query, one.choice, 1
        for batch in self._subscriptions.batches:
            if batch.choice:
                yield batch.query, batch.choice, len(batch)

    def regroup(self, scheme: SemijoinScheme, by: str, *, force: bool, beyond: float) -> Regrouping:
        """Give every subscription the best decomposition, if the gain is large enough or forced."""
        costs = self.costs(by, scheme)
        regrouping = Regrouping([], [])
        if not force and self.drift(costs) <= beyond:
            return regrouping
        self._costs = costs
        for subscription in self._subscriptions.single:
            if subscription.choice:
                self._move(scheme, [subscription], self._chosen(subscription.query, costs), regrouping)
        for batch in self._subscriptions.batches:
            choice = self._chosen(batch.query, costs)
            self._move(scheme, (self._subscriptions[id] for id in batch), choice, regrouping)
            if choice != batch.choice:
                batch.choice, batch.forms = choice, regrouping.subscriptions[-1].forms
        return regrouping

    @staticmethod
    def _move(scheme: SemijoinScheme, members: Iterable[Subscription], choice: Choice, regrouping: Regrouping) -> None:
        for subscription in members:
            if subscription.choice == choice:
                return
            regrouping.messages.append(move(scheme, subscription, choice))
            regrouping.subscriptions.append(subscription)


def move(scheme: SemijoinScheme, subscription: Subscription, choice: Choice) -> Message:
    """Give a subscription another decomposition; return the message for its client."""
    id, query = subscription.id, subscription.query
    before = {form.base: dict(scheme.content(query, form)) for form in subscription.forms.values()}
    scheme.remove(id, query, subscription.forms.values())
    subscription.choice = choice
    subscription.forms = scheme.add(id, query, choice)
    subscription.filters = subscription_filters(id, query, subscription.forms)
    listing = Listing()
    for form in subscription.forms.values():
        after = dict(scheme.content(query, form))
        had = before[form.base]
        listing.come(form.base, scheme.bags[form.base].columns, [(n, row) for n, row in after.items() if n not in had])
        listing.go(form.base, [number for number in had if number not in after])
    return Message({**listing.message(id), FORMS: write_forms(subscription.forms)})
