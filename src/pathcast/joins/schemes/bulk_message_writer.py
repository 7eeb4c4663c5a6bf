"""The messages of all events of a part at once, as bytes, where two tables have one axis each.

For an edge whose semijoins have a range on one column of either table, under the default scheme, one kernel call per
part queries the index, writes messages and updates the runs, event by event (`bulk_message_writer_kernels.py`). The
bytes of a row are made once, as long as its part stays in the site; those of a form are made once. No message becomes
an object.

Invariant: messages and tables are those of `JoinServer.make`, byte for byte. The server handles updates, and whole
numbers so large that the difference of two exceeds 64 bits (`fits`).
Cost: some 3 µs per event in Python, plus the index; some 0.1 ms per part.
"""

from array import array
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, Protocol

import numpy as np

from pathcast.errors import ChangeError, PathcastError
from pathcast.kernels import Int32s, Int64s
from pathcast.messages import begun, written_attribute, written_name
from pathcast.messages.value_wire_format_kernels import DATE, FLOAT, SKYLINE, TIMESTAMP, WHOLE
from pathcast.store import grown

from ..index.clustered_semijoin_index import StabbingIndex
from ..index.stabbing_partition_kernels import Clusters
from ..index.window_query_kernels import BoxTrees
from ..partition.partition_host import Part, RowEvent
from ..query.join_graph_schema import Row
from ..query.order_preserving_key_encoding import Kind
from ..server.join_server import JoinServer
from ..server.row_multisets import Bag
from ..server.sorted_row_views import View
from .bulk_message_writer_kernels import WORDS, EventScratch, MessageBuffer, RowSlots, Runs, Wording, write_messages
from .reserved_message_attributes import ABOVE, ARRIVE, AT, BELOW, DEPART, EXPOSE, FORM, KIND, ROW, WITHDRAW
from .reserved_message_attributes import SKYLINE as POINTS
from .scheme_registry import DEFAULT
from .semijoin_group_deltas import Group

# How values of a kind are written, from their keys: a tag, and an offset to subtract (days count from 1970).
_WRITING = {"int": (WHOLE, 0), "float": (FLOAT, 0), "date": (DATE, 719_163), "timestamp": (TIMESTAMP, 0)}
_LARGE = 1 << 62
_FIRST_BYTES, _FIRST_MESSAGES = 1 << 18, 1 << 11
_NO_TREES = BoxTrees(
    bounds=np.empty((0, 8), np.int64),
    links=np.empty((0, 4), np.int32),
    boxes=np.empty((0, 4), np.int64),
    stack=np.empty(0, np.int64),
)
_NO_CLUSTERS = Clusters(_NO_TREES, anchors=np.empty(0, np.int64), roots=np.empty(0, np.int32))


class NumberedEvent(RowEvent, Protocol):
    """The fields of an event that the writer reads."""

    @property
    def sequence(self) -> int: ...

    @property
    def home(self) -> bool: ...


class EncodedMessages(NamedTuple):
    """The messages of a part's events, in order: event, number within the event, length; and the errors."""

    sequences: Int64s
    numbers: Int32s
    lengths: Int32s
    data: bytes
    errors: list[tuple[Any, PathcastError]]


class _Written(NamedTuple):
    """A row as in messages: all columns in order of their names, then the join columns under the other table's names.

    `axis`, `axis_end` and `join` are the positions of the bytes of its axis and its join columns.
    """

    data: bytes
    axis: int
    axis_end: int
    join: int


class _Table:
    """One of the two tables."""

    def __init__(self, bag: Bag, plain: View, keyed: View, own: Group | None, names: Sequence[str], axis: str) -> None:
        """`own`: the group that it is the base of. `names`: the other table's join columns."""
        self.bag, self.plain, self.keyed = bag, plain, keyed
        self.place = bag.columns.index(axis)
        self.kind: Kind = keyed.kinds[0]
        light = {*(own.ranged if own else ()), *bag.schema.join_columns(bag.table)}
        ordered = sorted(bag.columns)
        self._columns = [(name, bag.columns.index(name), name not in light) for name in ordered]
        self._before = ordered.index(axis)
        self._joined = sorted(zip(names, plain.join, strict=True))

    def written(self, row: Row) -> _Written:
        """A row's bytes."""
        pieces = [written_attribute(name, row[place], payload=payload) for name, place, payload in self._columns]
        axis = sum(map(len, pieces[: self._before]))
        join = sum(map(len, pieces))
        pieces += [written_attribute(name, row[place]) for name, place in self._joined]
        return _Written(b"".join(pieces), axis, axis + len(pieces[self._before]), join)


