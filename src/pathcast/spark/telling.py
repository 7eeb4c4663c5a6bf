"""What a task that compiles a table of subscriptions tells: one row of counts, and a row for each that is wrong.

    version_count, subscriptions_count, …, failure │ id, subscriber, xpath, change, reason, column
    the row of counts: all of these, or a failure  │ null
    rows that are wrong: null                      │ as they were, with the reason

Rows that are wrong stay with Spark, as a frame; the driver fetches the row of counts and nothing else. An error that
the task raises on purpose travels in that row, and the driver raises it as it was.

Invariant: a task tells once: what is asked for later is read from Spark's local checkpoint, and nothing is published
again.
"""

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame

from pathcast.errors import PathcastError

# What a report has of a row.
INVALID = "id bigint, subscriber string, xpath string, change string, reason string, column int"
REPORTED = pa.schema(
    [
        ("id", pa.int64()),
        *((name, pa.string()) for name in ("subscriber", "xpath", "change", "reason")),
        ("column", pa.int32()),
    ]
)
# So many rows that are wrong go to Spark at a time.
_AT_ONCE = 1000

Batches = Iterator[pa.RecordBatch]


class Counts(NamedTuple):
    """What became of a table: the version that holds it, and how many of what."""

    version: int
    subscriptions: int
    added: int
    removed: int
    invalid: int


_NAMES = [f"{name}_count" for name in Counts._fields]
TOLD = f"{', '.join(f'{name} bigint' for name in _NAMES)}, failure binary, {INVALID}"
_TOLD = pa.schema([*((name, pa.int64()) for name in _NAMES), ("failure", pa.binary()), *REPORTED])


@dataclass(frozen=True, slots=True)
class SubscriptionReport:
    """What became of a table of subscriptions.

    `version` of the index that holds them; `added` and `removed` against what was there before (a subscription that
    was changed counts in both), for a whole set against nothing; `subscriptions` in all; `invalid` are the rows that
    are not in the index, each with `reason` and, where the expression is at fault, the `column` in it.
    """

    version: int
    subscriptions: int
    added: int
    removed: int
    invalid_count: int
    invalid: DataFrame

    @property
    def line(self) -> str:
        """One line for people."""
        return (
            f"version {self.version}: {self.subscriptions:,} subscriptions, {self.added:,} added, "
            f"{self.removed:,} removed, {self.invalid_count:,} invalid"
        )


def told(counts: Counts, invalid: pa.Table | None = None) -> pa.Table:
    """Counts, and the rows that are wrong, as a task tells them."""
    row = dict(zip(_NAMES, counts, strict=True))
    rows = pa.Table.from_pylist([row], _TOLD)
    return rows if invalid is None else pa.concat_tables([rows, refused(invalid)])


def refused(invalid: pa.Table) -> pa.Table:
    """Rows that are wrong, as a task tells them."""
    nothing = [pa.nulls(len(invalid), field.type) for field in _TOLD if field.name not in REPORTED.names]
    return pa.table([*nothing, *(invalid[name] for name in REPORTED.names)], schema=_TOLD)


def telling(work: Callable[[], pa.Table]) -> Batches:
    """What work tells; or the error that it raised on purpose, for the driver to raise."""
    try:
        rows = work()
    except PathcastError as error:
        rows = pa.Table.from_pylist([{"failure": pickle.dumps(error)}], _TOLD)
    yield from rows.combine_chunks().to_batches(max_chunksize=_AT_ONCE)


def told_by(frame: DataFrame) -> tuple[Counts, DataFrame]:
    """The counts that a frame of one task tells, and its rows that are wrong; the task runs now, and never again."""
    kept = frame.localCheckpoint(eager=False)  # filled by what is fetched here
    (row,) = kept.where("reason is null").select(*_NAMES, "failure").collect()
    return counted(row), wrong_rows(kept)


def counted(row: Any) -> Counts:
    """The counts in a row of Spark's; the failure, if it tells of one, is raised."""
    if row.failure is not None:
        raise pickle.loads(row.failure)  # noqa: S301 - what a worker of our own wrote
    return Counts(*row[: len(_NAMES)])


def wrong_rows(frame: DataFrame) -> DataFrame:
    """Of what was told, the rows that are wrong."""
    return frame.where("reason is not null").select(*REPORTED.names)


def report(counts: Counts, invalid: DataFrame) -> SubscriptionReport:
    """Counts and rows that are wrong, for whoever gave the table."""
    return SubscriptionReport(*counts, invalid=invalid)


def written(rows: pa.Table) -> bytes:
    """What was told, as bytes that `read` takes back."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def read(data: bytes) -> pa.Table:
    """What `written` was given."""
    with pa.ipc.open_stream(data) as stream:
        return stream.read_all()
