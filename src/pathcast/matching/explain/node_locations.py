"""Locations: the path, line and column of the few nodes that an explanation shows.

A path gives the position of an element among its siblings of the same name if it has any: `/news/body[2]/p[3]`. Lines
and columns are counted as in errors: from 1, columns in characters.

Cost: one pass over the document for the lines of all nodes together; one sort of its elements for the positions.
"""

import codecs
from collections.abc import Iterable
from functools import cached_property

import numpy as np

from pathcast.documents import Document
from pathcast.kernels import Int64s

from .document_node_sets import DocumentNodes, NodeSet
from .step_and_condition_text import Spelling

_DEEPEST = 64
_PIECE = 1 << 20


class Locations:
    """The locations of a document's nodes."""

    def __init__(self, document: Document, nodes: DocumentNodes, spelling: Spelling) -> None:
        self.document = document
        self.nodes = nodes
        self.spelling = spelling

    # Lines and columns.

    def lines(self, elements: Iterable[int]) -> dict[int, tuple[int, int]]:
        """The line and column of each element's start tag."""
        batch = self.document.batch
        data = self.document.utf8
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        found: dict[int, tuple[int, int]] = {}
        line, column, at, held = 1, 1, 0, ""
        for element in sorted(set(elements), key=lambda element: int(batch.position[element])):
            position = int(batch.position[element])
            while at < position:
                end = min(position, at + _PIECE)
                text = held + decoder.decode(data[at:end])
                text = text.removeprefix("\ufeff") if at == 0 else text
                # A piece may end between the two characters of one line end.
                held = "\r" if end < position and text.endswith("\r") else ""
                ends = text[: len(text) - len(held)].replace("\r\n", "\n").replace("\r", "\n")
                line += ends.count("\n")
                column = column + len(ends) if "\n" not in ends else len(ends) - ends.rindex("\n")
                at = end
            found[element] = line, column
        return found

    # Paths.

    def path(self, nodes: NodeSet, index: int) -> str:
        """The path of one of the nodes, from the root element down."""
        node = nodes.only(index)
        if nodes.kind == "element":
            return self._element_path(int(node.at[0]))
        owner = int(self.nodes.owner(node)[0])
        return f"{self._element_path(owner)}/{self._last_step(node, owner)}"

    def _last_step(self, node: NodeSet, owner: int) -> str:
        batch, at = self.document.batch, int(node.at[0])
        if node.kind == "attribute":
            return "@" + self.spelling.name(batch.name_of(int(batch.attribute_name[at])))
        inside = slice(int(batch.text_begin[owner]), int(batch.text_end[owner]))
        siblings = np.flatnonzero(batch.text_parent[inside] == owner) + inside.start
        return f"text()[{int(np.searchsorted(siblings, at)) + 1}]" if len(siblings) > 1 else "text()"

    def _element_path(self, element: int) -> str:
        """Step by step; a long path shows only its beginning and end, which bounds the cost, too."""
        batch = self.document.batch
        depth = int(batch.depth[element])
        steps = []
        for _ in range(_DEEPEST // 2 if depth > _DEEPEST else depth):
            steps.append(self._step(element))
            element = int(batch.parent[element])
        if depth > _DEEPEST:
            # An ancestor is the last element of its depth before the element.
            levels = self.nodes.levels[: _DEEPEST // 2 - 1]
            above = [0, *(int(level[np.searchsorted(level, element, side="right") - 1]) for level in levels)]
            steps += ["…", *map(self._step, reversed(above))]
        return "/" + "/".join(reversed(steps))

    def _step(self, element: int) -> str:
        batch = self.document.batch
        label = self.spelling.name(batch.name_of(int(batch.name[element])))
        position, siblings = self._positions
        return f"{label}[{int(position[element])}]" if siblings[element] > 1 else label

    @cached_property
    def _positions(self) -> tuple[Int64s, Int64s]:
        """For each element its position among its siblings of the same name, and how many these are."""
        batch = self.document.batch
        numbers = np.arange(batch.name_count, dtype=np.int64)
        for same in self.nodes.numbers.values():
            numbers[same] = same[0]
        names = numbers[batch.name]
        order = np.lexsort((names, batch.parent))
        parent, name = batch.parent[order], names[order]
        starts = np.flatnonzero(np.concatenate([[True], (parent[1:] != parent[:-1]) | (name[1:] != name[:-1])]))
        sizes = np.diff(np.append(starts, len(order)))
        position, siblings = np.empty(len(order), dtype=np.int64), np.empty(len(order), dtype=np.int64)
        position[order] = np.arange(len(order)) - np.repeat(starts, sizes) + 1
        siblings[order] = np.repeat(sizes, sizes)
        return position, siblings
