"""The DataFrames of a pipeline file (pipeline_file.py).

    source ─ open_source ─▶ documents ─ (mediate,) match or route ─▶ matched ─┬ deliveries (, summarize) ──▶ write
                                                                              ├ unreadable ──────────────▶ write
                                                                              └ traffic ─────────────────▶ write

A batch and each micro-batch of a stream use the same functions; run_pipeline.py calls them.

A micro-batch is written to its own folder, `batch=17`, which a repetition of the micro-batch replaces: readers find
each row once, with Spark or without, and get the number as a column. Formats that are not files get the number as a
column `batch`, by which a receiver can recognise a repetition.
"""

import difflib

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from pathcast.errors import PipelineError
from pathcast.mediation import Mediator
from pathcast.toml_files import is_address

from ..arrow_to_spark_types import spark_schema
from ..files.file_source import file_columns, stream_files
from ..files.spark_source_log import check_names
from ..log.match_by_step import NAMES
from ..matching.arrow_document_columns import ENTRY_ERROR
from ..matching.deliveries_and_dead_letters import (
    CONTENT,
    SOURCE_FILE,
    SOURCE_OFFSET,
    dead_letters,
    deliver,
    with_content,
    with_source,
    write_once,
)
from ..matching.match_documents import MEASURED, SHARD_COLUMN, SUBSCRIPTIONS, match_documents
from ..matching.mediate_documents import Mediating
from ..matching.roxsum_messages import summarize
from ..matching.split_documents import split_documents
from ..matching.worker_index import PublishedIndex
from ..overlay.route_documents import route_documents, visits_as_rows
from ..overlay.routing_worker_tasks import VISITS
from .checkpoint_reader import query_id
from .delta_tables import write_delta, write_delta_once
from .pipeline_sections import (
    FILE_FORMATS,
    SOURCE_FILE_FORMATS,
    Deliveries,
    DocumentSink,
    OverlayPart,
    Pipeline,
    Sink,
    Source,
    Stream,
)

# Spark requires a schema for a stream of binaryFile, although it is fixed.
_BINARY_FILE = spark_schema(file_columns(content=True))
ORIGIN = (SOURCE_FILE, SOURCE_OFFSET)
BATCH = "batch"


def open_documents(spark: SparkSession, pipeline: Pipeline) -> DataFrame:
    """The documents of a batch or stream; with `split`, the entries of its files."""
    source = pipeline.source
    frame = open_source(spark, source, pipeline.stream)
    if source.split is None:
        return frame
    return split_documents(
        frame,
        source.split,
        file=source.document_column,
        file_path=source.file_column,
        document=source.document_column,
        namespaces=source.namespaces,
        limits=pipeline.limits,
        entities=source.entities,
    )


def open_source(spark: SparkSession, source: Source, stream: Stream | None) -> DataFrame:
    """The files or documents of a batch or stream, with the file and offset of each if Spark knows them."""
    if stream is not None and source.settles:
        # Spark does not pass the trigger "once" on to the source.
        waits = {"waitForDeferred": stream.trigger == "once"}
        options = {**source.options, **waits}
        place, content = source.path[0], source.format != "files"
        return stream_files(
            spark, place, checkpoint=stream.checkpoint, settle=source.settle, content=content, **options
        )
    form = "binaryFile" if source.format == "files" else source.format
    schema = source.schema or (_BINARY_FILE if form == "binaryFile" else None)
    if stream is not None:
        coming = spark.readStream.format(form).options(**source.options)
        coming = coming if schema is None else coming.schema(schema)
        frame = coming.load(source.path[0]) if source.path else coming.load()
    else:
        reader = spark.read.format(form).options(**source.options)
        reader = reader if schema is None else reader.schema(schema)
        frame = reader.load(list(source.path)) if source.path else reader.load()
    if source.format == "files":
        return frame.drop("content")  # Spark then lists the files without reading them
    if form not in SOURCE_FILE_FORMATS or form == "binaryFile" or set(ORIGIN) & set(frame.columns):
        return frame
    return with_source(frame)


