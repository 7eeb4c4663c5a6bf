"""Simple aggregated subscriptions: aggregates that become a subscription when their wildcards are bound (§2, §4.1).

An aggregate is simple for a subscription that it covers when putting segments of the subscription in the place of its
wildcards gives a pattern that implies the subscription. Then a router that knows what the wildcards stood for in a
document knows that the subscription matches, and can forward the document without reading it.

    aggregate  /a/*//d     subscription /a/b/c/d    * is b, // is c         simple
                           subscription /a/b//e/d   * is b, // ends with e  simple, to be compared label by label
                           subscription /a/b[x]/d                           not: nothing tells of x
                           subscription /a/b/d[@n = 5]                      not: nothing tells of the value

What is advertised of it is a `Simple`: how many subscriptions there are, and which wildcards have to be bound for one
of them at least. What stays is the table of their bindings (T_sagg of §5).

Invariant (PS): if a document matches the aggregate with these bindings, it matches every subscription that `known`
gives for them. That is proved for every entry of the table, by containment, when it is made, values included: a
condition of the subscription must be one of the aggregate's own.
Cost: a few proofs for each subscription once; afterwards a hash look-up for each set of wildcards that matter together.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from ..patterns import Pattern
from ..patterns.containment import contains
from ..patterns.model import WILDCARD, Axis, Node, conditions_in
from .aggregation import Aggregation
from .wildcards import Bindings, Segment, Wildcards, bound, replaced

Int32s = npt.NDArray[np.int32]
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
        """§4.1: the subscriptions that it may match for each label that its bindings have, or would have."""
        return self.count / max(1, labels)


class SimpleAggregates:
    """All simple aggregates of an aggregation, and which subscriptions their bindings tell to match."""

    def __init__(self, aggregation: Aggregation, patterns: Sequence[Pattern]) -> None:
        self.simple: list[Simple] = []
        self._tables: dict[int, _Table] = {}
        for number, (aggregate, covered) in enumerate(zip(aggregation.aggregates, aggregation.covered, strict=True)):
            table = _Table(aggregate, covered.tolist(), patterns)
            if table.count:
                self.simple.append(Simple(number, table.count, table.wildcards))
                self._tables[number] = table

    def best(self, most: int | None) -> list[Simple]:
        """The most beneficial ones, by the number of wildcards that they need bound; all without a bound."""
        ranked = sorted(self.simple, key=lambda each: (-each.benefit(len(each.wildcards)), each.aggregate))
        return ranked if most is None else ranked[:most]

    def known(self, aggregate: int, bindings: Bindings) -> Int32s:
        """The subscriptions, by index and ascending, that match where an aggregate matches with these bindings."""
        table = self._tables.get(aggregate)
        return _NOTHING if table is None else table.known(bindings)


class _Table:
    """The subscriptions of one aggregate by the bindings that they need."""

    def __init__(self, aggregate: Pattern, covered: list[int], patterns: Sequence[Pattern]) -> None:
        self.aggregate = aggregate
        self.count = 0
        self._exact: dict[Bindings, list[int]] = defaultdict(list)
        self._compared: list[tuple[Pattern, list[int]]] = []
        self._remembered: dict[Bindings, Int32s] = {}
        needed: set[int] = set()
        wildcards = Wildcards(aggregate)
        conditions = _conditions(aggregate)
        equal: dict[Pattern, list[int]] = defaultdict(list)
        for index in covered:
            equal[patterns[index]].append(index)
        for pattern, indices in equal.items():
            segments = _substitution(wildcards, conditions, pattern)
            if segments is None:
                continue
            self.count += len(indices)
            needed |= segments.keys()
            labels = {number: segment.labels for number, segment in segments.items()}
            if all(each is not None for each in labels.values()):
                key = tuple((number, each) for number, each in sorted(labels.items()) if each is not None)
                self._exact[key] += indices
            else:
                self._compared.append((pattern, indices))
        self.wildcards = tuple(sorted(needed))
        self._sets = sorted({tuple(number for number, _ in key) for key in self._exact})

    def known(self, bindings: Bindings) -> Int32s:
        found = self._remembered.get(bindings)
        if found is None:
            if len(self._remembered) >= MOST_REMEMBERED:
                self._remembered.clear()
            found = self._remembered[bindings] = self._look_up(bindings)
        return found

    def _look_up(self, bindings: Bindings) -> Int32s:
        labels = dict(bindings)
        found: list[int] = []
        for numbers in self._sets:
            if all(number in labels for number in numbers):
                found += self._exact.get(tuple((number, labels[number]) for number in numbers), ())
        if self._compared:
            tighter = bound(self.aggregate, bindings)
            for pattern, indices in self._compared:
                if contains(pattern, tighter):
                    found += indices
        return np.array(sorted(found), dtype=np.int32)


def _conditions(pattern: Pattern) -> tuple[int, set[object]]:
    """The number of a pattern's ends, and its conditions that are no steps."""
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
    """What to put in the place of which wildcards so that the aggregate implies the pattern; None: nothing will do."""
    if pattern == wildcards.pattern:
        return {}
    ends, others = _conditions(pattern)
    if ends > conditions[0] or not others <= conditions[1] or pattern.root is None:
        return None  # a branch or a condition of which the aggregate does not tell
    for segments in embeddings(wildcards, pattern):
        if contains(pattern, replaced(wildcards.pattern, segments)):
            return segments
    return None


def embeddings(wildcards: Wildcards, pattern: Pattern) -> Iterator[dict[int, Segment]]:
    """Ways to lay the aggregate over the pattern, as what its wildcards come to lie on; a few of them."""
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
    """All ways to map steps to steps; `todo` has places in the aggregate, each with what may lie below its parent's."""
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
    """The steps on which a step may come to lie, each with the way to it."""
    for target in below:
        steps = [*above, (target.axis, target.test)]
        fits = node.test == target.test or (node.test == WILDCARD and target.is_element)
        if fits and (node.axis == "//" or target.axis == "/"):
            yield target, steps
        if node.axis == "//" and target.is_element:
            yield from _targets(node, _children(target), steps)


def _children(node: Node) -> list[Node]:
    return [each for each in node.conditions if isinstance(each, Node)]
