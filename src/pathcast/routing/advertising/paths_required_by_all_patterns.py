"""Absolute paths that all subscriptions require: every aggregate requires them, too.

A predicate with an absolute path, `/news/body[//test]`, is about the whole document and not about its step. If all
subscriptions of a collection require the same absolute path, aggregation must not drop it to save a step: it is removed
from all patterns, these are aggregated, and it is added to every aggregate.

Invariant: a pattern from which the shared paths are removed, and to which they are added again, matches the same
documents.
Cost: one visit of each mandatory node.
"""

from collections.abc import Iterator, Sequence

from pathcast.patterns import Condition, Node, Pattern, Root, node

Shared = frozenset[Root]


def shared_by(patterns: Sequence[Pattern]) -> Shared:
    """The absolute paths that all of these patterns require, at least one pattern in a predicate."""
    found: Shared | None = None
    predicates: set[Root] = set()
    for pattern in patterns:
        here = frozenset(_demanded(pattern))
        predicates |= here - {Root(pattern.root)} if pattern.root is not None else here
        found = here if found is None else found & here
        if not found:
            break
    return (found or frozenset()) & predicates


def without(pattern: Pattern, shared: Shared) -> Pattern:
    """The pattern without the shared paths; a pattern that requires nothing else has no steps left."""
    if pattern.root is None or not shared:
        return pattern
    return Pattern(None if Root(pattern.root) in shared else _cleared(pattern.root, shared))


def having(pattern: Pattern, shared: Shared) -> Pattern:
    """The pattern with the shared paths added."""
    if not shared:
        return pattern
    if pattern.root is None:
        first, *others = sorted(shared, key=repr)
        root = node(first.node.axis, first.node.test, (*first.node.conditions, *others))
    else:
        root = node(pattern.root.axis, pattern.root.test, (*pattern.root.conditions, *sorted(shared, key=repr)))
    return Pattern(root) if isinstance(root, Node) else pattern  # a pattern that never matches requires everything


def _demanded(pattern: Pattern) -> Iterator[Root]:
    """The absolute paths that must hold in every case; the pattern itself is one."""
    if pattern.root is None:
        return
    if isinstance(node(pattern.root.axis, pattern.root.test, pattern.root.conditions), Node):
        yield Root(pattern.root)
    waiting: list[Condition] = [pattern.root]
    while waiting:
        condition = waiting.pop()
        if isinstance(condition, Root):
            yield condition
        elif isinstance(condition, Node):
            waiting += condition.conditions


def _cleared(below: Node, shared: Shared) -> Node:
    conditions: list[Condition] = []
    for condition in below.conditions:
        if isinstance(condition, Node):
            conditions.append(_cleared(condition, shared))
        elif condition not in shared:
            conditions.append(condition)
    found = node(below.axis, below.test, conditions)
    return found if isinstance(found, Node) else below
