"""Running a pipeline: the batch or the stream that its file describes, with a report per batch and a clean end.

A stream matches inside `foreachBatch`, where the number of the micro-batch is known on every kind of Spark:

1. the micro-batch is pinned to a version of the index, beside the checkpoint (pins.py);
2. its documents are matched and counted, its deliveries written, then its dead letters;
3. its report is put beside the checkpoint, `pathcast/reports/17.json`, and the oldest is taken away;
4. Spark notes in the checkpoint that it is done.

A crash before the last step repeats all of them, with the version that was pinned, into the same places.

Invariant: a report is told only after Spark has noted its micro-batch as done.
Cost: with dead letters kept, matched rows are held in Spark's cache until both sinks have them. A batch isn't held: its
documents are matched a second time if some of them can't be read.
"""

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event, Thread

from pyspark import InheritableThread
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pathcast.errors import PathcastError, PipelineError, SnapshotError

from .metrics import observed
from .opening import pin_version
from .parsing import read_table
from .pins import RETAINED
from .pipeline import deliveries, match, open_source, unreadable, write
from .pipeline_file import Pipeline, Stream
from .subscriptions import compile_subscriptions
from .versions import is_versioned, latest

# How often a running query is asked how far it is, in seconds.
PATIENCE = 0.2
_OURS = {kind.__name__ for kind in (PipelineError, SnapshotError, PathcastError)}
# These say that another error happened.
_WRAPPERS = {"PythonException", "Py4JJavaError", "Py4JException", "ForeachBatchUserFuncException", "SparkException"}
# Under this name the micro-batches of a pipeline are pinned: it has one stream.
_QUERY = "pipeline"


@dataclass(frozen=True)
class Report:
    """What became of a batch, or of the micro-batch with this number.

    `version` is that of the index; `matches` counts pairs of document and subscriber (with `by = "id"`, subscription);
    `memo_hit_rate` is the share of elements whose path the engine knew already.
    """

    batch: int | None
    version: int | None
    documents: int
    matches: int
    dead_letters: int
    memo_hit_rate: float | None
    seconds: float

    def __str__(self) -> str:
        parts = [
            f"{self.documents:,} documents",
            f"{self.matches:,} matches",
            f"{self.dead_letters:,} dead letters",
            f"{self.seconds:.1f} s",
            f"{self.documents / self.seconds if self.seconds else 0:,.0f} documents/s",
        ]
        if self.memo_hit_rate is not None:
            parts.append(f"memo {100 * self.memo_hit_rate:.1f} %")
        if self.version is not None:
            parts.append(f"index version {self.version}")
        return f"batch{'' if self.batch is None else f' {self.batch}'}: {', '.join(parts)}"


Tell = Callable[[Report], object]


def run(spark: SparkSession, pipeline: Pipeline, tell: Tell, stop: Event | None = None) -> bool:
    """Run a pipeline to its end, or until `stop` is set; return whether it came to its end.

    `tell` gets a report for each batch. A pipeline that fails raises `PipelineError`.
    """
    waiting = stop if stop is not None else Event()
    if pipeline.stream is None:
        return _run_batch(spark, pipeline, tell, waiting)
    return _run_stream(spark, pipeline, pipeline.stream, tell, waiting)


def compile_table(spark: SparkSession, pipeline: Pipeline) -> str:
    """Compile the pipeline's table of subscriptions, if it has one, and say in a line what came of it."""
    given = pipeline.subscriptions
    if given.table is None:
        return ""
    try:
        report = compile_subscriptions(
            read_table(spark, given.table, given.table_format),
            given.index,
            changes=None if given.changes is None else read_table(spark, given.changes, given.changes_format),
            namespaces=given.namespaces,
        )
        if given.invalid is not None:
            report.invalid.write.mode("overwrite").parquet(given.invalid)
    except PySparkException as error:
        raise _failure("the subscriptions can't be read", error) from error
    return f"subscriptions: {report.line}"


# A batch.


def _run_batch(spark: SparkSession, pipeline: Pipeline, tell: Tell, stop: Event) -> bool:
    """The work is done by another thread: an interrupt in the midst of a call to the JVM would break the connection."""
    failures: list[Exception] = []
    reports: list[Report] = []

    def work() -> None:
        try:
            reports.append(_batch(spark, pipeline))
        except Exception as error:  # noqa: BLE001 — raised again by the thread that waits
            failures.append(error)

    working: Thread = InheritableThread(target=work, daemon=True, session=spark)
    working.start()
    while working.is_alive() and not stop.is_set():
        working.join(PATIENCE)
    if working.is_alive():
        spark.interruptAll()
        working.join()
        return False
    if failures:
        raise _failure("the batch failed", failures[0]) from failures[0]
    tell(reports[0])
    return True


def _batch(spark: SparkSession, pipeline: Pipeline) -> Report:
    begin = time.perf_counter()
    index = pipeline.subscriptions.index
    version = latest(index) if is_versioned(index) else None
    matched = match(open_source(spark, pipeline.source, streaming=False), pipeline, version)
    counted = Observation()
    write(deliveries(observed(matched, counted), pipeline.deliveries), pipeline.deliveries)
    found = counted.get
    if pipeline.dead_letters is not None:
        rows = unreadable(matched, pipeline.dead_letters)
        write(rows if found["dead_letters"] else rows.limit(0), pipeline.dead_letters)
    return _report(None, version, found, begin)


