"""The scanner's Python side: buffers in, a `DocumentBatch` out, and expat for the documents that the kernel passes on.

    documents ──join──▶ data ──scan (kernel)──▶ element arrays ──▶ DocumentBatch
                                   │ ASK                 ▲
                                   └──▶ expat reader ────┘ spliced in at their places

A `NameIndex` is the known names as arrays; it is extended, never changed, so that scans in other threads go on undisturbed.
"""

import threading
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..errors import PathcastError
from .batch import DocumentBatch
from .bytes_kernels import PADDING
from .expat_reader import BatchBuilder, Entities
from .limits import Limits
from .names import Names
from .names_kernels import index_names
from .scanner_kernels import bounds, scan
from .splice import splice
from .tables_kernels import (
    A_LENGTH,
    A_NAME,
    A_ROWS,
    B_ROWS,
    E_ATTRIBUTES,
    E_DEPTH,
    E_END,
    E_NAME,
    E_PARENT,
    E_POSITION,
    E_ROWS,
    E_TEXT_BEGIN,
    E_TEXT_END,
    MAX_BINDINGS,
    N_ARENA,
    N_ATTRIBUTES,
    N_COUNTS,
    N_ELEMENTS,
    N_OWN,
    N_STAMP,
    N_TEXTS,
    OK,
    S_ROWS,
    T_LENGTH,
    T_PARENT,
    T_ROWS,
    W_ROWS,
)

# A batch with more names of its own than this has its other documents read by expat.
OWN_NAMES = 4096
_OWN_BYTES = 1 << 18
_OWN_SLOTS = 2 * OWN_NAMES
# Zero bytes end every loop of the kernel.
_END = bytes(PADDING)
# The longest name with its namespace that the kernel spells out.
_SPELLING = 8192


class NameIndex:
    """A table of names, as the kernel looks them up; grows with it."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.count = 0
        self.slots = np.full(64, -1, dtype=np.int32)
        self.keys = np.empty((0, 2), dtype=np.uint64)
        self.bytes = np.zeros(PADDING, dtype=np.uint8)
        self.offsets = np.zeros(1, dtype=np.int64)
        self.refresh()

    def refresh(self) -> "NameIndex":
        """This index, or a new one when the table of names has grown."""
        count = len(self.names)
        if count == self.count:
            return self
        encoded = [self.names[number].encode() for number in range(count)]
        offsets = np.zeros(count + 1, dtype=np.int64)
        np.cumsum([len(name) for name in encoded], out=offsets[1:])
        stored = np.frombuffer(b"".join(encoded) + _END, dtype=np.uint8)
        keys = np.empty((count, 2), dtype=np.uint64)
        size = 64
        while size < 4 * count:
            size *= 2
        while True:
            slots = np.full(size, -1, dtype=np.int32)
            if index_names(stored, offsets, 0, slots, keys) == 0:
                break
            size *= 2
        self.slots, self.keys, self.bytes, self.offsets, self.count = slots, keys, stored, offsets, count
        return self


class _Scratch(threading.local):
    """Buffers that a scan needs and no one sees afterwards; one set a thread."""

    def __init__(self) -> None:
        self.counts = np.zeros(N_COUNTS, dtype=np.int64)
        self.own_slots = np.full(_OWN_SLOTS, -1, dtype=np.int32)
        self.own_keys = np.empty((OWN_NAMES, 2), dtype=np.uint64)
        self.own_bytes = np.empty(_OWN_BYTES, dtype=np.uint8)
        self.own_offsets = np.zeros(OWN_NAMES + 1, dtype=np.int64)
        self.stamps = np.zeros(0, dtype=np.int64)
        self.stack = np.empty((S_ROWS, 0), dtype=np.int64)
        self.waiting = np.empty((W_ROWS, 0), dtype=np.int64)
        self.bindings = np.empty((B_ROWS, MAX_BINDINGS), dtype=np.int64)
        self.spelling = np.zeros(_SPELLING, dtype=np.uint8)
        self.most = np.zeros(2, dtype=np.int64)

    def fit(self, known: int, limits: Limits) -> None:
        """Make room for this many known names and these limits; forget the last batch's own names."""
        if len(self.stamps) < known + OWN_NAMES:
            self.stamps = np.zeros(2 * known + OWN_NAMES, dtype=np.int64)
        if self.stack.shape[1] < limits.depth + 1:
            self.stack = np.empty((S_ROWS, limits.depth + 1), dtype=np.int64)
        if self.waiting.shape[1] < limits.attributes + 1:
            self.waiting = np.empty((W_ROWS, limits.attributes + 1), dtype=np.int64)
        if self.counts[N_OWN]:
            self.own_slots.fill(-1)
        stamp = self.counts[N_STAMP]
        self.counts.fill(0)
        self.counts[N_STAMP] = stamp


