"""The rows of a table of subscriptions, or of changes to one: put in order by Spark, checked and parsed by a task.

`in_order` numbers rows by their order in the table, so that a task that gets them from a shuffle can restore it.
`Parsed` checks ids and words and parses expressions, except those of a large set that other workers have compiled
(`parallel_pattern_compilation.py`).

Invariant: each row is either good, with an entry (removals: without), or bad, with a reason.
"""

import os
from collections.abc import Callable
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from pathcast.errors import PipelineError
from pathcast.kernels import Bools, Int32s, Int64s
from pathcast.matching import Matcher
from pathcast.matching.subscriptions import LARGEST_ID
from pathcast.matching.table import EnteredPatterns

from .parallel_pattern_compilation import Compiled
from .subscription_report import REPORTED

ADDED, REMOVED = "added", "removed"
# The origin of a row: none (so that a task has at least one row), the table, or the changes.
NOBODY, TABLE, CHANGES = range(3)
# A row's content, its origin (`of`), and its `place` in the order of that origin; `given` is the id as written.
ROWS = "id bigint, subscriber string, xpath string, change string, given string, of int, place bigint"
# The column for lines of a CSV file whose fields do not fit its heading.
_LINE = "pathcast line"
# Stands for a missing entry.
_NOTHING = -1

Reasons = dict[int, tuple[str, int | None]]
# The result of other workers for distinct expressions.
Pieces = Callable[[pa.Array], Compiled]


class Parsed:
    """The rows of a table: `good` ones, and `bad` ones with a reason."""

    def __init__(self, rows: pa.Table, matcher: Matcher, pieces: Pieces, *, has_id: bool) -> None:
        self._kept = kept = matcher.subscriptions
        self._known = len(kept.table)
        reasons, chosen = checked(rows, has_id=has_id)
        entries, own = self._parse(rows["xpath"], chosen, pieces, reasons)
        rows = pa.table(
            [
                *(rows[name] for name in ("id", "subscriber", "xpath", "change")),
                *reason_columns(len(rows), reasons),
                *(pa.array(entries), pa.array(own)),
            ],
            names=[*REPORTED.names, "entry", "own"],
        )
        is_good = pc.is_null(rows["reason"])
        self.good: pa.Table = rows.filter(is_good)
        self.bad: pa.Table = reported(rows.filter(pc.invert(is_good)))

    def _parse(self, xpaths: pa.ChunkedArray, rows: Int64s, pieces: Pieces, reasons: Reasons) -> tuple[Int32s, Bools]:
        """The entries of some rows, and whether each has its own text; problems are added to the reasons."""
        distinct = pc.dictionary_encode(xpaths.take(pa.array(rows)).combine_chunks())
        expressions, places = distinct.dictionary, distinct.indices.to_numpy()
        table = self._kept.table
        compiled = pieces(expressions)
        entries, wrong = compiled.entries, compiled.refused
        own = entries != _NOTHING  # workers compile no plain paths, and only plain paths are not kept as text
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
            EnteredPatterns(rows["entry"].to_numpy(), range(len(rows)), texts),
            self._known,
            owners.dictionary.to_pylist(),
            owners.indices.fill_null(-1).to_numpy(),
            rows["id"].to_numpy().astype(np.int32) if with_ids else None,
        )


def checked(rows: pa.Table, *, has_id: bool) -> tuple[Reasons, Int64s]:
    """The problems in ids and words of rows, and the rows whose expressions must be parsed."""
    ids, changes = rows["id"], rows["change"]
    reasons: Reasons = {}
    is_added = _true(pc.equal(changes, ADDED))
    usable = np.ones(len(rows), dtype=np.bool_)
    if has_id:
        usable = usable_ids(ids)
        for row in np.flatnonzero(~usable).tolist():
            given = rows["given"][row].as_py()
            reasons[row] = f"id must be a whole number from 1 to {LARGEST_ID:,}, got {given!r}", None
    for row in np.flatnonzero(~is_added & ~_true(pc.equal(changes, REMOVED))).tolist():
        reasons[row] = f"change must be '{ADDED}' or '{REMOVED}', got {changes[row].as_py()!r}", None
    return reasons, np.flatnonzero(is_added & usable)


def usable_ids(ids: pa.ChunkedArray) -> Bools:
    """Which numbers are valid ids."""
    return _true(pc.and_(pc.greater(ids, 0), pc.less_equal(ids, LARGEST_ID)))


def in_order(subscriptions: DataFrame | None, changes: DataFrame | None) -> DataFrame:
    """The rows of a table and of changes to it, each with its place, and one row without origin."""
    frames = [_rows(frame, of) for frame, of in ((subscriptions, TABLE), (changes, CHANGES)) if frame is not None]
    return reduce(DataFrame.union, [nobodys_rows(frames[0].sparkSession, 1), *frames])


