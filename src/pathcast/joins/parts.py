"""Parts of a standing join: what happens under one join value of one edge needs the rows of that value, no others.

A group R^S along an edge looks, for an event, at the rows of R and S with the event's join value (`groups.py`). So the
tables can be cut by (edge, join value), and every part kept wherever it is wanted, with the subscriptions' index beside
it. A row lies in one part an edge at its table. Selections, which need no edge, are looked after by the table's first
edge, its *home*; a table without edges is cut by its rows.

    change ──keys──▶ (edge, join value), event     ── events of a part, in order ──▶ run ──▶ messages, the part's state

A row's number is that of the event that brought it, so that all edges know the row by the same.

Invariant: the messages of an event, from all parts together, are those of one server that numbers rows by events; in
each part they come in the order of events. An event that a part has seen is passed by. An update of a row that is not
there is an error, and an insertion: the part of the new join value can't know of the old one's.
Cost: a part's rows are laid out and written down each time it is run; so run it with many events at once.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import ChangeError, PathcastError
from ..messages import Message, Points, Scalar, decode
from .schema import Draft, Row
from .server import JoinServer, Step
from .standing import StandingJoins
from .written import plain_value, read_value

# The edge of tables that have none.
NO_EDGE = -1
_SEEN = "seen"
# Events are remembered for so many runs (micro-batches) of the whole, to know those that come again.
REMEMBERED = 10


@dataclass(frozen=True, slots=True)
class Event:
    """A change in one part: the row that goes and the row that comes. At `home` what is wrong with it is told."""

    sequence: int
    table: str
    old: Row | None
    new: Row | None
    home: bool


class Key(NamedTuple):
    """A part's name: an edge, and a join value as JSON."""

    edge: int
    value: str


class Answer(NamedTuple):
    """What came of an event in a part."""

    event: Event
    messages: list[Message]
    error: PathcastError | None


class Parts:
    """Runs the parts of a standing join, one after the other."""

    def __init__(self, standing: StandingJoins) -> None:
        self._standing = standing
        self.schema = standing.schema
        self._home = {
            table: edges[0].number if (edges := self.schema.edges_of(table)) else NO_EDGE
            for table in self.schema.columns
        }
        self._servers: dict[int, JoinServer] = {}

    # Events.

    def events(
        self, sequence: int, verb: str, table: str, row: Mapping[str, Any], values: Mapping[str, Any] | None = None
    ) -> list[tuple[Key, Event]]:
        """A change as an event in each part that it concerns; `ChangeError` when it makes no sense.

        Values may be as JSON has them. A column that is missing is NULL, or for an update as it was.
        """
        old = new = None
        if verb not in ("insert", "delete", "update") or (verb == "update") != (values is not None):
            raise ChangeError(f"a change is an insert, a delete or an update with new values, not '{verb}'")
        if verb != "insert":
            old = self._row(table, row)
        if verb == "insert":
            new = self._row(table, row)
        elif values is not None:
            new = self._row(table, {**row, **values})
        found: list[tuple[Key, Event]] = []
        for edge in self._edges(table):
            keys = [None if each is None else Key(edge, self._value(edge, table, each)) for each in (old, new)]
            home = edge == self._home[table]
            if keys[0] == keys[1] or None in keys:
                key = keys[0] or keys[1]
                assert key is not None
                found.append((key, Event(sequence, table, old, new, home)))
                continue
            for key, went, came in ((keys[0], old, None), (keys[1], None, new)):
                assert key is not None
                found.append((key, Event(sequence, table, went, came, home)))
        return found

    def _edges(self, table: str) -> list[int]:
        return [edge.number for edge in self.schema.edges_of(table)] or [NO_EDGE]

    def _row(self, table: str, given: Mapping[str, Any]) -> Row:
        columns = self.schema.columns.get(table, ())
        values: dict[str, Any] = {**dict.fromkeys(columns), **given}
        for column in columns:
            kind = self.schema.kind(table, column)
            assert kind is not None
            if type(values[column]) not in kind.types:
                try:
                    values[column] = read_value(kind, values[column])
                except ValueError as error:
                    raise ChangeError(f"{table}.{column}: {error}") from None
        return Draft(self.schema).row(table, values)

    def _value(self, edge: int, table: str, row: Row) -> str:
        """A row's join value along an edge, so that equal ones are written alike."""
        names = self.schema.columns[table] if edge == NO_EDGE else self.schema.edges[edge].columns_of(table)
        columns = self.schema.columns[table]
        values = [row[columns.index(name)] for name in names]
        if edge == NO_EDGE:
            values.insert(0, table)
        return json.dumps([_alike(value) for value in values], ensure_ascii=False)

    # Runs.

    def run(
        self, edge: int, state: bytes | None, events: Sequence[Event], batch: int = 0
    ) -> tuple[bytes | None, list[Answer]]:
        """Run a part with the events of a batch; its new state (None for an empty one), and what came of them.

        Batches are numbered in their order, for the whole join alike: what they brought is remembered for some.
        """
        server = self._server(edge)
        seen = _load(server, state)
        known = {sequence for _, sequence in seen}
        answers = []
        try:
            for event in sorted(events, key=lambda each: each.sequence):
                if event.sequence in known:
                    continue
                known.add(event.sequence)
                seen.append((batch, event.sequence))
                answers.append(_answer(server, event))
            kept = [(number, sequence) for number, sequence in seen if number > batch - REMEMBERED]
            return _written(server, kept), answers
        finally:
            for bag in server.bags.values():
                bag.clear()

    def _server(self, edge: int) -> JoinServer:
        """The server of an edge: with the groups that parts of it look after, and tables for one part at a time."""
        server = self._servers.get(edge)
        if server is None:
            server = self._servers[edge] = self._standing.server()
            server.keep_groups(lambda form: (self._home[form.base] if form.edge is None else form.edge.number) == edge)
        return server


def _answer(server: JoinServer, event: Event) -> Answer:
    old, error = event.old, None
    if old is not None and not server.bags[event.table].count(old):
        error = ChangeError(f"'{event.table}' has no row {old!r:.200}")
        old = None
    if old is None and event.new is None:
        return Answer(event, [], error if event.home else None)
    messages = server.make(Step(event.table, old, event.new), number=event.sequence)
    return Answer(event, messages, error if event.home else None)


def _alike(value: Scalar) -> Any:
    """A value as JSON; numbers that are equal look the same."""
    return int(value) if isinstance(value, float) and value.is_integer() else plain_value(value)


def _load(server: JoinServer, state: bytes | None) -> list[tuple[int, int]]:
    """Lay out the rows of a part; the events that it has seen, with their batches."""
    if state is None:
        return []
    message = decode(state)
    seen: list[tuple[int, int]] = []
    for table, rows in _points(message):
        if table == _SEEN:
            seen = [(batch, sequence) for batch, sequence in rows]
            continue
        for number, *row in rows:
            server.bags[table[1:]].insert(number, tuple(row))
    return seen


def _points(message: Message) -> Iterator[tuple[str, tuple[Any, ...]]]:
    for name, value in message.items():
        assert isinstance(value, Points)
        yield name, value.rows


def _written(server: JoinServer, seen: list[tuple[int, int]]) -> bytes | None:
    """The rows of a part and what it has seen, as bytes."""
    tables = {
        f"+{table}": Points(tuple(map(str, range(len(bag.columns) + 1))), tuple((n, *row) for n, row in bag))
        for table, bag in server.bags.items()
        if len(bag)
    }
    if seen:
        tables[_SEEN] = Points(("batch", "event"), tuple(seen))
    return Message(tables).encode() if tables else None
