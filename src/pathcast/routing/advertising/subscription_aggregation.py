"""Aggregation: many subscriptions as few looser ones, within a space bound (§2 of the piggyback paper).

    S = {/a/b/c, /a/b/d, /a/b/e[x]}   →   S' = {/a/b/*}      with S ⊑ S'

First, patterns that others contain are removed, starting with those whose container is little looser; this matches no
more documents. If that is not enough, rounds of clustering follow: patterns that one small change
(`generalisation_steps.py`) makes equal are a cluster. The clusters that save the most steps for the least loss are
merged until the steps fit the bound; a single pattern may be loosened, too, by dropping a last step. After each round,
patterns that the new ones contain are removed. Last, the least upper bound of few patterns replaces the result of the
changes, if it is tighter and fits.

The paper refers to Chan, Fan, Felber, Garofalakis and Rastogi (VLDB 2002) for the algorithm, which it describes as
partitioning and aggregating each part within a bound on steps; weights of the changes (`pattern_clusters.py`) replace
their estimate of selectivity from sampled documents.

Absolute paths that all patterns require (`paths_required_by_all_patterns.py`) are kept; the rest is aggregated.

Invariant: each pattern is covered by exactly one aggregate, which contains it, so a document that matches a pattern
matches an aggregate. Aggregates are in minimal form. The steps of all aggregates are at most `keep` of the patterns'
steps, with equal patterns counted separately.
Cost: see `pattern_covering.py` and `pattern_clusters.py`; 50,000 plain paths take about 8 s, with branches and values
about 25 s.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Self

import numpy as np

from pathcast.kernels import Int32s
from pathcast.patterns import Pattern
from pathcast.patterns.containment import Change, contains, generalised, minimised, size, upper_bound

from ..table.pattern_covering import covers
from .paths_required_by_all_patterns import Shared, having, shared_by, without
from .pattern_clusters import Cluster, clusters

_WORTH = 0.5
_FEW = 6


@dataclass(frozen=True, slots=True, eq=False)
class Aggregation:
    """`aggregates`, and for each the indices, ascending, of the patterns that it covers."""

    aggregates: list[Pattern]
    covered: list[Int32s]

    @property
    def steps(self) -> int:
        """The number of steps of all aggregates."""
        return sum(map(size, self.aggregates))


def aggregate(patterns: Sequence[Pattern], keep: float = 0.25) -> Aggregation:
    """Aggregates that have at most `keep` (a share, 0 to 1) of the patterns' steps and contain all of them.

    >>> patterns = [pathcast.patterns.parse(text) for text in ("/a/b", "/a/c", "/a/b[d]")]
    >>> [str(pattern) for pattern in pathcast.routing.aggregate(patterns, keep=0.4).aggregates]
    ['/a/*']
    """
    if not 0 <= keep <= 1:
        raise ValueError(f"keep must be from 0 to 1, got {keep}")
    bound = int(keep * sum(map(size, patterns)))
    clusters = Clusters.of(patterns)
    clusters.reduce(bound)
    clusters.tighten(patterns, bound)
    return clusters.aggregation()


class Clusters:
    """Aggregates under construction: each with the indices of the patterns that it covers, and its loss."""

    def __init__(self, patterns: list[Pattern], members: list[list[int]], losses: list[float]) -> None:
        self.patterns, self.members, self.losses = patterns, members, losses

    @classmethod
    def of(cls, patterns: Sequence[Pattern]) -> Self:
        """One aggregate per distinct pattern, in minimal form."""
        equal: dict[Pattern, list[int]] = defaultdict(list)
        for index, pattern in enumerate(patterns):
            equal[pattern].append(index)
        small: dict[Pattern, list[int]] = defaultdict(list)
        for pattern, indices in equal.items():
            small[minimised(pattern)] += indices
        return cls(list(small), list(small.values()), [0.0] * len(small))

    @classmethod
    def joined(cls, patterns: Sequence[Pattern], members: Sequence[list[int]], losses: Sequence[float]) -> Self:
        """Patterns with their members and losses, in minimal form, equal patterns merged."""
        small: dict[Pattern, tuple[list[int], float]] = {}
        for pattern, covered, loss in zip(patterns, members, losses, strict=True):
            least = minimised(pattern)
            before, lost = small.get(least, ([], 0.0))
            small[least] = ([*before, *covered], max(lost, loss))
        return cls(list(small), [each for each, _ in small.values()], [loss for _, loss in small.values()])

    def reduce(self, bound: int) -> None:
        """Remove contained patterns, then merge, until there are at most `bound` steps."""
        shared = shared_by(self.patterns) if self.steps > bound else frozenset()
        if shared and self._reduce_the_rest(shared, bound):
            return
        self.cover(bound)
        while self.steps > bound:
            self.merge(bound)
            self.cover(bound)

    def _reduce_the_rest(self, shared: Shared, bound: int) -> bool:
        """Reduce the patterns without the shared paths; False if the shared paths alone exceed the bound."""
        each = size(having(Pattern(None), shared))
        rest = Clusters.joined([without(pattern, shared) for pattern in self.patterns], self.members, self.losses)
        while rest.steps + each * len(rest.patterns) > bound:
            if not rest.steps:
                return False
            rest.reduce(int(rest.steps * bound / (rest.steps + each * len(rest.patterns))))
        self.patterns = [having(pattern, shared) for pattern in rest.patterns]
        self.members, self.losses = rest.members, rest.losses
        return True

    def tighten(self, patterns: Sequence[Pattern], bound: int) -> None:
        """Replace the results of changes by least upper bounds of few patterns, where the steps allow it.

        Members are indices of `patterns`. Changes drop `@n >= 3` and `@n >= 5`; the least upper bound keeps `>= 3`.
        """
        room = bound - self.steps
        for place, (pattern, loss) in enumerate(zip(self.patterns, self.losses, strict=True)):
            if not loss:
                continue
            covered = list(dict.fromkeys(patterns[member] for member in self.members[place]))
            if len(covered) > _FEW:
                continue
            tighter = reduce(upper_bound, covered)
            more = size(tighter) - size(pattern)
            better = more <= room and tighter != pattern and contains(pattern, tighter)
            if better and all(contains(tighter, each) for each in covered):
                self.patterns[place] = tighter
                room -= more

    @property
    def steps(self) -> int:
        return sum(map(size, self.patterns))

    def cover(self, bound: int) -> None:
        """Remove patterns that others contain, until the steps fit."""
        steps = self.steps
        if steps <= bound or len(self.patterns) < 2:
            return
        found = covers(self.patterns)
        sizes = np.array(list(map(size, self.patterns)), dtype=np.int64)
        widened = found.reach[found.cover] / found.reach
        going = np.flatnonzero(found.cover != np.arange(len(sizes)))
        worth = sizes / ((1 + np.log2(widened)) * np.sqrt(found.reach))  # one with a large reach covers many itself
        going = going[np.argsort(-worth[going], kind="stable")]
        needed = int(np.searchsorted(np.cumsum(sizes[going]), steps - bound)) + 1
        stays = np.ones(len(sizes), dtype=np.bool_)
        stays[going[:needed]] = False
        last = np.arange(len(sizes))
        for index in found.order.tolist():
            if not stays[index]:
                by = last[index] = last[found.cover[index]]
                self.members[by] += self.members[index]
        self._keep(np.flatnonzero(stays).tolist())

    def _keep(self, kept: list[int]) -> None:
        self.patterns = [self.patterns[index] for index in kept]
        self.members = [self.members[index] for index in kept]
        self.losses = [self.losses[index] for index in kept]

    def merge(self, bound: int) -> None:
        """One round: merge clusters, the best first, until the steps fit or no good clusters are left."""
        sizes = list(map(size, self.patterns))
        alive = [True] * len(self.patterns)
        steps = sum(sizes)
        for cluster in clusters(self.patterns, sizes, self.losses):
            if steps <= bound:
                break
            left = [member for member in cluster.members if alive[member[0]]]
            if len(left) < len(cluster.members) and not self._is_worth(cluster, left, sizes):
                continue
            left = _as_many_as_needed(left, sizes, steps - bound + cluster.size)
            looser = generalised(self.patterns[left[0][0]], *left[0][1:])
            left = [member for member in left if generalised(self.patterns[member[0]], *member[1:]) == looser]
            for index, _, _ in left:
                alive[index] = False
                steps -= sizes[index]
            self._add(minimised(looser), [index for index, _, _ in left], cluster.loss)
            steps += size(self.patterns[-1])
        self._keep([index for index in range(len(self.patterns)) if index >= len(alive) or alive[index]])

    @staticmethod
    def _is_worth(cluster: Cluster, left: list[tuple[int, int, Change]], sizes: list[int]) -> bool:
        """Whether a cluster is still worth merging after others have taken some of its members."""
        if len(left) < 2:
            return False
        saved = sum(sizes[index] for index, _, _ in left) - cluster.size
        return saved / (len(left) * cluster.loss) >= cluster.score * _WORTH

    def _add(self, pattern: Pattern, merged: list[int], loss: float) -> None:
        self.patterns.append(pattern)
        self.members.append([member for index in merged for member in self.members[index]])
        self.losses.append(loss)

    def aggregation(self) -> Aggregation:
        order = sorted(range(len(self.patterns)), key=lambda index: min(self.members[index]))
        return Aggregation(
            [self.patterns[index] for index in order],
            [np.array(sorted(self.members[index]), dtype=np.int32) for index in order],
        )


def _as_many_as_needed(
    members: list[tuple[int, int, Change]], sizes: list[int], steps: int
) -> list[tuple[int, int, Change]]:
    """The first members that have at least `steps` steps together; the others may stay as they are."""
    together = np.cumsum([sizes[index] for index, _, _ in members])
    return members[: int(np.searchsorted(together, steps)) + 1]
