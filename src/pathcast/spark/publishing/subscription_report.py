"""The result of a task that compiles a table of subscriptions: one row of counts, and a row per invalid row.

    version_count, subscriptions_count, …, failure │ id, subscriber, xpath, change, reason, column
    the row of counts: all of these, or a failure  │ null
    invalid rows: null                              │ as they were, with the reason

Invalid rows stay in Spark, as a frame; the driver fetches only the row of counts. An error that the task raises on
purpose travels in that row, and the driver raises it again.

Invariant: a task runs once: later requests are read from Spark's local checkpoint, and nothing is published again.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from pathcast.errors import PathcastError

from ..sessions.connect_local_checkpoint import checkpoint
from .task_error_codec import read_failure, write_failure

# The columns of an invalid row in a report.
INVALID = "id bigint, subscriber string, xpath string, change string, reason string, column int"
REPORTED = pa.schema(
    [
        ("id", pa.int64()),
        *((name, pa.string()) for name in ("subscriber", "xpath", "change", "reason")),
        ("column", pa.int32()),
    ]
)
# Instead of a version: nothing was published, because too many rows are invalid.
REJECTED = 0
# The number of invalid rows per Arrow batch.
_AT_ONCE = 1000

Batches = Iterator[pa.RecordBatch]


class Counts(NamedTuple):
    """The result for a table: its version, whether this version is new (1) or not (0), and counts."""

    version: int
    published: int
    subscriptions: int
    added: int
    removed: int
    changed: int
    invalid: int

    def has_too_many_invalid(self, share: float) -> bool:
        """Whether more than this share of the subscriptions are invalid."""
        return self.invalid > share * (self.subscriptions + self.invalid)

    @property
    def line(self) -> str:
        """The report in one line."""
        if self.version == REJECTED:
            return f"nothing published: {self.invalid:,} of {self.subscriptions + self.invalid:,} are invalid"
        count = f"{self.subscriptions:,} subscriptions"
        if not self.published:
            return f"version {self.version}, unchanged: {count}, {self.invalid:,} invalid"
        return f"version {self.version}: {count}, {self.changes}, {self.invalid:,} invalid"

    @property
    def changes(self) -> str:
        """The difference from the version before, as text."""
        unchanged = self.subscriptions - self.added - self.changed
        return f"{self.added:,} added, {self.removed:,} removed, {self.changed:,} changed, {unchanged:,} unchanged"


_NAMES = [f"{name}_count" for name in Counts._fields]
TOLD = f"{', '.join(f'{name} bigint' for name in _NAMES)}, failure binary, {INVALID}"
_TOLD = pa.schema([*((name, pa.int64()) for name in _NAMES), ("failure", pa.binary()), *REPORTED])


@dataclass(frozen=True, slots=True)
class SubscriptionReport:
    """The result of publishing a table of subscriptions.

    `version` is that of the index with these subscriptions; `published` is whether this call published it: input that
    changes nothing publishes nothing. `added`, `removed` and `changed` (another expression or subscriber under the same
    id) compare it with the version before; `subscriptions` is the total. `invalid` has the rows that are not in the
    index, each with `reason` and, if the expression is invalid, the `column` in it. If too many are invalid, nothing is
    published and `version` is 0.
    """

    counts: Counts
    invalid: DataFrame

    @property
    def version(self) -> int:
        return self.counts.version

    @property
    def published(self) -> bool:
        return bool(self.counts.published)

    @property
    def subscriptions(self) -> int:
        return self.counts.subscriptions

    @property
    def added(self) -> int:
        return self.counts.added

    @property
    def removed(self) -> int:
        return self.counts.removed

    @property
    def changed(self) -> int:
        return self.counts.changed

    @property
    def invalid_count(self) -> int:
        return self.counts.invalid

    @property
    def line(self) -> str:
        """The report in one line."""
        return self.counts.line


def told(counts: Counts, invalid: pa.Table | None = None) -> pa.Table:
    """Counts and invalid rows, as a task returns them."""
    row = dict(zip(_NAMES, counts, strict=True))
    rows = pa.Table.from_pylist([row], _TOLD)
    return rows if invalid is None else pa.concat_tables([rows, refused(invalid)])


def refused(invalid: pa.Table) -> pa.Table:
    """Invalid rows, as a task returns them."""
    nothing = [pa.nulls(len(invalid), field.type) for field in _TOLD if field.name not in REPORTED.names]
    return pa.table([*nothing, *(invalid[name] for name in REPORTED.names)], schema=_TOLD)


def telling(work: Callable[[], pa.Table]) -> Batches:
    """The result of `work`, or the error that it raised on purpose, for the driver to raise."""
    try:
        rows = work()
    except PathcastError as error:
        rows = pa.Table.from_pylist([{"failure": write_failure(error)}], _TOLD)
    yield from rows.combine_chunks().to_batches(max_chunksize=_AT_ONCE)


def told_by(frame: DataFrame) -> tuple[Counts, DataFrame]:
    """The counts and invalid rows in the frame of one task; the task runs now, and never again."""
    kept = checkpoint(frame)  # filled by what is fetched here
    (row,) = kept.where("reason is null").select(*_NAMES, "failure").collect()
    return counted(row), wrong_rows(kept)


def counts_in(rows: pa.Table) -> tuple[Counts, pa.Table]:
    """The counts and invalid rows of a table that `told` made."""
    is_wrong = pc.is_valid(rows["reason"])
    (row,) = rows.filter(pc.invert(is_wrong)).select(_NAMES).to_pylist()
    return Counts(*row.values()), rows.filter(is_wrong).select(REPORTED.names)


def counted(row: Any) -> Counts:
    """The counts in a row of Spark; raises the failure if it contains one."""
    if row.failure is not None:
        raise read_failure(bytes(row.failure))
    return Counts(*row[: len(_NAMES)])


def wrong_rows(frame: DataFrame) -> DataFrame:
    """The invalid rows of a result."""
    return frame.where("reason is not null").select(*REPORTED.names)


def report(counts: Counts, invalid: DataFrame) -> SubscriptionReport:
    """The report of counts and invalid rows for the caller."""
    return SubscriptionReport(counts, invalid)


def written(rows: pa.Table) -> bytes:
    """A result as bytes, for `read`."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def read(data: bytes) -> pa.Table:
    """The result that `written` was given."""
    with pa.ipc.open_stream(data) as stream:
        return stream.read_all()