# A stream.


def _run_stream(spark: SparkSession, pipeline: Pipeline, stream: Stream, tell: Tell, stop: Event) -> bool:
    told = max(_done(stream), default=-1)
    query = _start(spark, pipeline, stream)
    stopped = False
    while True:
        active = query.isActive  # asked first, so that the last reports are not missed
        for report in _reports(stream, told):
            told = report.batch if report.batch is not None else told
            tell(report)
        if not active:
            break
        if stop.is_set() and not stopped:
            stopped = True
            query.stop()
        else:
            stop.wait(PATIENCE)
    error = None if stopped else query.exception()
    if error is not None:
        raise _failure(f"the stream failed in micro-batch {max(_done(stream), default=-1) + 1}", error) from error
    return not stopped


def _start(spark: SparkSession, pipeline: Pipeline, stream: Stream) -> StreamingQuery:
    def process(batch: DataFrame, number: int) -> None:
        micro_batch(batch, number, pipeline, stream)

    try:
        documents = open_source(spark, pipeline.source, streaming=True)
        match(documents, pipeline, None)  # what is wrong with the columns is said now
        writer = documents.writeStream.foreachBatch(process).queryName(pipeline.name)
        writer = writer.option("checkpointLocation", stream.checkpoint)
        if stream.trigger == "available-now":
            writer = writer.trigger(availableNow=True)
        elif stream.trigger == "once":
            writer = writer.trigger(once=True)
        else:
            writer = writer.trigger(processingTime=stream.trigger)
        return writer.start()
    except Exception as error:
        raise _failure("the stream did not start", error) from error


def micro_batch(batch: DataFrame, number: int, pipeline: Pipeline, stream: Stream) -> None:
    """Match a micro-batch and write what becomes of it; doing it again gives the same."""
    begin = time.perf_counter()
    index = pipeline.subscriptions.index
    version = pin_version(index, _QUERY, number, pins_of(stream)) if is_versioned(index) else None
    counted = Observation()
    matched = observed(match(batch, pipeline, version), counted)
    if pipeline.dead_letters is not None:
        matched = matched.persist()
    try:
        write(deliveries(matched, pipeline.deliveries), pipeline.deliveries, number)
        found = counted.get
        if pipeline.dead_letters is not None and found["dead_letters"]:
            write(unreadable(matched, pipeline.dead_letters), pipeline.dead_letters, number)
    finally:
        if pipeline.dead_letters is not None:
            matched.unpersist()
    _keep(_report(number, version, found, begin), stream)


def pins_of(stream: Stream) -> Path:
    """Where the micro-batches of a stream are pinned to versions of the index."""
    return Path(stream.checkpoint) / "pathcast" / "pins"


def reports_of(stream: Stream) -> list[Report]:
    """The reports of the micro-batches that are done, in their order; of long streams the last `RETAINED`."""
    return list(_reports(stream, -1))


def _reports(stream: Stream, after: int) -> Iterator[Report]:
    for number in sorted(_done(stream)):
        file = _report_file(stream, number)
        if number > after and file.is_file():
            yield Report(**json.loads(file.read_text(encoding="utf-8")))


def _done(stream: Stream) -> set[int]:
    """The numbers of the micro-batches that Spark has noted as done."""
    commits = Path(stream.checkpoint) / "commits"
    return {int(file.name) for file in commits.iterdir() if file.name.isdecimal()} if commits.is_dir() else set()


def _keep(report: Report, stream: Stream) -> None:
    file = _report_file(stream, report.batch or 0)
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(".fresh")
    fresh.write_text(json.dumps(asdict(report)), encoding="utf-8")
    fresh.replace(file)
    for old in file.parent.glob("*.json"):
        if int(old.stem) < (report.batch or 0) - RETAINED:
            old.unlink(missing_ok=True)


def _report_file(stream: Stream, number: int) -> Path:
    return Path(stream.checkpoint) / "pathcast" / "reports" / f"{number}.json"


# Both.


def _report(batch: int | None, version: int | None, found: dict[str, int], begin: float) -> Report:
    return Report(
        batch=batch,
        version=version,
        documents=found["rows"],
        matches=found["deliveries"] if "deliveries" in found else found["matches"],
        dead_letters=found["dead_letters"],
        memo_hit_rate=round(1 - found["new_paths"] / found["elements"], 6) if found["elements"] else None,
        seconds=round(time.perf_counter() - begin, 3),
    )


def _failure(what: str, error: Exception) -> PipelineError:
    """What failed, and why in one line: our own words where they are in it, else Spark's first."""
    if isinstance(error, PathcastError):
        return PipelineError(str(error))
    said = re.findall(r"^(?:: |Caused by: )?(?:[\w.]+\.)?(\w+(?:Error|Exception)): (.+)$", str(error), re.MULTILINE)
    ours = [reason for name, reason in said if name in _OURS]
    others = [f"{name}: {reason}" for name, reason in said if name not in _WRAPPERS]
    first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return PipelineError(f"{what}: {(ours or others or [first])[-1]}")