def check_batch(source: Source, stream: Stream, number: int) -> None:
    """Raise `PipelineError` if Spark would read files of a micro-batch twice."""
    recursive = {name.lower(): value for name, value in source.options.items()}.get("recursivefilelookup") == "true"
    if not source.settles and not recursive:
        check_names(stream.checkpoint, number)


def match(documents: DataFrame, pipeline: Pipeline, version: int | None) -> DataFrame:
    """The documents with their subscribers, or the error; through an overlay, with the routers' `visits`."""
    source, sink = pipeline.source, pipeline.deliveries
    document = source.document_column
    _check_sinks(documents, pipeline)
    if pipeline.overlay is not None:
        return _routed(documents, pipeline, pipeline.overlay, document, version)
    return match_documents(
        documents,
        PublishedIndex(pipeline.subscriptions.index, version, shards=pipeline.subscriptions.shards),
        document=document,
        document_path=source.path_column,
        mediation=mediation_of(pipeline),
        by="id" if sink.per == "document" and sink.by == "id" else "subscriber",
        limits=pipeline.limits,
        entities=source.entities,
        measure=True,
    )


def mediation_of(pipeline: Pipeline) -> Mediating | None:
    """The mediation of documents, if the pipeline has one."""
    given = pipeline.mediation
    return None if given is None else Mediating(Mediator.open(given.mediator), given.schema, given.version)


def _routed(
    documents: DataFrame,
    pipeline: Pipeline,
    overlay: OverlayPart,
    document: str,
    version: int | None,
) -> DataFrame:
    routed = route_documents(
        documents,
        pipeline.subscriptions.index,
        overlay.policy,
        document=document,
        mediation=mediation_of(pipeline),
        at=overlay.at,
        links=overlay.links is not None,
        version=version,
        entities=pipeline.source.entities,
        adding=[VISITS, "router", "sender", "subscriber", "subscribers", "annotations", "bytes", "error"],
    )
    visits = f.col(VISITS)
    errors = f.filter(f.transform(visits, lambda visit: visit["error"]), lambda error: error.isNotNull())
    names = f.array_distinct(f.flatten(f.transform(visits, lambda visit: visit["subscribers"])))
    return routed.select("*", names.alias("subscribers"), f.get(errors, 0).alias("error"))


def _by_file(source: Source) -> bool:
    """Whether dead letters get the content of the files, which no column has."""
    return source.format == "files" and source.split is None


def checked(documents: DataFrame, pipeline: Pipeline) -> DataFrame:
    """The documents of a log; `PipelineError` if a sink wants a column that they lack."""
    _check_sinks(documents, pipeline)
    return documents


def _check_sinks(documents: DataFrame, pipeline: Pipeline) -> None:
    for section, sink in (("deliveries", pipeline.deliveries), ("dead_letters", pipeline.dead_letters)):
        known = documents.columns
        if section == "dead_letters" and _by_file(pipeline.source):
            known = [*known, CONTENT]
        for column in sink.columns if sink is not None else ():
            if column not in known:
                near = difflib.get_close_matches(column, known, n=1)
                advice = f"did you mean {near[0]}?" if near else f"its columns are {', '.join(known)}"
                raise PipelineError(
                    f"{pipeline.file}: {section}.columns: the source has no column '{column}'; {advice}"
                )
    if pipeline.stream is not None and BATCH in documents.columns:
        raise PipelineError(
            f"{pipeline.file}: the source has a column '{BATCH}', but the stream adds a column of this name; "
            "rename the "
            "column in the source, or remove it from source.schema"
        )


