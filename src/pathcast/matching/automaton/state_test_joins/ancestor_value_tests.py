"""Bound tests: patterns that one element decides, by its label path, its values and those of its ancestors.

A path without branches, with a value test at step j, is decided by the element that its last step finds. The element of
step j is a fixed number of levels above it, if all steps after j are child steps (`up`), or at depth j of the document,
if all steps up to j are (`down`). If this holds for all its tests, the pattern matches exactly the documents with an
element whose label path fits, and whose ancestors at these places pass the tests. Nothing is left to verify.

Any other path without branches is a *chain*: it waits for one of its tests at the end of the path that leads to it, and
is then searched below this element, from its last step upwards.

A test applies to any element that has the value: the place determines which element is meant. Only string-value tests
keep their element's name, if there is one, as testing every string-value takes longer.

A path with an `or` of tests matches where one of its *alternatives* matches: the same path with one operand in place of
the `or`. If one element decides each alternative, one element decides the pattern. A test under `not` has a place like
any other, and the element there must fail it; some other test must be there to wait for.

In any other pattern, a mandatory test is bound to the last step of the path that leads to it. Only documents with an
element that has this path and passes the test can match (`leading_tests`).

Left to the verifier: branches, an `or` with elements or more than MOST_ALTERNATIVES, `not` alone, first nodes of paths,
existence, `!=`, numeric tests of a `*` element's string-value, and paths whose tests have no path that leads to them:
the automaton treats a path that ends with `//*` as one that ends with `/*`.
Invariant: for a pattern with bound tests, `matches ⇔ some element has its path and passes its tests`.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeGuard

from pathcast.documents import Names
from pathcast.patterns import AllOf, AnyOf, Compare, Condition, Node, Not, Pattern
from pathcast.patterns.parsing import PathEncoder, Steps

from ..values.required_value_tests import Demand, demand_of
from ..values.value_test_table_kernels import ANY, SELF_VALUE, TEXT_VALUE
from .waiting_patterns_by_state_kernels import ANYWHERE, DOWN, NEGATED

# The result of `demand_at` for a condition at a step, possibly cached.
Asked = Callable[[int, Condition], Demand | None]
# A path with more alternatives than these is left to the verifier: each takes a row.
MOST_ALTERNATIVES = 8
# A place and a test: `up` levels above the element, or DOWN + depth; and NEGATED for a test under `not`.
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


def alternatives_of(spine: Spine) -> list[Spine]:
    """The paths without `or` of which a document must match one; the path itself if they are too many, or none."""
    if not any(isinstance(test, AnyOf | AllOf | Not) or _is_choice(test) for tests in spine.tests for test in tests):
        return [spine]
    found: list[list[list[Condition]]] = [[]]
    for tests in spine.tests:
        here = _operands(AllOf(tuple(tests)))
        found = [[*before, operand] for before in found for operand in here]
        if not 0 < len(found) <= MOST_ALTERNATIVES:
            return [spine]
    return [Spine(spine.steps, tests) for tests in found]


def _operands(condition: Condition) -> list[list[Condition]]:
    """The lists of conditions without `or` of which one must hold, all of it; at most MOST_ALTERNATIVES + 1."""
    match condition:
        case AnyOf():
            found = [operand for part in condition.conditions for operand in _operands(part)]
        case AllOf():
            found = [[]]
            for part in condition.conditions:
                operands = _operands(part)  # once: parts may be nested deeply
                found = [[*before, *operand] for before in found for operand in operands][: MOST_ALTERNATIVES + 1]
        case Not(AnyOf() as inner):
            found = _operands(AllOf(tuple([Not(part) for part in inner.conditions])))
        case Not(AllOf() as inner):
            found = _operands(AnyOf(tuple([Not(part) for part in inner.conditions])))
        case Not(Not() as inner):
            found = _operands(inner.condition)
        case Not(Node() as inner) if _is_choice(inner):
            found = _operands(Not(AnyOf(tuple([_single(inner, part) for part in _parts(inner)]))))
        case Node() if _is_choice(condition):
            # Some attribute or text node passes one test or another if some passes one, or some passes another.
            found = _operands(AnyOf(tuple([_single(condition, part) for part in _parts(condition)])))
        case _:
            found = [[condition]]
    return found[: MOST_ALTERNATIVES + 1]


def _single(node: Node, test: Condition) -> Node:
    """A node with another condition."""
    return Node(node.axis, node.test, (test,))


def _parts(node: Node) -> tuple[Condition, ...]:
    """The operands of the `or` at a node that is a choice."""
    (choice,) = node.conditions
    return choice.conditions if isinstance(choice, AnyOf) else ()


def _is_choice(condition: Condition) -> bool:
    """Whether a condition is an attribute or a text node with an `or` alone."""
    return (
        isinstance(condition, Node)
        and not condition.is_element
        and len(condition.conditions) == 1
        and isinstance(condition.conditions[0], AnyOf)
    )


def bound_tests(spine: Spine, asked: Asked) -> list[BoundTest]:
    """The tests of a pattern that one element decides; none for any other pattern."""
    found: list[BoundTest] = []
    can_wait = False
    for index, tests in enumerate(spine.tests):
        if tests:
            place = place_of(spine.steps, index)
            for test in tests:
                if isinstance(test, Not):
                    demand, failing = asked(spine.steps[index], test.condition), NEGATED
                else:
                    demand, failing, can_wait = asked(spine.steps[index], test), 0, True
                if place is None or demand is None:
                    return []
                found.append((place + failing, demand))
    return found if can_wait and not ends_anywhere(spine.steps) else []


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
        if test.axis != "/" or test.is_element or len(test.conditions) != 1:
            return None
        place = names.add(test.test[1:]) if test.is_attribute else TEXT_VALUE
        compare = test.conditions[0]
    elif step > 1:
        element = (step >> 1) - 1
    found = demand_of(element, place, compare) if isinstance(compare, Compare) else None
    # No value is beyond infinity, but some value may equal it.
    return None if found is None or math.isinf(found.number) else found
