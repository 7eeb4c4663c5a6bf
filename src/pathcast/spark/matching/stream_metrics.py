"""Metrics: what each micro-batch did, as Spark's own observed metrics, as a dictionary and as one line.

    matched = observed(match_documents(documents, "index", measure=True))
    spark.streams.addListener(listener := ProgressListener())
    …
    listener.remove_from(spark)

`observed` counts rows as they pass, without a second pass over them; Spark reports the counts with the progress of the
batch, to all listeners. A frame that is computed twice counts twice: persist it if it has two sinks.
"""

import json
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    SourceProgress,
    StreamingQueryListener,
    StreamingQueryProgress,
)

from pathcast.errors import PipelineError

from .match_documents import MEASURED, SHARD_COLUMN, SUBSCRIPTIONS

NAME = "pathcast"
_FACTS = "pathcast"

log = logging.getLogger("pathcast.spark")

Facts = dict[str, Any]


def observed(matched: DataFrame, name: str | Observation = NAME) -> DataFrame:
    """The frame that `match_documents` made, with its counts observed under a name; the column `measured` is dropped.

    Observed are `rows`, `matches` (or `deliveries`, by subscriber), `dead_letters`, and with `measure=True` `version`
    (also `first_version`, if there are several), `elements`, `new_paths` and `nanoseconds`.
    """
    if "error" not in matched.columns:
        raise PipelineError(
            f"the input has no column 'error', which match_documents(…) adds; its columns are "
            f"{', '.join(matched.columns)}"
        )
    found, counted = "matches", "matches"
    for name_of_list in ("subscribers", SUBSCRIPTIONS):
        if name_of_list in matched.columns:
            found, counted = name_of_list, "deliveries"
    # With an index in shards, every document has one row for the first shard, and possibly more for others.
    first = f.when(f.col(SHARD_COLUMN) == 0, 1) if SHARD_COLUMN in matched.columns else f.lit(1)
    metrics: list[Column] = [
        f.count(first).alias("rows"),
        _sum(f.array_size(found)).alias(counted),
        f.count("error").alias("dead_letters"),
    ]
    if MEASURED.name in matched.columns:
        measured = f.col(MEASURED.name)
        metrics += [f.max(measured["version"]).alias("version"), f.min(measured["version"]).alias("first_version")]
        metrics += [_sum(measured[field]).alias(field) for field in ("elements", "new_paths", "nanoseconds")]
    return matched.observe(name, *metrics).drop(MEASURED.name)


def progress_facts(progress: StreamingQueryProgress, name: str = NAME) -> Facts:
    """The facts of a batch, as plain values: those of the stream, and those that `observed` counted under a name."""
    duration = progress.durationMs.get("triggerExecution", 0) / 1000
    rows = progress.numInputRows
    facts: Facts = {
        "query": progress.name or str(progress.id),
        "query_id": str(progress.id),
        "run_id": str(progress.runId),
        "batch": progress.batchId,
        "at": progress.timestamp,
        "rows": rows,
        "seconds": duration,
        "documents_per_second": round(rows / duration, 1) if duration else None,
    }
    deferred = [count for count in map(_deferred, progress.sources) if count is not None]
    if deferred:
        facts["deferred"] = sum(deferred)
    counted = progress.observedMetrics.get(name)
    if counted is not None:
        values = counted.asDict()
        # A source that several branches read counts its rows once per branch; matched rows are counted once.
        facts |= {key: value for key, value in values.items() if key not in ("elements", "new_paths", "nanoseconds")}
        rows = facts["rows"]
        facts["documents_per_second"] = round(rows / duration, 1) if duration else None
        if facts.get("version") == facts.get("first_version"):
            facts.pop("first_version", None)
        if values.get("elements"):
            facts["memo_hit_rate"] = 1 - values["new_paths"] / values["elements"]
        if values.get("nanoseconds"):
            facts["matching_seconds"] = values["nanoseconds"] / 1e9
    return facts


def _deferred(source: SourceProgress) -> int | None:
    """The number of files that a source has deferred; None for sources other than `stream_files`."""
    try:
        offset = json.loads(source.latestOffset or "null")
    except ValueError:  # the format depends on the source
        return None
    found = offset.get("deferred") if isinstance(offset, dict) else None
    return found if isinstance(found, int) else None


def progress_line(facts: Mapping[str, Any]) -> str:
    """One line for people."""
    parts = [f"batch {facts['batch']}", f"{facts['rows']:,} documents", f"{facts['seconds']:.2f} s"]
    if facts.get("documents_per_second"):
        parts.append(f"{facts['documents_per_second']:,.0f}/s")
    for key, word in (("matches", "matches"), ("deliveries", "deliveries"), ("dead_letters", "dead letters")):
        if key in facts:
            parts.append(f"{facts[key]:,} {word}")
    if "memo_hit_rate" in facts:
        parts.append(f"memo {100 * facts['memo_hit_rate']:.2f} %")
    if facts.get("version") is not None:
        parts.append(f"version {facts['version']}")
    if facts.get("deferred"):
        parts.append(f"{facts['deferred']:,} files deferred")
    return f"{facts['query']}: " + ", ".join(parts)


def log_progress(facts: Facts) -> None:
    """Log a batch: a line for people, and the facts for `StructuredFormatter`."""
    log.info("%s", progress_line(facts), extra={_FACTS: facts})


class ProgressListener(StreamingQueryListener):
    """Reports every micro-batch that had rows, each once; by default to the log.

    `report` gets the facts (`progress_facts`). A query that ends with an error is logged as an error. Remove it with
    `remove_from`, not with Spark's `removeListener`: over Spark Connect that call never returns if an event is pending
    (it waits for the thread of the events and holds the lock that this thread needs).
    """

    def __init__(self, report: Callable[[Facts], None] = log_progress, name: str = NAME) -> None:
        self._report = report
        self._name = name
        self._changed = threading.Condition()
        self._running: dict[str, str] = {}  # run id → name of the query

    def remove_from(self, spark: SparkSession, seconds: float = 60) -> None:
        """Remove the listener from a session, after it has seen the end of every query that it saw start.

        Raises `PipelineError`, and stays registered, if a query does not end within that time.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: not self._running, seconds):
                names = ", ".join(sorted(self._running.values()))
                raise PipelineError(
                    f"cannot remove the listener: {names} did not end within {seconds:g} s; "
                    "stop the query with query.stop(), or await its termination first"
                )
        spark.streams.removeListener(self)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        facts = {"event": "started", "query": event.name or str(event.id), "run_id": str(event.runId)}
        with self._changed:
            self._running[facts["run_id"]] = facts["query"]
        log.info("%s: started", facts["query"], extra={_FACTS: facts})

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        if event.progress.numInputRows:
            self._report(progress_facts(event.progress, self._name))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Ignore: there was no batch."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        facts = {"event": "ended", "query_id": str(event.id), "run_id": str(event.runId), "error": event.exception}
        if event.exception:
            log.error("%s: ended with an error: %s", event.id, event.exception, extra={_FACTS: facts})
        else:
            log.info("%s: ended", event.id, extra={_FACTS: facts})
        with self._changed:
            self._running.pop(str(event.runId), None)
            self._changed.notify_all()


class StructuredFormatter(logging.Formatter):
    """A log record as one line of JSON: time, level, logger, message, and the facts that it carries."""

    def format(self, record: logging.LogRecord) -> str:
        line: Facts = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, _FACTS, {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def _sum(column: Column) -> Column:
    return f.coalesce(f.sum(column), f.lit(0))
