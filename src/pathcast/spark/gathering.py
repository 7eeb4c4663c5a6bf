"""Gathering: the rows of a partition by their values in some columns, given out in groups of bounded size.

Rows come as Arrow batches in any order of keys. A group is given out when it has its number of rows or bytes, or when
all groups together hold more than a worker should; what is left comes at the end. Nothing is sorted, so it serves
streams, where Spark can't sort, as well.

Invariant: every row is in one group; the rows of a group have one key and stand in the order in which they came.
Cost: a look-up a row; the rows of open groups are held.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

# Small Arrow batches that go back to Spark are joined up to so many rows and bytes.
_JOINED_ROWS = 500
_JOINED_BYTES = 4 << 20


@dataclass(slots=True)
class _Group:
    pieces: list[tuple[pa.RecordBatch, list[int]]] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0

    def add(self, batch: pa.RecordBatch, place: int, size: int) -> None:
        if not self.pieces or self.pieces[-1][0] is not batch:
            self.pieces.append((batch, []))
        self.pieces[-1][1].append(place)
        self.rows += 1
        self.bytes += size

    def given_out(self) -> pa.RecordBatch:
        return one_batch([take_rows(batch, places) for batch, places in self.pieces])


class Gathering:
    """Open groups by key."""

    def __init__(self, by: Sequence[str], max_rows: int, max_bytes: int, held_bytes: int) -> None:
        self._by = list(by)
        self._max_rows, self._max_bytes, self._held_bytes = max_rows, max_bytes, held_bytes
        self._groups: dict[tuple[Any, ...], _Group] = {}
        self._held = 0

    def add(self, batch: pa.RecordBatch, sizes: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """Take rows in, whose bytes are told; the groups that are closed by it."""
        keys = list(zip(*(batch.column(name).to_pylist() for name in self._by), strict=True)) or [()] * len(batch)
        for place, (key, size) in enumerate(zip(keys, sizes, strict=True)):
            group = self._groups.get(key)
            if group is not None and group.bytes + size > self._max_bytes:
                yield self._close(key)
                group = None
            if group is None:
                group = self._groups[key] = _Group()
            group.add(batch, place, size)
            self._held += size
            if group.rows == self._max_rows:
                yield self._close(key)
            while self._held > self._held_bytes:
                yield self._close(max(self._groups, key=lambda each: self._groups[each].bytes))

    def close(self) -> Iterator[pa.RecordBatch]:
        """The groups that are still open."""
        for key in list(self._groups):
            yield self._close(key)

    def _close(self, key: tuple[Any, ...]) -> pa.RecordBatch:
        group = self._groups.pop(key)
        self._held -= group.bytes
        return group.given_out()


def sizes_of(column: pa.Array) -> list[int]:
    """The bytes of each value of a binary or string column; a null has none."""
    sizes: list[int] = pc.fill_null(pc.binary_length(column), 0).to_pylist()
    return sizes


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
