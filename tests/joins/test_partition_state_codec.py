"""States and events of joins as bytes: values keep their types, and malformed bytes are an error."""

import pickle
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf, nan
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.errors import ChangeError, SnapshotError
from pathcast.joins import Schema
from pathcast.joins.partition.join_server_specification import StandingJoins
from pathcast.joins.partition.partition_state_codec import Event, JoinCodec
from pathcast.joins.partition.value_partitioned_join import NO_EDGE, Parts

WORD = 1 << 63
INTS = st.integers(-WORD, WORD - 1)
VALUES = {
    "int": INTS,
    "float": st.one_of(st.floats(allow_nan=False), st.integers(-(1 << 53), 1 << 53), st.sampled_from([-0.0, 1, 1.0])),
    "string": st.text(),
    "date": st.dates(),
    "timestamp": st.datetimes().map(lambda moment: moment.replace(fold=0)),
    "bytes": st.binary(),
}


@st.composite
def contents(draw):
    """A codec of two tables, rows of both, and events."""
    kinds = {table: draw(st.lists(st.sampled_from(list(VALUES)), max_size=4)) for table in "RS"}
    listed = {
        table: ", ".join(["k int", *(f"c{at} {kind}" for at, kind in enumerate(each))]) for table, each in kinds.items()
    }
    codec = JoinCodec(Schema(listed, joins=["R.k = S.k"]), "RS")
    rows = {table: st.tuples(INTS, *(VALUES[kind] | st.none() for kind in each)) for table, each in kinds.items()}
    tables = {
        table: draw(st.dictionaries(INTS, rows[table], min_size=1, max_size=5))
        for table in draw(st.sampled_from(["", "R", "S", "RS"]))
    }
    numbers = st.lists(st.integers(0, WORD - 1), min_size=1, unique=True).map(sorted)
    seen = draw(st.dictionaries(INTS, numbers, max_size=3))
    events = []
    for table in draw(st.lists(st.sampled_from("RS"), max_size=6)):
        old, new = draw(rows[table]), draw(rows[table])
        old, new = draw(st.sampled_from([(old, None), (None, new), (old, new)]))
        events.append(Event(draw(INTS), table, old, new, draw(st.booleans())))
    return codec, tables, seen, events


@settings(max_examples=100)
@given(given=contents())
def test_states_and_events_come_back_with_the_types_of_their_values(given):
    codec, tables, seen, events = given
    assert repr(codec.read_state(codec.write_state(tables, seen))) == repr((tables, seen))
    found = codec.read_events(codec.write_events(events))
    assert repr(found) == repr(events)
    assert all(type(event) is Event for event in found)


STANDING = StandingJoins(
    Schema(
        {"R": "k int, a float, t timestamp", "S": "k int, d date, b bytes, s string", "T": "k int"},
        joins=["R.k = S.k", "S.k = T.k"],
    ),
    ["select * from R, S where R.k = S.k and R.a > 2"],
)
NOON = datetime.fromisoformat("2026-01-02T12:00:00")
R_ROW, S_ROW = (1, 2.5, NOON), (1, date(2026, 1, 2), b"data", "text")
TABLES: dict[str, dict[int, tuple[Any, ...]]] = {"R": {4: R_ROW, 7: (1, 3, None)}, "S": {5: S_ROW}}
SEEN = {2: [4, 5], 3: [7]}
CODEC = Parts(STANDING).codec(0)
STATE = CODEC.write_state(TABLES, SEEN)
EVENTS = CODEC.write_events([Event(1, "R", None, R_ROW, True), Event(2, "S", S_ROW, S_ROW, False)])


@pytest.mark.parametrize("column", ["R.k", "R.a", "R.t", "S.d", "S.b", "S.s"])
@pytest.mark.parametrize(
    "value",
    [True, 1, 1.0, -0.0, 1.5, inf, nan, WORD - 1, WORD, -WORD - 1, 1 << 70, (1 << 53) + 1, Decimal(1), Decimal("0.1"),
     NOON, NOON.replace(tzinfo=UTC), date(2026, 1, 2), "text", "\ud800", b"x", (1,), [1]],
    ids=repr,
)  # fmt: skip
def test_whatever_a_change_brings_is_refused_or_kept_exactly(value, column):
    table, name = column.split(".")
    kind, place = STANDING.schema.kind(table, name), STANDING.schema.place(table, name)
    try:
        event = Parts(STANDING).events(1, "insert", table, {"k": 1, name: value})[0][1]
    except ChangeError:
        return
    assert kind is not None and event.new is not None
    assert type(event.new[place]) in kind.types
    assert repr(CODEC.read_events(CODEC.write_events([event]))) == repr([event])


def test_a_timestamp_with_a_zone_is_kept_as_its_moment_without_one():
    ((_, event),) = Parts(STANDING).events(1, "insert", "R", {"k": 1, "a": -inf, "t": "2026-01-02T13:00:00+01:00"})
    assert CODEC.read_events(CODEC.write_events([event])) == [event]
    assert event.new == (1, -inf, NOON)


def test_a_state_of_an_earlier_version_is_refused_with_advice():
    old = pickle.dumps(({"R": [(4, R_ROW)]}, {2: [4]}), protocol=5)
    ((key, event),) = Parts(STANDING).events(9, "insert", "R", {"k": 1, "a": 1, "t": None})
    with pytest.raises(
        SnapshotError, match=r"state of a join has format version 1, .*; start the stream with a new che"
    ):
        Parts(STANDING).run(key.edge, old, [event])


