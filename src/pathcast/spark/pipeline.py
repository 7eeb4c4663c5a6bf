"""A pipeline's frames: what its file describes (pipeline_file.py), in terms of Spark.

    source ─ open_source ─▶ documents ─ (mediate,) match ─▶ matched ─┬ deliveries (, summarize) ──▶ write
                                                                     └ unreadable ──────────────▶ write

The same functions serve a whole batch and each micro-batch of a stream; run.py puts them in motion.

A micro-batch goes to a folder of its own, `batch=17`, which a repetition of the micro-batch replaces: readers find each
row once, whether they use Spark or not, and get the number as a column. Formats that are not files get the number as a
column `batch` by which a receiver can tell a repetition.
"""

import difflib

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from pathcast.errors import PipelineError
from pathcast.mediation import Mediator

from .delivery import SOURCE_FILE, SOURCE_OFFSET, dead_letters, deliver, with_source, write_once
from .matching import MEASURED, match_documents
from .mediated import mediate
from .pipeline_file import Pipeline, Sink, Source, is_address
from .pipeline_keys import FILE_FORMATS, SOURCE_FILE_FORMATS
from .structured import STRUCTURE
from .summaries import summarize

# A stream of binaryFile must be told, though it has no choice.
_BINARY_FILE = "path string, modificationTime timestamp, length long, content binary"
ORIGIN = (SOURCE_FILE, SOURCE_OFFSET)
BATCH = "batch"


def open_source(spark: SparkSession, source: Source, *, streaming: bool) -> DataFrame:
    """The documents as they come, with the file and offset of each where Spark knows them."""
    form = "binaryFile" if source.format == "files" else source.format
    schema = source.schema or (_BINARY_FILE if form == "binaryFile" else None)
    if streaming:
        stream = spark.readStream.format(form).options(**source.options)
        stream = stream if schema is None else stream.schema(schema)
        frame = stream.load(source.paths[0]) if source.paths else stream.load()
    else:
        reader = spark.read.format(form).options(**source.options)
        reader = reader if schema is None else reader.schema(schema)
        frame = reader.load(list(source.paths)) if source.paths else reader.load()
    if source.format == "files":
        return frame.drop("content")  # so Spark lists the files and does not read them
    if form not in SOURCE_FILE_FORMATS or form == "binaryFile" or set(ORIGIN) & set(frame.columns):
        return frame
    return with_source(frame)


def match(documents: DataFrame, pipeline: Pipeline, version: int | None) -> DataFrame:
    """The documents with who wants them, or why they can't be read."""
    source, sink = pipeline.source, pipeline.deliveries
    by = "id" if sink.per == "document" and sink.by == "id" else "subscriber"
    _check_sinks(documents, pipeline)
    structure = None
    if pipeline.mediation is not None:
        given, structure = pipeline.mediation, STRUCTURE
        documents = mediate(
            documents,
            Mediator.open(given.mediator),
            given.schema,
            version=given.version,
            document=source.document or "xml",
            limits=pipeline.limits,
        )
    return match_documents(
        documents,
        pipeline.subscriptions.index,
        document=source.document or "xml",
        document_path=source.document_path,
        structure=structure,
        by=by,  # type: ignore[arg-type]
        version=version,
        limits=pipeline.limits,
        measure=True,
    )


def _check_sinks(documents: DataFrame, pipeline: Pipeline) -> None:
    for section, sink in (("deliveries", pipeline.deliveries), ("dead_letters", pipeline.dead_letters)):
        for column in sink.columns if sink is not None else ():
            if column not in documents.columns:
                near = difflib.get_close_matches(column, documents.columns, n=1)
                advice = f"did you mean {near[0]}?" if near else f"it has {', '.join(documents.columns)}"
                raise PipelineError(f"{pipeline.file}: {section}.columns: the source has no '{column}'; {advice}")
    if pipeline.stream is not None and BATCH in documents.columns:
        raise PipelineError("the source has a column 'batch', which a stream adds; leave it out of source.schema")


def deliveries(matched: DataFrame, sink: Sink) -> DataFrame:
    """What goes to the sink for deliveries: a row per document and subscriber, per document, or per message."""
    if sink.per == "message":
        rows = deliver(matched).drop(*([] if sink.columns else ORIGIN))
        kept = dict.fromkeys(("subscriber", *sink.columns, sink.document)) if sink.columns else rows.columns
        return summarize(rows.select(*kept), by=["subscriber"], document=sink.document)
    if sink.per == "subscriber":
        return _columns(deliver(matched), sink, "subscriber").drop(*([] if sink.columns else ORIGIN))
    found = "matches" if sink.by == "id" else "subscribers"
    wanted = matched.where(f.size(found) > 0).drop("error", MEASURED.name, *([] if sink.columns else ORIGIN))
    return _columns(wanted, sink, found)


def unreadable(matched: DataFrame, sink: Sink) -> DataFrame:
    """What goes to the sink for dead letters."""
    return _columns(dead_letters(matched), sink, "error")


def _columns(frame: DataFrame, sink: Sink, *added: str) -> DataFrame:
    return frame.select(*sink.columns, *(name for name in added if name not in sink.columns)) if sink.columns else frame


def write(frame: DataFrame, sink: Sink, batch: int | None = None) -> None:
    """Write rows to a sink; `batch` is the number of the micro-batch in a stream."""
    path, mode = sink.path, sink.mode
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
