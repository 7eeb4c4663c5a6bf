"""The scanner's Python side: buffers in, a `DocumentBatch` out, and expat for the documents that the kernel passes on.

    documents ──join──▶ data ──scan (kernel)──▶ element arrays ──▶ DocumentBatch
                                   │ ASK                 ▲
                                   └──▶ expat reader ────┘ spliced in at their places

Names are looked up in a thread-local table, rebuilt when the table of known names has grown; so scans in other threads
are not disturbed. A small document alone is read into buffers that stay (`small_document.py`).
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np

from pathcast.errors import PathcastError
from pathcast.kernels import Int8s, Int64s, UInt8s

from ..document_batch import DocumentBatch
from ..document_batch_insertion import splice
from ..document_limits import Limits
from ..expanded_name_table import Names
from ..expat_reader import BatchBuilder, Entities
from .character_kernels import PADDING
from .name_table import MOST_BYTES, MOST_NAMES, NameTable
from .scanner_array_layout_kernels import (
    A_LENGTH,
    A_NAME,
    ASK,
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
)
from .scanner_buffers import Buffers, ThreadBuffers
from .scanner_kernels import bounds, scan
from .small_document import SMALL, SmallDocumentReader

# Zero bytes end every loop of the kernel.
_END = bytes(PADDING)
# This many bytes are counted at a time, so that other threads do not wait longer.
_PIECE = 1 << 18


class Scanner:
    """Reads documents into batches, with one table of known names, one set of limits and one treatment of entities.

    `borrowed` batches share the scanner's buffers and are valid until the same thread reads again. Expat reads
    documents with more than `most_names` new names, or names of more than `most_name_bytes` bytes.
    """

    def __init__(
        self,
        names: Names,
        limits: Limits,
        entities: Entities,
        *,
        most_names: int = MOST_NAMES,
        most_name_bytes: int = MOST_BYTES,
    ) -> None:
        self.names = names
        self.limits = limits
        self.entities: Entities = entities
        self._threads = ThreadBuffers(names, (most_names, most_name_bytes))

    @property
    def _buffers(self) -> Buffers:
        """The buffers of the calling thread."""
        return self._threads.mine

    def read_small(self, document: bytes) -> DocumentBatch | None:
        """A document of at most `SMALL` bytes, valid until the same thread reads again; None if `read` must read it."""
        buffers = self._threads.mine
        small = buffers.small
        if len(document) > SMALL:
            return None
        if small is None or not small.is_current(self.names):
            small = buffers.small = SmallDocumentReader(buffers, self.limits)
        return small.batch if small.read(document, buffers.scratch) else None

    def read(
        self,
        documents: Sequence[bytes],
        *,
        encodings: Mapping[int, str] | None = None,
        failed: Mapping[int, PathcastError] | None = None,
        borrowed: bool = False,
    ) -> DocumentBatch:
        """Documents as a batch; those that cannot be read keep their place, with an error.

        `encodings` overrides declared encodings; `failed` are known to be unreadable.
        """
        offsets = np.array([0, *accumulate(map(len, documents))], dtype=np.int64)
        data = np.frombuffer(b"".join((*documents, _END)), dtype=np.uint8)
        return self._read(data, offsets, encodings or {}, failed or {}, borrowed)

    def read_data(
        self,
        data: UInt8s,
        data_offsets: Int64s,
        *,
        encodings: Mapping[int, str] | None = None,
        failed: Mapping[int, PathcastError] | None = None,
        borrowed: bool = False,
    ) -> DocumentBatch:
        """As `read`, for documents that lie one after the other in an array that ends with `PADDING` zero bytes."""
        edges = np.concatenate([[0], data_offsets, [len(data) - PADDING]])
        if not len(data_offsets) or np.any(edges[1:] < edges[:-1]) or np.any(data[-PADDING:]):
            raise ValueError(
                f"data_offsets must have at least one offset into data, in ascending order, and data must end with "
                f"{PADDING} zero bytes, got {len(data_offsets):,} offsets and {len(data):,} bytes"
            )
        return self._read(data, data_offsets, encodings or {}, failed or {}, borrowed)

    def _read(
        self,
        data: UInt8s,
        data_offsets: Int64s,
        encodings: Mapping[int, str],
        failed: Mapping[int, PathcastError],
        borrowed: bool,
    ) -> DocumentBatch:
        names = self._buffers.current_names()
        status = np.zeros(len(data_offsets) - 1, dtype=np.int8)
        if encodings or failed:
            status[[*failed, *(number for number, codec in encodings.items() if codec != "utf-8")]] = ASK
        batch = self._scan(data, data_offsets, names, status, borrowed)
        if ASK not in status.tobytes():
            return batch
        asked = np.flatnonzero(status != OK).tolist()
        builder = BatchBuilder(self.names, names.known, self.limits, self.entities)
        for number in asked:
            document = data[data_offsets[number] : data_offsets[number + 1]].tobytes()
            error = failed.get(number)
            if error is None:
                try:
                    builder.add(document, encoding=encodings.get(number))
                    continue
                except PathcastError as refusal:
                    error = refusal
            # From here on the error is a value: keeping it must not keep the frames that hold the documents.
            for each in (error, error.__cause__):
                if each is not None:
                    each.__traceback__ = each.__context__ = None
            builder.fail(document, error)
        return splice(batch, asked, builder.finish())

    def _scan(
        self,
        data: UInt8s,
        data_offsets: Int64s,
        names: NameTable,
        status: Int8s,
        borrowed: bool,
    ) -> DocumentBatch:
        """The batch of what the kernel accepts; `status` says which documents it may try, then which it accepted."""
        buffers = self._buffers
        size, tags, equals = len(data), 0, 0
        for begin in range(0, size, _PIECE):
            bounds(data[begin : begin + _PIECE], buffers.most)
            more = buffers.most.tolist()
            tags, equals = tags + more[0], equals + more[1]
        # The shortest tag has three bytes, the shortest attribute five: more of them are not well-formed.
        tags, equals = min(tags, size // 3), min(equals, size // 5)
        limits = buffers.fit(names, self.limits, tags, equals, size)
        rows = buffers.rows(tags, equals, size, borrowed).arrays
        offsets = np.zeros(len(data_offsets), dtype=np.int64)
        counts = buffers.scratch.counts
        done = 0
        while True:
            done = scan(data, data_offsets, done, names.index, rows, buffers.scratch, limits, offsets, status)
            written = counts.tolist()
            names.count, names.used, names.crowded = written[N_NAMES], written[N_NAME_BYTES], bool(written[N_CROWDED])
            if done == len(status):
                break
            if names.grow():
                buffers.fit_stamps(names)
            else:
                status[done], counts[N_CROWDED], counts[N_FULL] = ASK, 1, 0
        n_elements, n_attributes, n_texts = written[N_ELEMENTS], written[N_ATTRIBUTES], written[N_TEXTS]
        elements, attributes, attribute_starts, texts, text_starts, arena = rows
        return DocumentBatch(
            data=data[: data_offsets.item(-1)],
            data_offsets=data_offsets,
            offsets=offsets,
            name=elements[E_NAME, :n_elements],
            parent=elements[E_PARENT, :n_elements],
            depth=elements[E_DEPTH, :n_elements],
            end=elements[E_END, :n_elements],
            position=elements[E_POSITION, :n_elements],
            attribute_begin=elements[E_ATTRIBUTES, : n_elements + 1],
            attribute_name=attributes[A_NAME, :n_attributes],
            attribute_start=attribute_starts[:n_attributes],
            attribute_length=attributes[A_LENGTH, :n_attributes],
            text_begin=elements[E_TEXT_BEGIN, :n_elements],
            text_end=elements[E_TEXT_END, :n_elements],
            text_parent=texts[T_PARENT, :n_texts],
            text_start=text_starts[:n_texts],
            text_length=texts[T_LENGTH, :n_texts],
            arena=arena[: written[N_ARENA]],
            known=self.names,
            known_count=names.known,
            own_names=names.own_names(),
        )
