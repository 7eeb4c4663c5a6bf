"""Incremental aggregation: subscriptions are added and removed, aggregates keep their numbers, versions list changes.

The first subscriptions are aggregated as a whole (`subscription_aggregation.py`). After that

- a removed subscription leaves its aggregate; an aggregate without subscriptions is removed;
- a new subscription joins an aggregate that contains it, found by matching (`pattern_covering.py`), or becomes an
  aggregate itself;
- when the aggregates exceed the allowed steps by `SLACK`, they are merged until they fit;
- when most subscriptions have changed since the last time, all are aggregated as a whole again: only that can make an
  aggregate tighter.

    version 7: /a/b/c joins 3     version 8: 5 and 9 merged, now 31      since 6: 31 new, 5 and 9 gone, 3 regrouped

Invariant: every subscription is covered by one aggregate, which contains it. A number never means two patterns.
Cost: about 100 µs per new subscription, a few per removed one; once in many changes, merging and aggregating as in
`subscription_aggregation.py`.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from pathcast.patterns import Pattern
from pathcast.patterns.containment import size

from ..table.pattern_covering import CoverIndex
from .subscription_aggregation import Aggregation, Clusters

SLACK, MUCH = 0.1, 0.5
_FEW = 64
_REMEMBERED = 256


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of a version: aggregates that are new, that are gone, and that cover other subscriptions."""

    version: int
    added: Mapping[int, Pattern]
    gone: frozenset[int]
    regrouped: frozenset[int]