_scratch = _Scratch()


def scan_documents(
    documents: Sequence[bytes],
    *,
    index: NameIndex,
    limits: Limits,
    entities: Entities,
    encodings: dict[int, str] | None = None,
) -> DocumentBatch:
    """Read documents into a batch; those that cannot be read keep their place, with an error."""
    lengths = np.fromiter(map(len, documents), dtype=np.int64, count=len(documents))
    offsets = np.zeros(len(documents) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    data = np.frombuffer(b"".join((*documents, _END)), dtype=np.uint8)
    return scan_data(data, offsets, index=index, limits=limits, entities=entities, encodings=encodings)


def scan_data(
    data: npt.NDArray[np.uint8],
    data_offsets: npt.NDArray[np.int64],
    *,
    index: NameIndex,
    limits: Limits,
    entities: Entities,
    encodings: dict[int, str] | None = None,
) -> DocumentBatch:
    """As `scan_documents`, for documents that lie in one array, with `PADDING` zero bytes after the last."""
    assert data_offsets[-1] + PADDING <= len(data) and not data[data_offsets[-1] :].any()
    index.refresh()
    batch, asked = _scan(data, data_offsets, index, limits)
    if not asked:
        return batch
    builder = BatchBuilder(index.names, limits, entities)
    for number in asked:
        document = data[data_offsets[number] : data_offsets[number + 1]].tobytes()
        try:
            builder.add(document, encoding=(encodings or {}).get(number))
        except PathcastError as error:
            builder.fail(document, error)
    return splice(batch, asked, builder.finish())


def _scan(
    data: npt.NDArray[np.uint8], data_offsets: npt.NDArray[np.int64], index: NameIndex, limits: Limits
) -> tuple[DocumentBatch, list[int]]:
    """The batch of what the kernel accepts, and the numbers of the documents that expat has to look at."""
    scratch = _scratch
    scratch.fit(index.count, limits)
    bounds(data, scratch.most)
    tags, equals = scratch.most.tolist()
    elements = np.empty((E_ROWS, tags + 1), dtype=np.int32)
    attributes = np.empty((A_ROWS, equals + 1), dtype=np.int32)
    attribute_start = np.empty(equals + 1, dtype=np.int64)
    texts = np.empty((T_ROWS, tags + 1), dtype=np.int32)
    text_start = np.empty(tags + 1, dtype=np.int64)
    arena = np.empty(len(data), dtype=np.uint8)
    offsets = np.zeros(len(data_offsets), dtype=np.int64)
    status = np.empty(len(data_offsets) - 1, dtype=np.int8)
    counts = scratch.counts
    scan(
        data, data_offsets, np.array([limits.depth, limits.size, limits.attributes, limits.name_length]),
        index.slots, index.keys, index.bytes, index.offsets, index.count,
        scratch.own_slots, scratch.own_keys, scratch.own_bytes, scratch.own_offsets,
        elements, attributes, attribute_start, texts, text_start, arena,
        offsets, status, counts, scratch.stamps, scratch.stack, scratch.waiting, scratch.bindings, scratch.spelling,
    )  # fmt: skip
    n_elements, n_attributes, n_texts = (int(counts[row]) for row in (N_ELEMENTS, N_ATTRIBUTES, N_TEXTS))
    elements[E_ATTRIBUTES, n_elements] = n_attributes
    own = scratch.own_bytes[: scratch.own_offsets[int(counts[N_OWN])]].tobytes()
    edges = scratch.own_offsets[: int(counts[N_OWN]) + 1].tolist()
    batch = DocumentBatch(
        data=data[: data_offsets[-1]],
        data_offsets=data_offsets,
        offsets=offsets,
        name=elements[E_NAME, :n_elements],
        parent=elements[E_PARENT, :n_elements],
        depth=elements[E_DEPTH, :n_elements],
        end=elements[E_END, :n_elements],
        position=elements[E_POSITION, :n_elements],
        attribute_begin=elements[E_ATTRIBUTES, : n_elements + 1],
        attribute_name=attributes[A_NAME, :n_attributes],
        attribute_start=attribute_start[:n_attributes],
        attribute_length=attributes[A_LENGTH, :n_attributes],
        text_begin=elements[E_TEXT_BEGIN, :n_elements],
        text_end=elements[E_TEXT_END, :n_elements],
        text_parent=texts[T_PARENT, :n_texts],
        text_start=text_start[:n_texts],
        text_length=texts[T_LENGTH, :n_texts],
        arena=arena[: int(counts[N_ARENA])],
        known=index.names,
        known_count=index.count,
        own_names=tuple(own[begin:end].decode() for begin, end in zip(edges, edges[1:], strict=False)),
    )
    return batch, np.flatnonzero(status != OK).tolist()
