"""Parts of a standing join: an event with one join value of one edge needs only the rows of that value.

For an event, a group R^S along an edge reads the rows of R and S with the event's join value
(`semijoin_group_deltas.py`). So the tables can be partitioned by (edge, join value), and a part can be on any machine
that has the subscriptions' index. A row is in one part per edge of its table. Selections, which need no edge, belong to
the table's first edge, its *home*; a table without edges is partitioned by its rows.

    change ──keys──▶ (edge, join value), event     ── events of a part, in order ──▶ run ──▶ messages, the part's state

A row's number is that of the event that inserted it, so that the row has the same number on all edges.

Invariant: the messages of an event, from all parts together, are those of one server that numbers rows by events; in
each part they are in the order of events. A part skips an event that it has already processed, as long as it
remembers the event or still has the row that the event inserted. An update of a missing row is an error, and an
insertion: the part of the new join value does not know the part of the old one.
Cost: each run of a part writes its rows, and reads them unless they are still in memory from the last run
(`partition_host.py`); so run a part with many events at once.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from math import isnan
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from pathcast.errors import ChangeError, PathcastError
from pathcast.messages import Message, Scalar

from ..query.join_graph_schema import Draft, Row
from ..query.order_preserving_key_encoding import Kind
from ..query.value_text_conversion import plain_value, read_value
from ..schemes.bulk_message_writer import EncodedMessages, message_writer
from ..server.join_server import JoinServer, Step, wrong_change
from .join_server_specification import StandingJoins
from .partition_host import Part, Site
from .partition_state_codec import Event, JoinCodec

# The edge number of tables without edges.
NO_EDGE = -1
# Events are remembered for this many runs (micro-batches) of the whole join, to detect repeated ones.
REMEMBERED = 10
# Up to this many join values are cached as text.
_TEXTS = 100_000
# Smaller whole numbers have an equal float.
_EXACT = 1 << 53


class Key(NamedTuple):
    """A part's name: an edge, and a join value as JSON."""

    edge: int
    value: str


class Answer(NamedTuple):
    """The outcome of an event in a part."""

    event: Event
    messages: list[Message]
    error: PathcastError | None


T = TypeVar("T")
# Processes the new events of a part, in order.
_Make: TypeAlias = Callable[[Site, Part, Sequence[Event]], T]


