"""Generalisation by one small change, and the size of a pattern: the steps on which aggregation walks.

Each change gives a pattern that contains the one it came from:

    wildcard    a name becomes `*`               /a/b/c  →  /a/*/c
    descendant  `/` becomes `//`                 /a/b/c  →  /a/b//c
    absorb      a bare `*` before a step goes    /a/*/c  →  /a//c
    drop        a bare last `*`, `@x`, `text()`  /a/b/*  →  /a/b
    leaf        another last step goes           /a/b/c  →  /a/b
    condition   a comparison, `or`, `not`, … goes

Only mandatory positive parts are changed; what stands under `or` and `not()` goes as a whole or stays. Repeated, they
lead from every pattern to `/`, which every document matches.

Invariant: `contains(after, before)` for every change. Cost: a node for each step above the change.
"""

from collections.abc import Iterator
from typing import Literal

from .. import normal_form_constructors as normal
from ..tree_pattern import WILDCARD, Condition, Node, Pattern, conditions_in

Change = Literal["wildcard", "descendant", "absorb", "drop", "leaf", "condition"]


def size(pattern: Pattern) -> int:
    """The number of steps, those in predicates included: what space bounds count."""
    return 0 if pattern.root is None else sum(isinstance(each, Node) for each in conditions_in(pattern.root))


def generalisations(pattern: Pattern) -> Iterator[tuple[int, Change, Pattern]]:
    """All patterns that are one change away: where, what, and the pattern."""
    for place, part in enumerate(parts(pattern)):
        for change in changes(part):
            after = generalised(pattern, place, change)
            if after != pattern:
                yield place, change, after


def parts(pattern: Pattern) -> list[Condition]:
    """What can be changed, by place: the steps that are demanded outright and their other conditions, from the root."""
    found: list[Condition] = []
    waiting: list[Condition] = [] if pattern.root is None else [pattern.root]
    while waiting:
        part = waiting.pop()
        found.append(part)
        if isinstance(part, Node):
            waiting += reversed(part.conditions)
    return found


def changes(part: Condition) -> Iterator[Change]:
    """The changes that a part allows."""
    if not isinstance(part, Node):
        yield "condition"
        return
    conditions = part.conditions
    if part.is_element and part.test != WILDCARD:
        yield "wildcard"
    if part.axis == "/" and (conditions or part.test != WILDCARD):
        yield "descendant"
    if not any(isinstance(condition, Node) for condition in conditions):
        yield "leaf" if conditions or (part.is_element and part.test != WILDCARD) else "drop"
    elif part.test == WILDCARD and len(conditions) == 1 and _is_element(conditions[0]):
        yield "absorb"


def _is_element(condition: Condition) -> bool:
    return isinstance(condition, Node) and condition.is_element


def generalised(pattern: Pattern, place: int, change: Change) -> Pattern:
    """The pattern after one change that the part at `place` allows."""
    assert pattern.root is not None
    way = _way(pattern.root, place)
    part = way[-1][0]
    after = _changed(part, change)
    for node, index in reversed(way[:-1]):
        assert isinstance(node, Node)
        others = node.conditions[:index] + node.conditions[index + 1 :]
        after = normal.node(node.axis, node.test, others if after is None else (*others, after))
    # What matches nothing stays so until the condition that forbids it goes.
    return Pattern(after) if after is None or isinstance(after, Node) else pattern


def _changed(part: Condition, change: Change) -> Condition | None:
    """A part after a change of it; None when it goes."""
    if change in ("drop", "leaf", "condition"):
        return None
    assert isinstance(part, Node)
    if change == "wildcard":
        return normal.node(part.axis, WILDCARD, part.conditions)
    if change == "absorb":
        below = part.conditions[0]
        assert isinstance(below, Node)
        part = below
    return normal.node("//", part.test, part.conditions)


def _way(root: Node, place: int) -> list[tuple[Condition, int]]:
    """The parts from the root down to the one at a place, each with the index of the next among its conditions."""
    way: list[tuple[Condition, int]] = []
    part: Condition = root
    while place:
        assert isinstance(part, Node)
        place -= 1
        for index, condition in enumerate(part.conditions):
            count = _count(condition)
            if place < count:
                way.append((part, index))
                part = condition
                break
            place -= count
    way.append((part, -1))
    return way


def _count(condition: Condition) -> int:
    """How many parts a condition has."""
    if not isinstance(condition, Node):
        return 1
    count, waiting = 0, [condition]
    while waiting:
        node = waiting.pop()
        count += 1
        for below in node.conditions:
            if isinstance(below, Node):
                waiting.append(below)
            else:
                count += 1
    return count
