"""Parsing subscriptions on workers: a table's rows come back checked, their patterns ready to be entered.

A worker checks ids and parses the expressions with predicates, with a table of its own. It sends each row with the
number of its pattern there, and the patterns as parcels, in a column that is null but for one row of a batch. The
driver enters the patterns of the rows that it keeps (`Parsed.enter`) without parsing them. Plain paths pass the workers
by: the driver parses one in 2 µs, less than parsing it elsewhere and sending it would take from it.

Invariant: rows come back in the order of the table, each either with a pattern (removals: without) or with a reason.
"""

import os
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.utils import is_remote

from pathcast.errors import PipelineError
from pathcast.matching import Subscriptions
from pathcast.matching.bulk import collector_resting
from pathcast.matching.files import LARGEST_ID
from pathcast.matching.parcels import SENDER_BITS, Parcels, Sender
from pathcast.matching.table import Entered, PatternTable
from pathcast.patterns import Namespaces

ADDED, REMOVED = "added", "removed"
# What a report has of a row.
INVALID = "id bigint, subscriber string, xpath string, change string, reason string, column int"
# And what comes back from workers besides: where in the table the row stands, the number of its pattern, whether the
# expression differs from the pattern's own text, and now and then a parcel and its sender.
_SENT = f"{INVALID}, place bigint, pattern bigint, own boolean, sender int, parcel binary"
_ARROW = pa.schema(
    [
        ("id", pa.int64()),
        ("subscriber", pa.string()),
        ("xpath", pa.string()),
        ("change", pa.string()),
        ("reason", pa.string()),
        ("column", pa.int32()),
        ("place", pa.int64()),
        ("pattern", pa.int64()),
        ("own", pa.bool_()),
        ("sender", pa.int32()),
        ("parcel", pa.binary()),
    ]
)
_REPORTED = _ARROW.names[:6]
# In place of a pattern: there is none, or the driver has to parse it. A pattern that it has parsed is in its own table.
_NOTHING, _UNPARSED = -1, -2
_HERE = (1 << 31) - 1
# What may be no plain path.
_NOT_PLAIN = r"[\[@(]"
# The column that keeps the order of rows which were spread.
_PLACE = "_place"

Work = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Parsed:
    """The rows of a table: `good` ones, and `bad` ones with a reason."""

    def __init__(self, sent: pa.Table, kept: Subscriptions) -> None:
        self._kept = kept
        self._known = len(kept.table)
        self._parcels = Parcels(kept.table)
        has_parcel = sent.filter(pc.is_valid(sent["parcel"]))
        for sender, parcel in zip(has_parcel["sender"].to_pylist(), has_parcel["parcel"].to_pylist(), strict=True):
            self._parcels.take(sender, parcel)
        sent = sent.drop_columns(["sender", "parcel"]).combine_chunks()
        places = sent["place"].to_numpy()
        if not bool(np.all(places[1:] > places[:-1])):
            sent = sent.take(pa.array(np.argsort(places)))
        sent = self._parse_rest(sent)
        is_good = pc.is_null(sent["reason"])
        self.good: pa.Table = sent.filter(is_good)
        self.bad: pa.Table = reported(sent.filter(pc.invert(is_good)))

    def _parse_rest(self, sent: pa.Table) -> pa.Table:
        """Parse what the workers passed by."""
        patterns = sent["pattern"].to_numpy().copy()
        rest = np.flatnonzero(patterns == _UNPARSED)
        if not len(rest):
            return sent
        with collector_resting():
            entered = self._kept.table.enter(sent["xpath"].take(pa.array(rest)).to_pylist(), collect=True)
        good = rest[np.asarray(entered.good, dtype=np.int64)]
        patterns[rest] = _NOTHING
        patterns[good] = entered.entries.astype(np.int64) | _HERE << SENDER_BITS
        own = sent["own"].to_numpy().copy()
        own[good[list(entered.texts)]] = True
        columns = {"pattern": pa.array(patterns), "own": pa.array(own)}
        if entered.bad:
            reasons, places = sent["reason"].to_pylist(), sent["column"].to_pylist()
            for error in entered.bad:
                assert error.index is not None
                reasons[rest[error.index]], places[rest[error.index]] = error.reason, error.column
            columns |= {"reason": pa.array(reasons, pa.string()), "column": pa.array(places, pa.int32())}
        for name, column in columns.items():
            sent = sent.set_column(sent.schema.get_field_index(name), name, column)
        return sent

    def enter(self, rows: pa.Table, *, with_ids: bool = True) -> None:
        """Add rows, some of the good ones, to the set of subscriptions."""
        owners = pc.dictionary_encode(rows["subscriber"].combine_chunks())
        own = np.flatnonzero(rows["own"].to_numpy())
        patterns = rows["pattern"].to_numpy()
        entries = (patterns & (1 << SENDER_BITS) - 1).astype(np.int32)
        elsewhere = patterns >> SENDER_BITS != _HERE
        if elsewhere.any():
            entries[elsewhere] = self._parcels.enter(patterns[elsewhere])
        texts = dict(zip(own.tolist(), rows["xpath"].take(pa.array(own)).to_pylist(), strict=True))
        self._kept.add_entered(
            Entered(entries, range(len(entries)), texts),
            self._known,
            owners.dictionary.to_pylist(),
            owners.indices.fill_null(-1).to_numpy(),
            rows["id"].to_numpy().astype(np.int32) if with_ids else None,
        )


