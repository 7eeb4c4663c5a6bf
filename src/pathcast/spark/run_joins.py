"""Standing joins in a pipeline: documents become rows, rows become messages, beside what happens to documents.

    documents ─ (mediate,) extract_rows ─▶ changes ─ join_subscriptions ─▶ messages, dead letters ─▶ write

A stream of its own over the same source, since its tables live in Spark's state: its checkpoint is the folder `joins`
in that of the pipeline, and its micro-batches have numbers of their own. The tables are those of all documents that the
stream has seen.

Invariant: a micro-batch that is repeated leaves the same messages once.
Cost: documents are read a second time, and messages of a micro-batch are held until both sinks have them.
"""

import time
from pathlib import Path

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from pathcast.errors import PipelineError

from .extracted import CHANGE, ROW, SEQUENCE, TABLE, extract_rows
from .join_files import read_join_subscriptions, read_tables
from .joined import join_subscriptions
from .pipeline import mediation_of, open_source, write
from .pipeline_sections import Joins, Pipeline, Sink, Stream
from .reports import JoinReport, keep_report
from .starting import start_stream

_MESSAGE = ("edge", "join_value", SEQUENCE, "number", "message")


def start_joins(spark: SparkSession, pipeline: Pipeline, joins: Joins, stream: Stream) -> StreamingQuery:
    """Start the stream of joins."""

    def process(batch: DataFrame, number: int) -> None:
        keep_report(_write(batch, joins, number), stream)

    documents = open_source(spark, pipeline.source, streaming=True)
    folder = Path(stream.checkpoint) / "pathcast" / "subscriptions"
    messages = joined(documents, pipeline, joins, folder)
    return start_stream(messages, process, f"{pipeline.name}, joins", stream)


def join_batch(spark: SparkSession, pipeline: Pipeline, joins: Joins) -> JoinReport:
    """The messages of one batch, from empty tables."""
    documents = open_source(spark, pipeline.source, streaming=False)
    return _write(joined(documents, pipeline, joins, None), joins, None)


def joined(documents: DataFrame, pipeline: Pipeline, joins: Joins, folder: Path | None) -> DataFrame:
    """The messages that rows of documents mean for standing joins, and what is wrong with some."""
    document, given = pipeline.source.document or "xml", pipeline.mediation
    needed = [joins.key, document, *([given.schema, given.version] if given is not None else [])]
    for column in needed:
        if column is not None and column not in documents.columns:
            raise PipelineError(
                f"{pipeline.file}: joins: the source has no column '{column}'; it has {', '.join(documents.columns)}"
            )
    documents = documents.select(*dict.fromkeys(name for name in needed if name is not None))
    schema, tables = read_tables(joins)
    changes = extract_rows(
        documents, tables, document=document, mediation=mediation_of(pipeline), key=joins.key, limits=pipeline.limits
    )
    # Of what could not be cut out there is no row: then it is told in which document.
    row = f.when(f.col("error").isNotNull(), f.to_json(f.struct(f.col(f"`{joins.key}`")))).otherwise(f.col(ROW))
    changes = changes.select(TABLE, CHANGE, row.alias(ROW), SEQUENCE, "error")
    return join_subscriptions(
        changes, schema, read_join_subscriptions(joins.subscriptions), joins.scheme, folder=folder
    )


def _write(messages: DataFrame, joins: Joins, number: int | None) -> JoinReport:
    """Write messages and dead letters; the frame is computed once, since state is changed by it."""
    begin = time.perf_counter()
    counted = Observation()
    error = f.col("error").isNotNull()
    counts = [f.count(f.when(~error, 1)).alias("messages"), f.count(f.when(error, 1)).alias("dead_letters")]
    held = messages.observe(counted, *counts).persist()
    try:
        write(held.where(~error).select(*_MESSAGE), joins.messages, number)
        found = counted.get
        if joins.dead_letters is not None and (found["dead_letters"] or number is None):
            letters = held.where(error).select(TABLE, CHANGE, ROW, SEQUENCE, "error")
            write(letters, Sink("parquet", joins.dead_letters, joins.messages.mode, (), {}), number)
    finally:
        held.unpersist()
    return JoinReport(number, found["messages"], found["dead_letters"], round(time.perf_counter() - begin, 3))
