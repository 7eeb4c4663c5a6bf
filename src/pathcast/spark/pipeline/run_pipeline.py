"""Running a pipeline: the batch or the streams that its file describes, with a report per batch and a clean end.

Documents are one stream; standing joins over the same source are a second stream, with its own checkpoint
(pipeline_joins.py). If one fails, both end. The stream of documents matches inside `foreachBatch`, where the number of
the micro-batch is known on every kind of Spark:

1. the micro-batch is pinned to a version of the index, next to the checkpoint (micro_batch_version_pins.py);
2. its documents are matched and counted, its deliveries written, then its dead letters;
3. its report is written next to the checkpoint, `pathcast/reports/17.json`, and the oldest is removed;
4. Spark commits the micro-batch in the checkpoint.

A crash before the last step repeats all of them, with the version that was pinned, into the same places.

Invariant: a report is passed on only after Spark has committed its micro-batch.
Cost: if dead letters are kept, Spark caches matched rows until both sinks have them. A batch is not cached: its
documents are matched a second time if some of them cannot be read.
"""

import re
import time
from collections.abc import Callable
from threading import Event, Thread
from typing import TypeVar

from pyspark import InheritableThread
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pathcast.errors import PathcastError, PipelineError, SnapshotError

from ..files.complete_file_detection import deferred_in
from ..matching.stream_metrics import observed
from ..matching.worker_index import pin_version
from ..overlay.compile_overlay_subscriptions import compile_overlay
from ..publishing.compile_subscriptions import compile_subscriptions
from ..publishing.index_versions import is_versioned, latest
from ..publishing.invalid_subscription_summary import reasons_of
from ..publishing.subscription_row_parser import read_table
from .batch_reports import (
    AnyReport,
    DeferredReport,
    JoinReport,
    Report,
    join_reports_of,
    joins_stream,
    keep_report,
    reports_after,
    reports_of,
)
from .checkpoint_reader import done
from .dry_run_plan import topology_of
from .log_pipeline import match_log_batch, match_log_micro_batch, open_log_stream
from .output_folder_owners import check_outputs, claim
from .pipeline_dataframes import check_batch, checked, deliveries, match, open_documents, traffic, unreadable, write
from .pipeline_joins import join_batch, start_joins
from .pipeline_sections import Pipeline, Sink, Stream
from .sparkless_subscription_publishing import outcome
from .start_stream import pins_of, start_stream

__all__ = [
    "AnyReport",
    "DeferredReport",
    "JoinReport",
    "Report",
    "compile_table",
    "join_reports_of",
    "micro_batch",
    "pins_of",
    "reports_of",
    "run",
    "until_stopped",
]

# How often to poll the progress of a running query, in seconds.
PATIENCE = 0.2
_OURS = {kind.__name__ for kind in (PipelineError, SnapshotError, PathcastError)}
# These only wrap another error.
_WRAPPERS = {"PythonException", "Py4JJavaError", "Py4JException", "ForeachBatchUserFuncException", "SparkException"}
# The name under which micro-batches of a pipeline are pinned: it has one stream.
_QUERY = "pipeline"


T = TypeVar("T")
Tell = Callable[[AnyReport], object]
Stopping = Callable[[], object]


def run(
    spark: SparkSession,
    pipeline: Pipeline,
    tell: Tell,
    stop: Event | None = None,
    stopping: Stopping = lambda: None,
) -> bool:
    """Run a pipeline to its end, or until `stop` is set; return whether it completed.

    `tell` gets a report per batch, and at the end of a stream one that names deferred files, if there are any;
    `stopping` is called before work is cancelled because `stop` is set. A pipeline that fails raises `PipelineError`.
    """
    waiting = stop if stop is not None else Event()
    if pipeline.stream is None:
        return _run_batch(spark, pipeline, tell, waiting, stopping)
    return _run_stream(spark, pipeline, pipeline.stream, tell, waiting, stopping)


