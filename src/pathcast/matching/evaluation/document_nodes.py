"""The nodes of one document in document order, as lists: what full evaluation reads.

    <a x="1"><b>hi</b><c/></a>      node      0     1   2   3   4   5
                                    kind      doc   a   @x  b   hi  c
                                    parent   -1     0   1   1   3   1
                                    end       6     6   3   5   5   6     first node that is no descendant

Element arrays have no comments, processing instructions, prefixes or namespace nodes. An expression that can see one of
them is evaluated on nodes that expat reads from the document's bytes (`markup_nodes.py`); all others on nodes made
from the arrays. A document without its own bytes (rewritten by a mediator, or received as arrays) has none of them.

Cost: some 0.3 µs per node, once per document, and only for documents that are candidates.
"""

from bisect import bisect_left
from collections.abc import Callable
from itertools import accumulate

from pathcast.documents import DocumentBatch, local_part

from .label_path_index import LabelPath, LabelPathIndex

DOCUMENT, ELEMENT, ATTRIBUTE, TEXT, COMMENT, INSTRUCTION, NAMESPACE = range(7)


class OutOfWorkError(Exception):
    """An evaluation has spent the work that it may take on one document."""


class DocumentNodes:
    """Nodes as parallel lists.

    `work` is what an evaluation may still spend, `known` what it has found: both are new for each evaluation.
    """

    def __init__(self) -> None:
        self.kind: list[int] = [DOCUMENT]
        self.parent: list[int] = [-1]
        self.name: list[str | None] = [None]  # expanded, of elements and attributes
        self.tested: list[str | None] = self.name  # what name tests compare: local parts if namespaces are ignored
        self.values: list[str | None] = [None]  # None for documents and elements, whose value is that of their text
        self.end: list[int] = []
        self.children: list[list[int]] = []
        self.labels: dict[int, str] = {}  # targets, prefixes of namespace nodes, and names as written with a prefix
        self.ids: dict[str, int] = {}
        self.work = 0
        self.known: dict[str, list[int]] = {}  # the nodes of absolute paths
        self.root = LabelPath()  # of the label paths
        self._label_paths: LabelPathIndex | None = None
        self._by_name: dict[str | None, list[int]] | None = None
        self._attributes: list[int] | None = None
        self._text: tuple[str, list[int]] | None = None

    def finish(self, *, ignore_namespaces: bool) -> "DocumentNodes":
        """Complete the lists once all nodes are there."""
        count = len(self.kind)
        kind, parent = self.kind, self.parent
        end = list(range(1, count + 1))
        children: list[list[int]] = [[] for _ in range(count)]
        for node in range(1, count):
            if kind[node] != ATTRIBUTE and kind[node] != NAMESPACE:
                children[parent[node]].append(node)
        for node in range(count - 1, 0, -1):
            above = parent[node]
            end[above] = max(end[above], end[node])
        self.end, self.children = end, children
        if ignore_namespaces:
            self.tested = [None if name is None else local_part(name) for name in self.name]
        return self

    def label_paths(self) -> LabelPathIndex:
        """The elements by their label paths."""
        if self._label_paths is None:
            elements = [node for node, kind in enumerate(self.kind) if kind == ELEMENT]
            self._label_paths = LabelPathIndex(self.tested, self.parent, elements, self.root)
        return self._label_paths

    def named(self, name: str) -> list[int]:
        """All elements that pass a name test."""
        if self._by_name is None:
            found: dict[str | None, list[int]] = {}
            for node, tested in enumerate(self.tested):
                if self.kind[node] == ELEMENT:
                    found.setdefault(tested, []).append(node)
            self._by_name = found
        return self._by_name.get(name, [])

    def value(self, node: int) -> str:
        """XPath's string-value of a node."""
        value = self.values[node]
        if value is None:
            if self._text is None:
                pieces = [self.values[each] or "" if self.kind[each] == TEXT else "" for each in range(len(self.kind))]
                self._text = "".join(pieces), [0, *accumulate(map(len, pieces))]
            text, begins = self._text
            value = text[begins[node] : begins[self.end[node]]]
        self.spend(1 + (len(value) >> 6))
        return value

    def spend(self, work: int) -> None:
        """Count work; raise `OutOfWorkError` when there is none left."""
        self.work -= work
        if self.work < 0:
            raise OutOfWorkError

    def attributes(self, element: int) -> range:
        """The namespace nodes and attributes of an element: between it and its first child."""
        children = self.children[element]
        return range(element + 1, children[0] if children else self.end[element])

    def siblings(self, node: int) -> tuple[list[int], int]:
        """The children of the node's parent, and the node's place among them."""
        siblings = self.children[self.parent[node]]
        return siblings, bisect_left(siblings, node)


