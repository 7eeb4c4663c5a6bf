"""Wildcards of an aggregate and what stood for them in a document: the bindings of positive subscriptions (§3.1.1).

The wildcards of a pattern are numbered from 0, step by step from the root, in the order of the normal form: of each
step first its `//`, then its `*`. Only steps that the pattern demands outright count; what stands under `or` and
`not()` has none.

    //a/*[b]//c/*      0: //a   1: *   2: //c   3: *

A `*` is bound to one label, a `//` to the labels between the two steps, none included (before an attribute or a text
node: the labels down to the element that holds it). Binding some wildcards of a pattern gives a tighter pattern, one
that a document matches if the pattern occurs in it with those labels.

Invariant: `contains(pattern, bound(pattern, …))`, whatever the bindings.
"""

from collections.abc import Mapping
from typing import NamedTuple

from pathcast.patterns import TEXT, WILDCARD, Axis, Condition, Node, Pattern
from pathcast.patterns import node as node_of

Labels = tuple[str, ...]
Bindings = tuple[tuple[int, Labels], ...]
"""Wildcards, ascending, with the labels that stand for them."""


class Segment(NamedTuple):
    """What a wildcard stands for in a tighter pattern: steps, and the axis that leads from the last one on.

    For `*` the one step has no axis of its own.
    """

    steps: tuple[tuple[Axis, str], ...]
    axis: Axis

    @property
    def labels(self) -> Labels | None:
        """The labels, if the segment is made of names and child steps alone."""
        if self.axis == "//" or any(axis == "//" or test == WILDCARD for axis, test in self.steps):
            return None
        return tuple(test for _, test in self.steps)

    @staticmethod
    def of(labels: Labels) -> "Segment":
        """The segment of just these labels."""
        return Segment(tuple(("/", label) for label in labels), "/")


class Wildcards:
    """The steps of a pattern, each with the places of those below it and the numbers of its `//` and `*` (-1: none)."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.nodes: list[Node] = []
        self.below: list[list[int]] = []
        self.descendant: list[int] = []
        self.star: list[int] = []
        self.count = 0
        if pattern.root is not None:
            self._add(pattern.root)

    def take(self, bindings: Bindings) -> bool:
        """Whether bindings can be of these wildcards: labels are names, and a `*` stands for one."""
        return all(
            number < self.count and all(map(_is_name, labels)) and (len(labels) == 1 or number not in self.star)
            for number, labels in bindings
        )

    def _add(self, node: Node) -> int:
        place = len(self.nodes)
        self.nodes.append(node)
        self.below.append([])
        for numbers, is_one in ((self.descendant, node.axis == "//"), (self.star, node.test == WILDCARD)):
            numbers.append(self.count if is_one else -1)
            self.count += is_one
        self.below[place] += [self._add(each) for each in node.conditions if isinstance(each, Node)]
        return place


def _is_name(label: str) -> bool:
    return label not in ("", WILDCARD, TEXT) and label[0] != "@"


def bound(pattern: Pattern, bindings: Bindings) -> Pattern:
    """The pattern with labels in the place of some of its wildcards."""
    return replaced(pattern, {number: Segment.of(labels) for number, labels in bindings})


def replaced(pattern: Pattern, segments: Mapping[int, Segment]) -> Pattern:
    """The pattern with segments in the place of some of its wildcards."""
    if pattern.root is None or not segments:
        return pattern
    made, _ = _replaced(pattern.root, segments, 0)
    return Pattern(made) if isinstance(made, Node) else pattern


def _replaced(node: Node, segments: Mapping[int, Segment], number: int) -> tuple[Condition, int]:
    """The step after replacement, and the number of the next wildcard."""
    leading: Segment | None = None
    if node.axis == "//":
        leading = segments.get(number)
        number += 1
    test = node.test
    if test == WILDCARD:
        star = segments.get(number)
        test = star.steps[0][1] if star is not None else test
        number += 1
    conditions: list[Condition] = []
    for condition in node.conditions:
        if isinstance(condition, Node):
            made, number = _replaced(condition, segments, number)
            conditions.append(made)
        else:
            conditions.append(condition)
    built: Condition = node_of(node.axis if leading is None else leading.axis, test, conditions)
    if leading is not None:
        for axis, label in reversed(leading.steps):
            built = node_of(axis, label, (built,))
    return built, number
