"""The data source `pathcast`: the documents in a broker's log as a DataFrame, or as a stream.

Writing to it is publish_documents.py; this module reads.

    planned on the driver: ranges of sequences, a read lease ──▶ tasks: records of a range ──▶ rows of documents

A task reads its range from closed segments if it finds them in the option `folder`, otherwise from the broker. An
offset is the last sequence that was read: `{"sequence": 4711}`. A range of the log is the same whenever it is read, so
a micro-batch that is repeated after a crash has the same rows.

Documents beyond their feed's retention are left out, with a warning in the driver's log; the option `expired` fails the
query instead, or keeps them. The driver asks once per plan which have expired, so all tasks of a plan agree.

Invariant: each readable document of the range is a row, once. If a record was trimmed before it was read, the query
fails with `TrimmedError`: nothing is left out silently.
Cost: a request per task, `sequencesPerTask` sequences each; one more per trigger. Sequences count all records of the
log, so a micro-batch of `maxDocumentsPerTrigger` sequences may have fewer documents.
"""

import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from pathcast.broker_log import DOCUMENT, expired_before
from pathcast.client import LogBounds, LogReader
from pathcast.errors import PipelineError
from pathcast.log import ClosedSegments, LogError, TrimmedError

from ..arrow_to_spark_types import spark_schema
from .document_rows import COLUMNS, document_rows, records_of
from .log_options import LogOptions, parse_log_options
from .publish_documents import DocumentBatchWriter, DocumentStreamWriter
from .publish_options import publish_options

FORMAT: Final = "pathcast"
# Seconds between extensions of a lease, which lasts a minute.
_EXTEND: Final = 15.0
_LOGGER: Final = logging.getLogger(__name__)


