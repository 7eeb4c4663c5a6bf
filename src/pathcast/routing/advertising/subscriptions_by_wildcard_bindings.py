"""Simple aggregated subscriptions: aggregates that become a subscription when their wildcards are bound (§2, §4.1).

An aggregate is simple for a subscription that it covers if replacing its wildcards by segments of the subscription
gives a pattern that implies the subscription. Then a router that knows the bindings of the wildcards in a document
knows that the subscription matches, and can forward the document without reading it.

    aggregate  /a/*//d     subscription /a/b/c/d    * is b, // is c         simple
                           subscription /a/b//e/d   * is b, // ends with e  simple, to be compared label by label
                           subscription /a/b[x]/d                           not simple: x is unknown
                           subscription /a/b/d[@n = 5]                      not simple: the value is unknown

A `Simple` is advertised: the number of these subscriptions, and the wildcards that at least one of them needs bound.
The router keeps the table of their bindings (T_sagg of §5).

Invariant (PS): if a document matches the aggregate with these bindings, it matches every subscription that `known`
returns for them. Containment proves this for every entry of the table when the entry is made, including values: a
condition of the subscription must be a condition of the aggregate.
Cost: a few proofs per subscription once; afterwards a hash look-up for each set of wildcards that matter together.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Self

import numpy as np

from pathcast.kernels import Int32s
from pathcast.patterns import WILDCARD, Axis, Node, Pattern, conditions_in
from pathcast.patterns.containment import contains

from ..annotations.document_annotations import is_short
from ..annotations.wildcard_substitution import Bindings, Segment, Wildcards, bound, replaced
from .subscription_aggregation import Aggregation

_NOTHING = np.zeros(0, dtype=np.int32)
MOST_EMBEDDINGS = 8
MOST_REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class Simple:
    """An aggregate, by number, that is simple for `count` subscriptions when the `wildcards` are bound."""

    aggregate: int
    count: int
    wildcards: tuple[int, ...]

    def benefit(self, labels: int) -> float:
        """§4.1: the subscriptions that it may match per label of its bindings."""
        return self.count / max(1, labels)


class SimpleAggregates:
    """All simple aggregates, by number, and the subscriptions, by number, that match for given bindings."""

    def __init__(self) -> None:
        self._tables: dict[int, _Table] = {}

    @classmethod
    def of(cls, aggregation: Aggregation, patterns: Sequence[Pattern]) -> Self:
        """The simple aggregates of an aggregation, numbered by place."""
        made = cls()
        for number, (aggregate, covered) in enumerate(zip(aggregation.aggregates, aggregation.covered, strict=True)):
            made.follow(number, aggregate, {index: patterns[index] for index in covered.tolist()})
        return made

    def follow(self, number: int, aggregate: Pattern, covered: Mapping[int, Pattern]) -> None:
        """Set the subscriptions that an aggregate, new or unchanged, covers."""
        table = self._tables.get(number)
        if table is None:
            table = self._tables[number] = _Table(aggregate)
        table.follow(covered)

    def drop(self, number: int) -> None:
        """Remove an aggregate."""
        self._tables.pop(number, None)

    @property
    def simple(self) -> list[Simple]:
        """The aggregates that are simple, by number."""
        return [
            Simple(number, table.count, table.wildcards)
            for number, table in sorted(self._tables.items())
            if table.count
        ]

    def best(self, most: int | None) -> list[Simple]:
        """The most beneficial simple aggregates, by the number of wildcards that they need bound; None: all."""
        ranked = sorted(self.simple, key=lambda each: (-each.benefit(len(each.wildcards)), each.aggregate))
        return ranked if most is None else ranked[:most]

    def known(self, aggregate: int, bindings: Bindings) -> Int32s:
        """The subscriptions, ascending by number, that match if an aggregate matches with these bindings."""
        table = self._tables.get(aggregate)
        return _NOTHING if table is None else table.known(bindings)

    def state(self, aggregate: int) -> list[tuple[Any, list[int]]]:
        """The subscriptions of an aggregate by the condition for a match, for `StoredSimple`."""
        table = self._tables.get(aggregate)
        return [] if table is None else table.state()


States = Mapping[int, Sequence[tuple[Any, Sequence[int]]]]
"""By aggregate its subscriptions and the conditions for a match."""


class StoredSimple:
    """Simple aggregates from stored tables (`SimpleAggregates.state`); each is built on demand."""

    def __init__(
        self,
        states: Callable[[], States],
        aggregates: Sequence[Pattern],
        read: Callable[[str], Pattern],
    ) -> None:
        """`states` is called on first use."""
        self._read_states, self._aggregates, self._read = states, aggregates, read
        self._tables: dict[int, _Table] = {}

    @cached_property
    def _states(self) -> States:
        return self._read_states()

    def known(self, aggregate: int, bindings: Bindings) -> Int32s:
        """As `SimpleAggregates.known`."""
        if aggregate not in self._states:
            return _NOTHING
        if aggregate not in self._tables:
            state = self._states[aggregate]
            self._tables[aggregate] = _Table.restored(self._aggregates[aggregate], state, self._read)
        return self._tables[aggregate].known(bindings)


_Need = Bindings | Pattern | None
"""The condition for a match of a pattern: certain labels, a comparison with the bound aggregate, or none."""


class _Table:
    """The subscriptions of one aggregate by the bindings that they need."""

    def __init__(self, aggregate: Pattern) -> None:
        self.aggregate = aggregate
        self._wildcards = Wildcards(aggregate)
        self._conditions = _conditions(aggregate)
        self._patterns: dict[int, Pattern] = {}
        self._needs: dict[Pattern, tuple[_Need, tuple[int, ...]]] = {}
        self._equal: Counter[Pattern] = Counter()
        self._behind: dict[Bindings | Pattern, set[int]] = {}
        self._numbers: Counter[int] = Counter()  # wildcard → number of subscriptions that need it
        self._sets: Counter[tuple[int, ...]] = Counter()  # set of wildcards → number of keys with exactly these
        self._remembered: dict[Bindings, Int32s] = {}

    @classmethod
    def restored(
        cls, aggregate: Pattern, state: Sequence[tuple[Any, Sequence[int]]], read: Callable[[str], Pattern]
    ) -> Self:
        """The table from its `state`, for look-ups."""
        table = cls(aggregate)
        for written, subscriptions in state:
            if isinstance(written, str):
                table._behind[read(written)] = set(subscriptions)
            else:
                need = tuple((number, tuple(labels)) for number, labels in written)
                table._behind[need] = set(subscriptions)
                table._sets[tuple(number for number, _ in need)] += 1
        return table

    def state(self) -> list[tuple[Any, list[int]]]:
        """The subscriptions behind each need; patterns as text."""
        return [
            (str(need) if isinstance(need, Pattern) else need, sorted(behind)) for need, behind in self._behind.items()
        ]

    @property
    def count(self) -> int:
        """The number of subscriptions that the aggregate is simple for."""
        return sum(map(len, self._behind.values()))

    @property
    def wildcards(self) -> tuple[int, ...]:
        """The wildcards that at least one of them needs bound."""
        return tuple(sorted(number for number, count in self._numbers.items() if count))

    def follow(self, covered: Mapping[int, Pattern]) -> None:
        gone = [index for index, pattern in self._patterns.items() if covered.get(index) != pattern]
        come = [index for index, pattern in covered.items() if self._patterns.get(index) != pattern]
        for index in gone:
            self._remove(index)
        for index in come:
            self._add(index, covered[index])
        if gone or come:
            self._remembered.clear()

    def _add(self, index: int, pattern: Pattern) -> None:
        self._patterns[index] = pattern
        if pattern not in self._needs:
            self._needs[pattern] = self._need(pattern)
        self._equal[pattern] += 1
        need, numbers = self._needs[pattern]
        if need is None:
            return
        if need not in self._behind:
            self._behind[need] = set()
            if isinstance(need, tuple):
                self._sets[numbers] += 1
        self._behind[need].add(index)
        self._numbers.update(numbers)

    def _remove(self, index: int) -> None:
        pattern = self._patterns.pop(index)
        need, numbers = self._needs[pattern]
        self._equal[pattern] -= 1
        if not self._equal[pattern]:
            del self._equal[pattern], self._needs[pattern]
        if need is None:
            return
        self._behind[need].discard(index)
        self._numbers.subtract(numbers)
        if not self._behind[need]:
            del self._behind[need]
            if isinstance(need, tuple):
                self._sets[numbers] -= 1

    def _need(self, pattern: Pattern) -> tuple[_Need, tuple[int, ...]]:
        """The condition for a match of a pattern, and the wildcards that must be bound for it."""
        segments = _substitution(self._wildcards, self._conditions, pattern)
        if segments is None:
            return None, ()
        numbers = tuple(sorted(segments))
        labels = [(number, segments[number].labels) for number in numbers]
        exact = tuple((number, each) for number, each in labels if each is not None)
        return exact if len(exact) == len(numbers) else pattern, numbers

    def known(self, bindings: Bindings) -> Int32s:
        found = self._remembered.get(bindings)
        if found is None:
            found = self._look_up(bindings)
            if is_short(bindings):
                if len(self._remembered) >= MOST_REMEMBERED:
                    self._remembered.clear()
                self._remembered[bindings] = found
        return found

    def _look_up(self, bindings: Bindings) -> Int32s:
        if not self._wildcards.take(bindings):  # a neighbour may send anything
            return np.zeros(0, dtype=np.int32)
        labels = dict(bindings)
        found: list[int] = []
        for numbers, count in self._sets.items():
            if count and all(number in labels for number in numbers):
                found += self._behind.get(tuple((number, labels[number]) for number in numbers), ())
        tighter: Pattern | None = None
        for need, indices in self._behind.items():
            if isinstance(need, Pattern):
                tighter = tighter or bound(self.aggregate, bindings)
                if contains(need, tighter):
                    found += indices
        return np.array(sorted(found), dtype=np.int32)


def _conditions(pattern: Pattern) -> tuple[int, set[object]]:
    """The number of a pattern's leaves, and its conditions that are not steps."""
    if pattern.root is None:
        return 0, set()
    ends, others = 0, set[object]()
    for each in conditions_in(pattern.root):
        if isinstance(each, Node):
            ends += not any(isinstance(below, Node) for below in each.conditions)
        else:
            others.add(each)
    return ends, others


