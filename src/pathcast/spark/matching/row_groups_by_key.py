"""Row groups: the rows of a partition grouped by some columns, in groups of bounded size.

Rows arrive as Arrow batches in any order of keys. Their documents are held separately: each distinct document once,
however many rows refer to it (`Documents`). A group is full when it reaches its number of rows or bytes. When the
documents of all groups exceed the memory limit, full groups and then the largest ones are emitted together, until half
is left, so that work on their documents is shared; the rest is emitted at the end. Nothing is sorted, so this also
works on streams, which Spark cannot sort.

Invariant: every row is in one group; the rows of a group have one key and keep their order.
Cost: a look-up per row, and one per document by its digest; the rows of open groups are held.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Small Arrow batches for Spark are joined up to this many rows and bytes.
_JOINED_ROWS = 500
_JOINED_BYTES = 4 << 20
_DIGEST = 16

Value = bytes | str | None


class Documents:
    """Distinct documents by number, held while a row refers to them; `held` counts their bytes."""

    def __init__(self) -> None:
        self.held = 0
        self._unused: list[int] = []
        self._values: dict[int, Value] = {}
        self._rows: dict[int, int] = {}
        self._number_of: dict[bytes, int] = {}
        self._digests: dict[int, bytes] = {}
        self._next = 0

    def enter(self, column: pa.Array) -> tuple[list[int], list[int]]:
        """Add a column of documents, one reference each; return their numbers and sizes."""
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        distinct = pc.dictionary_encode(column, null_encoding="encode")
        sizes = np.array(pc.fill_null(pc.binary_length(distinct.dictionary), 0).to_pylist(), dtype=np.int64)
        values = distinct.dictionary.to_pylist()
        places = distinct.indices.to_numpy()
        counts = np.bincount(places, minlength=len(values)).tolist()
        numbers = [
            self._number(value, size, count) for value, size, count in zip(values, sizes.tolist(), counts, strict=True)
        ]
        return np.array(numbers, dtype=np.int64)[places].tolist(), sizes[places].tolist()

    def _number(self, value: Value, size: int, rows: int) -> int:
        digest = b"" if value is None else _digest(value)
        number = self._number_of.get(digest)
        if number is None:
            number = self._number_of[digest] = self._next
            self._next += 1
            self._values[number], self._rows[number], self._digests[number] = value, 0, digest
            self.held += size
        self._rows[number] += rows
        return number

    def value(self, number: int) -> Value:
        """A document."""
        return self._values[number]

    def release(self, numbers: Sequence[int]) -> None:
        """Remove one reference to each document; documents without references stay until `forget`."""
        for number in numbers:
            self._rows[number] -= 1
            if not self._rows[number]:
                self.held -= _size(self._values[number])
                self._unused.append(number)

    def forget(self) -> None:
        """Drop documents without references."""
        for number in self._unused:
            del self._values[number], self._rows[number], self._number_of[self._digests.pop(number)]
        self._unused.clear()


def _digest(value: bytes | str) -> bytes:
    return blake2b(value if isinstance(value, bytes) else value.encode(), digest_size=_DIGEST).digest()


def _size(value: Value) -> int:
    return 0 if value is None else len(value if isinstance(value, bytes) else value.encode())


@dataclass(slots=True)
class _Group:
    rows: list[int] = field(default_factory=list)
    documents: list[int] = field(default_factory=list)
    bytes: int = 0


class RowGroups(NamedTuple):
    """Groups that are emitted together: their rows, without documents, and the documents of each group."""

    rows: pa.RecordBatch
    documents: list[list[int]]


class GroupCollector:
    """Open groups by key."""

    def __init__(self, by: Sequence[str], document: str, max_rows: int, max_bytes: int, held_bytes: int) -> None:
        self._by, self._document = list(by), document
        self._max_rows, self._max_bytes, self._held_bytes = max_rows, max_bytes, held_bytes
        self.documents = Documents()
        self._groups: dict[tuple[Any, ...], _Group] = {}
        self._full: list[_Group] = []
        self._batches: list[pa.RecordBatch] = []
        self._count = 0

    def add(self, batch: pa.RecordBatch) -> Iterator[RowGroups]:
        """Add rows; yield groups to emit. Their documents are held until the next groups are requested."""
        numbers, sizes = self.documents.enter(batch.column(self._document))
        keys = list(zip(*(batch.column(name).to_pylist() for name in self._by), strict=True)) or [()] * len(batch)
        for row, (key, number, size) in enumerate(zip(keys, numbers, sizes, strict=True), self._count):
            group = self._groups.get(key)
            if group is not None and group.bytes + size > self._max_bytes:
                self._full.append(self._groups.pop(key))
                group = None
            if group is None:
                group = self._groups[key] = _Group()
            group.rows.append(row)
            group.documents.append(number)
            group.bytes += size
            if len(group.rows) == self._max_rows:
                self._full.append(self._groups.pop(key))
        place = batch.schema.get_field_index(self._document)
        self._batches.append(batch.set_column(place, self._document, pa.nulls(len(batch), batch.schema.types[place])))
        self._count += len(batch)
        if self.documents.held > self._held_bytes:
            yield from self._give(self._held_bytes // 2)

    def close(self) -> Iterator[RowGroups]:
        """Yield the remaining groups."""
        yield from self._give(-1)

    def _give(self, most: int) -> Iterator[RowGroups]:
        """Yield full groups, then the largest, until the documents of the others are at most `most` bytes."""
        going, self._full = self._full, []
        for group in going:
            self.documents.release(group.documents)
        left = sorted(self._groups, key=lambda key: self._groups[key].bytes)
        while left and self.documents.held > most:
            going.append(self._groups.pop(left.pop()))
            self.documents.release(going[-1].documents)
        if going:
            rows = one_batch(self._batches)
            yield RowGroups(
                take_rows(rows, [row for group in going for row in group.rows]), [g.documents for g in going]
            )
            self.documents.forget()
            self._keep_open(rows)

    def _keep_open(self, rows: pa.RecordBatch) -> None:
        """Drop the rows that are in no open group."""
        kept = [row for group in self._groups.values() for row in group.rows]
        self._batches, self._count = [take_rows(rows, kept)], len(kept)
        at = 0
        for group in self._groups.values():
            group.rows = list(range(at, at + len(group.rows)))
            at += len(group.rows)


def take_rows(batch: pa.RecordBatch, places: Sequence[int]) -> pa.RecordBatch:
    """Some rows of a batch."""
    return batch.take(pa.array(places, pa.int64()))


def one_batch(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Batches of one schema as one."""
    if len(batches) == 1:
        return batches[0]
    columns = [pa.concat_arrays([batch.column(at) for batch in batches]) for at in range(batches[0].num_columns)]
    return pa.RecordBatch.from_arrays(columns, schema=batches[0].schema)


def joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows += len(batch)
        size += batch.nbytes
        if rows >= _JOINED_ROWS or size >= _JOINED_BYTES:
            yield one_batch(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield one_batch(waiting)
