"""Records as an Arrow IPC stream, for Spark and other readers of columns.

    sequence   int64                  time   timestamp (microseconds, UTC)
    kind       string                 meta   binary (JSON)                  body   binary

The stream is written and read in batches of bounded size. Its last batch is empty: a stream without it was cut, which
Arrow itself does not notice. Needs the extra `parquet` (pyarrow).

Cost: 1 µs of CPU time per record, and a copy of its body.
"""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, BinaryIO, Final

from pathcast.extras import extra

from .log_contract import LogEntry, LogError

if TYPE_CHECKING:
    import pyarrow

# A batch ends with the record that reaches one of these.
BATCH_RECORDS, BATCH_BYTES = 4096, 4 << 20


# The metadata of a broker's stream that has, per feed, the first sequence that has not expired, as JSON.
EXPIRED: Final = "pathcast.expired"


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


class ArrowWriter:
    """Writes records as an Arrow IPC stream: `batch` and `end` return the stream's next bytes."""

    def __init__(self, metadata: Mapping[str, str] | None = None) -> None:
        """`metadata`: of the stream's schema, for its readers."""
        with extra("parquet"):
            import pyarrow as pa

        self._pa = pa
        self._schema = arrow_schema()
        self._sink = io.BytesIO()
        self._writer = pa.ipc.new_stream(self._sink, self._schema.with_metadata(metadata))

    def batch(self, entries: Sequence[LogEntry]) -> bytes:
        """Some records, at least one."""
        pa, schema = self._pa, self._schema
        columns = [pa.array(values, each.type) for values, each in zip(zip(*entries, strict=True), schema, strict=True)]
        self._writer.write_batch(pa.record_batch(columns, schema=schema))
        return self._taken()

    def end(self) -> bytes:
        """The end of the stream, which shows that it was not cut."""
        pa = self._pa
        self._writer.write_batch(pa.record_batch([pa.array([], each.type) for each in self._schema], self._schema))
        self._writer.close()
        return self._taken()

    def _taken(self) -> bytes:
        piece = self._sink.getvalue()
        self._sink.seek(0)
        self._sink.truncate()
        return piece


def write_arrow(entries: Iterable[LogEntry]) -> Iterator[bytes]:
    """The pieces of an Arrow IPC stream of records, a batch at a time.

    >>> from pathcast.log import LogEntry, read_arrow, write_arrow
    >>> stream = b"".join(write_arrow([LogEntry(7, 1_700_000_000_000_000, "document", b"{}", b"<a/>")]))
    >>> list(read_arrow(stream))
    [LogEntry(sequence=7, time=1700000000000000, kind='document', meta=b'{}', body=b'<a/>')]
    """
    writer = ArrowWriter()
    batch: list[LogEntry] = []
    size = 0
    for entry in entries:
        batch.append(entry)
        size += len(entry.body) + len(entry.meta)
        if len(batch) == BATCH_RECORDS or size >= BATCH_BYTES:
            yield writer.batch(batch)
            batch, size = [], 0
    if batch:
        yield writer.batch(batch)
    yield writer.end()


def read_arrow(source: "bytes | BinaryIO | pyarrow.NativeFile") -> Iterator[LogEntry]:
    """The records of an Arrow IPC stream; `LogError` if it has other columns, or was cut."""
    with extra("parquet"):
        import pyarrow as pa

    try:
        with pa.ipc.open_stream(source) as reader:
            if not reader.schema.equals(arrow_schema()):
                raise LogError(
                    f"the data is not a Pathcast log: its columns are {', '.join(reader.schema.names)}; give the "
                    "response of GET /v1/log"
                )
            rows = None
            for batch in reader:
                rows = batch.num_rows
                columns = batch.columns
                columns[1] = columns[1].cast(pa.int64())
                yield from map(LogEntry, *(column.to_pylist() for column in columns))
    except pa.ArrowInvalid as error:
        raise LogError(f"the stream of records is damaged: {error}; request the records again") from error
    if rows != 0:
        raise LogError("the stream of records is truncated; request the remaining records")
