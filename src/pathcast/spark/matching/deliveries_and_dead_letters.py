"""Results of matching: a row for each document and subscriber, and a row for each unreadable document.

Both read the frame that `match_documents` made. Two writes of one frame compute it twice: persist it first, or in a
stream split it in `foreachBatch` and write with `write_once`: a batch that Spark replays after a crash replaces the
rows of its first attempt, so that no row is there twice.
"""

import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from pathcast.documents import Limits
from pathcast.errors import PipelineError

from .arrow_document_columns import binary_column, parts_of_files
from .match_documents import ADDED, MEASURED, SUBSCRIPTIONS

SOURCE_FILE, SOURCE_OFFSET = "source_file", "source_offset"
# Holds the documents of files, as in Spark's format binaryFile.
CONTENT = "content"


def deliver(matched: DataFrame) -> DataFrame:
    """One row per document and subscriber: the document's columns and `subscriber`."""
    _need(matched, "subscribers", 'match_documents(…, by="subscriber")')
    if "subscriber" in matched.columns:
        raise PipelineError(
            "the column 'subscriber' already exists, but the result needs this name; rename the column first"
        )
    rows = matched.withColumn("subscriber", f.explode("subscribers"))
    return rows.drop("subscribers", "error", MEASURED.name)


def dead_letters(matched: DataFrame) -> DataFrame:
    """The documents that could not be read: their columns, and `error` (reason, line, column)."""
    _need(matched, "error", "match_documents(…)")
    added = (*(field.name for field in ADDED.values()), SUBSCRIPTIONS, MEASURED.name)
    return matched.where(f.col("error").isNotNull()).drop(*added)


def with_content(rows: DataFrame, path: str, limits: Limits) -> DataFrame:
    """Rows with `content`: the bytes of the file that the column `path` names, as far as workers can read it.

    The content is null for a file that is missing, unreadable, or larger than `limits.size`.
    """

    def read_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in parts_of_files(batch.column(path), limits):
                content = binary_column(part.data, part.offsets, part.failed)
                yield batch.slice(part.begin, part.end - part.begin).append_column(CONTENT, content)

    return rows.mapInArrow(read_batches, t.StructType([*rows.schema.fields, t.StructField(CONTENT, t.BinaryType())]))


def with_source(documents: DataFrame) -> DataFrame:
    """Rows read from files, with `source_file` and `source_offset`, so that a dead letter shows its origin.

    The offset is the row's number in a Parquet file. In files of other formats it is the byte at which the piece of
    the file begins that Spark gave to the task: 0 where a file is one document or a single piece. Use it on what
    `spark.read` or `spark.readStream` returned. Kafka's rows have topic, partition and offset already.
    """
    for name in (SOURCE_FILE, SOURCE_OFFSET):
        if name in documents.columns:
            raise PipelineError(
                f"the column '{name}' already exists, but the result needs this name; rename the column first"
            )
    try:
        facts = documents.select("_metadata").schema["_metadata"].dataType
    except AnalysisException:
        raise PipelineError(
            "the rows do not come from files, or were transformed; use with_source right after reading"
        ) from None
    assert isinstance(facts, t.StructType)
    offset = "row_index" if "row_index" in facts.fieldNames() else "file_block_start"
    return documents.select(
        "*",
        f.col("_metadata.file_path").alias(SOURCE_FILE),
        f.col(f"_metadata.{offset}").cast("bigint").alias(SOURCE_OFFSET),
    )


def write_once(
    rows: DataFrame, batch: int, folder: str | os.PathLike[str], *, file_format: str = "parquet", **options: str
) -> Path:
    """Write the rows of a micro-batch to `folder/batch=<number>`, replacing the rows of an earlier attempt.

    For `foreachBatch`. The folder must be on a disk that driver and workers share; readers see a batch when it is
    complete, and `spark.read` adds the column `batch`. A folder belongs to one checkpoint: batches are identified by
    their numbers alone.
    """
    home = Path(folder).absolute()
    target = home / f"batch={batch}"
    staging = home / f"_batch-{batch}-{secrets.token_hex(4)}"  # readers ignore names that begin with _
    for left in home.glob(f"_batch-{batch}-*"):  # left by an attempt that was killed
        shutil.rmtree(left, ignore_errors=True)
    rows.write.format(file_format).options(**options).save(str(staging))
    if target.exists():
        target.rename(home / f"_batch-{batch}-{secrets.token_hex(4)}-replaced")
    staging.rename(target)
    for left in home.glob(f"_batch-{batch}-*"):
        shutil.rmtree(left, ignore_errors=True)
    return target


def _need(matched: DataFrame, column: str, maker: str) -> None:
    if column not in matched.columns:
        raise PipelineError(
            f"the input has no column '{column}', which {maker} adds; its columns are {', '.join(matched.columns)}"
        )
