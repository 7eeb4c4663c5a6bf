"""Fan-out: changes of tables become events under the keys that they concern, grouped by key.

A change concerns one key for each edge at its table, or two if it moves a row
(`pathcast.joins.partition.value_partitioned_join`). Events of one key in a partition are one row, so that the later
stages process few rows per key and micro-batch.

Invariant: a change is under all of its keys, or it is a row with its error.
Cost: some 10 µs per change, most of it reading JSON.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import types as t

from pathcast.errors import ChangeError, PathcastError
from pathcast.joins.partition import Event, Key, Parts

from ..arrow_to_spark_types import spark_schema
from ..matching.arrow_document_columns import ERROR_TYPE, error_column, errors_of
from .extract_rows import CHANGE, ROW, SEQUENCE, TABLE
from .worker_join_subscriptions import Subscribed

VALUES = "values"
LETTER = [TABLE, CHANGE, ROW, VALUES]
# The edge of changes that cannot be applied.
REFUSED = -2
# A worker groups the events of a partition by key, up to this many.
_GATHERED = 200_000
_ARROW_FANNED = pa.schema(
    [
        ("edge", pa.int32()),
        ("join_value", pa.string()),
        ("events", pa.binary()),
        (SEQUENCE, pa.int64()),
        *((name, pa.string()) for name in LETTER),
        ("error", ERROR_TYPE),
    ]
)
FANNED = spark_schema(_ARROW_FANNED)
# The time of the micro-batch, in milliseconds, if tasks use it to find their micro-batch.
TIME = "time"
TIMED = t.StructType([*FANNED.fields, t.StructField(TIME, t.LongType())])
_Batches = Iterator[pa.RecordBatch]


def fanning(subscribed: Subscribed) -> Callable[[_Batches], _Batches]:
    """The function that a worker runs on changes: events by key, and changes that cannot be applied."""

    def fan_out(batches: _Batches) -> _Batches:
        parts: Parts | None = None
        time: int | None = None
        waiting: dict[Key, list[Event]] = {}
        count = 0
        for batch in batches:
            if not len(batch):
                continue
            if parts is None:
                time = batch.column(TIME)[0].as_py() if TIME in batch.schema.names else None
                parts = subscribed.open(Parts, batch=subscribed.batch(time))
            failed = errors_of(batch.column("error")) if "error" in batch.schema.names else {}
            columns = [_column(batch, name) for name in (SEQUENCE, *LETTER)]
            for place, letter in enumerate(zip(*columns, strict=True)):
                if place in failed:
                    continue
                try:
                    found = _events(parts, *letter)
                except PathcastError as error:
                    failed[place] = error
                    continue
                for key, event in found:
                    waiting.setdefault(key, []).append(event)
                count += len(found)
            if failed:
                yield _timed(_refused(columns, failed), time)
            if count > _GATHERED:
                yield _timed(_gathered(parts, waiting), time)
                waiting, count = {}, 0
        if parts is not None and waiting:
            yield _timed(_gathered(parts, waiting), time)

    return fan_out


def _column(batch: pa.RecordBatch, name: str) -> list[Any]:
    return batch.column(name).to_pylist() if name in batch.schema.names else [None] * len(batch)


def _events(
    parts: Parts, sequence: int | None, table: str | None, change: str | None, row: str | None, values: str | None
) -> list[tuple[Key, Event]]:
    """The events of one change."""
    if sequence is None:
        raise ChangeError(f"the change has no number: the column '{SEQUENCE}' is null; number all changes")
    if row is None:
        raise ChangeError(f"the change has no row: the column '{ROW}' is null; give the row as a JSON object")
    new = None if values is None else _object(VALUES, values)
    return parts.events(sequence, change or "", table or "", _object(ROW, row), new)


def _object(name: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ChangeError(f"the column '{name}' must be a JSON object, got {text:.60}: {error}") from None
    if not isinstance(found, dict):
        raise ChangeError(f"the column '{name}' must be a JSON object of columns and values, got {text:.60}")
    return found


def _gathered(parts: Parts, waiting: Mapping[Key, list[Event]]) -> pa.RecordBatch:
    columns: dict[str, Any] = {
        "edge": [edge for edge, _ in waiting],
        "join_value": [value for _, value in waiting],
        "events": [parts.codec(key.edge).write_events(events) for key, events in waiting.items()],
    }
    for name, kind in zip(_ARROW_FANNED.names[3:], _ARROW_FANNED.types[3:], strict=True):
        columns[name] = pa.nulls(len(waiting), kind)
    return pa.RecordBatch.from_pydict(columns, schema=_ARROW_FANNED)


def _timed(rows: pa.RecordBatch, time: int | None) -> pa.RecordBatch:
    return rows if time is None else rows.append_column(TIME, pa.array([time] * len(rows), pa.int64()))


def _refused(columns: list[list[Any]], failed: Mapping[int, PathcastError]) -> pa.RecordBatch:
    given = {
        name: [column[place] for place in failed] for name, column in zip((SEQUENCE, *LETTER), columns, strict=True)
    }
    made: dict[str, Any] = {"edge": [REFUSED] * len(failed), "events": [None] * len(failed)}
    made["join_value"] = [str(sequence) for sequence in given[SEQUENCE]]
    made["error"] = error_column(len(failed), dict(enumerate(failed.values())))
    return pa.RecordBatch.from_pydict({**given, **made}, schema=_ARROW_FANNED)
