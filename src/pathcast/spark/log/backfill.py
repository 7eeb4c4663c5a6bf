"""Matching for a broker: the ranges of feeds and the histories that it leaves to Spark.

    broker ──work──▶ driver ──ranges of sequences──▶ tasks: read the log, match ──▶ driver ──matches──▶ broker

A round takes a part of one feed's work, at most `most` sequences, and sends its matches. Nothing is kept between
rounds: the broker knows what it has. So the program may be killed and started again at any moment, several may run,
and a broker that restarts gets what it lacks.

Invariant: after `run_backfill` returns, the broker had no work that it had when it was called.
Cost: a Spark job per round; the driver has the matches of a round in memory, 12 bytes each. A worker compiles the
patterns of a feed when they have changed, 15 µs each.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Event
from time import perf_counter
from typing import Final

import numpy as np
import pyarrow as pa
from msgspec import structs
from pyspark.sql import SparkSession

from pathcast.broker_log import FeedMediator, LoggedDocuments, MediatorSpan, MediatorSpans, PatternMatcher
from pathcast.client import BrokerError, FeedRange, Found, MatchingWork, Mediated, Work
from pathcast.errors import PipelineError
from pathcast.log import TrimmedError

from ..sessions.objects_sent_to_workers import ShippedObject
from .log_data_source import LogRange, rows
from .log_options import LogOptions
from .match_by_step import by_feed, pieces

# Sequences that a round matches at most, and that a task matches at least.
MOST: Final = 200_000
LEAST: Final = 2_000
_TASKS_PER_CORE: Final = 4
_GONE: Final = 409


@dataclass(frozen=True)
class Round:
    """What one round did."""

    feed: str
    begin: int
    to: int
    patterns: int
    matches: int
    seconds: float
    history: bool

    def __str__(self) -> str:
        what = "history" if self.history else "documents"
        return (
            f"{self.feed}: {what} {self.begin:,} to {self.to:,}, {self.patterns:,} patterns, {self.matches:,} matches, "
            f"{self.seconds:.1f} s"
        )


@dataclass(frozen=True)
class _Task:
    """What the tasks of a round need."""

    options: LogOptions
    begin: int
    end: int
    size: int
    lease: str
    feed: str
    mediators: MediatorSpans


def run_backfill(
    spark: SparkSession,
    options: LogOptions,
    tell: Callable[[Round], object],
    stop: Event | None = None,
    *,
    every: float | None = None,
    most: int = MOST,
) -> None:
    """Do the work of a broker; with `every`, ask again after this number of seconds, until `stop` is set."""
    if options.url is None:
        raise PipelineError("a backfill needs the address of a broker; give a URL")
    stopped = Event() if stop is None else stop
    with MatchingWork(options.url, options.token, patience=options.patience) as broker:
        while not stopped.is_set():
            work = broker.work()
            if not (work.ranges or work.histories):
                if every is None:
                    return
                stopped.wait(every)
                continue
            try:
                tell(_round(spark, broker, options, work, most))
            except TrimmedError:
                continue  # the broker has less work now
            except BrokerError as error:
                if error.status != _GONE:  # another program was faster, or the broker has restarted
                    raise


def _round(spark: SparkSession, broker: MatchingWork, options: LogOptions, work: Work, most: int) -> Round:
    begun = perf_counter()
    if work.ranges:
        wanted = work.ranges[0]
        feed, begin, to = wanted.feed, wanted.begin, min(wanted.to, wanted.begin + most - 1)
        patterns = broker.patterns(feed)
    else:
        # From the end backwards: the broker takes a history if it ends where what is known of its pattern begins.
        feed = work.histories[0].feed
        of_feed = [each for each in work.histories if each.feed == feed]
        to = max(each.to for each in of_feed)
        begin = max(to - most + 1, min(each.begin for each in of_feed))
        patterns = [each.pattern for each in of_feed if each.to >= begin]
    lease = broker.take_lease(begin)
    try:
        spans = _spans(work.mediators.get(feed, []))
        parallel = max(1, spark.sparkContext.defaultParallelism) if hasattr(spark, "_jsc") else _TASKS_PER_CORE
        size = max(LEAST, -(-(to + 1 - begin) // (_TASKS_PER_CORE * parallel)))
        task = _Task(replace(options, feeds=(feed,)), begin, to + 1, size, lease, feed, spans)
        sequences, numbers = matched(spark, task, patterns)
        found = Found(patterns, sequences, numbers)
        if work.ranges:
            broker.send_range(FeedRange(feed, begin, to), found)
        else:
            broker.send_histories(feed, begin, to, found)
    finally:
        with suppress(BrokerError):
            broker.release_lease(lease)
    return Round(feed, begin, to, len(patterns), len(sequences), perf_counter() - begun, not work.ranges)


def _spans(given: Sequence[Mediated]) -> MediatorSpans:
    return tuple(
        MediatorSpan(each.begin, None if each.mediator is None else FeedMediator(**structs.asdict(each.mediator)))
        for each in given
    )


def matched(
    spark: SparkSession, task: _Task, patterns: Sequence[str]
) -> tuple["np.ndarray[tuple[int], np.dtype[np.int64]]", "np.ndarray[tuple[int], np.dtype[np.int64]]"]:
    """The sequences of a range's documents, and the place of the pattern that each matches."""
    count = -(-(task.end - task.begin) // task.size)
    shipped = ShippedObject.of(list(patterns))

    def match_ranges(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matcher = shipped.open(_matcher)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                begin = task.begin + number * task.size
                part = LogRange(begin, min(begin + task.size, task.end), task.lease)
                yield from _matches(matcher, part, task)

    found = spark.range(0, count, 1, count).mapInArrow(match_ranges, "sequence long, pattern int").toArrow()
    return found.column(0).to_numpy(), found.column(1).to_numpy().astype(np.int64)


def _matcher(patterns: list[str]) -> PatternMatcher:
    matcher = PatternMatcher()
    matcher.add(patterns)
    return matcher


def _matches(matcher: PatternMatcher, part: LogRange, task: _Task) -> Iterator[pa.RecordBatch]:
    mediators: Mapping[str, MediatorSpans] = {task.feed: task.mediators}
    for batch in rows(task.options, part):
        for piece in pieces(batch):
            documents: LoggedDocuments
            for _, _, documents in by_feed(piece, {}, mediators):
                sequences, numbers = matcher.match(task.feed, documents, task.mediators)
                yield pa.record_batch(
                    [pa.array(sequences), pa.array(numbers.astype(np.int32))], ["sequence", "pattern"]
                )