def nobodys_rows(spark: SparkSession, count: int) -> DataFrame:
    """`count` rows without origin, with places from 0."""
    names = ("id", "subscriber", "xpath", "change", "given")
    kinds = ("bigint", *("string" for _ in names[1:]))
    nothing = (f.lit(None).cast(kind).alias(name) for name, kind in zip(names, kinds, strict=True))
    return spark.range(0, count, 1, 1).select(*nothing, f.lit(NOBODY).alias("of"), f.col("id").alias("place"))


def _rows(frame: DataFrame, of: int) -> DataFrame:
    """Rows of a table, or of changes, that are to be checked and parsed, with their places."""
    changes = of == CHANGES
    check_names(frame.columns, of)
    if "sequence" in frame.columns and changes:
        frame = frame.orderBy("sequence", f.monotonically_increasing_id())
    has_id, has_subscriber = "id" in frame.columns, "subscriber" in frame.columns
    nothing = f.lit(None)
    return frame.select(
        (f.expr("try_cast(id as bigint)") if has_id else nothing.cast("bigint")).alias("id"),
        # An empty name means no subscriber, as in files.
        (f.expr("nullif(cast(subscriber as string), '')") if has_subscriber else nothing.cast("string")).alias(
            "subscriber"
        ),
        f.coalesce(f.col("xpath").cast("string"), f.lit("")).alias("xpath"),
        (f.col("change").cast("string") if changes else f.lit(ADDED)).alias("change"),
        (f.col("id").cast("string") if has_id else f.lit("")).alias("given"),
        f.lit(of).alias("of"),
        f.monotonically_increasing_id().alias("place"),
    )


def check_names(names: list[str], of: int, needed: tuple[str, ...] = ()) -> None:
    """Reject a table, or changes, without the required columns and those in `needed`."""
    changes = of == CHANGES
    for name in dict.fromkeys((*needed, "xpath", *(("id", "change") if changes else ()))):
        if name not in names:
            what = "changes" if changes else "subscriptions"
            advice = (
                "; the file seems to be separated by ';': use commas" if len(names) == 1 and ";" in names[0] else ""
            )
            found = ", ".join(names) or "none"
            raise PipelineError(
                f"the {what} have no column '{name}' (the columns are {found}); add or rename a column{advice}"
            )


def put_in_order(rows: pa.Table, of: int) -> pa.Table:
    """The rows of one origin, put back in order after a shuffle."""
    mine = rows.filter(pc.equal(rows["of"], of))
    return mine.take(pa.array(np.argsort(mine["place"].to_numpy(), kind="stable"))).combine_chunks()


def read_table(spark: SparkSession, path: str | os.PathLike[str], form: str | None = None) -> DataFrame:
    """A table of subscriptions or changes from a file or folder; without `form`, the suffix decides."""
    text = os.fspath(path)
    if form is None:
        form = "csv" if text.removesuffix(".gz").endswith(".csv") else "parquet"
    reader = spark.read.format(form)
    try:
        if form != "csv":
            return reader.load(text)
        reader = reader.options(header="true", escape='"', multiLine="true")  # as `Subscriptions.read` expects it
        fields = reader.load(text).schema.fields
    except AnalysisException as error:
        raise PipelineError(
            f"Spark cannot read the table {text} as {form}: {str(error).partition(chr(10))[0]}; "
            "check its path and format"
        ) from None
    # Spark would drop fields of a line that has more fields than the heading: the whole line replaces the expression,
    # so that it is invalid.
    lines = reader.schema(t.StructType([*fields, t.StructField(_LINE, t.StringType())]))
    rows = lines.option("columnNameOfCorruptRecord", _LINE).load(text)
    if "xpath" not in rows.columns:
        return rows.drop(_LINE)
    longer = f.col(_LINE).isNotNull() & f.col(f"`{fields[-1].name}`").isNotNull()
    return rows.withColumn("xpath", f.when(longer, f.col(_LINE)).otherwise(f.col("xpath"))).drop(_LINE)


def reported(rows: pa.Table, reasons: list[str] | None = None) -> pa.Table:
    """Rows as they appear in a report, with these reasons."""
    rows = rows.select(REPORTED.names).cast(REPORTED)
    if reasons is None:
        return rows
    return rows.set_column(REPORTED.get_field_index("reason"), "reason", pa.array(reasons, pa.string()))


def reason_columns(count: int, reasons: Reasons) -> tuple[pa.Array, pa.Array]:
    """The columns `reason` and `column` of `count` rows."""
    return (
        _sparse(count, {row: reason for row, (reason, _) in reasons.items()}, pa.string()),
        _sparse(count, {row: column for row, (_, column) in reasons.items()}, pa.int32()),
    )


def _sparse(count: int, values: dict[int, str] | dict[int, int | None], kind: pa.DataType) -> pa.Array:
    """A column of nulls but for these values."""
    if not values:
        return pa.nulls(count, kind)
    return pa.array([values.get(row) for row in range(count)], kind)


def _true(values: pa.ChunkedArray) -> Bools:
    return np.asarray(pc.fill_null(values, False).to_numpy(), dtype=np.bool_)
