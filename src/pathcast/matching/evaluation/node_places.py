"""Selected nodes as places in the element arrays, for explanations.

Elements, attributes and texts are in the same order in both, so the number of nodes of a kind before a node is its
index there. Comments, processing instructions and namespace nodes are shown by their element.
"""

from typing import Literal, NamedTuple

from .document_nodes import ATTRIBUTE, ELEMENT, TEXT, DocumentNodes

_KINDS: dict[int, Literal["element", "attribute", "text"]] = {ELEMENT: "element", ATTRIBUTE: "attribute", TEXT: "text"}


class NodePlace(NamedTuple):
    """A node by its kind and its index among the nodes of this kind, with the index of its element."""

    kind: Literal["element", "attribute", "text"]
    at: int
    element: int


class FoundNodes:
    """Nodes that were selected."""

    def __init__(self, nodes: DocumentNodes, found: list[int]) -> None:
        self._nodes = nodes
        self._found = found

    def __len__(self) -> int:
        return len(self._found)

    def value(self, place: int) -> str:
        """The string-value of one of them."""
        return self._nodes.values[self._found[place]] or ""

    def node(self, place: int) -> NodePlace | None:
        """The place of one of them; None for the document, and for what is outside the root element."""
        if place >= len(self._found):
            return None
        nodes, node = self._nodes, self._found[place]
        if nodes.kind[node] not in _KINDS:
            node = nodes.parent[node]
        if node <= 0:
            return None
        kind = nodes.kind[node]
        element = node if kind == ELEMENT else nodes.parent[node]
        return NodePlace(_KINDS[kind], nodes.kind[:node].count(kind), nodes.kind[:element].count(ELEMENT))
