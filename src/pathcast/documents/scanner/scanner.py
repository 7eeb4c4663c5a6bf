"""The scanner's Python side: buffers in, a `DocumentBatch` out, and expat for the documents that the kernel passes on.

    documents ──join──▶ data ──scan (kernel)──▶ element arrays ──▶ DocumentBatch
                                   │ ASK                 ▲
                                   └──▶ expat reader ────┘ spliced in at their places

Names are looked up in a thread-local table, rebuilt when the table of known names has grown; so scans in other threads
are not disturbed.
"""

import threading
from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np

from pathcast.errors import PathcastError
from pathcast.kernels import Int8s, Int64s, UInt8s
from pathcast.store import Texts, offsets_of

from ..document_batch import DocumentBatch
from ..document_batch_insertion import splice
from ..document_limits import Limits
from ..expanded_name_table import Names
from ..expanded_name_table_kernels import NameIndex, index_names
from ..expat_reader import BatchBuilder, Entities
from .character_kernels import PADDING
from .scanner_array_layout_kernels import (
    A_LENGTH,
    A_NAME,
    A_ROWS,
    ASK,
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
    L_ATTRIBUTES,
    L_COUNT,
    L_DEPTH,
    L_NAME,
    L_NAMES,
    L_SIZE,
    MAX_BINDINGS,
    N_ARENA,
    N_ATTRIBUTES,
    N_COUNTS,
    N_CROWDED,
    N_ELEMENTS,
    N_FULL,
    N_NAME_BYTES,
    N_NAMES,
    N_STAMP,
    N_TEXTS,
    OK,
    S_ROWS,
    T_LENGTH,
    T_PARENT,
    T_ROWS,
    W_ROWS,
    ScanRows,
    ScanScratch,
)
from .scanner_kernels import bounds, scan
from .structural_byte_index_kernels import ROOM

# A table has room for this many names of documents, and this many bytes of them. For a batch with more it grows, up to
# the second number; beyond that, expat reads the documents.
OWN_NAMES, _MOST_NAMES = 1 << 12, 1 << 20
OWN_BYTES, _MOST_BYTES = 1 << 18, 1 << 26
# Zero bytes end every loop of the kernel.
_END = bytes(PADDING)
# The longest name with its namespace that the kernel spells out.
_SPELLING = 8192
# Batches up to this size can share the scanner's buffers: fresh pages from the system cost as much as scanning them.
_LENDABLE = 16 << 20
# This many bytes are counted at a time, so that other threads do not wait longer.
_PIECE = 1 << 18
# Limits up to this get their room at once, larger ones when documents can reach them.
_ROOM = 1 << 12


class NameTable:
    """The names of a table at some moment, for look-ups by the kernel, with room for the batches' own after them.

    Names of documents stay for the next batches until one does not fit: then the table is reset. So names that were
    made to collide send documents of a batch or two to the expat reader, and are then dropped. A table that has grown
    is reset with the next batch, so that no other batch pays for the names of one.
    """

    def __init__(
        self, names: Names, before: "NameTable | None" = None, most: tuple[int, int] = (_MOST_NAMES, _MOST_BYTES)
    ) -> None:
        """`before` is an earlier table with fewer of the same names; its content is reused.

        `most`: the names and bytes of documents up to which the table may grow.
        """
        self.known = len(names)
        self._most = most
        first = 0 if before is None else before.known
        encoded = [names[number].encode() for number in range(first, self.known)]
        edges = offsets_of([len(name) for name in encoded])
        self._encoded, self._edges = np.frombuffer(b"".join(encoded), dtype=np.uint8), edges
        if before is not None:
            self._encoded = np.concatenate([before._encoded, self._encoded])
            self._edges = np.concatenate([before._edges, before._edges[-1] + edges[1:]])
        self.renew()

    def renew(self) -> None:
        """Drop the names of documents; existing batches keep theirs."""
        self.count, self.used, self.crowded = self.known, len(self._encoded), False
        self._make_room(OWN_NAMES, OWN_BYTES, self._encoded, self._edges)

    def grow(self) -> bool:
        """Make room for more names, keeping all numbers; False when there are already too many."""
        _, _, stored, offsets = self.index
        names, size = len(offsets) - 1 - self.known, len(stored) - len(self._encoded)
        if self.count + 1 >= len(offsets):
            names *= 4
        else:
            size *= 4
        most_names, most_bytes = self._most
        if names > most_names or size > most_bytes:
            return False
        self._make_room(names, size, stored[: self.used], offsets[: self.count + 1])
        return True

    def has_grown(self) -> bool:
        """Whether there is more room than a batch of ordinary documents needs."""
        _, _, stored, offsets = self.index
        return len(offsets) - 1 > self.known + OWN_NAMES or len(stored) > len(self._encoded) + OWN_BYTES

    def _make_room(self, names: int, size: int, encoded: UInt8s, edges: Int64s) -> None:
        """New arrays with these names, and room for this many names and bytes after the known ones."""
        room = self.known + names
        stored = np.zeros(len(self._encoded) + size, dtype=np.uint8)
        stored[: len(encoded)] = encoded
        offsets = np.zeros(room + 1, dtype=np.int64)
        offsets[: len(edges)] = edges
        keys = np.empty(2 * room, dtype=np.uint64)
        size = 64
        while size < 2 * room:
            size *= 2
        # Names of documents can be made to collide: a table that grows for them gets no more than it needs.
        largest = 16 * size if names == OWN_NAMES else size
        while True:
            slots = np.full(size, -1, dtype=np.int32)
            # Names that were made to collide do so at every size; documents that have one go to the expat reader.
            if index_names(stored, edges, slots, keys) == 0 or size == largest:
                break
            size *= 2
        self.index = NameIndex(slots, keys, stored, offsets)

    def own_names(self) -> Sequence[str]:
        """The names after the known ones, decoded on access; most batches never need them."""
        if self.count == self.known:
            return ()
        return Texts(self.index.stored, self.index.offsets[self.known : self.count + 1])


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
        most_names: int = _MOST_NAMES,
        most_name_bytes: int = _MOST_BYTES,
    ) -> None:
        self.names = names
        self.limits = limits
        self.entities: Entities = entities
        self._buffers = _Buffers(names, (most_names, most_name_bytes))

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
                f"data_offsets must be ascending offsets into data, at least one, and data must end with {PADDING} "
                f"zero bytes, got {len(data_offsets):,} offsets and {len(data):,} bytes"
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
        elements[E_ATTRIBUTES, n_elements] = n_attributes
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


