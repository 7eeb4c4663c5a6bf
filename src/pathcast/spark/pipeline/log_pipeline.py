"""A pipeline over a broker's log that takes the subscriptions from the log, too: its deliveries are the broker's.

    micro-batch ──its last sequence──▶ step: the subscriptions valid in it (log/subscription_steps.py)
        │ documents of the step, and the history of subscriptions that begin in the past
        ▼
    matched by what is valid at each document's sequence (log/match_by_step.py)

A subscription with `from` in the past gets the documents before its record in the micro-batch that has the record.

Invariant: whatever micro-batches the log is read in, the same deliveries are written once: those of a reader of
the broker that is never behind. A repeated micro-batch writes the same rows, as its step is recorded.
Cost: one more read of the log's documents for each micro-batch in which subscriptions begin in the past.
"""

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ..log.log_data_source import FORMAT
from ..log.log_options import LogOptions, parse_log_options
from ..log.match_by_step import match_by_step
from ..log.subscription_steps import SubscriptionSteps, step_of_batch
from .checkpoint_reader import offset_of
from .pipeline_sections import Pipeline, Stream

# Where the streams of this process are in their logs, by folder.
_steps: dict[Path, SubscriptionSteps] = {}
_OF_STREAMS = ("maxdocumentspertrigger",)


def match_log_batch(spark: SparkSession, pipeline: Pipeline) -> DataFrame:
    """The documents of a range of the log, with the subscriptions that get each."""
    step = step_of_batch(_options(pipeline))
    return match_by_step(_documents(spark, pipeline, step.begin, step.end), step)


def open_log_stream(spark: SparkSession, pipeline: Pipeline, stream: Stream) -> DataFrame:
    """The documents of the log from the pipeline's first sequence on."""
    steps = _steps[_folder(stream)] = SubscriptionSteps(_folder(stream), _options(pipeline))
    options = _given(pipeline) | {"from": steps.begin, "expired": "keep"}
    return spark.readStream.format(FORMAT).options(**options).load()


def match_log_micro_batch(batch: DataFrame, number: int, pipeline: Pipeline, stream: Stream) -> DataFrame:
    """The documents of a micro-batch, with the subscriptions that get each, and the history that begins in it."""
    folder = _folder(stream)
    steps = _steps.setdefault(folder, SubscriptionSteps(folder, _options(pipeline)))
    step = steps.step(number, int(offset_of(stream.checkpoint, number)["sequence"]))
    matched = match_by_step(batch, step)
    if not step.history:
        return matched
    earlier = _documents(batch.sparkSession, pipeline, step.history_begin, step.begin - 1)
    return matched.unionByName(match_by_step(earlier, step, history=True))


def _documents(spark: SparkSession, pipeline: Pipeline, begin: int, end: int) -> DataFrame:
    """The documents of a range; the step says which have expired."""
    options = {name: value for name, value in _given(pipeline).items() if name not in _OF_STREAMS}
    options |= {"from": begin, "to": end, "expired": "keep"}
    return spark.read.format(FORMAT).options(**options).load()


def _given(pipeline: Pipeline) -> dict[str, Any]:
    return {name.lower(): value for name, value in pipeline.source.options.items()}


def _options(pipeline: Pipeline) -> LogOptions:
    return parse_log_options(pipeline.source.options)


def _folder(stream: Stream) -> Path:
    return Path(stream.checkpoint) / "pathcast" / "subscriptions"