class ChangingAggregation:
    """Aggregates of changing subscriptions, both by number."""

    def __init__(self, keep: float = 0.25) -> None:
        if not 0 <= keep <= 1:
            raise ValueError(f"keep must be from 0 to 1, got {keep}")
        self.keep = keep
        self.version = 0
        self.patterns: dict[int, Pattern] = {}
        self.aggregates: dict[int, Pattern] = {}
        self.covered: dict[int, set[int]] = {}
        self.aggregate_of: dict[int, int] = {}
        self.original_steps = 0
        self.steps = 0
        self._losses: dict[int, float] = {}
        self._index: CoverIndex | None = None  # made when the first single subscription is added
        self._next = 0
        self._added: set[int] = set()
        self._gone: set[int] = set()
        self._moved = 0  # subscriptions added or removed since all were aggregated
        self._history: deque[Changes] = deque(maxlen=_REMEMBERED)

    def change(
        self, add: Mapping[int, Pattern] | None = None, remove: Iterable[int] = (), *, least: int = 0
    ) -> Changes:
        """Add and remove subscriptions; return the changes as a new version.

        `least`: the aggregates may always have this number of steps, even if `keep` allows fewer.
        """
        gone = list(remove)
        come = dict(add or {})
        unknown = [number for number in gone if number not in self.patterns]
        if unknown:
            raise KeyError(
                f"cannot remove subscription {unknown[0]}: the subscription was never added or has been removed; "
                "give the number of an existing subscription"
            )
        taken = [number for number in come if number in self.patterns and number not in gone]
        if taken:
            raise ValueError(
                f"subscription number {taken[0]} is already in use; choose another, or also list it in remove"
            )
        touched = set[int]()
        self._added, self._gone = set(), set()
        for number in gone:
            touched.add(self._give_up(number))
        self.original_steps += sum(map(size, come.values()))
        self._moved += len(come) + len(gone)
        bound = max(least, int(self.keep * self.original_steps))
        if self._moved > MUCH * (len(self.patterns) + len(come)) + _FEW or not self.patterns:
            self.patterns |= come
            touched |= self._aggregate_all(bound)
        else:
            for number, pattern in come.items():
                touched.add(self._take_up(number, pattern))
            if self.steps > bound * (1 + SLACK) + _FEW:
                touched |= self._merge(bound)
        return self._closed(touched)

    def changes_since(self, version: int) -> Changes | None:
        """All changes after a version; None if the version is too old."""
        later = [changes for changes in self._history if changes.version > version]
        if len(later) != self.version - version:
            return None
        added: dict[int, Pattern] = {}
        gone, regrouped = set[int](), set[int]()
        for changes in later:
            regrouped = (regrouped | changes.regrouped) - changes.gone
            gone |= changes.gone - added.keys()
            added = {number: pattern for number, pattern in added.items() if number not in changes.gone}
            added |= changes.added
        return Changes(self.version, added, frozenset(gone), frozenset(regrouped - added.keys()))

    def aggregation(self) -> tuple[list[int], list[int], Aggregation]:
        """The numbers of aggregates and of subscriptions, both ascending, and the aggregation by their places."""
        numbers, subscriptions = sorted(self.aggregates), sorted(self.patterns)
        ids = np.array(subscriptions, dtype=np.int64)
        covered = [np.searchsorted(ids, sorted(self.covered[number])).astype(np.int32) for number in numbers]
        return numbers, subscriptions, Aggregation([self.aggregates[number] for number in numbers], covered)

    # One subscription.

    def _give_up(self, number: int) -> int:
        """Remove a subscription; return the aggregate that covered it."""
        self.original_steps -= size(self.patterns.pop(number))
        aggregate = self.aggregate_of.pop(number)
        self.covered[aggregate].discard(number)
        if not self.covered[aggregate]:
            self._drop(aggregate)
        return aggregate

    def _take_up(self, number: int, pattern: Pattern) -> int:
        """Add a subscription; return the aggregate that covers it."""
        self.patterns[number] = pattern
        index = self._index = self._index or CoverIndex(self.aggregates)
        aggregate = index.find(pattern)
        if aggregate is None:
            aggregate = self._add(pattern, {number}, 0.0)
            index.add({aggregate: pattern})
            return aggregate
        self.covered[aggregate].add(number)
        self.aggregate_of[number] = aggregate
        return aggregate

    # Aggregates.

    def _add(self, pattern: Pattern, covered: set[int], loss: float, number: int | None = None) -> int:
        """Add an aggregate; with `number`, one that had this number before."""
        if number is None:
            number, self._next = self._next, self._next + 1
            self._added.add(number)
        self.aggregates[number] = pattern
        self.covered[number] = covered
        self.aggregate_of.update(dict.fromkeys(covered, number))
        self._losses[number] = loss
        self.steps += size(pattern)
        return number

    def _drop(self, aggregate: int) -> None:
        self.steps -= size(self.aggregates.pop(aggregate))
        del self.covered[aggregate], self._losses[aggregate]
        if self._index is not None:
            self._index.remove(aggregate)
        self._gone.add(aggregate)

    def _aggregate_all(self, bound: int) -> set[int]:
        """Aggregate all subscriptions as a whole; return the aggregates whose subscriptions have changed."""
        numbers = list(self.patterns)
        patterns = list(self.patterns.values())
        clusters = Clusters.of(patterns)
        clusters.reduce(bound)
        clusters.tighten(patterns, bound)
        self._moved = 0
        return self._take_over(clusters, [{numbers[member] for member in members} for members in clusters.members])

    def _merge(self, bound: int) -> set[int]:
        """Merge aggregates until they fit; return those whose subscriptions have changed."""
        covered = list(self.covered.values())
        single = [[place] for place in range(len(covered))]
        clusters = Clusters(list(self.aggregates.values()), single, list(self._losses.values()))
        clusters.reduce(bound)
        together = [set().union(*(covered[member] for member in members)) for members in clusters.members]
        return self._take_over(clusters, together)

    def _take_over(self, clusters: Clusters, covered: list[set[int]]) -> set[int]:
        """Replace the aggregates by these; aggregates that existed before keep their numbers."""
        before, covered_before = self.aggregates, self.covered
        known = {pattern: number for number, pattern in before.items()}
        self.aggregates, self.covered, self.aggregate_of, self._losses, self.steps = {}, {}, {}, {}, 0
        for pattern, members, loss in zip(clusters.patterns, covered, clusters.losses, strict=True):
            self._add(pattern, members, loss, known.get(pattern))
        left = before.keys() - self.aggregates.keys()
        self._gone |= left
        if 2 * len(before) < len(self.aggregates):
            self._index = None
        elif self._index is not None:
            for number in left:
                self._index.remove(number)
            self._index.add({number: self.aggregates[number] for number in self.aggregates.keys() - before.keys()})
        return {number for number in before.keys() & self.covered if self.covered[number] != covered_before[number]}

    def _closed(self, touched: set[int]) -> Changes:
        """Close the changes as a new version, if there are any."""
        added = {number: self.aggregates[number] for number in sorted(self._added - self._gone)}
        gone = frozenset(self._gone - self._added)
        regrouped = frozenset(touched - self._gone - self._added)
        if added or gone or regrouped:
            self.version += 1
            self._history.append(Changes(self.version, added, gone, regrouped))
            return self._history[-1]
        return Changes(self.version, {}, frozenset(), frozenset())
