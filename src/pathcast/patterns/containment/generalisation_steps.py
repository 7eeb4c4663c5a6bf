"""Generalisation by one small change, and the size of a pattern: the steps that aggregation takes.

Each change yields a pattern that contains the original:

    wildcard    a name becomes `*`                      /a/b/c  →  /a/*/c
    descendant  `/` becomes `//`                        /a/b/c  →  /a/b//c
    absorb      remove a bare `*` before a step         /a/*/c  →  /a//c
    drop        remove a bare last `*`, `@x`, `text()`  /a/b/*  →  /a/b
    leaf        remove another last step                /a/b/c  →  /a/b
    condition   remove a comparison, `or`, `not`, …

Only mandatory positive parts are changed; a part under `or` or `not()` is removed as a whole or stays. Repeated changes
lead from every pattern to `/`, which every document matches.

Invariant: `contains(after, before)` for every change. Cost: one new node per step above the change.
"""

from collections.abc import Iterator
from typing import Literal

from .. import normal_form_constructors as normal
from ..tree_pattern import WILDCARD, Condition, Node, Pattern, conditions_in

Change = Literal["wildcard", "descendant", "absorb", "drop", "leaf", "condition"]


def size(pattern: Pattern) -> int:
    """The number of steps, including those in predicates; space bounds count these."""
    return 0 if pattern.root is None else sum(isinstance(each, Node) for each in conditions_in(pattern.root))


def generalisations(pattern: Pattern) -> Iterator[tuple[int, Change, Pattern]]:
    """All patterns that are one change away: (place, change, pattern)."""
    for place, part in enumerate(parts(pattern)):
        for change in changes(part):
            after = generalised(pattern, place, change)
            if after != pattern:
                yield place, change, after


def parts(pattern: Pattern) -> list[Condition]:
    """The parts that can be changed, by place: mandatory steps and their other conditions, from the root."""
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
    # A pattern that matches nothing stays so until the contradictory condition is removed.
    return Pattern(after) if after is None or isinstance(after, Node) else pattern


def _changed(part: Condition, change: Change) -> Condition | None:
    """A part after a change; None if the change removes it."""
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
    """The parts from the root down to the part at `place`, each with the index of the next among its conditions."""
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
    """The number of parts of a condition."""
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
