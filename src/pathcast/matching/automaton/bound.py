"""Bound tests: patterns that one element decides, by its label path and by the values of its ancestors and its own.

A path without branches, with a value test at step j, is decided by the element that its last step finds: the element of
step j is so many levels above it, if all steps after j are child steps (`up`), or at depth j of the document, if all
steps up to j are (`down`). When that is so for all its tests, the pattern matches just the documents with an element
whose label path has the path, and whose ancestors at these places pass the tests. Nothing is left to be verified.

Any other path without branches is a *chain*: it waits for one of its tests at the end of the path that leads to it, and
is then looked for below this element, from its last step upwards.

Tests are on any element that has the value: which one is meant follows from the place. Only string-values keep their
element's name, if there is one, as looking at every string-value takes longer.

In any other pattern, a test that it demands outright is bound to the last step of the path that leads to it. Only
documents with an element that has this path and passes the test can match (`leading_tests`).

Left to the verifier: branches, `or`, `not`, first nodes of paths, existence, `!=`, numbers that `*` has for its
string-value, paths of which no test has a path that leads to it: one that ends with `//*` the automaton takes for one
that ends with `/*`.
Invariant: for a pattern with bound tests, `matches ⇔ some element has its path and passes its tests`.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from ...documents import Names
from ...patterns.linear import PathEncoder
from ...patterns.model import WILDCARD, Compare, Condition, Node, Pattern
from .join_kernels import ANYWHERE, DOWN
from .lookup_kernels import ANY, SELF_VALUE, TEXT_VALUE
from .outright import Demand, demand_of

# A place and a test: `up` levels above the element, or DOWN + depth.
BoundTest = tuple[int, Demand]


class Chain(NamedTuple):
    """A chain's tests, each with the path that leads to it, or none if it can't be waited for; and its steps from the
    last to the first, each as -1 - step, with the indices of its tests behind it.
    """

    tests: list[tuple[tuple[Node, ...], Demand]]
    codes: list[int]


def bound_tests(pattern: Pattern, names: Names) -> list[BoundTest]:
    """The tests of a pattern that one element decides; none for any other pattern."""
    spine = _spine(pattern.root)
    if spine is None or ends_anywhere(spine):
        return []
    found: list[BoundTest] = []
    for index, node in enumerate(spine):
        tests = [part for part in node.conditions if not _is_step(part)]
        place = place_of(spine, index) if tests else 0
        demands = [_demand(node, test, names) for test in tests]
        if place is None or None in demands:
            return []
        found += [(place, demand) for demand in demands if demand is not None]
    return found


def chain_of(pattern: Pattern, encoder: PathEncoder) -> Chain | None:
    """A path without branches as a chain; None for any other pattern, or if nothing of it can be waited for."""
    chain = Chain([], [])
    spine = _spine(pattern.root) or []
    for index, node in enumerate(spine):
        demands = [_demand(node, test, encoder.names) for test in node.conditions if not _is_step(test)]
        path = () if ends_anywhere(spine[: index + 1]) else tuple(spine[: index + 1])
        first = len(chain.tests)
        chain.codes[:0] = [-1 - encoder.step(node), *range(first, first + len(demands))]
        chain.tests.extend((path, demand) for demand in demands if demand is not None)
        if None in demands:
            return None
    return chain if any(path for path, _ in chain.tests) else None


def leading_tests(pattern: Pattern, names: Names) -> list[tuple[tuple[Node, ...], Demand]]:
    """The tests that a pattern demands outright, each with the path that leads to its element."""
    found: list[tuple[tuple[Node, ...], Demand]] = []
    root = pattern.root
    waiting: list[tuple[Node, tuple[Node, ...]]] = [(root, (root,))] if root is not None and root.is_element else []
    while waiting:
        node, path = waiting.pop()
        waiting += [(part, (*path, part)) for part in node.conditions if isinstance(part, Node) and part.is_element]
        if not ends_anywhere(path):
            demands = [_demand(node, part, names) for part in node.conditions if not _is_step(part)]
            found += [(path, demand) for demand in demands if demand is not None]
    return found


def _spine(root: Node | None) -> list[Node] | None:
    """The element nodes of a pattern without branches, from the root; None when there are branches."""
    spine: list[Node] = []
    node = root if root is not None and root.is_element else None
    while node is not None:
        spine.append(node)
        below = [part for part in node.conditions if isinstance(part, Node) and part.is_element]
        if len(below) > 1:
            return None
        node = below[0] if below else None
    return spine or None


def _is_step(part: Condition) -> bool:
    return isinstance(part, Node) and part.is_element


def ends_anywhere(spine: Sequence[Node]) -> bool:
    """Whether the path ends with `//*`, or comes to that when each `//` in front of a `*` moves behind it."""
    for node in reversed(spine):
        if node.test != WILDCARD:
            return False
        if node.axis == "//":
            return True
    return False


def place_of(spine: list[Node], index: int) -> int | None:
    """Where the element of a step stands, seen from the one of the last step; None when that is not certain."""
    up, depth = len(spine) - 1 - index, index + 1
    if up < DOWN and all(node.axis == "/" for node in spine[index + 1 :]):
        return up
    if DOWN + depth < ANYWHERE and all(node.axis == "/" for node in spine[: index + 1]):
        return DOWN + depth
    return None


def _demand(node: Node, test: Condition, names: Names) -> Demand | None:
    """A condition on the values of a node as a test that can be looked up and says all; None when there is none."""
    element, place, compare = ANY, SELF_VALUE, test
    if isinstance(test, Node):
        if test.axis != "/" or len(test.conditions) != 1:
            return None
        place = names.add(test.test[1:]) if test.is_attribute else TEXT_VALUE
        compare = test.conditions[0]
    elif node.test != WILDCARD:
        element = names.add(node.test)
    found = demand_of(element, place, compare) if isinstance(compare, Compare) else None
    # Nothing is beyond what is infinite, and equal to it there may be something.
    return None if found is None or math.isinf(found.number) else found