class _Slots:
    """The rows that the kernel needs, each in a slot: those of the part, then new ones."""

    def __init__(self) -> None:
        self.keys: list[int] = []
        self.numbers: list[int] = []
        self.tables: list[int] = []
        self.rows: list[_Written] = []

    def add(self, table: int, key: int, number: int, row: _Written) -> int:
        """Add a row; return its slot."""
        self.keys.append(key)
        self.numbers.append(number)
        self.tables.append(table)
        self.rows.append(row)
        return len(self.keys) - 1

    def arrays(self) -> RowSlots:
        """The slots as arguments of the kernel."""
        begins = [0, *accumulate(len(row.data) for row in self.rows)]
        places = np.array([(0, row.axis, row.axis_end, row.join, len(row.data)) for row in self.rows], np.int64)
        return RowSlots(
            keys=np.array(self.keys, np.int64),
            numbers=np.array(self.numbers, np.int64),
            tables=np.array(self.tables, np.int64),
            places=places.reshape(-1, 5) + np.array(begins[:-1], np.int64)[:, None],
            data=np.frombuffer(b"".join([row.data for row in self.rows]), np.uint8),
        )


class MessageWriter:
    """Writes the messages of events in the parts of one edge."""

    def __init__(self, tables: Sequence[_Table], groups: Sequence[Group | None]) -> None:
        self._tables = tables
        self._numbers = {table.bag.table: number for number, table in enumerate(tables)}
        first, second = (_NO_CLUSTERS if group is None else _clusters(group) for group in groups)
        self._clusters = first, second
        words = [
            word
            for group, table in zip(groups, tables, strict=True)
            for word in (_words(group, table) if group else [b""] * WORDS)
        ]
        self._wording = Wording(
            words=np.frombuffer(b"".join(words), np.uint8),
            ends=np.array([0, *accumulate(map(len, words))], np.int64),
            kinds=np.array([_WRITING[table.kind.name] for table in tables], np.int64),
        )
        lengths, senders = np.empty((2, _FIRST_MESSAGES), np.int32)
        self._buffer = MessageBuffer(np.empty(_FIRST_BYTES, np.uint8), lengths, senders, np.zeros(3, np.int64))

    def fits(self, part: Part, events: Sequence[NumberedEvent]) -> bool:
        """Whether these events of a part are of a shape that the kernel writes."""
        if any(event.old is not None and event.new is not None for event in events):
            return False
        for table in self._tables:
            if table.kind.name == "int":
                name, place = table.bag.table, table.place
                values: list[Any] = [event.new[place] for event in events if event.new and event.table == name]
                keys = table.keyed.run(part.value).keys
                values += (*keys[:1], *keys[-1:])
                if any(value is not None and abs(value) >= _LARGE for value in values):
                    return False
        return True

    def write(self, part: Part, events: Sequence[NumberedEvent]) -> EncodedMessages:
        """Apply changes to a part, in order; return their messages, and the changes that are invalid."""
        slots = _Slots()
        known = [self._laid_out(number, part, slots) for number in range(2)]
        sizes = np.array([len(each) for each in known], np.int64)
        present = [dict.fromkeys(table.plain.run(part.value).rows) for table in self._tables]
        made: list[tuple[int, bool]] = []
        sequences: list[int] = []
        errors: list[tuple[Any, PathcastError]] = []
        touched: set[int] = set()
        for event in events:
            at = self._numbers[event.table]
            table, new = self._tables[at], event.new
            if new is not None:
                number = event.sequence
                table.bag.take(number, new)
                present[at][number] = None
                value = new[table.place]
                if value is not None:
                    written = part.written[event.table][number] = table.written(new)
                    slot = known[at][number] = slots.add(at, table.kind.key(value), number, written)
                    made.append((slot, True))
                    sequences.append(number)
            else:
                assert event.old is not None
                gone = table.bag.give(event.old)
                if gone is None:
                    if event.home:
                        reason = (
                            f"table '{event.table}' has no row {event.old!r:.200}; give the current values of "
                            "all columns"
                        )
                        errors.append((event, ChangeError(reason)))
                    continue
                del present[at][gone]
                if gone in known[at]:
                    made.append((known[at].pop(gone), False))
                    sequences.append(event.sequence)
                    del part.written[event.table][gone]
            touched.add(at)
        found = self._written(part, slots, sizes, made, touched) if made else (_EMPTY, _EMPTY, b"")
        for at in touched:
            rows = array("q", present[at])
            self._tables[at].plain.put(part.value, [()] * len(rows), rows)
        senders, lengths, data = found
        numbers = np.arange(len(senders)) - np.searchsorted(senders, senders)
        return EncodedMessages(np.array(sequences, np.int64)[senders], numbers.astype(np.int32), lengths, data, errors)

    def _laid_out(self, at: int, part: Part, slots: _Slots) -> dict[int, int]:
        """Slots for a table's rows of a part, in the order of its run, by number."""
        table = self._tables[at]
        run = table.keyed.run(part.value)
        written, rows = part.written.setdefault(table.bag.table, {}), table.bag.rows
        found: dict[int, int] = {}
        for key, number in zip(run.keys, run.rows, strict=True):
            one = written.get(number)
            if one is None:
                one = written[number] = table.written(rows[number])
            found[number] = slots.add(at, key, number, one)
        return found

    def _written(
        self, part: Part, slots: _Slots, sizes: Int64s, made: Sequence[tuple[int, bool]], touched: set[int]
    ) -> tuple[Any, Any, bytes]:
        """The kernel's work, runs included: which event sends each message, the messages' lengths, and their bytes."""
        rows = slots.arrays()
        runs = _runs(rows, sizes)
        scratch = _scratch(len(rows.keys))
        self._buffer.progress[:] = 0
        events = np.array(made, np.int64)
        while not write_messages(*self._clusters, events, rows, runs, self._wording, scratch, self._buffer):
            self._grow()
        for at in touched:
            size = sizes[at]
            keys, numbers = runs.keys[at, :size], rows.numbers[runs.slots[at, :size]]
            self._tables[at].keyed.put(part.value, array("q", keys.tobytes()), array("q", numbers.tobytes()))
        data, lengths, senders, progress = self._buffer
        _, count, end = progress.tolist()
        return senders[:count].copy(), lengths[:count].copy(), data[:end].tobytes()

    def _grow(self) -> None:
        """Enlarge the buffer for messages; existing ones stay."""
        data, lengths, senders, progress = self._buffer
        data, lengths, senders = (grown(each, 2 * len(each)) for each in (data, lengths, senders))
        self._buffer = MessageBuffer(data, lengths, senders, progress)


