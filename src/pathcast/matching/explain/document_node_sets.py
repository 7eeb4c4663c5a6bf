"""The nodes of one document as sets: nodes by name, and nodes reached by an axis.

A set is one kind of node and ascending indices into the element arrays, so that an axis is a few array operations for
all nodes at once, and never a walk down the document. The document itself, where every pattern starts, is `None` in
place of a set of contexts.

Cost: linear in the document per operation (times a logarithm for `//`), whatever its depth.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from pathcast.documents import DocumentBatch, local_part
from pathcast.kernels import Bools, Int32s, Int64s
from pathcast.patterns import TEXT, WILDCARD, Axis

Kind = Literal["element", "attribute", "text"]
Mask = Bools


@dataclass(frozen=True, slots=True, eq=False)
class NodeSet:
    """Nodes of one kind by their indices, ascending: document order."""

    kind: Kind
    at: Int32s

    def __len__(self) -> int:
        return len(self.at)

    @staticmethod
    def one(kind: Kind, at: int) -> "NodeSet":
        """The set of one node."""
        return NodeSet(kind, np.array([at], dtype=np.int32))

    def where(self, mask: Mask) -> "NodeSet":
        """The nodes selected by the mask."""
        return self if mask.all() else NodeSet(self.kind, self.at[mask])

    def only(self, index: int) -> "NodeSet":
        """The set of the one node at an index."""
        return NodeSet(self.kind, self.at[index : index + 1])


Contexts = NodeSet | None
"""Where a step starts: nodes, or the document."""


class DocumentNodes:
    """The nodes of a document that is alone in its batch."""

    def __init__(self, batch: DocumentBatch, *, ignore_namespaces: bool) -> None:
        self.batch = batch
        self.ignore_namespaces = ignore_namespaces

    def count(self, kind: Kind) -> int:
        """The number of nodes of a kind."""
        batch = self.batch
        columns = {"element": batch.name, "attribute": batch.attribute_name, "text": batch.text_length}
        return len(columns[kind])

    def all(self, kind: Kind) -> NodeSet:
        """All nodes of a kind."""
        return NodeSet(kind, np.arange(self.count(kind), dtype=np.int32))

    # Names.

    @cached_property
    def numbers(self) -> dict[str, list[int]]:
        """The numbers of each name that occurs, as patterns spell it."""
        found: dict[str, list[int]] = {}
        for number in np.unique(np.concatenate([self.batch.name, self.batch.attribute_name])).tolist():
            found.setdefault(self.label(number), []).append(number)
        return found

    def label(self, number: int) -> str:
        """The name with a number; its local part if namespaces are ignored."""
        name = self.batch.name_of(number)
        return local_part(name) if self.ignore_namespaces else name

    def named(self, test: str) -> NodeSet:
        """All nodes that pass a name test."""
        if test == TEXT:
            return self.all("text")
        if test == WILDCARD:
            return self.all("element")
        kind, column = kind_of(test), self.batch.attribute_name if test[0] == "@" else self.batch.name
        numbers = self.numbers.get(test.removeprefix("@"), [])
        found = np.isin(column, numbers) if len(numbers) != 1 else column == numbers[0]
        return NodeSet(kind, np.flatnonzero(found).astype(np.int32))

    # Axes.

    def owner(self, nodes: NodeSet) -> Int32s:
        """The element that holds each node: -1 for the root element."""
        batch = self.batch
        if nodes.kind == "element":
            return batch.parent[nodes.at]
        if nodes.kind == "text":
            return batch.text_parent[nodes.at]
        return (np.searchsorted(batch.attribute_begin, nodes.at, side="right") - 1).astype(np.int32)

    def reached(self, axis: Axis, contexts: Contexts, nodes: NodeSet) -> Mask:
        """Which of the nodes a step reaches from some context."""
        owner = self.owner(nodes)
        if contexts is None:
            return owner == -1 if axis == "/" else np.ones(len(nodes), dtype=np.bool_)
        if contexts.kind != "element":
            return np.zeros(len(nodes), dtype=np.bool_)
        if axis == "/":
            return self._marked(contexts.at)[owner]
        # An attribute or text node is below its owner and below the owner's ancestors.
        strict = nodes.kind == "element"
        at = nodes.at if strict else owner
        before = np.searchsorted(contexts.at, at, side="left" if strict else "right")
        ends = np.concatenate([np.zeros(1, dtype=np.int32), np.maximum.accumulate(self.batch.end[contexts.at])])
        return np.asarray(ends[before] > at)

    def has(self, axis: Axis, contexts: NodeSet, nodes: NodeSet) -> Mask:
        """Which of the contexts reach one of the nodes."""
        if contexts.kind != "element":
            return np.zeros(len(contexts), dtype=np.bool_)
        if axis == "/":
            owner = self.owner(nodes)
            return self._marked(owner[owner >= 0])[contexts.at]
        begin, end = self.inside(nodes.kind, contexts.at)
        return np.searchsorted(nodes.at, begin) < np.searchsorted(nodes.at, end)

    def inside(self, kind: Kind, elements: Int32s) -> tuple[Int32s, Int32s]:
        """The range of nodes of a kind inside each element."""
        batch = self.batch
        if kind == "element":
            return elements + np.int32(1), batch.end[elements]
        if kind == "text":
            return batch.text_begin[elements], batch.text_end[elements]
        return batch.attribute_begin[elements], batch.attribute_begin[batch.end[elements]]

    def _marked(self, elements: Int32s) -> Mask:
        """A mask over all elements, with one more place for the document, which is never marked."""
        mask = np.zeros(len(self.batch.name) + 1, dtype=np.bool_)
        mask[elements] = True
        return mask

    # First nodes.

    def lowest(self, axis: Axis, nodes: NodeSet, values: Int64s) -> Int64s:
        """For each element the least value of the nodes that a step reaches from it, `NOTHING` if there is none."""
        least = np.full(len(self.batch.name), NOTHING, dtype=np.int64)
        owner = self.owner(nodes)
        if axis == "/":
            below = owner >= 0
            np.minimum.at(least, owner[below], values[below])
            return least
        np.minimum.at(least, nodes.at if nodes.kind == "element" else owner, values)
        for level in reversed(self.levels):  # from the deepest: an element takes the values of its children
            np.minimum.at(least, self.batch.parent[level], least[level])
        if nodes.kind != "element":
            return least
        strictly = np.full(len(least), NOTHING, dtype=np.int64)
        np.minimum.at(strictly, self.batch.parent[1:], least[1:])
        return strictly

    @cached_property
    def levels(self) -> list[Int32s]:
        """The elements of each depth below the root element."""
        depth = self.batch.depth
        order = np.argsort(depth, kind="stable").astype(np.int32)
        edges = np.flatnonzero(np.diff(depth[order])) + 1
        return np.split(order, edges)[1:]


NOTHING = np.iinfo(np.int64).max


def kind_of(test: str) -> Kind:
    """The kind of node that a test selects."""
    return "attribute" if test[0] == "@" else "text" if test == TEXT else "element"