class Parts:
    """Runs the parts of a standing join, one after the other."""

    def __init__(self, standing: StandingJoins) -> None:
        self._standing = standing
        schema = self.schema = standing.schema
        self._home = {
            table: edges[0].number if (edges := schema.edges_of(table)) else NO_EDGE for table in schema.columns
        }
        self._columns = {
            table: [(name, schema.kind(table, name), name in schema.join_columns(table)) for name in columns]
            for table, columns in schema.columns.items()
        }
        self._named = {table: frozenset(columns) for table, columns in schema.columns.items()}
        self._joined = {table: self._join_places(table) for table in schema.columns}
        self._texts: dict[tuple[Scalar, ...], str] = {}
        self._sites: dict[int, Site] = {}
        self._codecs: dict[int, JoinCodec] = {}

    def _join_places(self, table: str) -> list[tuple[int, list[int]]]:
        """The edges at a table, each with the positions of its join columns; all positions if there is no edge."""
        columns = self.schema.columns[table]
        found = [
            (edge.number, [columns.index(name) for name in edge.columns_of(table)])
            for edge in self.schema.edges_of(table)
        ]
        return found or [(NO_EDGE, list(range(len(columns))))]

    # Events.

    def events(
        self, sequence: int, verb: str, table: str, row: Mapping[str, Any], values: Mapping[str, Any] | None = None
    ) -> list[tuple[Key, Event]]:
        """A change as an event in each part that it concerns; `ChangeError` when it is invalid.

        Values may have their JSON form. A missing column is NULL, or unchanged in an update.
        """
        old = new = None
        if verb not in ("insert", "delete", "update") or (verb == "update") != (values is not None):
            raise wrong_change(verb)
        if verb != "insert":
            old = self._row(table, row)
        if verb == "insert":
            new = self._row(table, row)
        elif values is not None:
            new = self._row(table, {**row, **values})
        found: list[tuple[Key, Event]] = []
        for edge, places in self._joined[table]:
            went = None if old is None else self._key(edge, table, [old[place] for place in places])
            came = None if new is None else self._key(edge, table, [new[place] for place in places])
            home = edge == self._home[table]
            key = came if went is None or went == came else went if came is None else None
            if key is not None:
                found.append((key, Event(sequence, table, old, new, home)))
            else:
                assert went is not None
                assert came is not None
                found += [
                    (went, Event(sequence, table, old, None, home)),
                    (came, Event(sequence, table, None, new, home)),
                ]
        return found

    def _row(self, table: str, given: Mapping[str, Any]) -> Row:
        columns = self._columns.get(table)
        if columns is None or not given.keys() <= self._named[table]:
            Draft(self.schema).row(table, given)
            raise AssertionError("the draft should have rejected an unknown table or column")
        return tuple([_value(table, name, kind, given.get(name), joined) for name, kind, joined in columns])

    def _key(self, edge: int, table: str, values: list[Scalar]) -> Key:
        """The part of a row with some join values; equal values have the same text."""
        if edge == NO_EDGE:
            return Key(edge, _text([table, *values]))
        name = tuple(values)
        text = self._texts.get(name)
        if text is None:
            if len(self._texts) >= _TEXTS:
                self._texts.clear()
            text = self._texts[name] = _text(values)
        return Key(edge, text)

    # Runs.

    def run(
        self, edge: int, state: bytes | None, events: Sequence[Event], batch: int = 0
    ) -> tuple[bytes | None, list[Answer]]:
        """Run a part with the events of a batch; return its new state (None for an empty one) and the outcomes.

        Batches are numbered in order, for the whole join; events of recent batches are remembered.
        """
        return self._run(edge, state, events, batch, _answers)

    def run_encoded(
        self, edge: int, state: bytes | None, events: Sequence[Event], batch: int = 0
    ) -> tuple[bytes | None, EncodedMessages]:
        """The same, with messages as bytes; much faster where a `MessageWriter` supports the shape of the semijoins."""
        return self._run(edge, state, events, batch, self._write)

    def _write(self, site: Site, part: Part, events: Sequence[Event]) -> EncodedMessages:
        if site.writer is not None and site.writer.fits(part, events):
            return site.writer.write(part, events)
        return _encoded(_answers(site, part, events))

    def _run(
        self, edge: int, state: bytes | None, events: Sequence[Event], batch: int, make: _Make[T]
    ) -> tuple[bytes | None, T]:
        site = self.site(edge)
        with site.laid_out(state, events) as part:
            known = {sequence for sequences in part.seen.values() for sequence in sequences}
            rows = {table: site.server.bags[table].rows for table in part.tables}
            fresh: list[Event] = []
            for event in sorted(events, key=itemgetter(0)):
                brought = event.new is not None and event.sequence in rows[event.table]
                if event.sequence not in known and not brought:
                    known.add(event.sequence)
                    fresh.append(event)
            made = make(site, part, fresh)
            part.seen = {number: each for number, each in part.seen.items() if number > batch - REMEMBERED}
            if fresh:
                part.seen[batch] = sorted([*part.seen.get(batch, ()), *(event.sequence for event in fresh)])
            return site.written(part), made

    def site(self, edge: int) -> Site:
        """The site of an edge: a server with the groups of its parts."""
        site = self._sites.get(edge)
        if site is None:
            server = self._standing.server()
            server.keep_groups(lambda form: (self._home[form.base] if form.edge is None else form.edge.number) == edge)
            codec = self.codec(edge)
            site = self._sites[edge] = Site(server, self._tables(edge), codec, together=edge != NO_EDGE)
            site.writer = message_writer(server, site.views)
        return site

    def codec(self, edge: int) -> JoinCodec:
        """Writes and reads the states and events of an edge."""
        codec = self._codecs.get(edge)
        if codec is None:
            codec = self._codecs[edge] = JoinCodec(self.schema, self._tables(edge))
        return codec

    def _tables(self, edge: int) -> dict[str, list[int]]:
        """The tables of an edge, each with the positions of its join columns."""
        return {table: places for table, each in self._joined.items() for number, places in each if number == edge}


def _answers(site: Site, part: Part, events: Sequence[Event]) -> list[Answer]:
    part.written.clear()
    return [_answer(site.server, event) for event in events]


def _encoded(answers: Sequence[Answer]) -> EncodedMessages:
    sequences, numbers, data = [], [], []
    for event, messages, _ in answers:
        for number, message in enumerate(messages):
            sequences.append(event.sequence)
            numbers.append(number)
            data.append(message.encode())
    return EncodedMessages(
        np.array(sequences, np.int64),
        np.array(numbers, np.int32),
        np.array([len(one) for one in data], np.int32),
        b"".join(data),
        [(event, error) for event, _, error in answers if error is not None],
    )


def _answer(server: JoinServer, event: Event) -> Answer:
    old, error = event.old, None
    if old is not None and not server.bags[event.table].count(old):
        error = ChangeError(f"table '{event.table}' has no row {old!r:.200}; give the current values of all columns")
        old = None
    if old is None and event.new is None:
        return Answer(event, [], error if event.home else None)
    messages = server.make(Step(event.table, old, event.new), number=event.sequence)
    return Answer(event, messages, error if event.home else None)


def _value(table: str, name: str, kind: Kind | None, value: Any, joined: bool) -> Scalar:
    """A checked value for a column."""
    assert kind is not None, "the schema of standing joins declares all kinds"
    if type(value) in kind.types:
        if (type(value) is float and not isnan(value)) or (type(value) is int and abs(value) < _EXACT):
            return value
        wrong = kind.check(value)
    else:
        wrong = None
        try:
            value = read_value(kind, value)
        except ValueError as error:
            wrong = str(error)
        if value is None and joined:
            raise ChangeError(f"{table}.{name} is a join column and must not be NULL; give a value")
    if wrong is not None:
        raise ChangeError(f"invalid value of column {table}.{name}: {wrong}")
    return value  # type: ignore[no-any-return]


def _text(values: list[Scalar]) -> str:
    """Values as JSON; equal numbers have the same text."""
    plain = [int(value) if isinstance(value, float) and value.is_integer() else plain_value(value) for value in values]
    return json.dumps(plain, ensure_ascii=False)