def parse_rows(frame: DataFrame, kept: Subscriptions, *, changes: bool) -> Parsed:
    """Check and parse the rows of a table for a set of subscriptions."""
    needed = ["xpath", *(["id", "change"] if changes else [])]
    for name in needed:
        if name not in frame.columns:
            what = "changes" if changes else "subscriptions"
            raise PipelineError(f"the {what} have no column '{name}'; their columns are {', '.join(frame.columns)}")
    if "sequence" in frame.columns and changes:
        frame = frame.drop(_PLACE).orderBy("sequence")
    has_id, has_subscriber = "id" in frame.columns, "subscriber" in frame.columns
    nothing = f.lit(None)
    rows = frame.select(
        (f.expr("try_cast(id as bigint)") if has_id else nothing.cast("bigint")).alias("id"),
        (f.col("subscriber") if has_subscriber else nothing).cast("string").alias("subscriber"),
        f.col("xpath").cast("string").alias("xpath"),
        (f.col("change").cast("string") if changes else f.lit(ADDED)).alias("change"),
        (f.col("id").cast("string") if has_id else f.lit("")).alias("given"),
        (f.col(_PLACE) if _PLACE in frame.columns else f.monotonically_increasing_id()).alias("place"),
    )
    work = parsing(kept.namespaces, kept.table.max_steps, has_id)
    return Parsed(rows.mapInArrow(work, _SENT).toArrow().cast(_ARROW), kept)


def read_table(spark: SparkSession, path: str | os.PathLike[str], form: str | None = None) -> DataFrame:
    """A table of subscriptions or changes from a file or folder, without `form` by its ending, spread over all cores.

    A file of a million subscriptions may come as a single piece, which one core would parse; the rows keep their order
    in a column of its own.
    """
    text = os.fspath(path)
    if form is None:
        form = "csv" if text.removesuffix(".gz").endswith(".csv") else "parquet"
    reader = spark.read.format(form)
    if form == "csv":  # as `Subscriptions.read` takes it
        reader = reader.options(header="true", escape='"', multiLine="true")
    rows = reader.load(text)
    if is_remote():
        return rows
    cores = spark.sparkContext.defaultParallelism
    if rows.rdd.getNumPartitions() >= cores:
        return rows
    return rows.withColumn(_PLACE, f.monotonically_increasing_id()).repartition(cores, _PLACE)


def parsing(namespaces: Namespaces, max_steps: int, has_id: bool) -> Work:
    """The function with which a worker parses rows of (id, subscriber, xpath, change, id as given, place)."""

    def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        number = 0 if task is None else task.partitionId()
        table = PatternTable(namespaces, max_steps)  # it learns names and beginnings of paths as it goes
        sender = Sender(table)
        for batch in batches:
            if len(batch):
                yield _parsed(batch, table, sender, number, has_id)

    return parse


def _parsed(batch: pa.RecordBatch, table: PatternTable, sender: Sender, number: int, has_id: bool) -> pa.RecordBatch:
    ids, owners, xpaths, changes, given, places = batch.columns
    xpaths = pc.fill_null(xpaths, "")
    owners = pc.if_else(pc.equal(owners, ""), None, owners)  # nobody, as in files
    reasons: dict[int, tuple[str, int | None]] = {}
    is_added = _true(pc.equal(changes, ADDED))
    if has_id:
        is_id = _true(pc.and_(pc.greater(ids, 0), pc.less_equal(ids, LARGEST_ID)))
        for row in np.flatnonzero(~is_id).tolist():
            reasons[row] = f"id {given[row].as_py()}: an id is a whole number from 1 to {LARGEST_ID:,}", None
        is_added &= is_id
    for row in np.flatnonzero(~is_added & ~_true(pc.equal(changes, REMOVED))).tolist():
        if changes[row].as_py() != ADDED:
            reasons[row] = f"change {changes[row].as_py()}: must be '{ADDED}' or '{REMOVED}'", None
    patterns = np.where(is_added, _UNPARSED, _NOTHING)
    own = np.zeros(len(batch), dtype=np.bool_)
    rows = np.flatnonzero(is_added & _true(pc.match_substring_regex(xpaths, _NOT_PLAIN)))
    parcel = None
    if len(rows):
        with collector_resting():
            entered = table.enter(xpaths.take(pa.array(rows)).to_pylist(), collect=True)
        good = rows[np.asarray(entered.good, dtype=np.int64)]
        patterns[rows] = _NOTHING
        patterns[good] = entered.entries.astype(np.int64) | number << SENDER_BITS
        own[good[list(entered.texts)]] = True
        reasons |= {int(rows[error.index or 0]): (error.reason, error.column) for error in entered.bad}
        parcel = sender.parcel()
    return pa.record_batch(
        [
            *(ids, owners, xpaths, changes),
            _sparse(len(batch), {row: reason for row, (reason, _) in reasons.items()}, pa.string()),
            _sparse(len(batch), {row: column for row, (_, column) in reasons.items()}, pa.int32()),
            *(places, pa.array(patterns), pa.array(own)),
            _sparse(len(batch), {} if parcel is None else {0: number}, pa.int32()),
            _sparse(len(batch), {} if parcel is None else {0: parcel}, pa.binary()),
        ],
        schema=_ARROW,
    )


def _sparse(count: int, values: Mapping[int, object], kind: pa.DataType) -> pa.Array:
    """A column of nulls but for these values."""
    if not values:
        return pa.nulls(count, kind)
    return pa.array([values.get(row) for row in range(count)], kind)


def reported(rows: pa.Table, reasons: list[str] | None = None) -> pa.Table:
    """What a report has of rows, with these reasons."""
    rows = rows.select(_REPORTED)
    if reasons is None:
        return rows
    return rows.set_column(_REPORTED.index("reason"), "reason", pa.array(reasons, pa.string()))


def _true(values: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(pc.fill_null(values, False).to_numpy(zero_copy_only=False), dtype=np.bool_).copy()
