"""Summaries on Spark: documents become RoXSum messages, one target's together, and messages documents again.

    documents ── shuffled by target ──▶ a worker gathers each target's rows ──▶ one row per message
    messages ──▶ one row per document, with the columns that it had

A message's row has, beside the message, the other columns of its documents as one list (`rows`), in the order of the
documents in the message. The algorithms are the roxsum room's (RoXSum, ICDE 2007); here rows are gathered and dealt.

Invariant: every document is in one message, or in a row of its own with an error; `expand` gives the rows of the frame
that was summarised, each document byte for byte.
Cost: that of the room, and a shuffle. A worker holds the documents of open messages, `_HELD_BYTES` of them at most.
"""

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from pathcast.documents import Limits
from pathcast.errors import MessageError, PathcastError, PipelineError
from pathcast.roxsum import MessageLimits, RoXSum

from .checks import ERROR, check_columns
from .columns import error_column
from .gathering import Gathering, joined, sizes_of, take_rows

MESSAGE, ROWS, COUNT, SIZE = "message", "rows", "documents", "bytes"
# Documents of open messages that a worker holds; beyond, the largest message is closed early.
_HELD_BYTES = 64 << 20

Batches = Iterator[pa.RecordBatch]


def summarize(
    documents: DataFrame,
    by: Sequence[str] = (),
    *,
    document: str = "xml",
    max_documents: int = 1000,
    max_bytes: int = 8 << 20,
    level: int = 3,
    limits: Limits | None = None,
) -> DataFrame:
    """RoXSum messages of a column of XML documents, such as one for each target: `by=["target"]`.

    A row per message: the columns `by`, `message`, `documents` and `bytes` (how many, and of what size), `rows` (the
    documents' other columns) and `error`. A message has at most so many documents and, unless a single one is larger,
    bytes. A document that can't be read, or is null, has a row of its own with `error`, and itself under its own name.

    Works on streams too: there a message holds documents of one micro-batch.
    """
    if isinstance(by, str):
        raise PipelineError(f"by={by!r}: must be a list of columns, [{by!r}]")
    for name, value in (("max_documents", max_documents), ("max_bytes", max_bytes)):
        if value < 1:
            raise PipelineError(f"{name}={value!r}: must be a whole number from 1 up")
    check_columns(documents.schema, document, None, [MESSAGE, ROWS, COUNT, SIZE, "error"])
    schema = _summary_schema(documents.schema, list(by), document)
    shuffled = documents.repartition(*by) if by else documents
    function = summarizing(list(by), document, max_documents, max_bytes, level, limits)
    return shuffled.mapInArrow(function, schema)


def expand(
    batched: DataFrame,
    *,
    document: str = "xml",
    trusted: bool = False,
    message_limits: MessageLimits | None = None,
    limits: Limits | None = None,
) -> DataFrame:
    """The documents of a column `message` of RoXSum messages, each with its columns; messages may come from any broker.

    A row per document: the columns of the message's row and of its list `rows`, the document, and `error`. A message
    that can't be read is one row with `error`, and itself in the column `message`, which is null elsewhere. Rows that
    had an error keep it. `trusted` takes the sender's word for the messages, as `RoXSum.decode` does.
    """
    names = batched.columns
    if MESSAGE not in names or not isinstance(batched.schema[MESSAGE].dataType, t.BinaryType):
        raise PipelineError(f"there is no column '{MESSAGE}' of binary messages; the columns are {', '.join(names)}")
    schema = _expanded_schema(batched.schema, document)
    return batched.mapInArrow(expanding(document, message_limits, limits, trusted=trusted), schema)


def summarizing(
    by: list[str], document: str, max_documents: int, max_bytes: int, level: int = 3, limits: Limits | None = None
) -> Callable[[Batches], Batches]:
    """The function that a worker runs on the rows of a partition."""

    def summarize_batches(batches: Batches) -> Batches:
        gathering = Gathering(by, max_documents, max_bytes, _HELD_BYTES)
        closed = (group for batch in batches for group in gathering.add(batch, sizes_of(batch.column(document))))
        yield from joined(_message_rows(group, by, document, level, limits) for group in closed)
        yield from joined(_message_rows(group, by, document, level, limits) for group in gathering.close())

    return summarize_batches