def compile_table(spark: SparkSession, pipeline: Pipeline) -> str:
    """Have Spark publish the pipeline's table of subscriptions, if it has one, and return a report.

    Invalid subscriptions are reported with reasons; too many of them raise `PipelineError`, and nothing is published.
    """
    given = pipeline.subscriptions
    if given.table is None:
        return ""
    try:
        table = read_table(spark, given.table, given.format_of_table)
        changes = None if given.changes is None else read_table(spark, given.changes, given.format_of_changes)
        if pipeline.overlay is None:
            report = compile_subscriptions(
                table,
                given.index,
                changes=changes,
                namespaces=given.namespaces,
                shards=given.shards,
                max_invalid=given.max_invalid,
            )
        else:
            report = compile_overlay(
                table,
                given.index,
                topology_of(pipeline.overlay),
                changes=changes,
                keep=pipeline.overlay.keep,
                at=pipeline.overlay.at,
                policy=pipeline.overlay.policy,
                namespaces=given.namespaces,
                limits=pipeline.limits,
                max_invalid=given.max_invalid,
            )
        if given.invalid is not None:
            report.invalid.write.mode("overwrite").parquet(given.invalid)
        reasons = reasons_of(report.invalid) if report.invalid_count else []
    except PySparkException as error:
        raise _failure("the subscriptions cannot be read", error) from error
    return outcome(pipeline, report.counts, reasons)


def until_stopped(
    spark: SparkSession, work: Callable[[], T], stop: Event, stopping: Stopping = lambda: None
) -> T | None:
    """The result of work on Spark; None if `stop` was set before, in which case its jobs are cancelled.

    Another thread does the work: an interrupt during a call to the JVM would break the connection.
    """
    if stop.is_set():
        return None
    results: list[T] = []
    failures: list[Exception] = []

    def run_work() -> None:
        try:
            results.append(work())
        except Exception as error:  # noqa: BLE001 — raised again by the thread that waits
            failures.append(error)

    working: Thread = InheritableThread(target=run_work, daemon=True, session=spark)
    working.start()
    while working.is_alive() and not stop.is_set():
        working.join(PATIENCE)
    if working.is_alive():
        stopping()
        while working.is_alive():  # repeated: between two jobs there is nothing to cancel
            spark.interruptAll()
            working.join(PATIENCE)
        return None
    if failures:
        raise failures[0]
    return results[0]


# A batch.


def _run_batch(spark: SparkSession, pipeline: Pipeline, tell: Tell, stop: Event, stopping: Stopping) -> bool:
    def work() -> list[AnyReport]:
        reports: list[AnyReport] = [_batch(spark, pipeline)]
        if pipeline.joins is not None:
            reports.append(join_batch(spark, pipeline, pipeline.joins))
        return reports

    try:
        reports = until_stopped(spark, work, stop, stopping)
    except Exception as error:
        raise _failure("the batch failed", error) from error
    for report in reports or ():
        tell(report)
    return reports is not None


def _batch(spark: SparkSession, pipeline: Pipeline) -> Report:
    begin = time.perf_counter()
    index = pipeline.subscriptions.index
    version = latest(index) if index and is_versioned(index) else None
    if pipeline.takes_subscriptions_from_log:
        matched = checked(match_log_batch(spark, pipeline), pipeline)
    else:
        matched = match(open_documents(spark, pipeline), pipeline, version)
    counted = Observation()
    write(deliveries(observed(matched, counted), pipeline), pipeline.deliveries)
    found = counted.get
    if pipeline.dead_letters is not None:
        rows = unreadable(matched, pipeline, pipeline.dead_letters)
        write(rows if found["dead_letters"] else rows.limit(0), pipeline.dead_letters)
    if pipeline.overlay is not None and pipeline.overlay.links is not None:
        write(traffic(matched), _links(pipeline.overlay.links, pipeline.deliveries.mode))
    return Report.of(None, version, found, begin)


def _links(path: str, mode: str = "append") -> Sink:
    return Sink(path=path, mode=mode)


# A stream.