class LogDataSource(DataSource):
    """The data source `pathcast`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return spark_schema(COLUMNS)

    def writer(self, schema: StructType, overwrite: bool) -> DocumentBatchWriter:
        if overwrite:
            raise PipelineError("a log cannot be overwritten; write with mode append")
        return DocumentBatchWriter(publish_options(self.options, is_stream=False), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DocumentStreamWriter:  # noqa: N802 - Spark's
        if overwrite:
            raise PipelineError("a log cannot be overwritten; write with output mode append")
        return DocumentStreamWriter(publish_options(self.options, is_stream=True), schema)

    def reader(self, schema: StructType) -> "LogBatchReader":
        return LogBatchReader(parse_log_options(self.options))

    def streamReader(self, schema: StructType) -> "LogStreamReader":  # noqa: N802 - Spark's name
        return LogStreamReader(parse_log_options(self.options))


@dataclass
class LogRange(InputPartition):
    """The records that one task reads: from `begin` to before `end`."""

    begin: int
    end: int
    lease: str | None
    expired: dict[str, int] = field(default_factory=dict)  # per feed, the first sequence that is read


def bounds(options: LogOptions) -> LogBounds:
    """The oldest and the last record of the log now."""
    if options.url is not None:
        with options.reader() as reader:
            return reader.bounds()
    log = options.opened()
    try:
        return LogBounds(log.first, log.head)
    finally:
        log.close()


def ranges(options: LogOptions, begin: int, end: int, lease: str | None) -> list[LogRange]:
    """The range from `begin` to before `end`, cut into tasks."""
    expired = expired_documents(options, begin) if begin < end else {}
    return [
        LogRange(first, min(first + options.task, end), lease, expired) for first in range(begin, end, options.task)
    ]


def expired_documents(options: LogOptions, begin: int) -> dict[str, int]:
    """Per feed, the first sequence that is read, if documents from `begin` on have expired."""
    if options.expired == "keep":
        return {}
    if options.url is not None:
        with options.reader() as reader:
            found = reader.expired()
    else:
        log = options.opened()
        try:
            found = expired_before(log)
        finally:
            log.close()
    feeds = {
        feed: first for feed, first in found.items() if first > begin and (not options.feeds or feed in options.feeds)
    }
    if not feeds:
        return {}
    text = ", ".join(f"{feed!r} before record {first}" for feed, first in sorted(feeds.items()))
    if options.expired == "fail":
        raise LogError(
            f"the query reads from record {begin}, but documents of some feeds have expired: {text}; "
            "read from a later record, or set option 'expired' to 'omit' or 'keep'"
        )
    _LOGGER.warning("the query omits expired documents of feeds: %s", text)
    return feeds


def rows(options: LogOptions, part: LogRange) -> Iterator[pa.RecordBatch]:
    """The rows of documents of one task."""
    feeds = frozenset(options.feeds)
    for batch in _records(options, part):
        found = document_rows(batch, feeds, part.expired)
        if found.num_rows:
            yield found


def _records(options: LogOptions, part: LogRange) -> Iterator[pa.RecordBatch]:
    """The records of a range: from a folder alone, or from closed segments in a folder and the rest from the broker."""
    if options.url is None:
        log = options.opened()
        try:
            if part.end > log.head + 1:
                raise LogError(
                    f"the log in {options.folder} ends with record {log.head}, but the plan reads up to record "
                    f"{part.end - 1}; "
                    "give all workers the same folder"
                )
            yield from records_of(log.read(part.begin, part.end, kinds=(DOCUMENT,)))
        finally:
            log.close()
        return
    begin = part.begin
    if options.folder is not None:
        segments = ClosedSegments(options.folder)
        end = min(part.end, segments.last + 1)
        if segments.first <= begin < end:
            yield from records_of(segments.read(begin, end, kinds=(DOCUMENT,)))
            begin = end
    with options.reader() as reader:
        yield from reader.batches(begin, part.end, kinds=(DOCUMENT,), feeds=options.feeds, lease=part.lease)


class LogBatchReader(DataSourceReader):
    """Reads a range of the log: from `from`, by default the oldest record, to `to`, by default the last one now."""

    def __init__(self, options: LogOptions) -> None:
        if options.most is not None:
            raise PipelineError("option 'maxDocumentsPerTrigger' does not apply to a batch; omit it, or use readStream")
        self._options = options

    def partitions(self) -> list[LogRange]:
        options = self._options
        first, head = bounds(options)
        begin = first if options.begin == "first" else head + 1 if options.begin == "now" else options.begin
        if begin < first:
            raise TrimmedError.before(begin, first)
        end = head + 1 if options.to is None else options.to + 1
        if end > head + 1:
            raise PipelineError(
                f"option 'to' is {options.to}, but the log ends with record {head}; give at most {head}, or omit "
                "the option"
            )
        if begin >= end:  # Spark reads without a partition if there is none
            return [LogRange(begin, begin, None)]
        lease = None
        if options.url is not None:
            with options.reader() as reader:
                lease = reader.take_lease(begin)
        return ranges(options, begin, end, lease)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LogRange)
        return rows(self._options, partition)


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches and reads them.

    Spark creates one reader in a process beside the driver, for the life of the query, and one per task, which only
    calls `read`.
    """

    def __init__(self, options: LogOptions) -> None:
        if options.to is not None:
            raise PipelineError("option 'to' does not apply to a stream; omit it, or use read")
        self._options = options
        self._last: int | None = None  # for Trigger.AvailableNow
        self._lease: HeldLease | None = None
        self._reader: LogReader | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        begin = self._options.begin
        if isinstance(begin, int):
            return {"sequence": begin - 1}
        first, head = self._bounds()
        return {"sequence": first - 1 if begin == "first" else head}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        most = self._options.most
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._last = self._bounds().head

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802 - Spark's name
        read = start["sequence"]
        first, head = self._bounds()
        if read > head:
            raise LogError(
                f"the checkpoint has read the log up to record {read}, but the log ends with {head}; "
                "give the log that was read before, or start with a new checkpoint"
            )
        if read + 1 < first:
            raise TrimmedError.before(read + 1, first)
        self._hold(read + 1)
        to = head if self._last is None else max(read, min(head, self._last))
        return {"sequence": min(to, read + limit.max_rows) if isinstance(limit, ReadMaxRows) else to}

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"sequence": self._bounds().head}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[LogRange]:
        begin = start["sequence"] + 1
        lease = None if begin > end["sequence"] else self._hold(begin)
        return ranges(self._options, begin, end["sequence"] + 1, lease)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LogRange)
        return rows(self._options, partition)

    def commit(self, end: dict[str, int]) -> None:
        if self._lease is not None:
            self._lease.move(end["sequence"] + 1)

    def stop(self) -> None:
        if self._lease is not None:
            self._lease.close()
        if self._reader is not None:
            self._reader.close()

    def _bounds(self) -> LogBounds:
        return bounds(self._options) if self._options.url is None else self._connected().bounds()

    def _connected(self) -> LogReader:
        """The reader of the process that plans."""
        if self._reader is None:
            self._reader = self._options.reader()
        return self._reader

    def _hold(self, begin: int) -> str | None:
        """The id of a lease that keeps the records from `begin` on; None for a folder without a broker."""
        if self._options.url is None:
            return None
        if self._lease is None:
            self._lease = HeldLease(self._connected(), begin)
        return self._lease.id


class HeldLease:
    """A read lease that a thread extends; a new one takes its place if the broker ended it."""

    def __init__(self, reader: LogReader, begin: int, *, every: float = _EXTEND) -> None:
        self._reader = reader
        self._begin = begin
        self._every = every
        self._changed = threading.Lock()
        self._closed = threading.Event()
        self._id = reader.take_lease(begin)
        self._thread = threading.Thread(target=self._run, name="log-lease", daemon=True)
        self._thread.start()

    @property
    def id(self) -> str:
        """The lease in force."""
        return self._id

    def move(self, begin: int) -> None:
        """Release the records before `begin`."""
        self._begin = begin
        self.extend()

    def extend(self) -> None:
        """Extend the lease, or take a new one."""
        with self._changed:
            if not self._reader.extend_lease(self._id, self._begin):
                self._id = self._reader.take_lease(self._begin)

    def close(self) -> None:
        """Release everything."""
        self._closed.set()
        self._thread.join()
        self._reader.release_lease(self._id)

    def _run(self) -> None:
        while not self._closed.wait(self._every):
            try:
                self.extend()
            except Exception:  # noqa: BLE001, S112 - the next read says what is wrong, and it alone decides
                continue
