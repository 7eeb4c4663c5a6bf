"""Where a kernel writes the messages of a part, they are those of the server, byte for byte and in order."""

from datetime import date, datetime, timedelta
from random import Random
from typing import Any

import numpy as np
import pytest

from pathcast.joins import Schema, select
from pathcast.joins.partition.join_server_specification import StandingJoins
from pathcast.joins.partition.value_partitioned_join import Parts
from pathcast.messages import decode
from pathcast.messages import value_wire_format as wire_values
from pathcast.messages import value_wire_format_kernels as wire_kernels

DAY, NOON = date(2026, 1, 1), datetime.fromisoformat("2026-01-01T12:00:00")
# How a value of a kind is made from a small number, so that equal values, and neighbours, occur.
VALUES = {
    "int": lambda n: 3 * n - 20,
    "float": lambda n: (n - 5, n - 5.0, n / 4 - 2, -0.0, 1e300 * n)[n % 5],
    "date": lambda n: DAY + timedelta(days=n - 10),
    "timestamp": lambda n: NOON + timedelta(hours=n - 1_000_000),
}


def standing(left, right, random, count=60):
    """Subscriptions with a range on each of two tables, which join on two columns of other names and kinds."""
    schema = Schema(
        {"R": f"z string, j int, a {left}, k float", "S": f"k int, c {right}, j string, n bytes, b string"},
        joins=["R.j = S.k and R.z = S.b"],
    )
    kinds = {"a": left, "c": right}

    def ends(column):
        return tuple(sorted(VALUES[kinds[column]](random.randrange(30)) for _ in range(2)))

    return StandingJoins(
        schema, [select("R", "S", where={column: ends(column) for column in "ac"}) for _ in range(count)]
    )


def draw(random, table, kinds, there):
    """A change of a table: an insertion, a deletion, or the deletion of a missing row."""
    if there[table] and random.random() < 0.45:
        return "delete", table, there[table].pop(random.randrange(len(there[table])))
    own = None if random.random() < 0.1 else VALUES[kinds[table]](random.randrange(30))
    if table == "R":
        row = {"z": "é", "j": 1, "a": own, "k": random.choice([1.5, 2.0, None])}
    else:
        row = {"k": 1, "c": own, "j": random.choice(["", "x" * 200]), "n": random.choice([b"", bytes(300)]), "b": "é"}
    if random.random() < 0.05:
        return "delete", table, row
    there[table].append(row)
    return "insert", table, row


def encoded(found):
    """Of encoded messages: sequence, number and bytes of each message, and errors."""
    ends = np.cumsum(found.lengths).tolist()
    messages = [found.data[end - size : end] for end, size in zip(ends, found.lengths.tolist(), strict=True)]
    errors = [(event.sequence, error.reason) for event, error in found.errors]
    return list(zip(found.sequences.tolist(), found.numbers.tolist(), messages, strict=True)), errors


def answered(answers):
    """The same from answers."""
    messages = [
        (event.sequence, number, message.encode()) for event, each, _ in answers for number, message in enumerate(each)
    ]
    return messages, [(event.sequence, error.reason) for event, _, error in answers if error is not None]