class NamesOfBatch(dict[int, str]):
    """The names of a batch by number, those that were asked for."""

    def __init__(self, batch: DocumentBatch) -> None:
        self._batch = batch

    def __missing__(self, number: int) -> str:
        name = self[number] = self._batch.name_of(number)
        return name


def from_arrays(
    batch: DocumentBatch, index: int, arena: bytes, names: NamesOfBatch, *, ignore_namespaces: bool
) -> DocumentNodes:
    """The nodes of one document of a batch, without comments and the like; `arena` is the batch's own, as bytes."""
    nodes = DocumentNodes()
    first, last = batch.offsets[index : index + 2].tolist()
    base, data_end = batch.data_offsets[index : index + 2].tolist()
    decode = _decoder(batch.data[base:data_end].tobytes(), base, arena)
    element_names = batch.name[first:last].tolist()
    parents = batch.parent[first:last].tolist()
    attribute_begins = batch.attribute_begin[first : last + 1].tolist()
    begin, stop = attribute_begins[0], attribute_begins[-1]
    attribute_names = batch.attribute_name[begin:stop].tolist()
    attribute_starts = batch.attribute_start[begin:stop].tolist()
    attribute_lengths = batch.attribute_length[begin:stop].tolist()
    text_begins = batch.text_begin[first:last].tolist()
    text, text_stop = text_begins[0], int(batch.text_end[first])
    text_base = text
    text_parents = batch.text_parent[text:text_stop].tolist()
    text_starts = batch.text_start[text:text_stop].tolist()
    text_lengths = batch.text_length[text:text_stop].tolist()
    kinds, node_parents, node_names, values = nodes.kind, nodes.parent, nodes.name, nodes.values
    places: list[int] = []
    for element, number in enumerate(element_names):
        before = text_begins[element]
        while text < before:
            at = text - text_base
            kinds.append(TEXT)
            node_parents.append(places[text_parents[at] - first])
            node_names.append(None)
            values.append(decode(text_starts[at], text_lengths[at]))
            text += 1
        place = len(kinds)
        places.append(place)
        kinds.append(ELEMENT)
        node_parents.append(places[parents[element] - first] if element else 0)
        node_names.append(names[number])
        values.append(None)
        for at in range(attribute_begins[element] - begin, attribute_begins[element + 1] - begin):
            kinds.append(ATTRIBUTE)
            node_parents.append(place)
            node_names.append(names[attribute_names[at]])
            values.append(decode(attribute_starts[at], attribute_lengths[at]))
    while text < text_stop:
        at = text - text_base
        kinds.append(TEXT)
        node_parents.append(places[text_parents[at] - first])
        node_names.append(None)
        values.append(decode(text_starts[at], text_lengths[at]))
        text += 1
    return nodes.finish(ignore_namespaces=ignore_namespaces)


def _decoder(data: bytes, base: int, arena: bytes) -> Callable[[int, int], str]:
    def decode(start: int, length: int) -> str:
        if start >= 0:
            return data[start - base : start - base + length].decode()
        return arena[-1 - start : length - 1 - start].decode()

    return decode