def _run_stream(
    spark: SparkSession, pipeline: Pipeline, stream: Stream, tell: Tell, stop: Event, stopping: Stopping
) -> bool:
    check_outputs(pipeline, spark)
    running = [Running("stream", stream, _start(spark, pipeline, stream))]
    try:
        if pipeline.joins is not None:
            beside = joins_stream(stream)
            query = start_joins(spark, pipeline, pipeline.joins, beside)
            running.append(Running("stream of joins", beside, query))
    except Exception as error:
        for one in running:
            one.query.stop()
        raise _failure("the stream of joins did not start", error) from error
    stopped = False
    while True:
        active = [one.query.isActive for one in running]  # read first, so that the last reports are not missed
        for one in running:
            one.tell(tell)
        failed = [one for one, lives in zip(running, active, strict=True) if not lives and one.query.exception()]
        if not any(active):
            break
        if (stop.is_set() or failed) and not stopped:
            stopped = True
            if stop.is_set():
                stopping()
            for one in running:
                one.query.stop()
        else:
            stop.wait(PATIENCE)
    for one in failed:
        cause = one.query.exception()
        assert cause is not None
        batch = max(done(one.stream.checkpoint), default=-1) + 1
        raise _failure(f"the {one.name} failed in micro-batch {batch}", cause) from cause
    waiting = deferred_in(stream.checkpoint)
    if waiting is not None and waiting[0]:
        tell(DeferredReport(*waiting))
    return not stopped


class Running:
    """A running query, and the last report that was passed on."""

    def __init__(self, name: str, stream: Stream, query: StreamingQuery) -> None:
        self.name, self.stream, self.query = name, stream, query
        self._told = max(done(stream.checkpoint), default=-1)

    def tell(self, tell: Tell) -> None:
        """Pass on the reports of completed micro-batches."""
        for report in reports_after(self.stream, self._told):
            self._told = report.batch if report.batch is not None else self._told
            tell(report)


def _start(spark: SparkSession, pipeline: Pipeline, stream: Stream) -> StreamingQuery:
    def process(batch: DataFrame, number: int) -> None:
        micro_batch(batch, number, pipeline, stream)

    try:
        if pipeline.takes_subscriptions_from_log:
            documents = checked(open_log_stream(spark, pipeline, stream), pipeline)
        else:
            documents = open_documents(spark, pipeline)
            match(documents, pipeline, None)  # reports problems of columns now
        return start_stream(documents, process, pipeline.name, stream)
    except Exception as error:
        raise _failure("the stream did not start", error) from error


def micro_batch(batch: DataFrame, number: int, pipeline: Pipeline, stream: Stream) -> None:
    """Match a micro-batch and write the results; repeating it writes the same."""
    begin = time.perf_counter()
    check_batch(pipeline.source, stream, number)
    index = pipeline.subscriptions.index
    version = pin_version(index, _QUERY, number, pins_of(stream)) if index and is_versioned(index) else None
    counted = Observation()
    if pipeline.takes_subscriptions_from_log:
        matched = observed(match_log_micro_batch(batch, number, pipeline, stream), counted)
    else:
        matched = observed(match(batch, pipeline, version), counted)
    links = None if pipeline.overlay is None else pipeline.overlay.links

    def put(rows: DataFrame, sink: Sink) -> None:
        claim(sink, stream, number)
        write(rows, sink, number, stream.checkpoint)

    held = pipeline.dead_letters is not None or links is not None
    if held:
        matched = matched.persist()
    try:
        put(deliveries(matched, pipeline), pipeline.deliveries)
        found = counted.get
        if pipeline.dead_letters is not None and found["dead_letters"]:
            put(unreadable(matched, pipeline, pipeline.dead_letters), pipeline.dead_letters)
        if links is not None:
            put(traffic(matched), _links(links))
    finally:
        if held:
            matched.unpersist()
    waiting = deferred_in(stream.checkpoint)
    keep_report(Report.of(number, version, found, begin, None if waiting is None else waiting[0]), stream)


def _failure(what: str, error: Exception) -> PipelineError:
    """The failure and its reason in one line: our own message if the error contains one, otherwise Spark's first."""
    if isinstance(error, PathcastError):
        return PipelineError(str(error))
    said = re.findall(r"^(?:: |Caused by: )?(?:[\w.]+\.)?(\w+(?:Error|Exception)): (.+)$", str(error), re.MULTILINE)
    ours = [reason for name, reason in said if name in _OURS]
    others = [f"{name}: {reason}" for name, reason in said if name not in _WRAPPERS]
    first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return PipelineError(f"{what}: {(ours or others or [first])[-1]}")
