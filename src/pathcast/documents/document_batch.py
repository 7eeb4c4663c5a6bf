"""Element arrays: the one form in which documents are read, matched, summarised and routed.

A `DocumentBatch` is a handful of NumPy arrays over the elements of its documents, in document order:

    <a x="1"><b>hi</b><c/></a>      element   0   1   2
                                    name      a   b   c
                                    parent   -1   0   0
                                    depth     1   2   2
                                    end       3   2   3     first index that is no descendant

Element `d` lies below element `e` iff `e < d < end[e]`: two comparisons, no pointers. All indices count in the batch,
so a kernel over many documents needs no bases. Attributes of `e` are `attribute_begin[e] : attribute_begin[e + 1]`;
the text nodes inside `e`, in document order, `text_begin[e] : text_end[e]`, each with its parent element.

Values are not slices of the document (character references, CDATA, line ends, encodings), so a value is a start and a
length, UTF-8: `start >= 0` points into the documents' bytes, `start < 0` into the arena of decoded bytes at `-1 -
start`. `position` is where an element's start tag begins, in bytes from the document's begin. A document that is not in
UTF-8 has its codec in `encodings`, all its values in the arena, and positions that count in its UTF-8 form.

Invariant: a document that could not be read has no elements and an entry in `errors`; the others are unaffected.
Cost: some 60 bytes per element, besides the documents' own bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pathcast.errors import PathcastError
from pathcast.kernels import Int32s, Int64s, UInt8s

from .document_batch_layout_kernels import Attributes, Content, Elements, Texts, Values
from .expanded_name_table import Names

Bytes = UInt8s


class BatchMaxima(NamedTuple):
    """The maximum of each count over the documents of a batch: the sizes that buffers need."""

    elements: int
    attributes: int
    texts: int
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class DocumentBatch:
    """Documents as arrays; the module docstring explains the arrays."""

    data: Bytes
    data_offsets: Int64s
    offsets: Int64s
    name: Int32s
    parent: Int32s
    depth: Int32s
    end: Int32s
    position: Int32s
    attribute_begin: Int32s
    attribute_name: Int32s
    attribute_start: Int64s
    attribute_length: Int32s
    text_begin: Int32s
    text_end: Int32s
    text_parent: Int32s
    text_start: Int64s
    text_length: Int32s
    arena: Bytes
    known: Names
    known_count: int
    own_names: Sequence[str] = ()
    encodings: Mapping[int, str] = field(default_factory=dict)
    errors: dict[int, PathcastError] = field(default_factory=dict)
    _elements: Elements | None = field(default=None, init=False, repr=False)
    _values: Values | None = field(default=None, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> "Document":
        if not -len(self) <= index < len(self):
            raise IndexError(
                f"document index {index} is out of range; the batch has {len(self)} documents, numbered from 0"
            )
        return Document(self, index % len(self))

    def __iter__(self) -> Iterator["Document"]:
        return (Document(self, index) for index in range(len(self)))

    @property
    def elements(self) -> Elements:
        """The elements as arguments of kernels."""
        if self._elements is None:
            elements = Elements(self.offsets, self.name, self.parent, self.depth, self.end)
            object.__setattr__(self, "_elements", elements)
            return elements
        return self._elements

    @property
    def values(self) -> Values:
        """Attributes and text nodes as arguments of kernels."""
        if self._values is None:
            attributes = Attributes(
                self.attribute_begin, self.attribute_name, self.attribute_start, self.attribute_length
            )
            texts = Texts(self.text_begin, self.text_end, self.text_parent, self.text_start, self.text_length)
            values = Values(attributes, texts, Content(self.data, self.arena))
            object.__setattr__(self, "_values", values)
            return values
        return self._values

    def largest(self) -> BatchMaxima:
        """The maxima over all documents."""
        if len(self) == 1:  # the same without arrays, which would take as long as matching a short document
            (begin, end), (data, data_end) = self.offsets.tolist(), self.data_offsets.tolist()
            if begin == end:
                return BatchMaxima(0, 0, 0, data_end - data)
            attributes = int(self.attribute_begin[end]) - int(self.attribute_begin[begin])
            texts = int(self.text_end[begin]) - int(self.text_begin[begin])
            return BatchMaxima(end - begin, attributes, texts, data_end - data)
        elements = np.diff(self.offsets)
        roots = self.offsets[:-1][elements > 0]
        columns = (
            elements,
            np.diff(self.attribute_begin[self.offsets]),
            self.text_end[roots] - self.text_begin[roots],
            np.diff(self.data_offsets),
        )
        return BatchMaxima(*(int(column.max(initial=0)) for column in columns))

    @property
    def element_count(self) -> int:
        """The number of elements of all documents."""
        return len(self.name)

    @property
    def name_count(self) -> int:
        """The number of name ids: all ids are below this."""
        return self.known_count + len(self.own_names)

    def name_of(self, number: int) -> str:
        """The name with this number in this batch."""
        return self.known[number] if number < self.known_count else self.own_names[number - self.known_count]

    def translation(self, names: Names, *, add: bool = False) -> Int32s:
        """For each name id of this batch, its id in `names`; -1 where `names` lacks it (or it is added)."""
        if names is self.known:
            table = np.arange(self.name_count, dtype=np.int32)
            if not add and len(names) == self.known_count:  # then the batch's own names are still unknown
                table[self.known_count :] = -1
                return table
            own = range(self.known_count, self.name_count)
        else:
            table = np.empty(self.name_count, dtype=np.int32)
            own = range(self.name_count)
            if not add:
                table[: self.known_count] = self.known.onto(names)[: self.known_count]
                own = range(self.known_count, self.name_count)
        for number in own:
            name = self.name_of(number)
            found = names.add(name) if add else names.get(name)
            table[number] = -1 if found is None else found
        return table

    def value(self, start: int, length: int) -> bytes:
        """The UTF-8 bytes of a value."""
        if start >= 0:
            return self.data[start : start + length].tobytes()
        at = -1 - start
        return self.arena[at : at + length].tobytes()

    def text_node(self, index: int) -> bytes:
        """The UTF-8 bytes of one text node."""
        return self.value(int(self.text_start[index]), int(self.text_length[index]))

    def attribute_value(self, index: int) -> bytes:
        """The UTF-8 bytes of one attribute's value."""
        return self.value(int(self.attribute_start[index]), int(self.attribute_length[index]))

    def string_value(self, element: int) -> bytes:
        """XPath's string-value of an element: all text inside it, joined."""
        nodes = range(int(self.text_begin[element]), int(self.text_end[element]))
        return b"".join(map(self.text_node, nodes))


