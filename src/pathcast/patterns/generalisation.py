"""Generalisation by one small change, and the size of a pattern: the steps on which aggregation walks.

Each change gives a pattern that contains the one it came from; all but the last but one are as small as can be:

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

from . import normal
from .model import WILDCARD, Condition, Node, Pattern, conditions_in

Change = Literal["wildcard", "descendant", "absorb", "drop", "leaf", "condition"]


def size(pattern: Pattern) -> int:
    """The number of steps, those in predicates included: what space bounds count."""
    return 0 if pattern.root is None else sum(isinstance(each, Node) for each in conditions_in(pattern.root))


def generalisations(pattern: Pattern) -> Iterator[tuple[Change, Pattern]]:
    """All patterns that are one change away."""
    if pattern.root is not None:
        for change, root in _changed(pattern.root):
            if root != pattern.root:
                yield change, Pattern(root)


def _changed(node: Node) -> Iterator[tuple[Change, Node | None]]:
    """The node after one change, to itself or further down; None when it goes."""
    conditions = node.conditions
    if node.is_element and node.test != WILDCARD:
        yield from _built("wildcard", node, conditions, test=WILDCARD)
    if node.axis == "/":
        yield from _built("descendant", node, conditions, deep=True)
    if not any(isinstance(condition, Node) for condition in conditions):
        yield "leaf" if conditions or (node.is_element and node.test != WILDCARD) else "drop", None
    if node.test == WILDCARD and len(conditions) == 1 and isinstance(conditions[0], Node) and conditions[0].is_element:
        yield from _built("absorb", conditions[0], conditions[0].conditions, deep=True)
    for index, condition in enumerate(conditions):
        others = conditions[:index] + conditions[index + 1 :]
        if isinstance(condition, Node):
            for change, below in _changed(condition):
                yield from _built(change, node, others if below is None else (*others, below))
        else:
            yield from _built("condition", node, others)


def _built(
    change: Change, node: Node, conditions: tuple[Condition, ...], *, test: str | None = None, deep: bool = False
) -> Iterator[tuple[Change, Node]]:
    built = normal.node("//" if deep else node.axis, test or node.test, conditions)
    if isinstance(built, Node):  # else a pattern that matches nothing, however it is changed
        yield change, built
