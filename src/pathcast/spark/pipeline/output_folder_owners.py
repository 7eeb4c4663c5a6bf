"""Owners: which stream owns the rows in a folder, so that no stream adds to or overwrites the rows of another.

    deliveries/_stream       Spark's id of the stream that writes here
    deliveries/batch=17      its rows of micro-batch 17

A stream with a new checkpoint starts with the first document, and micro-batches are identified by their numbers alone:
in a folder with rows of a batch or of another stream, it would deliver everything again, next to or in place of them.
So rows that a stream does not own keep it from starting, and a micro-batch from writing. (A batch has `mode` for that.)

A stream owns the rows of a folder that is marked with its id; without a mark, the rows in folders of micro-batches that
it has begun. It owns nothing before its first micro-batch. Files that readers ignore (names that begin with `_` or `.`)
are not rows: a first micro-batch that was killed midway leaves only such files, or its own.

Remote addresses (`s3a://…`) have no mark: there, a stream that has begun is trusted. Outputs that are not files (a
table, a topic) are appended to without a check; a Delta table may have several writers, and knows their micro-batches.
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
from .checkpoint_reader import begun, query_id
from .pipeline_sections import FILE_FORMATS, Pipeline, Sink, Stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MARK = "_stream"
_MICRO_BATCH = re.compile(r"batch=(\d+)")


class _Output(NamedTuple):
    """A folder of files that a pipeline writes to; `mode` is that of a batch, from the key `mode_key`."""

    key: str
    path: str
    mode: str
    mode_key: str
    stream: Stream | None


def check_outputs(pipeline: Pipeline, spark: "SparkSession | None" = None) -> None:
    """Raise `PipelineError` if an output folder already holds data that the pipeline must not touch.

    For a stream: rows of others; remote addresses are listed with Spark. For a batch: any data, unless a mode says how
    to treat it. Spark would reject it too, but for each output in turn, after the outputs before it were written.
    """
    for output in _outputs(pipeline):
        key, path = f"{pipeline.file}: {output.key}", output.path
        if output.stream is None:
            if output.mode == "error" and not is_address(path) and Path(path).exists():
                raise PipelineError(
                    f'{key}: {path} already exists; remove it, or set {output.mode_key} = "append" or "overwrite"'
                )
            continue
        checkpoint = output.stream.checkpoint
        known = begun(checkpoint)
        found = _rows_of_others(path, checkpoint, known, spark)
        if found is not None:
            new = f"the checkpoint {checkpoint} is new, so the stream would deliver all documents again"
            raise PipelineError(
                f"{key}: {path} holds rows that this stream did not write ({found}), and "
                f"{'it would write its own' if known else new} next to them; choose another folder, set "
                f"stream.checkpoint to that of the stream which wrote them, or remove {path}"
            )


def claim(sink: Sink, stream: Stream, number: int) -> None:
    """Mark the folder that a micro-batch will write to as owned by the stream; it must not hold rows of others."""
    if sink.path is None or is_address(sink.path) or sink.format not in FILE_FORMATS:
        return
    folder, mine = Path(sink.path), query_id(stream.checkpoint)
    if _marked(folder) == mine:
        return
    found = _of_others(folder, mine, number)
    if found is not None:
        raise PipelineError(
            f"{folder} holds rows that this stream did not write ({found}); choose another folder for this "
            "stream, or remove these rows"
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
        is_new_table = sink.is_delta_folder and pipeline.stream is None
        if path is not None and (key != "path" or sink.format in FILE_FORMATS or is_new_table):
            stream = joins_stream(pipeline.stream) if pipeline.stream and section == "joins" else pipeline.stream
            of = "deliveries" if section == "overlay" else section
            yield _Output(f"{section}.{key}", path, sink.mode, f"{of}.mode", stream)


def _rows_of_others(path: str, checkpoint: str, known: set[int], spark: "SparkSession | None") -> str | None:
    """A file of others in the output of a checkpoint's stream; `known`: the micro-batches that the stream has begun."""
    if is_address(path):
        return "files" if not known and spark is not None and _any_behind(spark, path) else None
    return _of_others(Path(path), query_id(checkpoint) if known else None, max(known, default=-1))


def _of_others(folder: Path, mine: str | None, last: int) -> str | None:
    """A file with rows that the stream `mine` does not own; it has begun micro-batches up to `last`."""
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
    """The files of a folder that readers see, as relative paths."""
    for home, folders, files in os.walk(folder):
        folders[:] = (name for name in folders if not name.startswith(("_", ".")))
        yield from (Path(home, name).relative_to(folder) for name in files if not name.startswith(("_", ".")))


def _any_behind(spark: "SparkSession", address: str) -> bool:
    """Whether a remote address has files; they are listed, not read."""
    from pyspark.errors import AnalysisException  # the rest needs no Spark

    try:
        listed = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(address)
        return not listed.select("path").isEmpty()
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return False
        raise