@pytest.mark.parametrize(
    ("left", "right"), [("int", "float"), ("float", "date"), ("timestamp", "int"), ("float", "float")]
)
def test_messages_written_at_once_are_those_of_the_server(left, right):
    random = Random(f"{left} {right}")
    joins = standing(left, right, random)
    writing, serving = Parts(joins), Parts(joins)
    assert writing.site(0).writer is not None
    there: dict[str, list[dict[str, Any]]] = {"R": [], "S": []}
    sequence, kinds = 0, {"R": left, "S": right}
    written_state: bytes | None = None
    served_state: bytes | None = None
    seen: set[object] = set()
    for batch in range(25):
        events = []
        for _ in range(random.choice([1, 5, 40])):
            sequence += 1
            change = draw(random, random.choice("RS"), kinds, there)
            events += [event for _, event in writing.events(sequence, *change)]
        if batch in (9, 18):  # an update, which the server handles; messages after it reflect it
            row = there["R"][0]
            there["R"][0] = {**row, "a": VALUES[left](7)}
            sequence += 1
            events += [event for _, event in writing.events(sequence, "update", "R", row, {"a": VALUES[left](7)})]
        if batch % 6 == 5:  # another process continues from the state
            writing = Parts(joins)
        random.shuffle(events)
        written_state, found = writing.run_encoded(0, written_state, events, batch)
        served_state, answers = serving.run(0, served_state, events, batch)
        assert encoded(found) == answered(answers), batch
        read = writing.codec(0).read_state
        assert written_state is not None and served_state is not None
        assert read(written_state) == read(served_state), batch
        seen.update(decode(message)["#k"] for _, _, message in encoded(found)[0])
    assert {"a", "d", "e", "w"} <= seen


@pytest.mark.slow
def test_large_messages_get_the_room_that_they_need():
    joins = standing("float", "float", Random(5))
    parts = Parts(joins)
    rows = [{"k": 1, "c": float(n % 7) / 3, "j": "", "n": bytes(3_000), "b": ""} for n in range(3_000)]
    changes = [("insert", "S", row) for row in rows]
    changes += [("insert", "R", {"z": "", "j": 1, "a": n / 5, "k": None}) for n in range(-5, 5)]
    events = [event for n, change in enumerate(changes) for _, event in parts.events(n, *change)]
    _, found = parts.run_encoded(0, None, events)
    _, answers = Parts(joins).run(0, None, events)
    assert encoded(found) == answered(answers)
    assert len(found.data) > 1 << 20


def test_numbers_whose_differences_leave_64_bits_are_left_to_the_server():
    schema = Schema({"R": "k int, a int", "S": "k int, c int"}, joins=["R.k = S.k"])
    joins = StandingJoins(schema, [select("R", "S", where={"a": (-(2**63), 0), "c": (-(2**63), 2**63 - 1)})])
    parts = Parts(joins)
    changes = [("S", {"k": 1, "c": c}) for c in (-(2**63), 2**63 - 1, 5)] + [("R", {"k": 1, "a": -(2**63)})]
    events = [event for n, change in enumerate(changes) for _, event in parts.events(n, "insert", *change)]
    _, found = parts.run_encoded(0, None, events)
    assert encoded(found) == answered(Parts(joins).run(0, None, events)[1])


@pytest.mark.parametrize(
    "where",
    [
        {"a": (1, 2)},  # no range on S
        {"a": (1, 2), "c": (1, 2), "d": (1, 2)},  # two axes
        {"R.k": (1, 2), "c": (1, 2)},  # a range on a join column
        {"a": (1, 2), "e": ("x", "y")},  # strings
    ],
    ids=["one table", "two axes", "join column", "strings"],
)
def test_semijoins_of_other_shapes_are_left_to_the_server(where):
    schema = Schema({"R": "k int, a int", "S": "k int, c int, d int, e string"}, joins=["R.k = S.k"])
    parts = Parts(StandingJoins(schema, [select("R", "S", where=where)]))
    assert parts.site(0).writer is None
    changes: list[tuple[str, dict[str, Any]]] = [("S", {"k": 1, "c": 1, "d": 2, "e": "x"}), ("R", {"k": 1, "a": 2})]
    events = [event for n, change in enumerate(changes) for _, event in parts.events(n, "insert", *change)]
    _, found = parts.run_encoded(0, None, events)
    assert [number for number, _, _ in encoded(found)[0]] == [1, 1]


def test_kernels_write_the_tags_of_the_wire():
    names = ["NULL", "WHOLE", "WHOLE_FLOAT", "FLOAT", "STRING", "DATE", "TIMESTAMP", "BYTES", "POINTS", "SKYLINE"]
    names += ["SAME_COLUMN", "MIXED_COLUMN"]
    assert [getattr(wire_values, name) for name in names] == [getattr(wire_kernels, name) for name in names]
