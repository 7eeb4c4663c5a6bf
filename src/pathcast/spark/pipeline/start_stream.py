"""Start a stream with a function for its micro-batches, as configured in a pipeline file; the folder of its pins."""

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from ..sessions.spark_session import EMPTY_CHECKPOINT_CHECK
from .pipeline_sections import Stream


def start_stream(
    frame: DataFrame, process: Callable[[DataFrame, int], None], name: str, stream: Stream
) -> StreamingQuery:
    """Call a function with every micro-batch of a frame and its number."""
    frame.sparkSession.conf.set(EMPTY_CHECKPOINT_CHECK, "false")
    writer = frame.writeStream.foreachBatch(process).queryName(name).option("checkpointLocation", stream.checkpoint)
    if stream.trigger == "available-now":
        writer = writer.trigger(availableNow=True)
    elif stream.trigger == "once":
        writer = writer.trigger(once=True)
    else:
        writer = writer.trigger(processingTime=stream.trigger)
    return writer.start()


def pins_of(stream: Stream) -> Path:
    """The folder with the pinned versions of a stream's micro-batches."""
    return Path(stream.checkpoint) / "pathcast" / "pins"
