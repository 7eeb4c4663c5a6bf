"""Matching on Spark: a column of documents in, the same rows with their matches out.

Rows travel as Arrow batches to Python workers (`mapInArrow`). A worker opens the index once, memory-mapped, and keeps
it for all batches and queries that it serves (`worker_index.py`); it reads the documents of a batch as one array of
bytes and returns the matches as one column (`arrow_document_columns.py`). No part of the index passes through the
driver.

Invariant: every input row gives one output row, in its order, with either matches or an error, never both.
Cost: that of the matcher, plus the Arrow transfer of all columns to the worker and back.
"""

import os
from collections.abc import Callable, Iterator
from time import perf_counter_ns
from typing import Literal

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.utils import is_remote

from pathcast.documents import Entities, Limits, pack, unpack
from pathcast.documents.scanner.character_kernels import PADDING
from pathcast.errors import PathcastError, PipelineError
from pathcast.matching import MatchedData, Matcher

from ..arrow_to_spark_types import spark_type
from .arrow_document_columns import Part, bytes_of, error_column, errors_of, lists, parts_of_files, parts_of_rows
from .input_column_checks import ERROR, check_columns, check_structure
from .mediate_documents import Mediating, Stage, mediate, row_by_row
from .parse_documents import STRUCTURE, parse_documents
from .worker_index import Index, PublishedIndex, find_index

By = Literal["id", "subscriber"]

_ARROW_LISTS = {
    "id": pa.list_(pa.field("element", pa.int32(), nullable=False)),
    "subscriber": pa.list_(pa.field("element", pa.string(), nullable=False)),
}
ADDED: dict[str, t.StructField] = {
    "id": t.StructField("matches", spark_type(_ARROW_LISTS["id"])),
    "subscriber": t.StructField("subscribers", spark_type(_ARROW_LISTS["subscriber"])),
}
_ARROW_MEASURED = pa.struct(
    [("version", pa.int32()), ("elements", pa.int64()), ("new_paths", pa.int64()), ("nanoseconds", pa.int64())]
)
# The column of `measure=True`: one row of each part holds the cost of the whole part.
MEASURED = t.StructField("measured", spark_type(_ARROW_MEASURED))
# The column of matches with the subscriptions of a log (log/match_by_step.py).
SUBSCRIPTIONS = "subscriptions"
# The shard of the index that a row was matched with.
SHARD_COLUMN = "shard"


def match_documents(
    documents: DataFrame,
    index: str | os.PathLike[str] | PublishedIndex,
    *,
    document: str = "xml",
    document_path: str | None = None,
    structure: str | None = None,
    mediation: Mediating | None = None,
    by: By = "id",
    limits: Limits | None = None,
    entities: Entities = "refuse",
    measure: bool = False,
) -> DataFrame:
    """Match a column of XML documents (binary or string) against an index.

    `index` is a folder that `matcher.save` or `publish` wrote, or `artifact:NAME` (see `pack_index`), or a
    `PublishedIndex` with a version, pins or shards. The documents are in the column `document`, or in the files that
    the column `document_path` names.

    Keeps all columns and adds `matches` (ids of subscriptions, ascending), or with `by="subscriber"` `subscribers`
    (names, sorted), and `error` (reason, line, column). A document that cannot be read, or is null, has an error and
    null matches; a document that nobody subscribed to has an empty list.

    With `structure`, documents are not parsed: that column has their structures, as `mediate` makes them, and is
    dropped from the output. A row that already has an error keeps it. With `mediation`, documents are mediated in the
    same worker, just before they are matched: like `mediate` and `structure` together, without the transfer between
    the two.

    Of an index in shards (`publish(…, shards=4)`, then `PublishedIndex(folder, shards=4)`) a worker opens one shard.
    Documents are parsed once and matched against every shard. A column `shard` is added: a document has a row for shard
    0, with its error if it has one, and a row for each other shard with a match; `deliver` and `dead_letters` work as
    usual.

    Works on streams too. There, each batch uses the newest version of the index and is pinned to it; outside of streams
    all rows use the newest version. `limits` bounds the size of a document; with `entities="expand"`, documents whose
    DOCTYPE declares internal entities are read, within a limit. With `measure`, a column `measured` is added, for
    `observed` (stream_metrics.py).
    """
    chosen = index if isinstance(index, PublishedIndex) else PublishedIndex(index)
    shards = chosen.shards
    if by not in ADDED:
        raise PipelineError(f"by must be 'id' or 'subscriber', got {by!r}")
    _check_combination(mediation is not None, shards is not None, structure, document_path)
    if shards is not None and mediation is not None:
        documents = mediate(
            documents,
            mediation.mediator,
            mediation.schema,
            version=mediation.version,
            document=document,
            limits=limits,
            entities=entities,
        )
        structure, mediation = STRUCTURE, None
    if shards is not None and structure is None:
        documents = parse_documents(documents, document=document, limits=limits, entities=entities)
        structure = STRUCTURE
    added = [ADDED[by], t.StructField("error", ERROR), *([MEASURED] if measure else [])]
    if structure is not None:
        check_structure(documents.schema, structure, document_path)
    had = structure is not None and "error" in documents.columns
    new = [SHARD_COLUMN] if shards is not None else []
    new += [field.name for field in added if not (had and field.name == "error")]
    check_columns(documents.schema, document, document_path, new)
    found = find_index(chosen, streaming=documents.isStreaming, remote=is_remote(), limits=limits, entities=entities)
    if shards is not None:
        documents = to_shards(documents, shards, has_errors=had)
    gone = [structure, *(["error"] if had else [])]
    kept = [field for field in documents.schema.fields if field.name not in gone]
    schema = t.StructType([*kept, *added])
    if mediation is None:
        function = matching(found, document, by, document_path, measure, structure, sharded=shards is not None)
    else:
        stage = matching_stage(found, by, measure)
        function = mediation.function(documents, document, limits, entities, stage)
    matched = documents.mapInArrow(function, schema)
    if shards is None:
        return matched
    return matched.where((f.col(SHARD_COLUMN) == 0) | (f.size(ADDED[by].name) > 0))


