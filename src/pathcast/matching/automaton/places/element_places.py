"""Element places: a batch with the computed attributes that the patterns of a table test.

    <r><p/><p/></r>, pattern //p[@position(p) = 2]          <r><p position(p)="1"/><p position(p)="2"/></r>

A pattern with positions is then a pattern with value tests, and is found as these are. Only elements get an attribute
whose names patterns count; `patterns/computed_attributes.py` has the measures.

Invariant: the batch that is returned differs from the one given in these attributes alone, and shares its `errors`. An
attribute of the document with such a name (a message from elsewhere may hold one) is left out.
Cost: without patterns that count, one comparison per batch; otherwise some 10 ns per element and attribute.
"""

import threading
from typing import NamedTuple

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.kernels import Int32s, UInt8s
from pathcast.patterns import MEASURES, WILDCARD, computed_attribute
from pathcast.store import offsets_of

from ...table.pattern_table import PatternTable
from .batch_with_places import BatchWithPlaces
from .element_place_kernels import (
    C_ROWS,
    COLUMNS,
    COMPUTED,
    GROUPS,
    KINDS,
    AttributeRoom,
    PlaceScratch,
    WantedPlaces,
    add_places,
)

_FIRST = 1 << 8
# Kernels may read this many bytes behind a value.
_PADDING = 64


class _Wanted(NamedTuple):
    """The computed attributes among the first `names` names of the table: their numbers, ascending, and the last.

    An element has at most `most` of them.
    """

    names: int
    places: WantedPlaces
    numbers: Int32s
    last: int
    most: int


class _Digits(NamedTuple):
    """The numbers from 0 on in digits."""

    text: UInt8s
    begin: Int32s


def _digits(count: int) -> _Digits:
    texts = [str(number).encode() for number in range(count)]
    begin = offsets_of([len(text) for text in texts]).astype(np.int32)
    return _Digits(np.frombuffer(b"".join((*texts, bytes(_PADDING))), dtype=np.uint8), begin)


class ElementPlaces:
    """Adds computed attributes to batches, for the patterns of one table."""

    def __init__(self, table: PatternTable) -> None:
        self.table = table
        self._rows: dict[str, int] = {WILDCARD: 0}
        self._columns: list[Int32s] = [np.full(COLUMNS, -1, dtype=np.int32)]
        self._wanted = _Wanted(
            0,
            WantedPlaces(np.zeros(0, np.int32), np.zeros((0, COLUMNS), np.int32), np.zeros(0, np.int32)),
            np.zeros(0, np.int32),
            -1,
            0,
        )
        self._digits = _digits(_FIRST)
        self._lock = threading.Lock()
        self._buffers = threading.local()

    def added_to(self, batch: DocumentBatch, numbers: Int32s) -> DocumentBatch:
        """The batch with computed attributes, until the calling thread asks again.

        `numbers` has the table's number of each name of the batch.
        """
        wanted = self._wanted if self._wanted.names == len(self.table.names) else self._read_names()
        if not wanted.most:
            return batch
        count, places, more_names = batch.element_count, wanted.places, list[str]()
        if batch.known is not self.table.names or batch.known_count <= wanted.last:
            names = self.table.names
            more_names = [names[number] for number in wanted.numbers.tolist()]
            moved = batch.name_count + np.searchsorted(wanted.numbers, places.columns)
            places = places._replace(columns=np.where(places.columns < 0, -1, moved).astype(np.int32))
        if count + 1 >= len(self._digits.begin):
            with self._lock:
                self._digits = _digits(2 * count)
        digits, content = self._digits, batch.values.content
        attributes = batch.largest().attributes if len(batch) == 1 else len(batch.attribute_name)
        scratch, room = self._room(count, len(places.columns), attributes + wanted.most * count)
        arena = len(batch.arena)
        largest = add_places(
            batch.elements, batch.values.attributes, numbers, places, digits.begin, arena, scratch, room
        )
        text = digits.text[: digits.begin.item(largest + 1) + _PADDING]
        content = content._replace(arena=np.concatenate((batch.arena, text)) if arena else text)
        return BatchWithPlaces(batch, more_names, room, content)

    def _room(self, elements: int, rows: int, attributes: int) -> tuple[PlaceScratch, AttributeRoom]:
        """The buffers of the calling thread."""
        made: tuple[PlaceScratch, AttributeRoom] | None = getattr(self._buffers, "made", None)
        if made is not None:
            scratch, room = made
            if len(room.begins) > elements and len(room.names) >= attributes and scratch.counters.shape[1] >= rows:
                return made
        size, width, most = max(64, 2 * elements), max(16, 2 * rows), max(256, 2 * attributes)
        scratch = PlaceScratch(
            np.zeros((GROUPS, size), dtype=np.int32),
            np.zeros((GROUPS, size), dtype=np.int32),
            np.zeros((C_ROWS, width), dtype=np.int64),
            np.zeros(1, dtype=np.int64),
        )
        room = AttributeRoom(
            np.zeros(size + 1, dtype=np.int32),
            np.empty(most, dtype=np.int32),
            np.empty(most, dtype=np.int64),
            np.empty(most, dtype=np.int32),
        )
        self._buffers.made = scratch, room
        return scratch, room

    def _read_names(self) -> _Wanted:
        """Find the computed attributes among the names that the table has gained."""
        with self._lock:
            before, names = self._wanted, self.table.names
            end = len(names)
            fresh = [
                (number, attribute)
                for number in range(before.names, end)
                if (attribute := computed_attribute(names[number])) is not None
            ]
            if not fresh:
                self._wanted = before._replace(names=end)
                return self._wanted
            for number, attribute in fresh:
                row = self._rows.setdefault(attribute.element, len(self._columns))
                if row == len(self._columns):
                    self._columns.append(np.full(COLUMNS, -1, dtype=np.int32))
                self._columns[row][MEASURES.index(attribute.measure)] = number
            numbers = np.append(before.numbers, np.array([number for number, _ in fresh], dtype=np.int32))
            columns = np.array(self._columns, dtype=np.int32)
            elements = {names.add(name): row for name, row in self._rows.items() if row}
            row_of = np.zeros(max(end, 1 + max(elements, default=0)), dtype=np.int32)
            row_of[numbers] = COMPUTED
            row_of[list(elements)] = np.array(list(elements.values()), dtype=np.int32)
            asked = (columns >= 0).reshape(len(columns), GROUPS, KINDS)
            groups = np.array(asked.any(axis=(0, 2)), dtype=np.int32)
            each = asked.sum(axis=(1, 2))
            most = int(each[0] + each[1:].max(initial=0))
            self._wanted = _Wanted(end, WantedPlaces(row_of, columns, groups), numbers, int(numbers[-1]), most)
            return self._wanted
