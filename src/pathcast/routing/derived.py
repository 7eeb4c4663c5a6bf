"""Derived information: what a router tells a neighbour, besides its aggregates, so that annotations help it (§4).

Made offline, by the downstream router of a link, from its subscriptions and their aggregation; the part for the
neighbour is small and numbered, and annotations refer to it by number:

    simple     (PS)   which aggregates are simple, for how many subscriptions, which of their wildcards to bind
    counts     (NS)   how many subscriptions each aggregate covers
    data       (PD, ND)  data patterns, with how many subscriptions contain each

The part that stays are the tables of §5, by index of the router's subscriptions: `covered` (T_agg), `known` (T_sagg),
`containing` and `expiring` (T_pat).

What each asserts, for every document D that matches or does not match as the annotation says:

    PS (s, B)    D matches bound(s, B)                 ⇒  D matches every subscription in known(s, B)
    NS s         D does not match aggregate s          ⇒  D matches no subscription in covered(s)
    ND p         data pattern p does not occur in D    ⇒  D matches no subscription in containing(p)
    PD (p, l)    p occurs for the last time in an      ⇒  whether D matches a subscription in expiring(p) is decided
                 element that ends at l                   by what lies before l

Invariant: numbers mean the same for as long as the version is the same; a new version is a new object.
Cost: some 100 µs a subscription, nearly all of it proofs for simple aggregates.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..patterns import Pattern
from .aggregation import Aggregation
from .data_patterns import DataTable, data_table
from .simple import Simple, SimpleAggregates
from .wildcards import Bindings

Int32s = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Budget:
    """How much derived information is advertised: simple aggregates (None: all) and data patterns."""

    simple: int | None = None
    data: int = 512


@dataclass(frozen=True, slots=True, eq=False)
class Derived:
    """What is derived from one router's subscriptions for one neighbour, and the version that its numbers belong to."""

    version: int
    aggregation: Aggregation
    simple: tuple[Simple, ...]
    data: DataTable
    _known: SimpleAggregates

    @property
    def counts(self) -> Int32s:
        """The subscriptions that each aggregate covers: the benefit of a negative subscription (§4.3)."""
        return np.array([len(indices) for indices in self.aggregation.covered], dtype=np.int32)

    def known(self, aggregate: int, bindings: Bindings) -> Int32s:
        """The subscriptions, by index, that match a document in which an aggregate occurs with these bindings."""
        return self._known.known(aggregate, bindings)


def derive(
    aggregation: Aggregation, patterns: Sequence[Pattern], *, budget: Budget | None = None, version: int = 1
) -> Derived:
    """What a router with these subscriptions, aggregated so, tells a neighbour and keeps for itself."""
    budget = budget or Budget()
    known = SimpleAggregates(aggregation, patterns)
    simple = tuple(sorted(known.best(budget.simple), key=lambda each: each.aggregate))
    return Derived(version, aggregation, simple, data_table(patterns, budget.data), known)