def _check_combination(mediated: bool, sharded: bool, structure: str | None, document_path: str | None) -> None:
    if mediated and (structure is not None or document_path is not None):
        raise PipelineError(
            "mediation= cannot be combined with document_path= or structure=: mediation= reads document= and "
            "creates the structures; omit document_path= and structure="
        )
    if sharded and structure is None and document_path is not None:
        raise PipelineError(
            "shards do not work with document_path=: every document would be read once per shard; use document="
        )


def to_shards(documents: DataFrame, shards: int, *, has_errors: bool) -> DataFrame:
    """A row for each document and shard, the rows of a shard in one partition; documents with errors for the first."""
    numbers = f.array(*(f.lit(number) for number in range(shards)))
    if has_errors:
        numbers = f.when(f.col("error").isNull(), numbers).otherwise(f.array(f.lit(0)))
    spread = documents.withColumn(SHARD_COLUMN, f.explode(numbers))
    return spread.repartitionById(shards, SHARD_COLUMN)


def matching(
    index: Index,
    document: str,
    by: By,
    document_path: str | None = None,
    measure: bool = False,
    structure: str | None = None,
    sharded: bool = False,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that a worker runs on the Arrow batches of a partition."""

    def match_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        shard = None
        matcher, version = (None, None) if sharded else index.open()
        for batch in batches:
            if sharded and len(batch) and batch.column(SHARD_COLUMN)[0].as_py() != shard:
                shard = batch.column(SHARD_COLUMN)[0].as_py()
                matcher, version = index.open(shard)
            if matcher is None:  # a batch without rows
                continue
            if document_path is None:
                parts = parts_of_rows(batch, document)
            else:
                parts = parts_of_files(batch.column(document_path), index.limits or Limits())
            for part in parts:
                rows = batch.slice(part.begin, part.end - part.begin)
                if structure is None:
                    yield add_matches(rows, part, matcher, by, version, measure)
                else:
                    given, rows = with_structures(part, rows, structure)
                    yield add_matches(rows, given, matcher, by, version, measure)

    return match_batches


def matching_stage(index: Index, by: By, measure: bool) -> Callable[[], Stage]:
    """Matching as a stage after another one in the same worker."""

    def open_stage() -> Stage:
        matcher, version = index.open()
        return lambda part, rows: row_by_row(add_matches(rows, part, matcher, by, version, measure))

    return open_stage


_NO_STRUCTURE = "no structure: the column '{}' is null; fill the column with parse_documents(…) or mediate(…)"


def with_structures(part: Part, rows: pa.RecordBatch, structure: str) -> tuple[Part, pa.RecordBatch]:
    """A part whose documents have structures, and its rows without the columns of structures and errors."""
    failed = dict(part.failed)
    if "error" in rows.schema.names:
        failed |= errors_of(rows.column("error"))
        rows = rows.drop_columns(["error"])
    column = rows.column(structure)
    if column.null_count:
        for row in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).tolist():
            failed.setdefault(row, PipelineError(_NO_STRUCTURE.format(structure)))
    return part._replace(failed=failed, structures=bytes_of(column)), rows.drop_columns([structure])


def add_matches(
    rows: pa.RecordBatch, part: Part, matcher: Matcher, by: By, version: int | None = None, measure: bool = False
) -> pa.RecordBatch:
    """The rows of a part with their new columns."""
    before = matcher.engine.statistics() if measure else {}
    began = perf_counter_ns()
    matched = match_part(part, matcher, by)
    values = pa.array(matched.values)
    if by == "subscriber":
        values = _names(matched.names).take(values)
    found = lists(_ARROW_LISTS[by], matched.offsets, values, matched.errors)
    rows = rows.append_column(ADDED[by].name, found)
    rows = rows.append_column("error", error_column(len(rows), matched.errors))
    if measure:
        taken = perf_counter_ns() - began
        after = matcher.engine.statistics()
        elements, new = (int(after.get(name, 0) - before.get(name, 0)) for name in ("elements", "new label paths"))
        facts = {"version": version, "elements": elements, "new_paths": new, "nanoseconds": taken}
        measured = [facts, *([None] * (len(rows) - 1))]
        rows = rows.append_column(MEASURED.name, pa.array(measured, _ARROW_MEASURED))
    return rows


def match_part(part: Part, matcher: Matcher, by: By) -> MatchedData:
    """The matches of a part. A document that breaks the matcher gets an error; the others are still matched."""
    try:
        if part.documents is not None:
            return matcher.match_arrays(part.documents, by, ordered=True)
        if part.structures is not None:
            names = matcher.subscriptions.table.names
            batch = unpack(*part.structures, part.data, part.offsets, names, part.failed)
            return matcher.match_arrays(batch, by, ordered=True)
        return matcher.match_data(part.data, part.offsets, by, text=part.text, failed=part.failed, ordered=True)
    except PathcastError:
        raise
    except Exception as error:  # noqa: BLE001 - becomes a dead letter with a reason
        if len(part.offsets) > 2:
            if part.documents is not None:
                structures = pack(part.documents)
                part = part._replace(failed=part.documents.errors, structures=structures, documents=None)
            return _halves(part, matcher, by)
        reason = f"Pathcast failed on this document ({type(error).__name__}: {error}); please report this bug"
        return MatchedData(np.zeros(2, dtype=np.int64), np.empty(0, dtype=np.int32), [], {0: PipelineError(reason)})


def _halves(part: Part, matcher: Matcher, by: By) -> MatchedData:
    """A part matched in two halves, down to the document that breaks the matcher."""
    middle = (len(part.offsets) - 1) // 2
    answers = []
    for begin, end in ((0, middle), (middle, len(part.offsets) - 1)):
        first, last = part.offsets[begin], part.offsets[end]
        data = np.concatenate((part.data[first:last], np.zeros(PADDING, dtype=np.uint8)))
        failed = {row - begin: error for row, error in part.failed.items() if begin <= row < end}
        half = Part(begin, end, data, part.offsets[begin : end + 1] - first, failed, part.text)
        if part.structures is not None:
            packed, edges = part.structures
            cut = packed[edges[begin] : edges[end]], edges[begin : end + 1] - edges[begin]
            half = half._replace(structures=cut)
        answers.append(match_part(half, matcher, by))
    left, right = answers
    return MatchedData(
        np.concatenate((left.offsets, right.offsets[1:] + left.offsets[-1])),
        np.concatenate((left.values, right.values)),
        left.names or right.names,
        {**left.errors, **{row + middle: error for row, error in right.errors.items()}},
    )


# The subscribers' names of the last matcher, as an Arrow array.
_last_names: tuple[list[str], pa.Array] = ([], pa.array([], pa.string()))


def _names(names: list[str]) -> pa.Array:
    global _last_names  # noqa: PLW0603 - a worker process matches in one thread
    if _last_names[0] is not names:
        _last_names = names, pa.array(names, pa.string())
    return _last_names[1]