def _substitution(
    wildcards: Wildcards, conditions: tuple[int, set[object]], pattern: Pattern
) -> dict[int, Segment] | None:
    """The segments for wildcards with which the aggregate implies the pattern; None if there are none."""
    if pattern == wildcards.pattern:
        return {}
    ends, others = _conditions(pattern)
    if ends > conditions[0] or not others <= conditions[1] or pattern.root is None:
        return None  # a branch or a condition that the aggregate lacks
    for segments in embeddings(wildcards, pattern):
        if contains(pattern, replaced(wildcards.pattern, segments)):
            return segments
    return None


def embeddings(wildcards: Wildcards, pattern: Pattern) -> Iterator[dict[int, Segment]]:
    """Some embeddings of the aggregate in the pattern, as the segments of its wildcards."""
    if not wildcards.nodes or pattern.root is None:
        return
    for ways in islice(_laid(wildcards, [(0, [pattern.root])], {}), MOST_EMBEDDINGS):
        segments: dict[int, Segment] = {}
        for place, (steps, axis) in ways.items():
            if wildcards.star[place] >= 0 and steps[-1][1] != WILDCARD:
                segments[wildcards.star[place]] = Segment((("/", steps[-1][1]),), "/")
            if wildcards.descendant[place] >= 0 and (len(steps) > 1 or axis == "/"):
                segments[wildcards.descendant[place]] = Segment(tuple(steps[:-1]), axis)
        yield segments


