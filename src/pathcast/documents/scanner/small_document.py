"""A small document alone: a batch in buffers that stay, so that reading a document allocates next to nothing.

Making the arrays of a batch takes some 10 µs, as long as reading 6 KB. Here a batch is made once. Kernels go by offsets
and get whole rows; a column is cut to its length when Python asks for it.

Invariant: the batch is what `Scanner.read` gives for the same document, until the same thread reads again.
"""

from collections.abc import Sequence

import numpy as np

from pathcast.kernels import Int32s, Int64s, UInt8s

from ..document_batch import BatchMaxima, DocumentBatch
from ..document_batch_layout_kernels import Attributes, Content, Elements, Texts, Values
from ..document_limits import Limits
from ..expanded_name_table import Names
from .character_kernels import PADDING
from .name_table import NameTable
from .scanner_array_layout_kernels import (
    A_LENGTH,
    A_NAME,
    E_ATTRIBUTES,
    E_DEPTH,
    E_END,
    E_NAME,
    E_PARENT,
    E_POSITION,
    E_TEXT_BEGIN,
    E_TEXT_END,
    N_ARENA,
    N_ATTRIBUTES,
    N_CROWDED,
    N_ELEMENTS,
    N_FULL,
    N_NAME_BYTES,
    N_NAMES,
    N_TEXTS,
    OK,
    T_LENGTH,
    T_PARENT,
    ScanRows,
    ScanScratch,
)
from .scanner_buffers import Buffers
from .scanner_kernels import scan

# Documents up to this size are read here.
SMALL = 1 << 14
_END = bytes(PADDING)


class SmallDocument(DocumentBatch):
    """A batch of one document, whose content changes when its reader reads."""

    __slots__ = ("_content", "_counts", "_names", "_numbers", "_rows")

    _content: UInt8s
    _counts: memoryview
    _names: NameTable
    _numbers: Int32s
    _rows: ScanRows

    def __init__(self, content: UInt8s, rows: ScanRows, counts: memoryview, known: Names, names: NameTable) -> None:
        numbers = np.full(len(names.index.offsets), -1, dtype=np.int32)
        numbers[: names.known] = np.arange(names.known)
        offsets, (elements, attributes, starts, texts, text_starts, arena) = np.zeros(2, dtype=np.int64), rows
        for name, value in {
            "_content": content,
            "_counts": counts,
            "_names": names,
            "_numbers": numbers,
            "_rows": rows,
            "data_offsets": np.zeros(2, dtype=np.int64),
            "offsets": offsets,
            "known": known,
            "known_count": names.known,
            "encodings": {},
            "errors": {},
            "_elements": Elements(offsets, elements[E_NAME], elements[E_PARENT], elements[E_DEPTH], elements[E_END]),
            "_values": Values(
                Attributes(elements[E_ATTRIBUTES], attributes[A_NAME], starts, attributes[A_LENGTH]),
                Texts(elements[E_TEXT_BEGIN], elements[E_TEXT_END], texts[T_PARENT], text_starts, texts[T_LENGTH]),
                Content(content, arena),
            ),
        }.items():
            object.__setattr__(self, name, value)

    def largest(self) -> BatchMaxima:
        counts = self._counts
        return BatchMaxima(counts[N_ELEMENTS], counts[N_ATTRIBUTES], counts[N_TEXTS], self.data_offsets.item(1))

    @property
    def element_count(self) -> int:
        return int(self._counts[N_ELEMENTS])

    @property
    def name_count(self) -> int:
        return self._names.count

    @property
    def own_names(self) -> Sequence[str]:
        return self._names.own_names()

    def translation(self, names: Names, *, add: bool = False) -> Int32s:
        if names is self.known and not add and len(names) == self.known_count:
            return self._numbers[: self._names.count]
        return DocumentBatch.translation(self, names, add=add)

    def _element_column(self, row: int, more: int = 0) -> Int32s:
        return self._rows.elements[row, : self._counts[N_ELEMENTS] + more]

    @property
    def data(self) -> UInt8s:
        return self._content[: self.data_offsets.item(1)]

    @property
    def name(self) -> Int32s:
        return self._element_column(E_NAME)

    @property
    def parent(self) -> Int32s:
        return self._element_column(E_PARENT)

    @property
    def depth(self) -> Int32s:
        return self._element_column(E_DEPTH)

    @property
    def end(self) -> Int32s:
        return self._element_column(E_END)

    @property
    def position(self) -> Int32s:
        return self._element_column(E_POSITION)

    @property
    def attribute_begin(self) -> Int32s:
        return self._element_column(E_ATTRIBUTES, 1)

    @property
    def text_begin(self) -> Int32s:
        return self._element_column(E_TEXT_BEGIN)

    @property
    def text_end(self) -> Int32s:
        return self._element_column(E_TEXT_END)

    @property
    def attribute_name(self) -> Int32s:
        return self._rows.attributes[A_NAME, : self._counts[N_ATTRIBUTES]]

    @property
    def attribute_start(self) -> Int64s:
        return self._rows.attribute_starts[: self._counts[N_ATTRIBUTES]]

    @property
    def attribute_length(self) -> Int32s:
        return self._rows.attributes[A_LENGTH, : self._counts[N_ATTRIBUTES]]

    @property
    def text_parent(self) -> Int32s:
        return self._rows.texts[T_PARENT, : self._counts[N_TEXTS]]

    @property
    def text_start(self) -> Int64s:
        return self._rows.text_starts[: self._counts[N_TEXTS]]

    @property
    def text_length(self) -> Int32s:
        return self._rows.texts[T_LENGTH, : self._counts[N_TEXTS]]

    @property
    def arena(self) -> UInt8s:
        return self._rows.arena[: self._counts[N_ARENA]]