def _runs(rows: RowSlots, sizes: Int64s) -> Runs:
    """The tables' runs, given how many rows each has: they come first among the slots. There is room for all slots."""
    room = len(rows.keys)
    keys, slots = np.empty((2, room), np.int64), np.empty((2, room), np.int32)
    begin = 0
    for at, size in enumerate(sizes.tolist()):
        keys[at, :size], slots[at, :size] = rows.keys[begin : begin + size], np.arange(begin, begin + size)
        begin += size
    return Runs(keys, slots, sizes)


def _scratch(rows: int) -> EventScratch:
    following, found = np.empty((2, rows + 1), np.int32)
    return EventScratch(following, found, np.empty(3 * rows, np.int64), np.empty(rows, np.bool_))


_EMPTY: Any = np.empty(0, np.int32)


def message_writer(server: JoinServer, plain: Mapping[str, View]) -> MessageWriter | None:
    """A writer for a server with one edge; None where its semijoins have other shapes.

    `plain`: the tables of the edge, each with its view by join value alone.
    """
    if server.scheme != DEFAULT or len(plain) != 2:
        return None
    axes: dict[str, set[str]] = {table: set() for table in plain}
    groups: dict[str, Group] = {}
    for group in server.groups():
        form = group.form
        (names, panel), *others = group.panels.items()
        single = len(form.axes) == len(names) == 1 and not others
        if not single or form.base in groups or form.filtering is None or not isinstance(panel.index, StabbingIndex):
            return None
        groups[form.base] = group
        axes[form.base].add(names[0])
        axes[form.filtering].add(form.axes[0])
    if any(len(each) != 1 for each in axes.values()):
        return None
    tables: list[_Table] = []
    for name, other in zip(plain, reversed(list(plain)), strict=True):
        (axis,) = axes[name]
        bag, view = server.bags[name], plain[name]
        join = tuple(bag.columns[place] for place in view.join)
        views = bag.views()
        if views.keys() != {(join, ()), (join, (axis,))}:
            return None
        theirs = [server.bags[other].columns[place] for place in plain[other].join]
        tables.append(_Table(bag, view, views[join, (axis,)], groups.get(name), theirs, axis))
    return MessageWriter(tables, [groups.get(name) for name in plain])


def _clusters(group: Group) -> Clusters:
    (panel,) = group.panels.values()
    assert isinstance(panel.index, StabbingIndex)
    return panel.index.clusters


def _words(group: Group, base: _Table) -> list[bytes]:
    """The constant bytes of a group's messages, before and between values, in the order of the kernel's words."""
    form = written_attribute(FORM, group.number)
    columns, joined = len(base.bag.columns), len(base.plain.join)

    def kind(word: str) -> bytes:
        return written_attribute(KIND, word)

    row = written_attribute(ROW, 0)[:-1]
    at, above, below = (written_name(name) for name in (AT, ABOVE, BELOW))
    skyline = written_name(POINTS) + bytes([SKYLINE, 1]) + written_name(group.form.axes[0])
    words = [
        begun(4 + columns) + form + kind(ARRIVE) + row,
        begun(4 + 1) + form + kind(DEPART) + row,
        skyline,
        begun(6 + columns) + at,
        begun(5 + joined) + at,
        form + above,
        kind(EXPOSE) + below,
        kind(WITHDRAW) + below,
        row,
    ]
    return [bytes(word) for word in words]
