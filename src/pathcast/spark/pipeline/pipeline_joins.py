"""Standing joins in a pipeline: documents become rows, and rows become messages, next to the delivery of documents.

    documents ─ (mediate,) extract_rows ─▶ changes ─ join_subscriptions ─▶ messages, dead letters ─▶ write
                                                                             ├ (deliver_joins) ────▶ write
                                                    state ─ (initial_contents of who is new) ──────▶ write

Joins run as a separate stream over the same source, since their tables live in Spark's state: its checkpoint is the
folder `joins` in that of the pipeline, and its micro-batches have their own numbers. The tables hold the rows of all
documents that the stream has seen. If subscriptions have versions, a micro-batch is pinned to a version before its
first change is read; its messages, deliveries and contents use that version.

Invariant: a repeated micro-batch leaves the same messages, deliveries and contents, once.
Cost: documents are read a second time, and messages of a micro-batch are held until all sinks have them.
"""

import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from pathcast.errors import PipelineError
from pathcast.joins.partition import StandingJoins

from ..joins.extract_rows import CHANGE, ROW, SEQUENCE, TABLE, extract_rows
from ..joins.join_definition_files import read_join_subscriptions, read_tables
from ..joins.join_message_delivery import LISTED, deliver_joins
from ..joins.new_subscriber_contents import initial_contents, newcomers
from ..joins.standing_join_stream import join_subscriptions
from ..matching.arrow_document_columns import ENTRY_ERROR
from ..matching.worker_index import pin_version
from ..publishing.index_versions import latest
from .batch_reports import JoinReport, keep_report
from .checkpoint_reader import query_id
from .output_folder_owners import claim
from .pipeline_dataframes import check_batch, mediation_of, open_documents, write
from .pipeline_sections import Joins, Pipeline, Sink, Stream
from .start_stream import pins_of, start_stream

_MESSAGE = ("edge", "join_value", SEQUENCE, "number", "message")


def start_joins(spark: SparkSession, pipeline: Pipeline, joins: Joins, stream: Stream) -> StreamingQuery:
    """Start the stream of joins."""
    stage = JoinStage(pipeline, joins, stream)

    def process(batch: DataFrame, number: int) -> None:
        check_batch(pipeline.source, stream, number)
        keep_report(stage.write(batch, number), stream)

    documents = open_documents(spark, pipeline)
    return start_stream(stage.messages(documents), process, f"{pipeline.name}, joins", stream)


def join_batch(spark: SparkSession, pipeline: Pipeline, joins: Joins) -> JoinReport:
    """The messages of one batch, from empty tables."""
    stage = JoinStage(pipeline, joins, None, None if joins.versions is None else latest(joins.versions))
    documents = open_documents(spark, pipeline)
    return stage.write(stage.messages(documents), None)


