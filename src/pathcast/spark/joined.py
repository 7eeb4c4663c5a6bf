"""Standing joins on Spark: changes of tables in, the messages that keep all clients right out.

    changes ─ fan out, gather ─▶ (edge, join value, events) ─ shuffle, transformWithState ─▶ (key, answers) ─▶ messages

What happens under one join value of one edge needs no other rows (`pathcast.joins.parts`), so that is the key of the
state: one value a key, in Spark's state store (RocksDB), with the rows of both tables as the joins room writes them.
Events of one key come as one row and its messages leave as one, so that a key costs one look into the store, one entry
and few rows a micro-batch; Arrow batches are made before and behind.

Invariant: messages are those of one server, in the order of `sequence` under each key. An event is applied with the
micro-batch that brings it, in the order of `sequence` among those of the batch, under all of its keys alike: one that
comes late is applied late. One that came within the last `REMEMBERED` micro-batches is passed by. A replayed
micro-batch gives the same messages.
Cost: a look and an entry a key and micro-batch, some 0.1 ms, and the rows of the key, some microseconds each.
"""

import json
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, Row
from pyspark.sql import types as t
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from pathcast.errors import ChangeError, PathcastError, PipelineError
from pathcast.joins import Schema, Selection
from pathcast.joins.parts import Event, Parts
from pathcast.joins.schemes import DEFAULT
from pathcast.joins.standing import Query, StandingJoins
from pathcast.joins.written import write_row

from .checks import ERROR
from .columns import ERROR_TYPE, error_column, errors_of
from .extracted import CHANGE, ROW, SEQUENCE, TABLE
from .shipped import Shipped

VALUES = "values"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
# The edge under which changes travel that can't be made.
_REFUSED = -2
# A worker gathers the events of a partition by key, up to so many.
_GATHERED = 100_000
# Messages leave in Arrow batches of so many.
_UNFOLDED = 10_000
_STATE = "part binary"
_LETTER = [TABLE, CHANGE, ROW, VALUES]
_FANNED = t.StructType(
    [
        t.StructField("edge", t.IntegerType()),
        t.StructField("join_value", t.StringType()),
        t.StructField("events", t.BinaryType()),
        t.StructField(SEQUENCE, t.LongType()),
        *(t.StructField(name, t.StringType()) for name in _LETTER),
        t.StructField("error", ERROR),
    ]
)
_MESSAGES = t.StructType(
    [
        t.StructField("edge", t.IntegerType()),
        t.StructField("join_value", t.StringType()),
        t.StructField(SEQUENCE, t.LongType()),
        t.StructField("number", t.IntegerType()),
        t.StructField("message", t.BinaryType()),
        *(t.StructField(name, t.StringType()) for name in _LETTER),
        t.StructField("error", ERROR),
    ]
)
_ARROW_FANNED = pa.schema(
    [
        ("edge", pa.int32()),
        ("join_value", pa.string()),
        ("events", pa.binary()),
        (SEQUENCE, pa.int64()),
        *((name, pa.string()) for name in _LETTER),
        ("error", ERROR_TYPE),
    ]
)
_ANSWERED = t.StructType([*_FANNED.fields[:2], t.StructField("answers", t.BinaryType())])
_Answered = Row(*_ANSWERED.fieldNames())
_ARROW_MESSAGES = pa.schema(
    [
        ("edge", pa.int32()),
        ("join_value", pa.string()),
        (SEQUENCE, pa.int64()),
        ("number", pa.int32()),
        ("message", pa.binary()),
        *((name, pa.string()) for name in _LETTER),
        ("error", ERROR_TYPE),
    ]
)
# A message or an error of a key: sequence, number, message, the change as table, change, row and values, error.
_Answers = list[tuple[Any, ...]]
Batches = Iterator[pa.RecordBatch]


