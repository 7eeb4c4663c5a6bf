"""Embedding: whether a tree pattern holds in a document, straight from the definition.

A node of the document is an element, an attribute or a text node; the document itself is the context where everything
starts. Each condition is one recursive rule. Nothing is shared, ordered or indexed: the fast engines are compared with
this module, so it must be evidently right.

Cost: O(|pattern| · |document|²) at worst, thanks to one cached result per demanded node and element.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from pathcast.documents import Document
from pathcast.patterns import (
    TEXT,
    WILDCARD,
    AllOf,
    AnyOf,
    Compare,
    Condition,
    First,
    Node,
    Not,
    Pattern,
    Root,
    StringTest,
    holds,
)


class Place(NamedTuple):
    """A node of the document: `kind` is element, attribute, text or document; `at` is its index in the batch."""

    kind: str
    at: int


DOCUMENT = Place("document", -1)


class Embedding:
    """One document, to be tested against patterns.

    `same_name(a, b)` returns whether the document's name number `a` is the pattern's name `b`.
    """

    def __init__(self, document: Document, same_name: Callable[[int, str], bool]) -> None:
        self.batch = document.batch
        self.elements = range(document.first, document.first + len(document))
        self.same_name = same_name
        self._known: dict[tuple[int, Place], bool] = {}

    def matches(self, pattern: Pattern) -> bool:
        """Whether the document matches the pattern."""
        self._known.clear()
        return pattern.root is None or self.holds(pattern.root, DOCUMENT)

    def holds(self, condition: Condition, place: Place) -> bool:
        """Whether a condition holds at a place."""
        match condition:
            case Node():
                known = self._known.get((id(condition), place))
                if known is None:
                    known = any(self.satisfies(condition, below) for below in self.reached(condition, place))
                    self._known[id(condition), place] = known
                return known
            case Root():
                return self.holds(condition.node, DOCUMENT)
            case Compare() | StringTest():
                return holds(condition, self.value(place))
            case First():
                first = self.first(condition.steps, DOCUMENT if condition.absolute else place)
                return first is not None and holds(condition.test, self.value(first))
            case AllOf():
                return all(self.holds(part, place) for part in condition.conditions)
            case AnyOf():
                return any(self.holds(part, place) for part in condition.conditions)
            case Not():
                return not self.holds(condition.condition, place)

    def satisfies(self, node: Node, place: Place) -> bool:
        return all(self.holds(condition, place) for condition in node.conditions)

    def first(self, steps: tuple[Node, ...], place: Place) -> Place | None:
        """The first node, in document order, that a path reaches."""
        places = {place}
        for step in steps:
            places = {b for p in places for b in self.reached(step, p) if self.satisfies(step, b)}
        return min(places, key=self.order, default=None)

    def order(self, place: Place) -> tuple[int, int]:
        """Document order among nodes of one kind; one step reaches only one kind."""
        return (0, place.at)

    def reached(self, node: Node, place: Place) -> Iterator[Place]:
        """The nodes with the right name on the right axis, whatever their conditions."""
        if place.kind in ("attribute", "text"):
            return
        if node.is_element:
            yield from (Place("element", element) for element in self.below(node, place))
            return
        for holder in self.holders(node, place):
            if node.test == TEXT:
                yield from (Place("text", index) for index in self.texts(holder))
            else:
                yield from (Place("attribute", index) for index in self.attributes(holder, node.test[1:]))

    def below(self, node: Node, place: Place) -> Iterator[int]:
        batch = self.batch
        if place.kind == "document":
            inside, parent = self.elements, -1
        else:
            inside, parent = range(place.at + 1, int(batch.end[place.at])), place.at
        for element in inside:
            below = node.axis == "//" or batch.parent[element] == parent
            if below and (node.test == WILDCARD or self.same_name(int(batch.name[element]), node.test)):
                yield element

    def holders(self, node: Node, place: Place) -> range:
        """The elements whose attributes or text a step selects: for `//`, the place itself and all below."""
        if place.kind == "document":
            return self.elements if node.axis == "//" else range(0)
        return range(place.at, int(self.batch.end[place.at]) if node.axis == "//" else place.at + 1)

    def texts(self, element: int) -> Iterator[int]:
        batch = self.batch
        inside = range(int(batch.text_begin[element]), int(batch.text_end[element]))
        return (index for index in inside if batch.text_parent[index] == element)

    def attributes(self, element: int, name: str) -> Iterator[int]:
        batch = self.batch
        mine = range(int(batch.attribute_begin[element]), int(batch.attribute_begin[element + 1]))
        return (index for index in mine if self.same_name(int(batch.attribute_name[index]), name))

    def value(self, place: Place) -> str:
        """XPath's string-value."""
        batch = self.batch
        match place.kind:
            case "element":
                return batch.string_value(place.at).decode()
            case "attribute":
                return batch.attribute_value(place.at).decode()
            case "text":
                return batch.text_node(place.at).decode()
        return batch.string_value(self.elements.start).decode()