def expanding(
    document: str,
    message_limits: MessageLimits | None = None,
    limits: Limits | None = None,
    *,
    trusted: bool = False,
) -> Callable[[Batches], Batches]:
    """The function that a worker runs on messages."""

    def decode(message: bytes | None) -> list[bytes]:
        if message is None:
            raise PipelineError("there is no message: the column is null")
        return RoXSum.decode(message, limits=message_limits, document_limits=limits, trusted=trusted).documents()

    def expand_batches(batches: Batches) -> Batches:
        for batch in batches:
            for place in range(len(batch)):
                yield _document_rows(batch.slice(place, 1), document, decode)

    return expand_batches


# Messages.


def _message_rows(
    rows: pa.RecordBatch, by: list[str], document: str, level: int, limits: Limits | None
) -> pa.RecordBatch:
    """The message of some documents, as a row, and a row for each that can't be in it."""
    documents = rows.column(document).to_pylist()
    failed: dict[int, PathcastError] = {
        place: PipelineError("there is no document: the column is null")
        for place, value in enumerate(documents)
        if value is None
    }
    parts = _encoded(
        documents, [place for place in range(len(documents)) if place not in failed], level, limits, failed
    )
    dead = sorted(failed)
    others = [name for name in rows.schema.names if name not in (*by, document)]
    groups = [places for _, places, _ in parts] + [[place] for place in dead]
    nothing: list[None] = [None] * len(dead)
    columns = {name: rows.column(name).take(pa.array([places[0] for places in groups])) for name in by}
    columns[MESSAGE] = pa.array([data for data, _, _ in parts] + nothing, pa.binary())
    columns[COUNT] = pa.array([len(places) for _, places, _ in parts] + [0] * len(dead), pa.int32())
    columns[SIZE] = pa.array([size for _, _, size in parts] + [0] * len(dead), pa.int64())
    if others:
        columns[ROWS] = _lists(rows.select(others), groups)
    refused = rows.column(document).take(pa.array(dead, pa.int64()))
    columns[document] = pa.concat_arrays([pa.nulls(len(parts), refused.type), refused])
    columns["error"] = error_column(
        len(groups), {len(parts) + number: failed[place] for number, place in enumerate(dead)}
    )
    return pa.RecordBatch.from_pydict(columns)


def _encoded(
    documents: list[bytes | str | None],
    places: list[int],
    level: int,
    limits: Limits | None,
    failed: dict[int, PathcastError],
) -> list[tuple[bytes, list[int], int]]:
    """Messages, each with the places and the size of its documents; one, unless documents don't go together."""
    if not places:
        return []
    given = [value for place in places if (value := documents[place]) is not None]
    try:
        batch = RoXSum.build(given, limits=limits, errors="return")
        message = batch.encode(level=level) if len(batch) else b""
    except Exception as error:  # noqa: BLE001 - becomes a dead letter with a reason
        if len(places) > 1:  # more label paths than a batch holds, or a document that breaks Pathcast
            middle = len(places) // 2
            halves = (places[:middle], places[middle:])
            return [part for half in halves for part in _encoded(documents, half, level, limits, failed)]
        failed[places[0]] = error if isinstance(error, PathcastError) else fault(error)
        return []
    failed.update((places[id], error) for id, error in batch.errors.items())
    if not len(batch):
        return []
    return [(message, [places[id] for id in batch.ids.tolist()], batch.size)]


def fault(error: Exception) -> PipelineError:
    """What a document's row says when Pathcast itself failed on it."""
    return PipelineError(f"Pathcast failed on this document ({type(error).__name__}: {error}); please report it")


def _lists(rows: pa.RecordBatch, groups: Sequence[Sequence[int]]) -> pa.Array:
    """A column with the list of each group's rows, as structures."""
    flat = take_rows(rows, [place for places in groups for place in places])
    offsets = [0]
    for places in groups:
        offsets.append(offsets[-1] + len(places))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat.to_struct_array())


