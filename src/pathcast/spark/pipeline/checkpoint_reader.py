"""Read a stream's checkpoint without Spark: the id of the stream, and the micro-batches begun and done.

Spark records a micro-batch in `offsets` before computing it, and in `commits` when it is done.
"""

import json
from pathlib import Path
from typing import Any

from pathcast.errors import PipelineError

from ..publishing.micro_batch_version_pins import AnyPath


def query_id(checkpoint: AnyPath) -> str:
    """Spark's id of the query of a checkpoint."""
    place = Path(checkpoint) / "metadata"
    try:
        return str(json.loads(place.read_text(encoding="utf-8"))["id"])
    except (OSError, ValueError, KeyError) as error:
        raise PipelineError(
            f"{checkpoint} is not the checkpoint of a stream that has started: {error}; give the stream's checkpoint "
            "folder, and start the stream first"
        ) from None


def begun(checkpoint: AnyPath) -> set[int]:
    """The numbers of the micro-batches that have begun; of long streams the last ones."""
    return _numbers(Path(checkpoint) / "offsets")


def done(checkpoint: AnyPath) -> set[int]:
    """The numbers of the micro-batches that are done; of long streams the last ones."""
    return _numbers(Path(checkpoint) / "commits")


def batch_at(checkpoint: AnyPath, time: int) -> int:
    """The number of the micro-batch with this time, in milliseconds.

    Spark records it with the micro-batch; `current_timestamp` returns it, also when the micro-batch is repeated.
    """
    log = Path(checkpoint) / "offsets"
    for number in sorted(begun(checkpoint), reverse=True):
        facts = json.loads((log / str(number)).read_text(encoding="utf-8").splitlines()[1])
        if facts["batchTimestampMs"] == time:
            return number
    raise PipelineError(
        f"this Spark worker finds no micro-batch with timestamp {time} ms in the checkpoint {checkpoint}; put the "
        "checkpoint in a folder that all workers share"
    )


def offset_of(checkpoint: AnyPath, number: int) -> Any:
    """The offset, as the source wrote it, at which a micro-batch of a stream with one source ends."""
    place = Path(checkpoint) / "offsets" / str(number)
    try:
        return json.loads(place.read_text(encoding="utf-8").splitlines()[2])
    except (OSError, ValueError, IndexError) as error:
        raise PipelineError(f"cannot read {place} of the checkpoint: {error}; restore it from a backup") from None


def _numbers(log: Path) -> set[int]:
    return {int(file.name) for file in log.iterdir() if file.name.isdecimal()} if log.is_dir() else set()
