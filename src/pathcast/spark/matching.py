"""Matching on Spark: a column of documents in, the same rows with their matches out.

Rows travel as Arrow batches to Python workers (`mapInArrow`). A worker opens the index once, memory-mapped, and keeps
it for all batches and queries that it serves; an index that was written anew is noticed by its manifest. Nothing of the
index passes through the driver: it must lie where every worker can read it (on a cluster, a shared or copied folder).

Invariant: every input row gives one output row, in its order, with either matches or an error, never both.
Cost: that of the matcher, plus the Arrow transfer of all columns to the worker and back.
Not done: pinning a stream's batch to the version of the index that it first ran with.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from pathcast.errors import PipelineError
from pathcast.matching import Matcher, Matches, open_index
from pathcast.store.snapshot import MANIFEST

ERROR = t.StructType(
    [
        t.StructField("reason", t.StringType()),
        t.StructField("line", t.IntegerType()),
        t.StructField("column", t.IntegerType()),
    ]
)
ADDED: dict[str, t.StructField] = {
    "id": t.StructField("matches", t.ArrayType(t.IntegerType(), containsNull=False)),
    "subscriber": t.StructField("subscribers", t.ArrayType(t.StringType(), containsNull=False)),
}
_ARROW_LISTS = {
    "id": pa.list_(pa.field("element", pa.int32(), nullable=False)),
    "subscriber": pa.list_(pa.field("element", pa.string(), nullable=False)),
}
_ARROW_ERROR = pa.struct([("reason", pa.string()), ("line", pa.int32()), ("column", pa.int32())])

# One index per folder and worker process: (modification time and inode of its manifest, the matcher).
_opened: dict[str, tuple[tuple[int, int], Matcher]] = {}


def match_documents(
    documents: DataFrame,
    index: str | os.PathLike[str],
    *,
    document: str = "xml",
    by: Literal["id", "subscriber"] = "id",
) -> DataFrame:
    """Match a column of XML documents (binary or string) against the index that `matcher.save` wrote to a folder.

    Keeps all columns and adds `matches` (ids of subscriptions, ascending), or with `by="subscriber"` `subscribers`
    (names, sorted), and `error` (reason, line, column). A document that can't be read, or is null, has an error and
    null matches; one that nobody waits for has an empty list. Works on streams too.
    """
    if by not in ADDED:
        raise PipelineError(f"by={by!r}: must be 'id' or 'subscriber'")
    added = [ADDED[by], t.StructField("error", ERROR)]
    _check_columns(documents.schema, document, [field.name for field in added])
    folder = str(Path(index).absolute())
    if not (Path(folder) / MANIFEST).is_file():
        raise PipelineError(f"there is no index at {folder}; to make one: subscriptions.compile().save({str(index)!r})")
    schema = t.StructType([*documents.schema.fields, *added])
    return documents.mapInArrow(matching(folder, document, by), schema)


def matching(folder: str, document: str, by: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that a worker runs on the Arrow batches of a partition."""

    def match_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matcher = opened(folder)
        for batch in batches:
            yield add_matches(batch, matcher, document, by)

    return match_batches


def add_matches(batch: pa.RecordBatch, matcher: Matcher, document: str, by: str) -> pa.RecordBatch:
    """The batch with its two new columns."""
    found: list[object] = []
    errors: list[dict[str, object] | None] = []
    column = batch.column(document).to_pylist()
    answers = matcher.match_many((xml for xml in column if xml is not None), errors="return")
    for xml in column:
        answer = PipelineError("there is no document: the column is null") if xml is None else next(answers)
        if isinstance(answer, Matches):
            found.append(answer.ids if by == "id" else answer.subscribers)
            errors.append(None)
        else:
            found.append(None)
            errors.append({"reason": answer.reason, "line": answer.line, "column": answer.column})
    return batch.append_column(ADDED[by].name, pa.array(found, _ARROW_LISTS[by])).append_column(
        "error", pa.array(errors, _ARROW_ERROR)
    )


def opened(folder: str) -> Matcher:
    """The matcher of an index, opened at most once per process and version of the index."""
    try:
        manifest = (Path(folder) / MANIFEST).stat()
    except OSError as error:
        raise PipelineError(
            f"a Spark worker can't read the index {folder} ({error.strerror}); put it where every worker has it"
        ) from None
    version = (manifest.st_mtime_ns, manifest.st_ino)
    known = _opened.get(folder)
    if known is None or known[0] != version:
        known = _opened[folder] = (version, open_index(folder))
    return known[1]


def _check_columns(schema: t.StructType, document: str, added: list[str]) -> None:
    names = schema.fieldNames()
    if document not in names:
        raise PipelineError(f"there is no column '{document}' with documents; the columns are {', '.join(names)}")
    kind = schema[document].dataType
    if not isinstance(kind, t.BinaryType | t.StringType):
        raise PipelineError(f"the column '{document}' is of type {kind.simpleString()}; documents are binary or string")
    if len(set(names)) < len(names):
        raise PipelineError(f"two columns have the same name; the columns are {', '.join(names)}")
    for name in names:
        if name.lower() in added:  # Spark's column names don't tell capitals apart
            raise PipelineError(f"the column '{name}' is taken, and would be added; rename it first")
