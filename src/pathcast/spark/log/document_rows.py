"""Records of a log as rows of documents: the columns of the data source `pathcast`.

    feed, sequence, id, time, headers, body          id: the publisher's own, or null

`headers` has the attributes of the document's CloudEvent, `content-type`, and `pathcast-schema` if the feed's mediator
maps the document from a schema. Other records than documents, and
documents that could not be read (dead letters), are left out.

Cost: 1 µs per document; bodies stay in Arrow's memory.
"""

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from pathcast.broker_log import DOCUMENT, DocumentRecord, meta_of
from pathcast.log import BATCH_BYTES, BATCH_RECORDS, LogEntry, arrow_schema

COLUMNS = pa.schema(
    [
        pa.field("feed", pa.string(), nullable=False),
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("id", pa.string()),
        pa.field("time", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("headers", pa.map_(pa.string(), pa.string()), nullable=False),
        pa.field("body", pa.binary(), nullable=False),
    ]
)


def document_rows(records: pa.RecordBatch, feeds: frozenset[str], expired: Mapping[str, int]) -> pa.RecordBatch:
    """The readable documents of some feeds, or of all, among records in the columns of `log.arrow_schema`.

    `expired`: per feed, the first sequence whose documents are rows.
    """
    sequences, times = records.column(0).to_pylist(), records.column(1).cast(pa.int64()).to_pylist()
    kinds, metas = records.column(2).to_pylist(), records.column(3).to_pylist()
    kept: list[int] = []
    documents: list[DocumentRecord] = []
    for place, (sequence, time, kind, meta) in enumerate(zip(sequences, times, kinds, metas, strict=True)):
        if kind == DOCUMENT:
            document = meta_of(LogEntry(sequence, time, kind, meta, b""))
            if (
                isinstance(document, DocumentRecord)
                and document.error is None
                and (not feeds or document.feed in feeds)
                and sequence >= expired.get(document.feed, 0)
            ):
                kept.append(place)
                documents.append(document)
    chosen = records.take(pa.array(kept, pa.int64()))
    return pa.record_batch(
        [
            pa.array([each.feed for each in documents], pa.string()),
            chosen.column(0),
            pa.array([each.id for each in documents], pa.string()),
            chosen.column(1),
            pa.array(
                [_headers(each) for each in documents],
                pa.map_(pa.string(), pa.string()),
            ),
            chosen.column(4),
        ],
        schema=COLUMNS,
    )


def _headers(document: DocumentRecord) -> list[tuple[str, str]]:
    """Attributes of a CloudEvent have no hyphen, so the names are distinct."""
    headers = [*document.attributes.items(), ("content-type", document.media_type)]
    return headers if document.schema is None else [*headers, ("pathcast-schema", document.schema)]


def records_of(entries: Iterable[LogEntry]) -> Iterator[pa.RecordBatch]:
    """Entries of a log as batches in the columns of `log.arrow_schema`, of bounded size."""
    schema = arrow_schema()
    group: list[LogEntry] = []
    size = 0
    for entry in entries:
        group.append(entry)
        size += len(entry.body) + len(entry.meta)
        if len(group) == BATCH_RECORDS or size >= BATCH_BYTES:
            yield _batch(group, schema)
            group, size = [], 0
    if group:
        yield _batch(group, schema)


def _batch(entries: list[LogEntry], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(zip(*entries, strict=True), schema, strict=True)
    return pa.record_batch([pa.array(values, each.type) for values, each in columns], schema=schema)