def join_subscriptions(
    changes: DataFrame,
    schema: Schema,
    subscriptions: Mapping[Any, Query | Iterable[Query]] | Iterable[Query] = (),
    scheme: str = DEFAULT,
    *,
    batches: Iterable[tuple[Selection, Mapping[str, tuple[Any, Any]]]] = (),
    axes: int | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> DataFrame:
    """The messages that changes of tables mean for standing joins (docs/joins.md).

    `changes` has the columns `table`, `change` (insert, delete, update), `row` (JSON), `sequence`, a whole number of
    its own for each change, and for updates `values` (JSON). `subscriptions` are queries, or queries by subscriber,
    with the ids 1, 2, 3, …; `batches` many with ranges as arrays. Where they are many, they are put in a file in
    `folder`, which every worker can read.

    A row per message: `edge` and `join_value`, the key in whose order messages come; `sequence` of the change and the
    `number` of the message within it; `message`, which `pathcast.messages.decode` reads. A change that can't be made
    is a row with `error` and the change. On streams the tables live in the checkpoint.
    """
    _check_changes(changes)
    packed = Shipped.of(StandingJoins(schema, subscriptions, scheme, batches, axes))
    standing = packed.lightened(folder, "the subscriptions")
    provider = str(changes.sparkSession.conf.get(_PROVIDER, ""))
    if "RocksDB" not in provider:
        raise PipelineError(
            f"the session keeps state with {provider or 'its default'}; joins need RocksDB: set {_PROVIDER} to "
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider (pathcast.spark.session does)"
        )
    wanted = [name for name in (*_LETTER, SEQUENCE, "error") if name in changes.columns]
    keyed = changes.select(*wanted).mapInArrow(fanning(standing), _FANNED)
    answered = keyed.groupBy("edge", "join_value").transformWithState(
        JoinProcessor(standing), outputStructType=_ANSWERED, outputMode="Append", timeMode="None"
    )
    return answered.mapInArrow(unfold, _MESSAGES)


def fanning(standing: Shipped) -> Callable[[Batches], Batches]:
    """The function that a worker runs on changes: events by key, and what can't be made."""

    def fan_out(batches: Batches) -> Batches:
        parts = standing.open(Parts)
        waiting: dict[tuple[int, str], list[tuple[Any, ...]]] = {}
        count = 0
        for batch in batches:
            letters = batch.to_pylist()
            failed = errors_of(batch.column("error")) if "error" in batch.schema.names else {}
            for place, letter in enumerate(letters):
                if place in failed:
                    continue
                try:
                    found = _events(parts, letter)
                except PathcastError as error:
                    failed[place] = error
                    continue
                for key, event in found:
                    waiting.setdefault(key, []).append(astuple(event))
                count += len(found)
            if failed:
                yield _refused(letters, failed)
            if count > _GATHERED:
                yield _gathered(waiting)
                waiting, count = {}, 0
        if waiting:
            yield _gathered(waiting)

    return fan_out


def _events(parts: Parts, letter: Mapping[str, Any]) -> list[tuple[tuple[int, str], Event]]:
    """The events of one change."""
    sequence = letter[SEQUENCE]
    if sequence is None:
        raise ChangeError(f"the change has no number: '{SEQUENCE}' is null")
    row, values = _object(letter, ROW), _object(letter, VALUES)
    if row is None:
        raise ChangeError(f"the change has no row: '{ROW}' is null")
    return list(parts.events(sequence, letter[CHANGE] or "", letter[TABLE] or "", row, values))


def _object(letter: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    text = letter.get(name)
    if text is None:
        return None
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ChangeError(f"'{name}' is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ChangeError(f"'{name}' is not an object of columns and values: {text:.60}")
    return found


def _gathered(waiting: Mapping[tuple[int, str], list[tuple[Any, ...]]]) -> pa.RecordBatch:
    columns: dict[str, Any] = {
        "edge": [edge for edge, _ in waiting],
        "join_value": [value for _, value in waiting],
        "events": [pickle.dumps(events, protocol=5) for events in waiting.values()],
    }
    for name in _ARROW_FANNED.names[3:]:
        columns[name] = [None] * len(waiting)
    return pa.RecordBatch.from_pydict(columns, schema=_ARROW_FANNED)


def _refused(letters: list[dict[str, Any]], failed: Mapping[int, PathcastError]) -> pa.RecordBatch:
    rows = [letters[place] for place in failed]
    columns: dict[str, Any] = {name: [row.get(name) for row in rows] for name in (*_LETTER, SEQUENCE)}
    columns |= {"edge": [_REFUSED] * len(rows), "events": [None] * len(rows)}
    columns["join_value"] = [str(row.get(SEQUENCE)) for row in rows]
    columns["error"] = error_column(len(rows), dict(enumerate(failed.values())))
    return pa.RecordBatch.from_pydict(columns, schema=_ARROW_FANNED)


class JoinProcessor(StatefulProcessor):
    """What a worker does with the events of a key: the part of the join that they concern, run from its state."""

    def __init__(self, standing: Shipped) -> None:
        self._standing = standing

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("part", _STATE)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        edge, value = key
        if edge == _REFUSED:
            refused: _Answers = [
                (row[SEQUENCE], None, None, *(row[name] for name in _LETTER), dict(row["error"])) for row in rows
            ]
            yield _Answered(None, None, pickle.dumps(refused, protocol=5))
            return
        events: list[Event] = []
        for row in rows:
            events += [Event(*each) for each in pickle.loads(row["events"])]  # noqa: S301 - what `fanning` wrote
        kept = self._state.get()
        before = None if kept is None else bytes(kept[0])
        parts = self._standing.open(Parts)
        after, answers = parts.run(edge, before, events, _batch())
        if after is None:
            self._state.clear()
        elif after != before:
            self._state.update((after,))
        told: _Answers = []
        for event, messages, error in answers:
            told += [
                (event.sequence, number, message.encode(), None, None, None, None, None)
                for number, message in enumerate(messages)
            ]
            if error is not None:
                told.append((event.sequence, None, None, *_letter(parts.schema, event), _told(error)))
        if told:
            yield _Answered(edge, value, pickle.dumps(told, protocol=5))

    def close(self) -> None:
        """Nothing is open."""


def unfold(batches: Batches) -> Batches:
    """A row for each message and error, of what keys have answered."""
    for batch in batches:
        keys = zip(batch.column("edge").to_pylist(), batch.column("join_value").to_pylist(), strict=True)
        rows = [
            (edge, value, *answer)
            for (edge, value), answers in zip(keys, batch.column("answers").to_pylist(), strict=True)
            for answer in pickle.loads(answers)  # noqa: S301 - what `JoinProcessor` wrote
        ]
        for begin in range(0, len(rows), _UNFOLDED):
            columns = zip(*rows[begin : begin + _UNFOLDED], strict=True)
            arrays = [pa.array(values, kind) for values, kind in zip(columns, _ARROW_MESSAGES.types, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=_ARROW_MESSAGES)


def _letter(schema: Schema, event: Event) -> list[str | None]:
    """An event as the change that it came from: table, change, row and values."""
    old, new = (
        None if row is None else write_row(dict(zip(schema.columns[event.table], row, strict=True)))
        for row in (event.old, event.new)
    )
    if old is None or new is None:
        return [event.table, "delete" if new is None else "insert", old or new, None]
    return [event.table, "update", old, new]


def _told(error: PathcastError) -> dict[str, Any]:
    return {"reason": error.reason, "line": error.line, "column": error.column}


def _batch() -> int:
    """The number of the micro-batch that the running task belongs to; 0 outside of streams."""
    task = TaskContext.get()
    found = None if task is None else task.getLocalProperty("streaming.sql.batchId")
    return 0 if found is None else int(found)


def _check_changes(changes: DataFrame) -> None:
    names = changes.columns
    texts = [TABLE, CHANGE, ROW, *([VALUES] if VALUES in names else [])]
    kinds: list[tuple[str, t.DataType]] = [*((name, t.StringType()) for name in texts), (SEQUENCE, t.LongType())]
    for name, kind in kinds:
        if name not in names:
            raise PipelineError(f"changes have no column '{name}'; the columns are {', '.join(names)}")
        found = changes.schema[name].dataType
        if type(found) is not type(kind):
            raise PipelineError(
                f"the column '{name}' of changes is of type {found.simpleString()}, not {kind.simpleString()}"
            )
