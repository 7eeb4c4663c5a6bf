"""Minimisation: a tree pattern without the parts that follow from the others.

`/a[b]/b/c` demands no more than `/a/b/c`. A part can be removed if the pattern without it is still contained in the
pattern with it; the other direction always holds. Parts are tried once each, from the largest to the smallest: a part
that is needed stays needed when others are removed.

Invariant: the same documents match. The result is minimal where containment is complete and the pattern is not huge.
Cost: one containment test per branch, condition and absolute path; none for a plain path, which is minimal, nor for a
pattern of more than `_LARGEST` parts. All tests together take at most `_EFFORT` proof steps.
"""

from collections.abc import Iterator

from .. import normal_form_constructors as normal
from ..tree_pattern import TEXT, WILDCARD, Compare, Condition, First, Node, Pattern, Root, StringTest, conditions_in
from .generalisation_steps import size
from .pattern_containment import MOST_STEPS, Effort, contains

_LARGEST = 256  # most parts of a pattern that is minimised
_EFFORT = 8 * MOST_STEPS


def minimised(pattern: Pattern) -> Pattern:
    """The pattern without superfluous parts."""
    if pattern.expression or pattern.root is None:
        return pattern
    if len(conditions_in(pattern.root)) > _LARGEST or not _may_shrink(pattern.root):
        return pattern
    tried: set[Pattern] = set()
    effort = Effort(_EFFORT)
    while effort.left > 0:
        for smaller in sorted(without_a_part(pattern), key=size):
            if smaller not in tried and contains(pattern, smaller, effort):
                pattern = smaller
                break
            tried.add(smaller)
        else:
            break
    return pattern


def _may_shrink(node: Node) -> bool:
    """Whether a condition might follow from others: only if they have steps with the same test."""
    conditions = node.conditions
    if len(conditions) == 1 and isinstance(conditions[0], (Root, First)):
        return True
    if len(conditions) > 1:
        tests = [_tests(condition) for condition in conditions]
        for index, condition in enumerate(conditions):
            others = set().union(*tests[:index], *tests[index + 1 :])
            if _may_follow(condition, others):
                return True
    return any(isinstance(each, Node) and _may_shrink(each) for each in conditions)


def _may_follow(condition: Condition, others: set[str]) -> bool:
    if isinstance(condition, Node):
        return condition.test in others or (condition.test == WILDCARD and any(map(_is_element, others)))
    return _VALUE in others if isinstance(condition, (Compare, StringTest)) else True


_VALUE = "."


def _tests(condition: Condition) -> set[str]:
    """The tests of all steps of a condition; `.` for a test of the node's own value."""
    found = {each.test for each in conditions_in(condition) if isinstance(each, Node)}
    return found | {_VALUE} if isinstance(condition, (Compare, StringTest)) else found


def _is_element(test: str) -> bool:
    return test[0] not in "@." and test != TEXT


def without_a_part(pattern: Pattern) -> Iterator[Pattern]:
    """The pattern with one mandatory part removed; a whole branch where there are several."""
    if pattern.root is not None:
        for root in _without(pattern.root):
            yield Pattern(root)


def _without(node: Node) -> Iterator[Node]:
    conditions = node.conditions
    for index, condition in enumerate(conditions):
        others = conditions[:index] + conditions[index + 1 :]
        if not isinstance(condition, Node) or others:
            smaller = normal.node(node.axis, node.test, others)
            if isinstance(smaller, Node):
                yield smaller
        if isinstance(condition, Node):
            for below in _without(condition):
                smaller = normal.node(node.axis, node.test, (*others, below))
                if isinstance(smaller, Node):
                    yield smaller
