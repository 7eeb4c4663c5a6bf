"""Derived information: advertised with the aggregates, so that the neighbour can make useful annotations (§4).

The downstream router of a link derives it offline from its subscriptions and their aggregation; the part for the
neighbour is small and numbered, and annotations refer to it by number:

    simple     (PS)   the simple aggregates, their numbers of subscriptions, and the wildcards to bind
    counts     (NS)   the number of subscriptions that each aggregate covers
    data       (PD, ND)  data patterns, with the number of subscriptions that contain each

The router keeps the tables of §5, by index of its subscriptions: `covered` (T_agg), `known` (T_sagg), `containing` and
`expiring` (T_pat).

What each annotation asserts, for every document D:

    PS (s, B)    D matches bound(s, B)                 ⇒  D matches every subscription in known(s, B)
    NS s         D does not match aggregate s          ⇒  D matches no subscription in covered(s)
    ND p         data pattern p does not occur in D    ⇒  D matches no subscription in containing(p)
    PD (p, l)    p occurs for the last time in an      ⇒  whether D matches a subscription in expiring(p) is decided
                 element that ends at l                   by what lies before l

Subscriptions change: `ChangingDerived` follows the incremental aggregation (`incremental_aggregation.py`). Data
patterns are chosen again when most subscriptions have changed.

Invariant: numbers keep their meaning within a version; a new version is a new object.
Cost: about 100 µs per subscription, nearly all of it for proofs of simple aggregates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pathcast.kernels import Int32s
from pathcast.patterns import Pattern

from ..advertising.incremental_aggregation import ChangingAggregation
from ..advertising.subscription_aggregation import Aggregation
from ..advertising.subscriptions_by_wildcard_bindings import Simple, SimpleAggregates
from .commonly_required_paths import ChangingData, DataTable, best, data_table
from .wildcard_substitution import Bindings


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of derived information: the numbers of simple aggregates (None: all) and data patterns."""

    simple: int | None = None
    data: int = 512


@dataclass(frozen=True, slots=True, eq=False)
class Derived:
    """The derived information of one router for one neighbour, and the version of its numbers."""

    version: int
    aggregation: Aggregation
    simple: tuple[Simple, ...]
    data: DataTable
    _known: SimpleAggregates

    @property
    def counts(self) -> Int32s:
        """The number of subscriptions that each aggregate covers: the benefit of a negative subscription (§4.3)."""
        return np.array([len(indices) for indices in self.aggregation.covered], dtype=np.int32)

    def known(self, aggregate: int, bindings: Bindings) -> Int32s:
        """The subscriptions, by index, that match a document in which an aggregate occurs with these bindings."""
        return self._known.known(aggregate, bindings)


def derive(
    aggregation: Aggregation, patterns: Sequence[Pattern], *, budget: Budget | None = None, version: int = 1
) -> Derived:
    """The derived information of a router with these subscriptions and this aggregation."""
    budget = budget or Budget()
    known = SimpleAggregates.of(aggregation, patterns)
    simple = tuple(sorted(known.best(budget.simple), key=lambda each: each.aggregate))
    return Derived(version, aggregation, simple, data_table(patterns, budget.data), known)


class ChangingDerived:
    """Derived information for a changing aggregation; aggregates and subscriptions have its numbers."""

    def __init__(self, aggregation: ChangingAggregation, budget: Budget | None = None) -> None:
        self.aggregation = aggregation
        self.budget = budget or Budget()
        self._version = -1
        self._simple = SimpleAggregates()
        self._data = ChangingData(())
        self._patterns: dict[int, Pattern] = {}
        self._moved = 0
        self.follow()

    def follow(self) -> None:
        """Update everything to the current aggregation."""
        aggregation = self.aggregation
        if aggregation.version == self._version:
            return
        changes = aggregation.changes_since(self._version) if self._version >= 0 else None
        if changes is None:
            self._simple = SimpleAggregates()
            touched = set(aggregation.aggregates)
        else:
            for number in changes.gone:
                self._simple.drop(number)
            touched = changes.added.keys() | changes.regrouped
        for number in touched:
            covered = {index: aggregation.patterns[index] for index in aggregation.covered[number]}
            self._simple.follow(number, aggregation.aggregates[number], covered)
        self._follow_data()
        self._version = aggregation.version

    def _follow_data(self) -> None:
        now = self.aggregation.patterns
        gone = [index for index, pattern in self._patterns.items() if now.get(index) is not pattern]
        come = [index for index, pattern in now.items() if self._patterns.get(index) is not pattern]
        self._moved += len(gone) + len(come)
        if 2 * self._moved > len(now):
            self._data = ChangingData(best(now.values(), self.budget.data))
            self._moved, gone, come = 0, [], list(now)
        for index in gone:
            self._data.remove(index)
        for index in come:
            self._data.add(index, now[index])
        self._patterns = dict(now)

    @property
    def simple(self) -> list[Simple]:
        """The simple aggregates that are advertised, by number."""
        return sorted(self._simple.best(self.budget.simple), key=lambda each: each.aggregate)

    @property
    def data(self) -> DataTable:
        """The data patterns, with the subscriptions behind them by number."""
        return self._data.table()

    def known(self, aggregate: int, bindings: Bindings) -> Int32s:
        """The subscriptions, by number, that match a document in which an aggregate occurs with these bindings."""
        return self._simple.known(aggregate, bindings)

    def state(self, aggregate: int) -> list[tuple[Any, list[int]]]:
        """The conditions for matches of an aggregate's subscriptions, to be stored."""
        return self._simple.state(aggregate)