def deliveries(matched: DataFrame, pipeline: Pipeline) -> DataFrame:
    """The rows for the sink of deliveries: a row per document and subscriber, per document, or per message."""
    sink = pipeline.deliveries
    if pipeline.takes_subscriptions_from_log:
        return _of_log(matched, sink)
    matched = matched.drop(ENTRY_ERROR)
    if sink.per == "document":
        found = "matches" if sink.by == "id" else "subscribers"
        wanted = matched.where(f.size(found) > 0).drop("error", MEASURED.name, *([] if sink.columns else ORIGIN))
        return _columns(wanted.drop(VISITS), sink, found)
    if VISITS in matched.columns:
        rows = visits_as_rows(matched.drop("subscribers", "error", MEASURED.name))
        rows = rows.where(f.col("subscriber").isNotNull()).drop("sender", "annotations", "bytes", "error")
        by = ["router", "subscriber"]
    else:
        rows, by = deliver(matched).drop(SHARD_COLUMN), ["subscriber"]
    if sink.per == "subscriber":
        return _columns(rows, sink, *by).drop(*([] if sink.columns else ORIGIN))
    rows = rows.drop(*([] if sink.columns else ORIGIN))
    kept = dict.fromkeys((*by, *sink.columns, pipeline.source.document_column)) if sink.columns else rows.columns
    return summarize(
        rows.select(*kept),
        by=by,
        document=pipeline.source.document_column,
        limits=pipeline.limits,
        entities=pipeline.source.entities,
    )


def _of_log(matched: DataFrame, sink: Deliveries) -> DataFrame:
    """The rows for the sink of deliveries, by the subscriptions of a log."""
    if sink.per == "document":
        return _columns(matched.where(f.size(SUBSCRIPTIONS) > 0).drop("error"), sink, SUBSCRIPTIONS)
    rows = matched.withColumn("found", f.explode(SUBSCRIPTIONS)).drop(SUBSCRIPTIONS, "error")
    return _columns(rows.select("*", "found.*").drop("found"), sink, *NAMES.names)


def unreadable(matched: DataFrame, pipeline: Pipeline, sink: DocumentSink) -> DataFrame:
    """The rows for the sink of dead letters; for `files`, with the document."""
    rows = dead_letters(matched).drop(VISITS, SHARD_COLUMN, ENTRY_ERROR)
    if _by_file(pipeline.source) and (not sink.columns or CONTENT in sink.columns):
        rows = with_content(rows, pipeline.source.path_column or "path", pipeline.limits)
    return _columns(rows, sink, "error")


def traffic(matched: DataFrame) -> DataFrame:
    """The traffic of the links of an overlay: messages, bytes, how many of the bytes were annotations, what they saved.

    `patterns` are those of the receiving router, summed over its messages; annotations made `skipped` of them needless,
    and for `unread` messages all of them.
    """
    visits = matched.select(f.explode(VISITS).alias("visit")).select("visit.*").where("sender is not null")
    return visits.groupBy("sender", "router").agg(
        f.count(f.lit(1)).alias("messages"),
        f.sum("bytes").alias("bytes"),
        f.sum(f.length("annotations")).alias("annotations"),
        f.sum("patterns").alias("patterns"),
        f.sum("skipped").alias("skipped"),
        f.count_if((f.col("skipped") > 0) & (f.col("skipped") == f.col("patterns"))).alias("unread"),
    )


def _columns(frame: DataFrame, sink: DocumentSink, *added: str) -> DataFrame:
    return frame.select(*sink.columns, *(name for name in added if name not in sink.columns)) if sink.columns else frame


def write(frame: DataFrame, sink: Sink, batch: int | None = None, checkpoint: str | None = None) -> None:
    """Write rows to a sink; `batch` is the number of the micro-batch in the stream with this checkpoint."""
    path, mode = sink.path, sink.mode
    if sink.is_delta_folder and path is not None:
        if batch is None or checkpoint is None:
            write_delta(frame, path, mode, **sink.options)
        else:
            numbered = frame.withColumn(BATCH, f.lit(batch).cast(t.LongType()))
            write_delta_once(numbered, batch, path, writer=query_id(checkpoint), **sink.options)
        return
    if batch is not None:
        if sink.format in FILE_FORMATS and path is not None:
            if not is_address(path):
                write_once(frame, batch, path, file_format=sink.format, **sink.options)
                return
            path, mode = f"{path}/{BATCH}={batch}", "overwrite"
        else:
            frame, mode = frame.withColumn(BATCH, f.lit(batch).cast(t.LongType())), "append"
    writer = frame.write.format(sink.format).mode(mode).options(**sink.options)
    if path is None:
        writer.save()
    else:
        writer.save(path)