def forged(tables, steps):
    return STATE[:2] + msgspec.msgpack.encode((tables, steps))


R_LISTED = ("R", [4], [R_ROW])


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (forged([R_LISTED, R_LISTED], []), "a table occurs twice"),
        (forged([R_LISTED], [(2, [4]), (2, [5])]), "a batch occurs twice"),
        (forged([("R", [4, 4], [R_ROW, R_ROW])], []), "table 'R' has 2 rows but 2 row numbers, 1 of them distinct"),
        (forged([("R", [4, 5], [R_ROW])], []), "table 'R' has 1 rows but 2 row numbers"),
        (forged([("R", [4], [R_ROW, R_ROW])], []), "table 'R' has 2 rows but 1 row numbers"),
        (forged([("R", [], [])], []), "table 'R' has 0 rows but 0 row numbers"),
        (forged([("T", [4], [(1,)])], []), "Invalid value 'T'"),
        (forged([("Q", [4], [(1,)])], []), "Invalid value 'Q'"),
        (forged([("R", [4], [(1, 2.5)])], []), "Expected `array` of length 3"),
        (forged([("R", [4], [(1, "x", None)])], []), "Expected `int | float | null`, got `str`"),
        (forged([("R", [4], [(None, 2.5, None)])], []), "Expected `int`, got"),
        (forged([("R", [4], [(1 << 63, 2.5, None)])], []), "Expected `int` <= "),
        (forged([("R", [4], [(True, 2.5, None)])], []), "Expected `int`, got `bool`"),
        (forged([("R", [4], [(1, 2.5, datetime.fromtimestamp(0, UTC))])], []), "no timezone component"),
        (forged([("R", [4], [(1, 2.5, "2026-02-30T00:00:00")])], []), "Invalid RFC3339"),
        (forged([(*R_LISTED, 1)], []), "Expected `array` of at most length"),
        (forged({"R": [4]}, []), "Expected `array`, got `object`"),
    ],
)
def test_a_state_that_makes_no_sense_is_refused(state, reason):
    with pytest.raises(SnapshotError) as caught:
        CODEC.read_state(state)
    assert caught.value.reason.startswith("cannot read the state of a join: ")
    assert reason in caught.value.reason


def test_rows_of_another_join_value_are_refused_and_leave_nothing():
    parts = Parts(STANDING)
    ((_, event),) = parts.events(9, "insert", "R", {"k": 1, "a": 3, "t": None})
    other = CODEC.write_state({"R": {4: R_ROW}, "S": {5: (2, *S_ROW[1:])}}, {})
    with pytest.raises(SnapshotError, match="rows of 'S' do not have the join value"):
        parts.run(0, other, [event])
    state, (answer,) = parts.run(0, None, [event])
    assert answer.error is None and state is not None
    assert CODEC.read_state(state) == ({"R": {9: (1, 3, None)}}, {0: [9]})


def test_states_with_the_same_numbers_do_not_mix():
    parts = Parts(STANDING)
    for value in (1, 2, 1):
        ((_, event),) = parts.events(9, "insert", "R", {"k": value, "a": 3, "t": None})
        given = CODEC.write_state({"R": {4: (value, 2.5, None)}}, {})
        state, _ = parts.run(0, given, [event])
        assert state is not None
        assert CODEC.read_state(state)[0] == {"R": {4: (value, 2.5, None), 9: (value, 3, None)}}


def test_tables_without_an_edge_have_states_of_their_own():
    parts = Parts(StandingJoins(Schema({"R": "a int", "S": "b string"}), ["select * from R where a > 1"]))
    ((key, event),) = parts.events(1, "insert", "S", {"b": "x"})
    state, _ = parts.run(key.edge, None, [event])
    assert key.edge == NO_EDGE and state is not None
    assert parts.codec(NO_EDGE).read_state(state) == ({"S": {1: ("x",)}}, {0: [1]})


def test_events_that_make_no_sense_are_refused():
    wrong: list[Any] = [(0, 1, None, True), (9, 1, R_ROW, True), (0, 1, R_ROW), ("R", 1, R_ROW, True), []]
    for event in wrong:
        with pytest.raises(SnapshotError, match="cannot read the events of a join"):
            CODEC.read_events(EVENTS[:2] + msgspec.msgpack.encode([event]))


@pytest.mark.parametrize("read", [CODEC.read_state, CODEC.read_events])
def test_changed_bytes_are_an_error_or_a_value(read):
    random = Random(5)
    values = 0
    for _ in range(4000):
        data = bytearray(random.choice([STATE, EVENTS]))
        for _ in range(random.randint(1, 3)):
            at = random.randrange(2, len(data))
            data[at : at + random.randint(0, 2)] = random.randbytes(random.randint(0, 2))
        with suppress(SnapshotError):
            read(bytes(data))
            values += 1
    assert values > 50


def test_a_run_from_changed_bytes_ends_with_an_error_of_the_state_or_an_answer():
    random = Random(7)
    parts = Parts(STANDING)
    ((_, event),) = parts.events(9, "insert", "R", {"k": 1, "a": 3, "t": None})
    for _ in range(1000):
        data = bytearray(STATE)
        at = random.randrange(2, len(data))
        data[at : at + random.randint(0, 1)] = random.randbytes(random.randint(0, 1))
        with suppress(SnapshotError):
            parts.run(0, bytes(data), random.choice([[event], []]))
