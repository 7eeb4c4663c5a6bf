"""Bound tests: patterns that one element decides, by its label path, its values and those of its ancestors.

A path without branches, with a value test at step j, is decided by the element that its last step finds. The element of
step j is a fixed number of levels above it, if all steps after j are child steps (`up`), or at depth j of the document,
if all steps up to j are (`down`). If this holds for all its tests, the pattern matches exactly the documents with an
element whose label path fits, and whose ancestors at these places pass the tests. Nothing is left to verify.

Any other path without branches is a *chain*: it waits for one of its tests at the end of the path that leads to it, and
is then searched below this element, from its last step upwards.

A test applies to any element that has the value: the place determines which element is meant. Only string-value tests
keep their element's name, if there is one, as testing every string-value takes longer.

In any other pattern, a mandatory test is bound to the last step of the path that leads to it. Only documents with an
element that has this path and passes the test can match (`leading_tests`).

Left to the verifier: branches, `or`, `not`, first nodes of paths, existence, `!=`, numeric tests of a `*` element's
string-value, and paths whose tests have no path that leads to them: the automaton treats a path that ends with `//*` as
one that ends with `/*`.
Invariant: for a pattern with bound tests, `matches ⇔ some element has its path and passes its tests`.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeGuard

from pathcast.documents import Names
from pathcast.patterns import Compare, Condition, Node, Pattern
from pathcast.patterns.parsing import PathEncoder, Steps

from ..values.required_value_tests import Demand, demand_of
from ..values.value_test_table_kernels import ANY, SELF_VALUE, TEXT_VALUE
from .waiting_patterns_by_state_kernels import ANYWHERE, DOWN

# The result of `demand_at` for a condition at a step, possibly cached.
Asked = Callable[[int, Condition], Demand | None]
# A place and a test: `up` levels above the element, or DOWN + depth.
BoundTest = tuple[int, Demand]


class Spine(NamedTuple):
    """A pattern without branches: its steps, and the value conditions at each."""

    steps: Steps
    tests: list[list[Condition]]


class Chain(NamedTuple):
    """A chain's tests, each with the path that leads to it, or none if it cannot be waited for; and its steps from last
    to first, each as -1 - step, followed by the indices of its tests.
    """

    tests: list[tuple[Steps, Demand]]
    codes: list[int]


def spine_of(pattern: Pattern, encoder: PathEncoder) -> Spine | None:
    """A pattern without branches; None if it has branches, or no element."""
    steps, tests = list[int](), list[list[Condition]]()
    node = pattern.root if pattern.root is not None and pattern.root.is_element else None
    while node is not None:
        below: Node | None = None
        others: list[Condition] = []
        for part in node.conditions:
            if not _is_step(part):
                others.append(part)
            elif below is None:
                below = part
            else:
                return None
        steps.append(encoder.step(node))
        tests.append(others)
        node = below
    return Spine(tuple(steps), tests) if steps else None


def bound_tests(spine: Spine, asked: Asked) -> list[BoundTest]:
    """The tests of a pattern that one element decides; none for any other pattern."""
    found: list[BoundTest] = []
    for index, tests in enumerate(spine.tests):
        if tests:
            place = place_of(spine.steps, index)
            for test in tests:
                demand = asked(spine.steps[index], test)
                if place is None or demand is None:
                    return []
                found.append((place, demand))
    return [] if ends_anywhere(spine.steps) else found


def chain_of(spine: Spine, asked: Asked) -> Chain | None:
    """A path without branches as a chain; None for any other pattern, or if none of its tests can be waited for."""
    chain = Chain([], [])
    for index, (step, tests) in enumerate(zip(*spine, strict=True)):
        demands = [demand for test in tests if (demand := asked(step, test)) is not None]
        if len(demands) < len(tests):
            return None
        path = () if ends_anywhere(spine.steps[: index + 1]) else spine.steps[: index + 1]
        first = len(chain.tests)
        chain.codes[:0] = [-1 - step, *range(first, first + len(demands))]
        chain.tests.extend((path, demand) for demand in demands)
    return chain if any(path for path, _ in chain.tests) else None


def leading_tests(pattern: Pattern, encoder: PathEncoder, asked: Asked) -> list[tuple[Steps, Demand]]:
    """The mandatory tests of a pattern, each with the path that leads to its element."""
    found: list[tuple[Steps, Demand]] = []
    root = pattern.root
    waiting: list[tuple[Node, Steps]] = []
    if root is not None and root.is_element:
        waiting.append((root, (encoder.step(root),)))
    while waiting:
        node, path = waiting.pop()
        anywhere = ends_anywhere(path)
        for part in node.conditions:
            if _is_step(part):
                waiting.append((part, (*path, encoder.step(part))))
            elif not anywhere and (demand := asked(path[-1], part)) is not None:
                found.append((path, demand))
    return found


def _is_step(part: Condition) -> TypeGuard[Node]:
    return isinstance(part, Node) and part.is_element


def ends_anywhere(steps: Sequence[int]) -> bool:
    """Whether the path ends with `//*`, also after each `//` before a `*` has moved after it."""
    for step in reversed(steps):
        if step > 1:
            return False
        if step == 1:
            return True
    return False


def place_of(steps: Steps, index: int) -> int | None:
    """The place of the element of a step, seen from that of the last step; None if it is not fixed."""
    up, depth = len(steps) - 1 - index, index + 1
    if up < DOWN and _are_children(steps[depth:]):
        return up
    if DOWN + depth < ANYWHERE and _are_children(steps[:depth]):
        return DOWN + depth
    return None


def _are_children(steps: Steps) -> bool:
    for step in steps:  # noqa: SIM110 - three times as fast as a generator, for each of millions of branches
        if step & 1:
            return False
    return True


def demand_at(step: int, test: Condition, names: Names) -> Demand | None:
    """A condition on the values of a step as an equivalent test that can be looked up; None if there is none."""
    element, place, compare = ANY, SELF_VALUE, test
    if isinstance(test, Node):
        if test.axis != "/" or len(test.conditions) != 1:
            return None
        place = names.add(test.test[1:]) if test.is_attribute else TEXT_VALUE
        compare = test.conditions[0]
    elif step > 1:
        element = (step >> 1) - 1
    found = demand_of(element, place, compare) if isinstance(compare, Compare) else None
    # No value is beyond infinity, but some value may equal it.
    return None if found is None or math.isinf(found.number) else found
