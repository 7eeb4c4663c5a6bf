"""Wildcards of an aggregate and their labels in a document: the bindings of positive subscriptions (§3.1.1).

The wildcards of a pattern are numbered from 0, step by step from the root, in the order of the normal form: for each
step first its `//`, then its `*`. Only steps that the pattern requires unconditionally count; steps under `or` and
`not()` do not.

    //a/*[b]//c/*      0: //a   1: *   2: //c   3: *

A `*` is bound to one label, a `//` to the labels between the two steps, possibly none (before an attribute or a text
node: the labels down to its element). Binding some wildcards of a pattern gives a tighter pattern, which a document
matches if the pattern occurs in it with those labels.

Invariant: `contains(pattern, bound(pattern, …))` for any bindings.
"""

from collections.abc import Mapping
from typing import NamedTuple

from pathcast.patterns import TEXT, WILDCARD, Axis, Condition, Node, Pattern
from pathcast.patterns import node as node_of

Labels = tuple[str, ...]
Bindings = tuple[tuple[int, Labels], ...]
"""Wildcards, ascending, with their labels."""


class Segment(NamedTuple):
    """The replacement of a wildcard in a tighter pattern: steps, and the axis after the last one.

    For `*` the one step has no axis.
    """

    steps: tuple[tuple[Axis, str], ...]
    axis: Axis

    @property
    def labels(self) -> Labels | None:
        """The labels, if the segment consists of names and child steps alone."""
        if self.axis == "//" or any(axis == "//" or test == WILDCARD for axis, test in self.steps):
            return None
        return tuple(test for _, test in self.steps)

    @staticmethod
    def of(labels: Labels) -> "Segment":
        """The segment of exactly these labels."""
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
        """Whether bindings are valid for these wildcards: labels are names, and a `*` stands for one."""
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
    """The pattern with some of its wildcards replaced by labels."""
    return replaced(pattern, {number: Segment.of(labels) for number, labels in bindings})


def replaced(pattern: Pattern, segments: Mapping[int, Segment]) -> Pattern:
    """The pattern with some of its wildcards replaced by segments."""
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
