"""Outputs: which stream the rows in a folder are of, so that no stream delivers beside or over those of others.

    deliveries/_stream       the id that Spark has given the stream that writes here
    deliveries/batch=17      its rows of micro-batch 17

A stream with a new checkpoint begins with the first document, and micro-batches are told apart by their numbers alone:
over rows of a batch, or of another stream, it would deliver everything again, beside or in place of them. So rows that
are not its own keep a stream from starting, and a micro-batch from writing. (A batch has its `mode` for that.)

Rows are a stream's own when the folder is marked with its id; where there is no mark, when they lie in folders of
micro-batches that it has begun. Nothing is its own before it has begun one. What readers pass by (names that begin with
`_` or `.`) are no rows: a first micro-batch that was killed half way leaves only such, or its own.

Behind an address (`s3a://…`) there is no mark: there, a stream that has begun is believed. What is not files (a table,
a topic) is appended to, whatever it holds.
"""

import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pathcast.errors import PipelineError
from pathcast.toml_files import is_address

from .batch_reports import joins_stream
from .pipeline_sections import FILE_FORMATS, Pipeline, Sink, Stream
from .stream_checkpoints import begun, query_id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MARK = "_stream"
_MICRO_BATCH = re.compile(r"batch=(\d+)")


class _Output(NamedTuple):
    """A folder of files that a pipeline writes to; `mode` is that of a batch, said under the key `mode_key`."""

    key: str
    path: str
    mode: str
    mode_key: str
    stream: Stream | None


def check_outputs(pipeline: Pipeline, spark: "SparkSession | None" = None) -> None:
    """`PipelineError` if there is something where a pipeline writes that is in its way.

    For a stream, rows of others; what lies behind an address is looked at with Spark. For a batch, whatever there is,
    if it is not told what to do with it: Spark would say so, too, but of each output when its turn comes, after the
    ones before it were written.
    """
    for output in _outputs(pipeline):
        key, path = f"{pipeline.file}: {output.key}", output.path
        if output.stream is None:
            if output.mode == "error" and not is_address(path) and Path(path).exists():
                raise PipelineError(
                    f"{key}: there is something at {path} already; remove it, or give {output.mode_key} = "
                    '"append" or "overwrite"'
                )
            continue
        checkpoint = output.stream.checkpoint
        known = begun(checkpoint)
        found = _rows_of_others(path, checkpoint, known, spark)
        if found is not None:
            new = f"the checkpoint {checkpoint} is new, so the stream would deliver all documents again"
            raise PipelineError(
                f"{key}: {path} holds rows that this stream has not written ({found}), and "
                f"{'it would write its own' if known else new} beside them; choose another folder, set "
                f"stream.checkpoint to that of the stream which wrote them, or remove {path}"
            )


def claim(sink: Sink, stream: Stream, number: int) -> None:
    """Mark the folder that a micro-batch is about to write to as the stream's own; it must hold no rows of others."""
    if sink.path is None or is_address(sink.path) or sink.format not in FILE_FORMATS:
        return
    folder, mine = Path(sink.path), query_id(stream.checkpoint)
    if _marked(folder) == mine:
        return
    found = _of_others(folder, mine, number)
    if found is not None:
        raise PipelineError(
            f"{folder} holds rows that this stream has not written ({found}); give each stream a folder of its own"
        )
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / f"{_MARK}-{secrets.token_hex(4)}"
    fresh.write_text(mine, encoding="utf-8")
    fresh.replace(folder / _MARK)


def _outputs(pipeline: Pipeline) -> Iterator[_Output]:
    """The folders of files that a pipeline writes to."""
    deliveries, dead, joins, overlay = pipeline.deliveries, pipeline.dead_letters, pipeline.joins, pipeline.overlay
    places: list[tuple[str, str, Sink, str | None]] = [("deliveries", "path", deliveries, deliveries.path)]
    if overlay is not None:
        places.append(("overlay", "links", deliveries, overlay.links))
    if dead is not None:
        places.append(("dead_letters", "path", dead, dead.path))
    if joins is not None:
        places.append(("joins", "path", joins, joins.path))
        places += [("joins", key, joins, getattr(joins, key)) for key in ("deliveries", "contents", "dead_letters")]
    for section, key, sink, path in places:
        if path is not None and (key != "path" or sink.format in FILE_FORMATS):
            stream = joins_stream(pipeline.stream) if pipeline.stream and section == "joins" else pipeline.stream
            of = "deliveries" if section == "overlay" else section
            yield _Output(f"{section}.{key}", path, sink.mode, f"{of}.mode", stream)


def _rows_of_others(path: str, checkpoint: str, known: set[int], spark: "SparkSession | None") -> str | None:
    """What there is of others where the stream of a checkpoint writes, which has begun the micro-batches known."""
    if is_address(path):
        return "files" if not known and spark is not None and _any_behind(spark, path) else None
    return _of_others(Path(path), query_id(checkpoint) if known else None, max(known, default=-1))


def _of_others(folder: Path, mine: str | None, last: int) -> str | None:
    """A file with rows that are not of the stream with this id, which has begun micro-batches up to the last one."""
    mark = _marked(folder)
    if mine is not None and mark == mine:
        return None
    for file in _files(folder):
        number = _MICRO_BATCH.fullmatch(file.parts[0])
        if mark is not None or number is None or int(number[1]) > last:
            return str(file)
    return None


def _marked(folder: Path) -> str | None:
    """The id of the stream that a folder is marked with."""
    try:
        return (folder / _MARK).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None


def _files(folder: Path) -> Iterator[Path]:
    """The files of a folder that its readers see, by their paths in it."""
    for home, folders, files in os.walk(folder):
        folders[:] = (name for name in folders if not name.startswith(("_", ".")))
        yield from (Path(home, name).relative_to(folder) for name in files if not name.startswith(("_", ".")))


def _any_behind(spark: "SparkSession", address: str) -> bool:
    """Whether there are files behind an address; they are listed, not read."""
    from pyspark.errors import AnalysisException  # the rest needs no Spark

    try:
        listed = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(address)
        return not listed.select("path").isEmpty()
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return False
        raise
