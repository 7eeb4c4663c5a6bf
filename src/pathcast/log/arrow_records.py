"""Records as an Arrow IPC stream, for Spark and other readers of columns.

    sequence   int64                  time   timestamp (microseconds, UTC)
    kind       string                 meta   binary (JSON)                  body   binary

The stream is written and read in batches of bounded size. Its last batch is empty: a stream without it was cut, which
Arrow itself does not notice. Needs the extra `parquet` (pyarrow).

Cost: 1 µs of CPU time per record, and a copy of its body.
"""

import io
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, BinaryIO

from pathcast.extras import extra

from .log_contract import LogEntry, LogError

if TYPE_CHECKING:
    import pyarrow

# A batch ends with the record that reaches one of these.
_BATCH_RECORDS, _BATCH_BYTES = 4096, 4 << 20


def arrow_schema() -> "pyarrow.Schema":
    """The columns of a stream of records."""
    with extra("parquet"):
        import pyarrow as pa

    columns = {
        "sequence": pa.int64(),
        "time": pa.timestamp("us", tz="UTC"),
        "kind": pa.string(),
        "meta": pa.binary(),
        "body": pa.binary(),
    }
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns.items()])


def write_arrow(entries: Iterable[LogEntry]) -> Iterator[bytes]:
    """The pieces of an Arrow IPC stream of records, a batch at a time.

    >>> from pathcast.log import LogEntry, read_arrow, write_arrow
    >>> stream = b"".join(write_arrow([LogEntry(7, 1_700_000_000_000_000, "document", b"{}", b"<a/>")]))
    >>> list(read_arrow(stream))
    [LogEntry(sequence=7, time=1700000000000000, kind='document', meta=b'{}', body=b'<a/>')]
    """
    with extra("parquet"):
        import pyarrow as pa

    schema = arrow_schema()
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in _batches(entries):
            columns = [
                pa.array(values, field.type) for values, field in zip(zip(*batch, strict=True), schema, strict=True)
            ]
            writer.write_batch(pa.record_batch(columns, schema=schema))
            yield _taken(sink)
        writer.write_batch(pa.record_batch([pa.array([], field.type) for field in schema], schema=schema))
    yield _taken(sink)


def read_arrow(source: "bytes | BinaryIO | pyarrow.NativeFile") -> Iterator[LogEntry]:
    """The records of an Arrow IPC stream; `LogError` if it has other columns, or was cut."""
    with extra("parquet"):
        import pyarrow as pa

    try:
        with pa.ipc.open_stream(source) as reader:
            if not reader.schema.equals(arrow_schema()):
                raise LogError(f"these are not records of a log, but columns {', '.join(reader.schema.names)}")
            rows = None
            for batch in reader:
                rows = batch.num_rows
                columns = batch.columns
                columns[1] = columns[1].cast(pa.int64())
                yield from map(LogEntry, *(column.to_pylist() for column in columns))
    except pa.ArrowInvalid as error:
        raise LogError(f"the stream of records is damaged: {error}; request it again") from error
    if rows != 0:
        raise LogError("the stream of records was cut; request the rest")


def _batches(entries: Iterable[LogEntry]) -> Iterator[list[LogEntry]]:
    batch: list[LogEntry] = []
    size = 0
    for entry in entries:
        batch.append(entry)
        size += len(entry.body) + len(entry.meta)
        if len(batch) == _BATCH_RECORDS or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _taken(sink: io.BytesIO) -> bytes:
    piece = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return piece