# Documents.


def _document_rows(row: pa.RecordBatch, document: str, decode: Callable[[bytes | None], list[bytes]]) -> pa.RecordBatch:
    """The rows of one message's row."""
    names = row.schema.names
    kind = row.column(document).type if document in names else pa.binary()
    details = row.column(ROWS).flatten() if ROWS in names else None
    message = None
    if "error" in names and row.column("error")[0].is_valid:  # a document that is in no message
        values = row.column(document) if document in names else pa.nulls(1, kind)
        errors = row.column("error")
    else:
        try:
            values = _values(decode(row.column(MESSAGE)[0].as_py()), details, kind)
            errors = error_column(len(values), {})
        except PathcastError as error:
            values, errors, message = pa.nulls(1, kind), error_column(1, {0: error}), row.column(MESSAGE)
            details = None if details is None else pa.nulls(1, details.type)
    kept = [name for name in names if name not in (MESSAGE, ROWS, COUNT, SIZE, document, "error")]
    columns = {name: row.column(name).take(pa.array([0] * len(values), pa.int64())) for name in kept}
    if details is not None:
        columns |= dict(zip((field.name for field in details.type), details.flatten(), strict=True))
    columns |= {document: values, "error": errors}
    columns[MESSAGE] = pa.nulls(len(values), pa.binary()) if message is None else message
    return pa.RecordBatch.from_pydict(columns)


def _values(documents: list[bytes], details: pa.Array | None, kind: pa.DataType) -> pa.Array:
    """The documents of a message as a column; `MessageError` when they are not what the row says."""
    if details is not None and len(details) != len(documents):
        raise MessageError(f"the message has {len(documents):,} documents and a list of {len(details):,} rows")
    try:
        return pa.array(documents, pa.binary()).cast(kind)
    except pa.ArrowInvalid:
        raise MessageError("a document of the message is not text in UTF-8") from None


# Schemas.


def _summary_schema(schema: t.StructType, by: list[str], document: str) -> t.StructType:
    names = schema.fieldNames()
    for name in by:
        if name not in names or name == document:
            raise PipelineError(f"by: there is no column '{name}' to group by; the columns are {', '.join(names)}")
        if isinstance(schema[name].dataType, t.ArrayType | t.MapType | t.StructType):
            raise PipelineError(
                f"by: the column '{name}' is of type {schema[name].dataType.simpleString()}; "
                "messages are grouped by plain values"
            )
    others = [field for field in schema.fields if field.name not in (*by, document)]
    fields = [schema[name] for name in by]
    fields += [
        t.StructField(MESSAGE, t.BinaryType()),
        t.StructField(COUNT, t.IntegerType()),
        t.StructField(SIZE, t.LongType()),
    ]
    if others:
        fields.append(t.StructField(ROWS, t.ArrayType(t.StructType(others))))
    return t.StructType([*fields, t.StructField(document, schema[document].dataType), t.StructField("error", ERROR)])


def _expanded_schema(schema: t.StructType, document: str) -> t.StructType:
    names = schema.fieldNames()
    fields = [schema[name] for name in names if name not in (MESSAGE, ROWS, COUNT, SIZE, document, "error")]
    if ROWS in names:
        kind = schema[ROWS].dataType
        if not isinstance(kind, t.ArrayType) or not isinstance(kind.elementType, t.StructType):
            raise PipelineError(f"the column '{ROWS}' is of type {kind.simpleString()}, not a list of rows")
        fields += [t.StructField(field.name, field.dataType) for field in kind.elementType.fields]
    kind = schema[document].dataType if document in names else t.BinaryType()
    fields += [t.StructField(document, kind), t.StructField("error", ERROR), t.StructField(MESSAGE, t.BinaryType())]
    found = [field.name for field in fields]
    for name in found:
        if found.count(name) > 1:
            raise PipelineError(f"two columns would be named '{name}'; rename one before expanding")
    return t.StructType(fields)
