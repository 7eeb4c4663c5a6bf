"""Axes: the nodes that a step reaches from one node, in the order in which positions count.

Reverse axes (ancestor, preceding, …) are in reverse document order. As in libxml2, `following` and `preceding` of an
attribute or namespace node are those of its element.

Cost: one per node visited, counted in `work`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from .document_nodes import ATTRIBUTE, DOCUMENT, NAMESPACE, DocumentNodes

AxisFunction = Callable[[DocumentNodes, int], Sequence[int]]


def child(nodes: DocumentNodes, node: int) -> Sequence[int]:
    return nodes.children[node]


def descendant(nodes: DocumentNodes, node: int) -> Sequence[int]:
    kind = nodes.kind
    if kind[node] == ATTRIBUTE or kind[node] == NAMESPACE:
        return ()
    return [each for each in range(node + 1, nodes.end[node]) if kind[each] != ATTRIBUTE and kind[each] != NAMESPACE]


def descendant_or_self(nodes: DocumentNodes, node: int) -> Sequence[int]:
    return [node, *descendant(nodes, node)]


def attribute(nodes: DocumentNodes, node: int) -> Sequence[int]:
    kind = nodes.kind
    return [each for each in nodes.attributes(node) if kind[each] == ATTRIBUTE]


def namespace(nodes: DocumentNodes, node: int) -> Sequence[int]:
    kind = nodes.kind
    return [each for each in nodes.attributes(node) if kind[each] == NAMESPACE]


def self_(nodes: DocumentNodes, node: int) -> Sequence[int]:
    return (node,)


def parent(nodes: DocumentNodes, node: int) -> Sequence[int]:
    return (nodes.parent[node],) if node else ()


def ancestor(nodes: DocumentNodes, node: int) -> Sequence[int]:
    found = []
    while node:
        node = nodes.parent[node]
        found.append(node)
    return found


def ancestor_or_self(nodes: DocumentNodes, node: int) -> Sequence[int]:
    return [node, *ancestor(nodes, node)]


def _is_outside(nodes: DocumentNodes, node: int) -> bool:
    return nodes.kind[node] in (ATTRIBUTE, NAMESPACE)


def following(nodes: DocumentNodes, node: int) -> Sequence[int]:
    if _is_outside(nodes, node):
        node = nodes.parent[node]
    kind = nodes.kind
    return [each for each in range(nodes.end[node], len(kind)) if kind[each] != ATTRIBUTE and kind[each] != NAMESPACE]


def preceding(nodes: DocumentNodes, node: int) -> Sequence[int]:
    if _is_outside(nodes, node):
        node = nodes.parent[node]
    kind, end = nodes.kind, nodes.end
    return [
        each
        for each in range(node - 1, 0, -1)
        if end[each] <= node and kind[each] != ATTRIBUTE and kind[each] != NAMESPACE
    ]


def following_sibling(nodes: DocumentNodes, node: int) -> Sequence[int]:
    if nodes.kind[node] == DOCUMENT or _is_outside(nodes, node):
        return ()
    siblings, place = nodes.siblings(node)
    return siblings[place + 1 :]


def preceding_sibling(nodes: DocumentNodes, node: int) -> Sequence[int]:
    if nodes.kind[node] == DOCUMENT or _is_outside(nodes, node):
        return ()
    siblings, place = nodes.siblings(node)
    return siblings[:place][::-1]


AXES: dict[str, AxisFunction] = {
    "child": child,
    "descendant": descendant,
    "descendant-or-self": descendant_or_self,
    "attribute": attribute,
    "self": self_,
    "parent": parent,
    "ancestor": ancestor,
    "ancestor-or-self": ancestor_or_self,
    "following": following,
    "following-sibling": following_sibling,
    "preceding": preceding,
    "preceding-sibling": preceding_sibling,
    "namespace": namespace,
}

REACHES_ONCE = frozenset({"child", "attribute", "self", "namespace"})
"""Axes that reach no node from two different nodes."""

REVERSE = frozenset({"ancestor", "ancestor-or-self", "preceding", "preceding-sibling", "parent"})
KEEPS_ORDER = frozenset({"attribute", "self", "namespace"})
"""Axes that keep document order over nodes in document order."""


def _up(nodes: DocumentNodes, node: int) -> Iterator[int]:
    while node:
        node = nodes.parent[node]
        yield node


def _later_siblings(nodes: DocumentNodes, node: int) -> Iterator[int]:
    if nodes.kind[node] != DOCUMENT and not _is_outside(nodes, node):
        siblings, place = nodes.siblings(node)
        for at in range(place + 1, len(siblings)):
            yield siblings[at]


def _earlier_siblings(nodes: DocumentNodes, node: int) -> Iterator[int]:
    if nodes.kind[node] != DOCUMENT and not _is_outside(nodes, node):
        siblings, place = nodes.siblings(node)
        for at in range(place - 1, -1, -1):
            yield siblings[at]


def _below(nodes: DocumentNodes, node: int) -> Iterator[int]:
    kind = nodes.kind
    if kind[node] != ATTRIBUTE and kind[node] != NAMESPACE:
        for each in range(node + 1, nodes.end[node]):
            if kind[each] != ATTRIBUTE and kind[each] != NAMESPACE:
                yield each


def _after(nodes: DocumentNodes, node: int) -> Iterator[int]:
    kind = nodes.kind
    start = nodes.parent[node] if _is_outside(nodes, node) else node
    for each in range(nodes.end[start], len(kind)):
        if kind[each] != ATTRIBUTE and kind[each] != NAMESPACE:
            yield each


def _before(nodes: DocumentNodes, node: int) -> Iterator[int]:
    kind, end = nodes.kind, nodes.end
    start = nodes.parent[node] if _is_outside(nodes, node) else node
    for each in range(start - 1, 0, -1):
        if end[each] <= start and kind[each] != ATTRIBUTE and kind[each] != NAMESPACE:
            yield each


WALKS: dict[str, Callable[[DocumentNodes, int], Iterable[int]]] = {
    **AXES,
    "ancestor": _up,
    "descendant": _below,
    "following-sibling": _later_siblings,
    "preceding-sibling": _earlier_siblings,
    "following": _after,
    "preceding": _before,
}
"""The same axes, one node after the other, for callers that may stop early."""
