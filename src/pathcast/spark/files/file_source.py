"""A stream over files: each file once, when it is complete. `stream_files`, and Spark's data source `pathcast-files`.

    listing (file_listing.py) ─▶ done? (complete_file_detection.py) ─▶ input_file_log.py ─▶ micro-batch: a range
                                       └ deferred: counted, and checked again by the next listing

Columns are those of Spark's `binaryFile`: `path` (`file:/feed/a b.xml`), `modificationTime`, `length`, `content`.
Spark's own file source takes a file when it first lists it, complete or not, and reads files twice when a name holds
wildcards.

Invariant: a file is in the log, on disk, before Spark gets an offset that includes it, and its number never changes.
A micro-batch is a range of numbers, so a replay after a crash reads the same files. A file is read once, even if it
changes.
Cost: per trigger a listing, and an append of the new files to the log; per query one process on the driver, which takes
some 1.3 s of processor time to start (the first one in a session 4 s).
Not done: addresses (`s3a://…`), for which pipeline_dataframes.py uses Spark's own source.

A file that no longer exists, cannot be opened, or is larger than 2 GB when its micro-batch reads it gives a row with
null `content`, and so a dead letter. Any other read error fails the task; the next run reads the same files again.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from pathcast.errors import PipelineError
from pathcast.toml_files import is_address

from ..arrow_to_spark_types import spark_schema
from .complete_file_detection import Clock, Settling, keep_deferred
from .file_listing import FoundFile, list_files, look_at
from .file_options import SETTLE, FileOptions, read_options
from .input_file_log import FileLog
from .spark_source_log import LOG_OFFSET, local_path, logged_files

FORMAT = "pathcast-files"
LOG = "pathcast/files.jsonl"
_FACTS = [("path", pa.string()), ("modificationTime", pa.timestamp("us", "UTC")), ("length", pa.int64())]
# A file costs its size plus `_OPENING` bytes; a task gets files of at most `_PARTITION` bytes, or one file.
_OPENING = 64 * 1024
_PARTITION = 32 * 1024 * 1024
# An Arrow batch has at most this many rows and bytes, or one file.
_ROWS = 500
_BYTES = 4 * 1024 * 1024
# The largest value in Spark.
_LARGEST = 2**31 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def stream_files(
    spark: SparkSession,
    path: str | os.PathLike[str],
    *,
    checkpoint: str | os.PathLike[str],
    settle: str = SETTLE,
    content: bool = True,
    **options: Any,
) -> DataFrame:
    """A stream of files, each once, when it is complete: `path`, `modificationTime`, `length`, `content`.

    `path` is a folder, file or pattern on a disk that driver and workers share. `checkpoint` is the query's
    `checkpointLocation`; the log of files is kept there, so each query needs its own frame. A file is read when
    its size and modification time have not changed for `settle`. With `content=False` the bytes are left out.
    `options` are `maxFilesPerTrigger` or `maxBytesPerTrigger`, `latestFirst`, `pathGlobFilter`,
    `recursiveFileLookup`, `minPartitions`.
    """
    places = {"path": os.fspath(path), "checkpoint": os.fspath(checkpoint)}
    for name, place in places.items():
        plain = place.removeprefix("file:").removeprefix("//") if place.startswith("file:") else place
        if is_address(plain):
            raise PipelineError(
                f"{name} must be a local or mounted path, got {place!r}; "
                "to read from a URL, use Spark's own file source"
            )
        places[name] = os.path.abspath(plain)  # noqa: PTH100 - patterns keep their backslashes
    given = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}
    given |= {**places, "settle": settle, "content": str(content).lower()}
    read_options(given)
    spark.dataSource.register(FileSource)
    return spark.readStream.format(FORMAT).options(**given).load()


def file_columns(*, content: bool) -> pa.Schema:
    """The columns of a row for each file, as `binaryFile` has them."""
    return pa.schema([*_FACTS, *([("content", pa.binary())] if content else [])])


class FileSource(DataSource):
    """The source `pathcast-files`, for streams."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return spark_schema(file_columns(content=read_options(self.options).content))

    def streamReader(self, schema: StructType) -> "FileStreamReader":  # noqa: N802 - Spark's name
        return FileStreamReader(read_options(self.options))


@dataclass
class FilePartition(InputPartition):
    """The files that one task reads."""

    files: list[FoundFile]


class FileStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches and reads files. An offset counts files of the log: `{"files": 17}`.

    Spark creates one reader in a process beside the driver, for the life of the query, and one for tasks, which only
    call `read`. So the log is opened when it is first needed.
    """

    def __init__(self, options: FileOptions, clock: Clock | None = None) -> None:
        self._options = options
        self._clock = clock
        self._driver: _Driver | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"files": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        if self._options.max_files is not None:
            return ReadMaxFiles(self._options.max_files)
        return ReadAllAvailable() if self._options.max_bytes is None else ReadMaxBytes(self._options.max_bytes)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._state.fix()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802 - Spark's name
        return self._state.offer(start, limit)

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return self._state.facts()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[FilePartition]:
        files = self._state.files(start, end)
        cost = sum(file.size + _OPENING for file in files)
        most = min(_PARTITION, cost // self._options.min_partitions + 1)
        found: list[FilePartition] = []
        room = 0
        for file in files:
            if not found or room < file.size + _OPENING:
                found.append(FilePartition([]))
                room = max(most, file.size + _OPENING)
            found[-1].files.append(file)
            room -= file.size + _OPENING
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, FilePartition)
        return rows_of(partition.files, content=self._options.content)

    @property
    def _state(self) -> "_Driver":
        if self._driver is None:
            self._driver = _Driver(self._options, self._clock or Clock())
        return self._driver


class _Driver:
    """The state on the driver: the log, deferred files, and settled files that wait for a later micro-batch."""

    def __init__(self, options: FileOptions, clock: Clock) -> None:
        self._options = options
        self._checkpoint = Path(options.checkpoint)
        self._settling = Settling(options.settle, clock)
        self._log = FileLog(self._checkpoint / LOG)
        if not len(self._log):
            self._take_over()
        self._waiting: list[FoundFile] = []
        self._fixed = False
        self._listed = False
        self._deferred: list[str] | None = None

    def fix(self) -> None:
        """Read only the files that exist now."""
        self._list(wait=True)
        self._fixed = True

    def offer(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """The end of the next micro-batch; `start` if there are no new files."""
        begin = self._number(start)
        self._log.between(begin, begin)
        if begin == len(self._log):
            if not self._fixed and (not self._waiting or self._options.latest_first):
                self._list(wait=self._options.wait_for_deferred and not self._listed)
            chosen = self._choose(limit)
            self._tell()
            if chosen:
                self._log.append(chosen)
        count = len(self._log) - begin
        if isinstance(limit, ReadMaxFiles):  # a log that was ahead of the checkpoint may hold more
            count = min(count, limit.max_files)
        return {"files": begin + count} if count else start

    def files(self, start: dict[str, int], end: dict[str, int]) -> list[FoundFile]:
        """The files of a micro-batch."""
        return self._log.between(self._number(start), self._number(end))

    def facts(self) -> dict[str, int]:
        """The numbers of files taken and deferred, for Spark's progress reports."""
        return {"files": len(self._log), "deferred": len(self._settling.deferred)}

    def _list(self, *, wait: bool) -> None:
        options = self._options

        def listed() -> list[FoundFile]:
            files = list_files(
                options.path, recursive=options.recursive, name_filter=options.name_filter, known=self._log
            )
            return self._settling.settled(files)

        self._log.refresh()
        found = listed()
        if wait and self._settling.deferred:
            self._settling.wait()
            found = listed()
        found.sort(key=lambda file: (file.modified, file.path), reverse=options.latest_first)
        found.reverse()  # so that the next one is at the end
        self._waiting, self._listed = found, True

    def _choose(self, limit: ReadLimit) -> list[FoundFile]:
        """The files of the next micro-batch, as they are now."""
        chosen: list[FoundFile] = []
        size = 0
        while self._waiting:
            if isinstance(limit, ReadMaxFiles) and len(chosen) >= limit.max_files:
                break
            if isinstance(limit, ReadMaxBytes) and chosen and size + self._waiting[-1].size > limit.max_bytes:
                break
            file = self._waiting.pop()
            now = look_at(file.path)
            if now == file:
                chosen.append(file)
                size += file.size
            elif now is not None:
                self._settling.defer(now)
        return chosen

    def _tell(self) -> None:
        deferred = self._settling.deferred
        if deferred != self._deferred:
            keep_deferred(self._checkpoint, deferred)
            self._deferred = deferred

    def _number(self, offset: dict[str, int]) -> int:
        """The number of files up to an offset; offsets of Spark's own file source count entries of its log."""
        return self._log.up_to_line(offset[LOG_OFFSET]) if LOG_OFFSET in offset else offset["files"]

    def _take_over(self) -> None:
        """Continue from the log of Spark's own file source, if the checkpoint has one: a line per entry."""
        taken = logged_files(self._checkpoint)
        if taken:
            self._log.begin(
                [FoundFile(local_path(uri), 0, milliseconds * 10**6) for uri, milliseconds in entry] for entry in taken
            )


def rows_of(files: Sequence[FoundFile], *, content: bool) -> Iterator[pa.RecordBatch]:
    """The files as rows, some 4 MB at a time."""
    kind = file_columns(content=content)
    columns: list[list[Any]] = [[] for _ in kind]
    size = 0
    for file in files:
        data = _read(file.path) if content else None
        if columns[0] and (len(columns[0]) >= _ROWS or size + len(data or b"") > _BYTES):
            yield pa.RecordBatch.from_arrays(
                [pa.array(*one) for one in zip(columns, kind.types, strict=True)], schema=kind
            )
            columns, size = [[] for _ in kind], 0
        # A string column cannot hold a name that is not UTF-8; escape its bytes.
        path = os.fsencode(file.path).decode("utf-8", "backslashreplace")
        modified = _EPOCH + timedelta(milliseconds=file.modified // 10**6)
        row = [f"file:{path}", modified, file.size if data is None else len(data), data]
        for column, value in zip(columns, row, strict=False):
            column.append(value)
        size += len(data or b"")
    if columns[0]:
        yield pa.RecordBatch.from_arrays([pa.array(*one) for one in zip(columns, kind.types, strict=True)], schema=kind)


def _read(path: str) -> bytes | None:
    try:
        with Path(path).open("rb") as file:
            return file.read() if os.fstat(file.fileno()).st_size <= _LARGEST else None
    except (FileNotFoundError, NotADirectoryError, PermissionError, IsADirectoryError):
        return None
