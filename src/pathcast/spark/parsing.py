"""The rows of a table of subscriptions, or of changes to one, checked and parsed.

Spark reads the table, in parallel and from wherever it is, and hands it to the driver as Arrow columns; the driver
checks ids and parses plain paths. Large sets of patterns with predicates are parsed and compiled by workers
(`compiling.py`).

Invariant: each row is among the good ones, with an entry (removals: without), or among the bad ones, with a reason.
"""

import os

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pathcast.errors import PipelineError
from pathcast.matching import Matcher
from pathcast.matching.bulk import collector_resting
from pathcast.matching.files import LARGEST_ID
from pathcast.matching.table import Entered

from .compiling import compile_in_parallel

ADDED, REMOVED = "added", "removed"
# What a report has of a row.
INVALID = "id bigint, subscriber string, xpath string, change string, reason string, column int"
_REPORTED = pa.schema(
    [
        ("id", pa.int64()),
        ("subscriber", pa.string()),
        ("xpath", pa.string()),
        ("change", pa.string()),
        ("reason", pa.string()),
        ("column", pa.int32()),
    ]
)
# In place of an entry: there is none.
_NOTHING = -1


class Parsed:
    """The rows of a table: `good` ones, and `bad` ones with a reason."""

    def __init__(
        self, rows: pa.Table, matcher: Matcher, spark: SparkSession, *, has_id: bool, many: int | None
    ) -> None:
        self._matcher, self._kept, self._spark, self._many = matcher, matcher.subscriptions, spark, many
        kept = self._kept
        self._known = len(kept.table)
        ids, changes = rows["id"], rows["change"]
        reasons: dict[int, tuple[str, int | None]] = {}
        is_added = _true(pc.equal(changes, ADDED))
        usable = np.ones(len(rows), dtype=np.bool_)
        if has_id:
            usable = _true(pc.and_(pc.greater(ids, 0), pc.less_equal(ids, LARGEST_ID)))
            for row in np.flatnonzero(~usable).tolist():
                given = rows["given"][row].as_py()
                reasons[row] = f"id {given}: an id is a whole number from 1 to {LARGEST_ID:,}", None
        for row in np.flatnonzero(~is_added & ~_true(pc.equal(changes, REMOVED))).tolist():
            reasons[row] = f"change {changes[row].as_py()}: must be '{ADDED}' or '{REMOVED}'", None
        entries, own = self._parse(rows["xpath"], np.flatnonzero(is_added & usable), reasons)
        rows = pa.table(
            [
                *(ids, rows["subscriber"], rows["xpath"], changes),
                _sparse(len(rows), {row: reason for row, (reason, _) in reasons.items()}, pa.string()),
                _sparse(len(rows), {row: column for row, (_, column) in reasons.items()}, pa.int32()),
                *(pa.array(entries), pa.array(own)),
            ],
            names=[*_REPORTED.names, "entry", "own"],
        )
        is_good = pc.is_null(rows["reason"])
        self.good: pa.Table = rows.filter(is_good)
        self.bad: pa.Table = reported(rows.filter(pc.invert(is_good)))

    def _parse(
        self, xpaths: pa.ChunkedArray, rows: npt.NDArray[np.int64], reasons: dict[int, tuple[str, int | None]]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        """The entries of some rows, and whether each has a text of its own; what is wrong goes to the reasons."""
        distinct = pc.dictionary_encode(xpaths.take(pa.array(rows)).combine_chunks())
        expressions, places = distinct.dictionary, distinct.indices.to_numpy()
        table = self._kept.table
        compiled = compile_in_parallel(self._spark, expressions, table, self._matcher.engine, self._many)
        entries, wrong = compiled.entries, compiled.refused
        own = entries != _NOTHING  # what workers compile is no plain path, and these alone are not kept as text
        with collector_resting():
            entered = table.enter(expressions.take(pa.array(compiled.left)).to_pylist(), collect=True)
        good = compiled.left[np.asarray(entered.good, dtype=np.int64)]
        entries[good] = entered.entries
        own[good[list(entered.texts)]] = True
        for error in entered.bad:
            assert error.index is not None
            wrong[int(compiled.left[error.index])] = error.reason, error.column
        is_wrong = np.zeros(len(expressions), dtype=np.bool_)
        is_wrong[list(wrong)] = True
        for at in np.flatnonzero(is_wrong[places]).tolist():
            reasons[int(rows[at])] = wrong[int(places[at])]
        entry_of, own_text = np.full(len(xpaths), _NOTHING, dtype=np.int32), np.zeros(len(xpaths), dtype=np.bool_)
        entry_of[rows], own_text[rows] = entries[places], own[places]
        return entry_of, own_text

    def enter(self, rows: pa.Table, *, with_ids: bool = True) -> None:
        """Add rows, some of the good ones, to the set of subscriptions."""
        owners = pc.dictionary_encode(rows["subscriber"].combine_chunks())
        own = np.flatnonzero(rows["own"].to_numpy())
        texts = dict(zip(own.tolist(), rows["xpath"].take(pa.array(own)).to_pylist(), strict=True))
        self._kept.add_entered(
            Entered(rows["entry"].to_numpy(), range(len(rows)), texts),
            self._known,
            owners.dictionary.to_pylist(),
            owners.indices.fill_null(-1).to_numpy(),
            rows["id"].to_numpy().astype(np.int32) if with_ids else None,
        )


def parse_rows(frame: DataFrame, matcher: Matcher, *, changes: bool, many: int | None) -> Parsed:
    """Check and parse the rows of a table for a matcher; many patterns with predicates are compiled by workers."""
    needed = ["xpath", *(["id", "change"] if changes else [])]
    for name in needed:
        if name not in frame.columns:
            what = "changes" if changes else "subscriptions"
            raise PipelineError(f"the {what} have no column '{name}'; their columns are {', '.join(frame.columns)}")
    if "sequence" in frame.columns and changes:
        frame = frame.orderBy("sequence")
    has_id, has_subscriber = "id" in frame.columns, "subscriber" in frame.columns
    nothing = f.lit(None)
    rows = frame.select(
        (f.expr("try_cast(id as bigint)") if has_id else nothing.cast("bigint")).alias("id"),
        # Nobody's, as in files, where the name is empty.
        (f.expr("nullif(cast(subscriber as string), '')") if has_subscriber else nothing.cast("string")).alias(
            "subscriber"
        ),
        f.coalesce(f.col("xpath").cast("string"), f.lit("")).alias("xpath"),
        (f.col("change").cast("string") if changes else f.lit(ADDED)).alias("change"),
        (f.col("id").cast("string") if has_id else f.lit("")).alias("given"),
    )
    return Parsed(rows.toArrow().combine_chunks(), matcher, frame.sparkSession, has_id=has_id, many=many)


def read_table(spark: SparkSession, path: str | os.PathLike[str], form: str | None = None) -> DataFrame:
    """A table of subscriptions or changes from a file or folder; without `form` by its ending."""
    text = os.fspath(path)
    if form is None:
        form = "csv" if text.removesuffix(".gz").endswith(".csv") else "parquet"
    reader = spark.read.format(form)
    if form == "csv":  # as `Subscriptions.read` takes it
        reader = reader.options(header="true", escape='"', multiLine="true")
    return reader.load(text)


def reported(rows: pa.Table, reasons: list[str] | None = None) -> pa.Table:
    """What a report has of rows, with these reasons."""
    rows = rows.select(_REPORTED.names).cast(_REPORTED)
    if reasons is None:
        return rows
    return rows.set_column(_REPORTED.get_field_index("reason"), "reason", pa.array(reasons, pa.string()))


def _sparse(count: int, values: dict[int, str] | dict[int, int | None], kind: pa.DataType) -> pa.Array:
    """A column of nulls but for these values."""
    if not values:
        return pa.nulls(count, kind)
    return pa.array([values.get(row) for row in range(count)], kind)


def _true(values: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    return np.asarray(pc.fill_null(values, False).to_numpy(), dtype=np.bool_)