class _Rows:
    """Room for what a scan writes."""

    def __init__(self, tags: int, equals: int, size: int) -> None:
        self.tags, self.equals, self.size = tags, equals, size
        self.arrays = ScanRows(
            np.empty((E_ROWS, tags + 1), dtype=np.int32),
            np.empty((A_ROWS, equals + 1), dtype=np.int32),
            np.empty(equals + 1, dtype=np.int64),
            np.empty((T_ROWS, tags + 1), dtype=np.int32),
            np.empty(tags + 1, dtype=np.int64),
            np.empty(size, dtype=np.uint8),
        )


class _Buffers(threading.local):
    """The working memory of a scan besides its rows, and reusable rows; one set per thread."""

    def __init__(self, names: Names, most: tuple[int, int]) -> None:
        self.known, self._most = names, most
        self.names = NameTable(names, None, most)
        self.scratch = ScanScratch(
            counts=np.zeros(N_COUNTS, dtype=np.int64),
            stamps=np.zeros(0, dtype=np.int64),
            stack=np.empty((S_ROWS, 0), dtype=np.int64),
            waiting=np.empty((W_ROWS, 0), dtype=np.int64),
            bindings=np.empty((B_ROWS, MAX_BINDINGS), dtype=np.int64),
            spelling=np.zeros(_SPELLING, dtype=np.uint8),
            places=np.zeros(ROOM, dtype=np.uint32),
        )
        self.most = np.zeros(2, dtype=np.int64)
        self.limits = np.zeros(L_COUNT, dtype=np.int64)
        self.lent = _Rows(0, 0, 0)

    def current_names(self) -> NameTable:
        """The table of names, rebuilt when there are more known ones, reset when names of documents fill it."""
        if self.names.known != len(self.known):
            self.names = NameTable(self.known, self.names, self._most)
        elif self.names.crowded or self.names.has_grown():
            self.names.renew()
        return self.names

    def fit(self, names: NameTable, limits: Limits, tags: int, equals: int, size: int) -> Int64s:
        """Make room for these names and limits.

        Returns the limits, no larger than documents with this many tags, attributes and bytes can reach.
        """
        depth, attributes = min(limits.depth, max(tags, _ROOM)), min(limits.attributes, max(equals, _ROOM))
        self.fit_stamps(names)
        scratch = self.scratch
        if scratch.stack.shape[1] < depth + 1:
            self.scratch = scratch = scratch._replace(stack=np.empty((S_ROWS, depth + 1), dtype=np.int64))
        if scratch.waiting.shape[1] < attributes + 1:
            self.scratch = scratch = scratch._replace(waiting=np.empty((W_ROWS, attributes + 1), dtype=np.int64))
        counts, bound = scratch.counts, self.limits
        stamp = counts.item(N_STAMP)
        counts.fill(0)
        counts[N_STAMP], counts[N_NAMES], counts[N_NAME_BYTES] = stamp, names.count, names.used
        bound[L_DEPTH], bound[L_SIZE] = depth, min(limits.size, size)
        bound[L_ATTRIBUTES], bound[L_NAME] = attributes, min(limits.name_length, size)
        bound[L_NAMES] = min(limits.names, size)
        return bound

    def fit_stamps(self, names: NameTable) -> None:
        """Make room for the stamp of each name."""
        offsets = names.index.offsets
        if len(self.scratch.stamps) < len(offsets):
            self.scratch = self.scratch._replace(stamps=np.zeros(2 * len(offsets), dtype=np.int64))

    def rows(self, tags: int, equals: int, size: int, borrowed: bool) -> _Rows:
        """Rows for this many tags, attributes and bytes: new, or the reusable ones if requested and large enough."""
        if not borrowed or size > _LENDABLE:
            return _Rows(tags, equals, size)
        lent = self.lent
        if tags > lent.tags or equals > lent.equals or size > lent.size:
            needed, there = (tags, equals, size), (lent.tags, lent.equals, lent.size)
            # Each by its own need: if all were doubled for one, many small steps of one would make the others huge.
            self.lent = lent = _Rows(*(old if new <= old else 2 * new for new, old in zip(needed, there, strict=True)))
        return lent
