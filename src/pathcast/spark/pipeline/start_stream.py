"""Starting a stream whose micro-batches a function takes, as its section of a pipeline file says, and its pins."""

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from .pipeline_sections import Stream


def start_stream(
    frame: DataFrame, process: Callable[[DataFrame, int], None], name: str, stream: Stream
) -> StreamingQuery:
    """Give every micro-batch of a frame, with its number, to a function."""
    writer = frame.writeStream.foreachBatch(process).queryName(name).option("checkpointLocation", stream.checkpoint)
    if stream.trigger == "available-now":
        writer = writer.trigger(availableNow=True)
    elif stream.trigger == "once":
        writer = writer.trigger(once=True)
    else:
        writer = writer.trigger(processingTime=stream.trigger)
    return writer.start()


def pins_of(stream: Stream) -> Path:
    """Where the micro-batches of a stream are pinned to versions of what they use."""
    return Path(stream.checkpoint) / "pathcast" / "pins"