_Way = tuple[list[tuple[Axis, str]], Axis]


def _laid(wildcards: Wildcards, todo: list[tuple[int, list[Node]]], done: dict[int, _Way]) -> Iterator[dict[int, _Way]]:
    """All mappings of steps to steps; `todo` has places in the aggregate, each with its candidate steps."""
    if not todo:
        yield done
        return
    (place, below), *rest = todo
    for target, steps in _targets(wildcards.nodes[place], below, []):
        inner = [(each, _children(target)) for each in wildcards.below[place]]
        yield from _laid(wildcards, [*inner, *rest], {**done, place: (steps, target.axis)})


def _targets(
    node: Node, below: Iterable[Node], above: list[tuple[Axis, str]]
) -> Iterator[tuple[Node, list[tuple[Axis, str]]]]:
    """The steps that a step can map to, each with the path to it."""
    for target in below:
        steps = [*above, (target.axis, target.test)]
        fits = node.test == target.test or (node.test == WILDCARD and target.is_element)
        if fits and (node.axis == "//" or target.axis == "/"):
            yield target, steps
        if node.axis == "//" and target.is_element:
            yield from _targets(node, _children(target), steps)


def _children(node: Node) -> list[Node]:
    return [each for each in node.conditions if isinstance(each, Node)]