class Document:
    """One document of a batch: a view that counts its elements from 0.

    >>> document = pathcast.documents.read("<a k='1'>x<b>y</b></a>")
    >>> len(document), document.name(1), document.attributes(0), document.string_value(0)
    (2, 'b', {'k': '1'}, 'xy')
    """

    __slots__ = ("batch", "index")

    def __init__(self, batch: DocumentBatch, index: int) -> None:
        self.batch = batch
        self.index = index

    @property
    def first(self) -> int:
        """The index of the root element in the batch."""
        return int(self.batch.offsets[self.index])

    def __len__(self) -> int:
        """The number of elements in the document."""
        return int(self.batch.offsets[self.index + 1]) - self.first

    @property
    def data(self) -> bytes:
        """The original bytes, unchanged."""
        begin, end = self.batch.data_offsets[self.index : self.index + 2]
        return self.batch.data[begin:end].tobytes()

    @property
    def utf8(self) -> bytes:
        """The document in UTF-8, in which `position` counts: the original bytes, or those decoded."""
        encoding = self.batch.encodings.get(self.index)
        return self.data if encoding is None else self.data.decode(encoding).encode()

    @property
    def error(self) -> PathcastError | None:
        """Why the document could not be read; None for one that was."""
        return self.batch.errors.get(self.index)

    def alone(self) -> DocumentBatch:
        """A batch of this document only; shares the arrays' memory where it can."""
        batch, index = self.batch, self.index
        if len(batch) == 1:
            return batch
        begin, end = self.first, self.first + len(self)
        data = slice(*batch.data_offsets[index : index + 2].tolist())
        attributes = slice(*batch.attribute_begin[[begin, end]].tolist())
        texts = slice(int(batch.text_begin[begin]), int(batch.text_end[begin])) if len(self) else slice(0, 0)

        def moved(starts: Int64s) -> Int64s:
            return np.where(starts >= 0, starts - data.start, starts)

        return DocumentBatch(
            data=batch.data[data],
            data_offsets=np.array([0, data.stop - data.start], dtype=np.int64),
            offsets=np.array([0, end - begin], dtype=np.int64),
            name=batch.name[begin:end],
            parent=np.maximum(batch.parent[begin:end] - begin, -1),
            depth=batch.depth[begin:end],
            end=batch.end[begin:end] - begin,
            position=batch.position[begin:end],
            attribute_begin=batch.attribute_begin[begin : end + 1] - attributes.start,
            attribute_name=batch.attribute_name[attributes],
            attribute_start=moved(batch.attribute_start[attributes]),
            attribute_length=batch.attribute_length[attributes],
            text_begin=batch.text_begin[begin:end] - texts.start,
            text_end=batch.text_end[begin:end] - texts.start,
            text_parent=batch.text_parent[texts] - begin,
            text_start=moved(batch.text_start[texts]),
            text_length=batch.text_length[texts],
            arena=batch.arena,
            known=batch.known,
            known_count=batch.known_count,
            own_names=batch.own_names,
            encodings={0: batch.encodings[index]} if index in batch.encodings else {},
            errors={0: batch.errors[index]} if index in batch.errors else {},
        )

    def name(self, element: int) -> str:
        """The element's expanded name."""
        return self.batch.name_of(int(self.batch.name[self.first + element]))

    def parent(self, element: int) -> int:
        """The parent's index; -1 for the root."""
        return max(-1, int(self.batch.parent[self.first + element]) - self.first)

    def depth(self, element: int) -> int:
        """1 for the root, one more for each level below."""
        return int(self.batch.depth[self.first + element])

    def end(self, element: int) -> int:
        """The first element after `element` that is not inside it."""
        return int(self.batch.end[self.first + element]) - self.first

    def attributes(self, element: int) -> dict[str, str]:
        """The element's attributes by expanded name."""
        batch = self.batch
        begin, end = batch.attribute_begin[self.first + element : self.first + element + 2]
        return {
            batch.name_of(int(batch.attribute_name[index])): batch.attribute_value(index).decode()
            for index in range(int(begin), int(end))
        }

    def text_nodes(self, element: int) -> list[str]:
        """The element's own text nodes, in document order."""
        batch, element = self.batch, self.first + element
        inside = range(int(batch.text_begin[element]), int(batch.text_end[element]))
        return [batch.text_node(index).decode() for index in inside if batch.text_parent[index] == element]

    def string_value(self, element: int) -> str:
        """All text inside the element, joined."""
        return self.batch.string_value(self.first + element).decode()

    def location(self, element: int) -> tuple[int, int]:
        """Line and column (from 1, in characters) of the element's start tag."""
        before = self.utf8[: int(self.batch.position[self.first + element])].decode("utf-8", "replace")
        lines = before.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
        return len(lines), len(lines[-1]) + 1

    def path(self, element: int) -> str:
        """The label path from the root, `/news/body/p`."""
        steps = []
        while element >= 0:
            steps.append(self.name(element))
            element = self.parent(element)
        return "/" + "/".join(reversed(steps))

    def __repr__(self) -> str:
        if self.error is not None:
            return f"<Document: unreadable, {self.error}>"
        return f"<Document: {self.name(0)}, {len(self)} elements, {len(self.data)} bytes>"