class SmallDocumentReader:
    """Reads small documents into one batch, for one thread."""

    def __init__(self, buffers: Buffers, limits: Limits) -> None:
        names = buffers.current_names()
        # The shortest tag has three bytes, the shortest attribute five.
        self._limits = buffers.fit(names, limits, SMALL // 3, SMALL // 5, SMALL).copy()
        self._rows = buffers.rows(SMALL // 3, SMALL // 5, SMALL, True).arrays
        self._names, self._index = names, names.index
        content = np.zeros(SMALL + PADDING, dtype=np.uint8)
        self._content, self._counts = content.data, buffers.scratch.counts.data
        self._array, self._status = content, np.zeros(1, dtype=np.int8)
        self.batch = SmallDocument(content, self._rows, self._counts, buffers.known, names)
        self._offsets, self._data_offsets = self.batch.offsets, self.batch.data_offsets
        self._edges = self._data_offsets.data

    def is_current(self, known: Names) -> bool:
        """Whether the thread's table of names is still the same, with all known names."""
        return self._index is self._names.index and self._names.known == len(known)

    def read(self, document: bytes, scratch: ScanScratch) -> bool:
        """Read a document of up to `SMALL` bytes into `batch`; False if the kernel does not accept it."""
        names, content, counts, size = self._names, self._content, self._counts, len(document)
        content[:size] = document
        content[size : size + PADDING] = _END
        self._edges[1] = size
        counts[N_ELEMENTS] = counts[N_ATTRIBUTES] = counts[N_TEXTS] = counts[N_ARENA] = 0
        counts[N_CROWDED] = counts[N_FULL] = 0
        status, batch = self._status, self.batch
        status[0] = OK
        if batch.errors:
            batch.errors.clear()
        scan(self._array, self._data_offsets, 0, self._index, self._rows, scratch, self._limits, self._offsets, status)
        names.count, names.used = counts[N_NAMES], counts[N_NAME_BYTES]
        return status.item() == OK and not counts[N_FULL]