@dataclass(frozen=True)
class JoinStage:
    """The joins of a pipeline; `version` is that of a batch, a stream has one per micro-batch."""

    pipeline: Pipeline
    joins: Joins
    stream: Stream | None
    version: int | None = None

    def messages(self, documents: DataFrame) -> DataFrame:
        """The messages that rows of documents cause for standing joins, and the errors."""
        joins, changes = self.joins, self._changes(documents)
        checkpoint = None if self.stream is None else self.stream.checkpoint
        if joins.versions is not None:
            return join_subscriptions(
                changes, versions=joins.versions, pins=self._pins, version=self.version, checkpoint=checkpoint
            )
        return join_subscriptions(changes, self._standing, folder=self._folder, checkpoint=checkpoint)

    @cached_property
    def _standing(self) -> StandingJoins | None:
        """The subscriptions, if they have no versions."""
        if self.joins.subscriptions is None or self.joins.versions is not None:
            return None
        asked = read_join_subscriptions(self.joins.subscriptions)
        return StandingJoins(read_tables(self.joins).schema, asked, self.joins.scheme)

    def _changes(self, documents: DataFrame) -> DataFrame:
        pipeline, joins = self.pipeline, self.joins
        document, given = pipeline.source.document_column, pipeline.mediation
        errors = [ENTRY_ERROR] if pipeline.source.split is not None else []
        needed = [*errors, joins.key, document, *([given.schema, given.version] if given is not None else [])]
        there = ", ".join(documents.columns)
        for column in needed:
            if column is not None and column not in documents.columns:
                raise PipelineError(f"{pipeline.file}: joins: the source has no column '{column}'; use one of {there}")
        documents = documents.select(*dict.fromkeys(name for name in needed if name is not None))
        changes = extract_rows(
            documents,
            read_tables(joins).extractions,
            document=document,
            mediation=mediation_of(pipeline),
            key=joins.key,
            limits=pipeline.limits,
            entities=pipeline.source.entities,
        )
        # A row that could not be extracted does not exist; report its document instead.
        row = f.when(f.col("error").isNotNull(), f.to_json(f.struct(f.col(f"`{joins.key}`")))).otherwise(f.col(ROW))
        return changes.select(TABLE, CHANGE, row.alias(ROW), SEQUENCE, "error")

    @property
    def _pins(self) -> Path | None:
        return None if self.stream is None else pins_of(self.stream)

    @property
    def _folder(self) -> Path | None:
        """The folder for many subscriptions without versions."""
        return None if self.stream is None else Path(self.stream.checkpoint) / "pathcast" / "subscriptions"

    def write(self, messages: DataFrame, number: int | None) -> JoinReport:
        """Write the results of a batch; the frame is computed once, because computing it changes state."""
        begin = time.perf_counter()
        joins, version = self.joins, self._pinned(number)
        counted = Observation()
        error = f.col("error").isNotNull()
        counts = [f.count(f.when(~error, 1)).alias("messages"), f.count(f.when(error, 1)).alias("dead_letters")]
        held = messages.observe(counted, *counts).persist()
        deliveries = None
        try:
            self._put(held.where(~error).select(*_MESSAGE), joins, number)
            found = counted.get
            if joins.dead_letters is not None and (found["dead_letters"] or number is None):
                letters = held.where(error).select(TABLE, CHANGE, ROW, SEQUENCE, "error")
                self._put(letters, self._sink(joins.dead_letters), number)
            if joins.deliveries is not None:
                deliveries = self._deliver(held.where(~error).select(*_MESSAGE), joins.deliveries, number, version)
        finally:
            held.unpersist()
        contents = None if joins.contents is None else self._begin(messages.sparkSession, joins.contents, number)
        seconds = round(time.perf_counter() - begin, 3)
        return JoinReport(
            number,
            found["messages"],
            found["dead_letters"],
            seconds,
            deliveries=deliveries,
            contents=contents,
            version=version,
        )

    def _pinned(self, number: int | None) -> int | None:
        """The version of a batch, which its tasks find pinned."""
        if self.joins.versions is None or self.stream is None or number is None:
            return self.version
        return pin_version(self.joins.versions, query_id(self.stream.checkpoint), number, self._pins)

    def _deliver(self, messages: DataFrame, path: str, number: int | None, version: int | None) -> int:
        """Write messages by subscription, and return the number of deliveries."""
        joins, given = self.joins, self._standing
        rows = deliver_joins(
            messages,
            given,
            versions=joins.versions,
            version=version,
            folder=None if given is None else self._folder,
            shards=joins.shards,
            lists=joins.per == "message",
        )
        return self._counted(rows, f.size(LISTED) if joins.per == "message" else f.lit(1), path, number)

    def _begin(self, spark: SparkSession, path: str, number: int | None) -> int:
        """Write the initial contents of new subscriptions, and return the number of messages."""
        assert self.stream is not None
        assert self.joins.versions is not None
        assert number is not None
        place, pins = (self.joins.versions, self.stream.checkpoint, number), self._pins
        if newcomers(*place, pins=pins) is None:
            return 0
        return self._counted(initial_contents(spark, *place, pins=pins), f.lit(1), path, number)

    def _counted(self, rows: DataFrame, one: Column, path: str, number: int | None) -> int:
        """Write rows, and return the sum of `one` over them."""
        counted = Observation()
        self._put(rows.observe(counted, f.sum(one).alias("count")), self._sink(path), number)
        return int(counted.get["count"] or 0)

    def _sink(self, path: str) -> Sink:
        return Sink(path=path, mode=self.joins.mode)

    def _put(self, rows: DataFrame, sink: Sink, number: int | None) -> None:
        if self.stream is not None and number is not None:
            claim(sink, self.stream, number)
        write(rows, sink, number, None if self.stream is None else self.stream.checkpoint)
