"""Writing to the format `pathcast`: rows become documents of a broker, exactly once.

    tasks: rows ──▶ uploads, which nobody sees ──ids──▶ driver: one commit(publication, batch) ──▶ all rows, or none

A task cannot name its rows: it never sees the number of its micro-batch, and when it is repeated, rows may come in
another order. So tasks only upload, each attempt to uploads of its own, and the commit names the uploads of the
attempts that succeeded. The broker publishes a batch once per publication and number. Whatever is repeated (a task, a
commit, a micro-batch after a crash) publishes nothing twice. Uploads of failed attempts expire.

The publication of a stream is the id of its query, which is in its checkpoint, unless the option `publication` names
it. A new checkpoint is a new publication.

Columns: `body` (binary or text), and if wanted `feed`, `id` and `headers`.
Cost: a request per 1,000 rows or 4 MB; rows of an upload are in the memory of the task.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import BinaryType, DataType, MapType, StringType, StructType

from pathcast.client import BrokerError, Client, NewDocument
from pathcast.errors import PathcastError, PipelineError

from .publish_options import PublishOptions

_ROWS: Final = 1_000
_BYTES: Final = 4 << 20
# The local property in which Spark hands the id of a streaming query to its tasks.
_QUERY: Final = "sql.streaming.queryId"
_TEXT: Final = (StringType(),)
_COLUMNS: Final[Mapping[str, tuple[DataType, ...]]] = {
    "body": (BinaryType(), StringType()),
    "feed": _TEXT,
    "id": _TEXT,
    "headers": (MapType(StringType(), StringType(), True), MapType(StringType(), StringType(), False)),
}


@dataclass
class UploadedRows(WriterCommitMessage):
    """What a task uploaded: its uploads in order, and the row of the task with which each begins."""

    partition: int
    uploads: list[str]
    begins: list[int]
    query: str | None


class DocumentBatchWriter(DataSourceArrowWriter):
    """Writes a DataFrame: one batch."""

    def __init__(self, options: PublishOptions, schema: StructType) -> None:
        check_columns(schema, options)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> UploadedRows:
        return uploaded(self._options, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        commit(self._options, messages, self._options.batch)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        discard(self._options, messages)


class DocumentStreamWriter(DataSourceStreamArrowWriter):
    """Writes a stream: a batch per micro-batch, under its number."""

    def __init__(self, options: PublishOptions, schema: StructType) -> None:
        check_columns(schema, options)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> UploadedRows:
        return uploaded(self._options, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        commit(self._options, messages, str(batchId))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        discard(self._options, messages)


def check_columns(schema: StructType, options: PublishOptions) -> None:
    """`PipelineError` unless rows of this schema can be published."""
    for column in schema.fields:
        allowed = _COLUMNS.get(column.name)
        if allowed is None:
            raise PipelineError(
                f"column {column.name!r} cannot be published; select only the columns body, feed, id and headers"
            )
        if column.dataType not in allowed:
            raise PipelineError(
                f"column {column.name!r} must be {' or '.join(each.simpleString() for each in allowed[:2])}, got "
                f"{column.dataType.simpleString()}; cast the column"
            )
    if "body" not in schema.names:
        raise PipelineError(
            f"no column 'body' (the columns are {', '.join(schema.names)}); name the column of documents 'body'"
        )
    if "feed" not in schema.names and options.feed is None:
        raise PipelineError("the rows have no feed; set the option 'feed', or add a column 'feed'")


def uploaded(options: PublishOptions, batches: Iterator[pa.RecordBatch]) -> UploadedRows:
    """Upload the rows of one attempt of a task."""
    task = TaskContext.get()
    partition = -1 if task is None else task.partitionId()
    message = UploadedRows(partition, [], [], None if task is None else task.getLocalProperty(_QUERY))
    with options.client() as client:
        try:
            begin = 0
            for documents in _pieces(_documents(options, partition, batches)):
                try:
                    message.uploads.append(client.upload(documents))
                except BrokerError as error:
                    raise _about_row(error, partition, begin) from None
                message.begins.append(begin)
                begin += len(documents)
        except BaseException:
            _discard(client, message.uploads)
            raise
    return message


def _pieces(documents: Iterator[NewDocument]) -> Iterator[list[NewDocument]]:
    """Documents as they are uploaded together."""
    piece: list[NewDocument] = []
    size = 0
    for document in documents:
        piece.append(document)
        size += len(document.body)  # type: ignore[arg-type]  # bytes or text
        if len(piece) == _ROWS or size >= _BYTES:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


def _documents(options: PublishOptions, partition: int, batches: Iterator[pa.RecordBatch]) -> Iterator[NewDocument]:
    row = 0
    for batch in batches:
        columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
        none = [None] * batch.num_rows
        ids, feeds, headers = (columns.get(name, none) for name in ("id", "feed", "headers"))
        for body, id, feed, of_row in zip(columns["body"], ids, feeds, headers, strict=True):
            place = _place(partition, row, id)
            if body is None:
                raise PipelineError(f"{place} has no body; remove rows without a body")
            if feed is None and options.feed is None:
                raise PipelineError(f"{place} has no feed; fill the column 'feed', or set the option 'feed'")
            yield NewDocument(feed or options.feed or "", body, id, _headers(of_row, place))
            row += 1


def _headers(pairs: list[tuple[str, str | None]] | None, place: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in pairs or ():
        if not name or value is None:
            raise PipelineError(f"{place} has a header {name!r} with value {value!r}; headers need a name and a value")
        found[name] = value
    return found


def _place(partition: int, row: int, id: str | None) -> str:
    return f"row {row} of partition {partition}" + ("" if id is None else f" (id {id[:80]!r})")


def commit(options: PublishOptions, messages: list[WriterCommitMessage | None], batch: str) -> None:
    """Publish what the tasks have uploaded."""
    parts = [each for each in messages if isinstance(each, UploadedRows)]
    uploads = [upload for part in parts for upload in part.uploads]
    if not uploads:
        return
    publication = options.publication or next((part.query for part in parts if part.query is not None), None)
    if publication is None:
        raise PipelineError("the id of the query is unknown; set the option 'publication' to a name for this stream")
    with options.client() as client:
        try:
            client.commit(uploads, batch, publication, keep_invalid=options.keep_invalid)
        except BrokerError as error:
            raise _with_row(error, parts) from None


def _with_row(error: BrokerError, parts: list[UploadedRows]) -> PathcastError:
    """The error of a commit, with the row that it is about if it names a document."""
    upload = error.problem.get("upload")
    for part in parts:
        if upload in part.uploads:
            return _about_row(error, part.partition, part.begins[part.uploads.index(upload)])
    return error


def _about_row(error: BrokerError, partition: int, begin: int) -> PathcastError:
    """The error about a document of an upload that begins with a row."""
    document = error.problem.get("document")
    if not isinstance(document, int):
        return error
    return PipelineError(f"row {begin + document} of partition {partition} cannot be published: {error.reason}")


def discard(options: PublishOptions, messages: list[WriterCommitMessage | None]) -> None:
    """Delete what tasks have uploaded; what cannot be deleted expires."""
    with options.client() as client:
        _discard(client, [upload for each in messages if isinstance(each, UploadedRows) for upload in each.uploads])


def _discard(client: Client, uploads: list[str]) -> None:
    with suppress(PathcastError):
        for upload in uploads:
            client.discard(upload)
