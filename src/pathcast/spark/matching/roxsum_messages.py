"""RoXSum messages on Spark: documents become messages, grouped by target, and messages become documents again.

    documents ── shuffled by target ──▶ a worker gathers each target's rows ──▶ one row per message
    messages ──▶ one row per document, with the columns that it had

The row of a message has, besides the message, the other columns of its documents as one list (`rows`), in the order of
the documents in the message. Package roxsum has the algorithms (RoXSum, ICDE 2007); this file groups rows.

Invariant: every document is in one message, or in its own row with an error; `expand` gives the rows of the frame
that was summarised, each document byte for byte.
Cost: that of package roxsum, and a shuffle. A worker holds the documents of open messages, at most `_HELD_BYTES`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from pathcast.documents import Entities, Limits
from pathcast.errors import MessageError, PathcastError, PipelineError
from pathcast.roxsum import MessageLimits, RoXSum

from .arrow_document_columns import error_column
from .input_column_checks import ERROR, check_columns, check_entities, columns_in
from .row_groups_by_key import Documents, GroupCollector, RowGroups, joined, take_rows

MESSAGE, ROWS, COUNT, SIZE = "message", "rows", "documents", "bytes"
# Bytes of distinct documents of open messages in a worker; beyond it, the largest messages are closed early.
_HELD_BYTES = 64 << 20
_JOINED_BYTES = 4 << 20
_NO_DOCUMENT = "no document: the column of documents is null; fill the column, or drop the row"

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
    entities: Entities = "refuse",
) -> DataFrame:
    """RoXSum messages of a column of XML documents, such as one for each target: `by=["target"]`.

    A row per message: the columns `by`, `message`, `documents` and `bytes` (how many, and of what size), `rows` (the
    documents' other columns) and `error`. A message has at most this many documents and, unless a single one is larger,
    bytes. A document that cannot be read, or is null, has its own row with `error`, and the document in its own column.

    `limits` and `entities` are as for `match_documents`. Works on streams too: there a message holds documents of one
    micro-batch.
    """
    check_entities(entities)
    if isinstance(by, str):
        raise PipelineError(f"by must be a list of columns, such as [{by!r}], got {by!r}")
    for name, value in (("max_documents", max_documents), ("max_bytes", max_bytes)):
        if value < 1:
            raise PipelineError(f"{name} must be a whole number of at least 1, got {value!r}")
    check_columns(documents.schema, document, None, [MESSAGE, ROWS, COUNT, SIZE, "error"])
    schema = _summary_schema(documents.schema, list(by), document)
    shuffled = documents.repartition(*by) if by else documents
    function = summarizing(list(by), document, max_documents, max_bytes, level, limits, entities)
    return shuffled.mapInArrow(function, schema)


def expand(
    batched: DataFrame,
    *,
    document: str = "xml",
    trusted: bool = False,
    message_limits: MessageLimits | None = None,
    limits: Limits | None = None,
    entities: Entities = "refuse",
) -> DataFrame:
    """The documents of a column `message` of RoXSum messages, each with its columns; messages may come from any broker.

    A row per document: the columns of the message's row and of its list `rows`, the document, and `error`. A message
    that cannot be read gives one row with `error`, and the message in the column `message`, which is null otherwise.
    Rows that had an error keep it. `trusted` trusts the sender of the messages, as `RoXSum.decode` does; `limits` and
    `entities` are as for `match_documents`.
    """
    check_entities(entities)
    names = batched.columns
    if MESSAGE not in names or not isinstance(batched.schema[MESSAGE].dataType, t.BinaryType):
        raise PipelineError(
            f"the input has no binary column '{MESSAGE}', which summarize(…) adds; its columns are "
            f"{columns_in(batched.schema)}"
        )
    schema = _expanded_schema(batched.schema, document)
    return batched.mapInArrow(expanding(document, message_limits, limits, entities, trusted=trusted), schema)


def summarizing(
    by: list[str],
    document: str,
    max_documents: int,
    max_bytes: int,
    level: int = 3,
    limits: Limits | None = None,
    entities: Entities = "refuse",
) -> Callable[[Batches], Batches]:
    """The function that a worker runs on the rows of a partition."""

    def summarize_batches(batches: Batches) -> Batches:
        gathering = GroupCollector(by, document, max_documents, max_bytes, _HELD_BYTES)
        messages = Messages(gathering.documents, by, document, level, limits, entities)
        given = chain((group for batch in batches for group in gathering.add(batch)), gathering.close())
        yield from joined(rows for groups in given for rows in messages.rows(groups))

    return summarize_batches


def expanding(
    document: str,
    message_limits: MessageLimits | None = None,
    limits: Limits | None = None,
    entities: Entities = "refuse",
    *,
    trusted: bool = False,
) -> Callable[[Batches], Batches]:
    """The function that a worker runs on messages."""

    def decode(message: bytes | None) -> list[bytes]:
        if message is None:
            raise PipelineError(
                f"no message: the column '{MESSAGE}' is null; drop the row, or request the message again"
            )
        return RoXSum.decode_documents(
            message, limits=message_limits, document_limits=limits, entities=entities, trusted=trusted
        )

    def expand_batches(batches: Batches) -> Batches:
        rows = (batch.slice(place, 1) for batch in batches for place in range(len(batch)))
        yield from joined(_document_rows(row, document, decode) for row in rows)

    return expand_batches


# Messages.


class Message(NamedTuple):
    """A message, the row numbers of its documents, and their bytes."""

    data: bytes
    places: list[int]
    size: int


class Messages:
    """Makes messages of groups of rows: their documents are read once for all groups of a call."""

    def __init__(
        self,
        documents: Documents,
        by: list[str],
        document: str,
        level: int,
        limits: Limits | None,
        entities: Entities,
    ) -> None:
        self._documents, self._by, self._document = documents, by, document
        self._level, self._limits = level, limits
        self._entities: Entities = entities
        self._faults = 0  # reported in rows

    def rows(self, given: RowGroups) -> Batches:
        """A row for the message of each group, and one for each document that it cannot contain."""
        failed: dict[int, PathcastError] = {}
        before = self._faults
        read = self._read({number for numbers in given.documents for number in numbers})
        shared = read if isinstance(read, _Shared) else None
        messages: list[Message] = []
        begin = size = 0
        for numbers in given.documents:
            places = list(range(begin, begin + len(numbers)))
            begin += len(numbers)
            messages += self._messages(shared, places, numbers, failed)
            size += len(messages[-1].data) if messages else 0
            if size > _JOINED_BYTES:
                yield self._as_rows(given, messages, failed)
                messages, failed, size = [], {}, 0
        if messages or failed:
            yield self._as_rows(given, messages, failed)
        if isinstance(read, Exception):
            self._check_told(read, before)

    def _read(self, numbers: set[int]) -> "_Shared | Exception | None":
        """Documents as one batch; None if they do not fit into one; an error if Pathcast failed on them."""
        known = [(number, value) for number in sorted(numbers) if (value := self._documents.value(number)) is not None]
        try:
            batch = self._batch([value for _, value in known])
        except PathcastError:  # more label paths than a batch holds
            return None
        except Exception as error:  # noqa: BLE001 - raised, unless the row of a document reports it
            return error
        return _Shared(batch, {number: id for id, (number, _) in enumerate(known)})

    def _batch(self, documents: list[bytes | str]) -> RoXSum:
        return RoXSum.build(documents, limits=self._limits, entities=self._entities, errors="return")

    def _messages(
        self, shared: "_Shared | None", places: list[int], numbers: list[int], failed: dict[int, PathcastError]
    ) -> list[Message]:
        """The messages of a group, one unless its documents do not fit into one."""
        if shared is None:
            return self._each_by_itself(places, numbers, failed)
        before = self._faults
        try:
            return self._from_shared(shared, places, numbers, failed)
        except PathcastError:
            return self._each_by_itself(places, numbers, failed)
        except Exception as error:  # noqa: BLE001 - raised, unless the row of a document reports it
            found = self._each_by_itself(places, numbers, failed)
            self._check_told(error, before)
            return found

    def _check_told(self, error: Exception, before: int) -> None:
        """Raise an internal error that did not occur again for single documents: its cause is elsewhere."""
        if self._faults == before:
            raise error

    def _each_by_itself(self, places: list[int], numbers: list[int], failed: dict[int, PathcastError]) -> list[Message]:
        there = []
        for place, number in zip(places, numbers, strict=True):
            value = self._documents.value(number)
            if value is None:
                failed[place] = PipelineError(_NO_DOCUMENT)
            else:
                there.append((place, value))
        return self._by_itself(there, failed)

    def _from_shared(
        self, shared: "_Shared", places: list[int], numbers: list[int], failed: dict[int, PathcastError]
    ) -> list[Message]:
        good: list[tuple[int, int]] = []
        wrong: dict[int, PathcastError] = {}
        for place, number in zip(places, numbers, strict=True):
            id = shared.ids.get(number)
            if id is None:
                wrong[place] = PipelineError(_NO_DOCUMENT)
            elif id in shared.batch.errors:
                wrong[place] = shared.batch.errors[id]
            else:
                good.append((place, id))
        part = shared.batch.renumbered([id for _, id in good])
        found = [Message(part.encode(level=self._level), [place for place, _ in good], part.size)] if good else []
        failed |= wrong
        return found

    def _by_itself(self, documents: list[tuple[int, bytes | str]], failed: dict[int, PathcastError]) -> list[Message]:
        """Messages of documents with their row numbers, in halves if they do not fit into one."""
        if not documents:
            return []
        places = [place for place, _ in documents]
        try:
            batch = self._batch([value for _, value in documents])
            data = batch.encode(level=self._level) if len(batch) else b""
        except Exception as error:  # noqa: BLE001 - becomes a dead letter with a reason
            if len(documents) > 1:
                middle = len(documents) // 2
                return [m for half in (documents[:middle], documents[middle:]) for m in self._by_itself(half, failed)]
            self._faults += not isinstance(error, PathcastError)
            failed[places[0]] = error if isinstance(error, PathcastError) else fault(error)
            return []
        failed.update((places[id], error) for id, error in batch.errors.items())
        return [Message(data, [places[id] for id in batch.ids.tolist()], batch.size)] if len(batch) else []

    def _as_rows(self, given: RowGroups, messages: list[Message], failed: dict[int, PathcastError]) -> pa.RecordBatch:
        rows, dead = given.rows, sorted(failed)
        others = [name for name in rows.schema.names if name not in (*self._by, self._document)]
        groups = [message.places for message in messages] + [[place] for place in dead]
        first = pa.array([places[0] for places in groups], pa.int64())
        nothing: list[None] = [None] * len(dead)
        columns = {name: rows.column(name).take(first) for name in self._by}
        columns[MESSAGE] = pa.array([message.data for message in messages] + nothing, pa.binary())
        columns[COUNT] = pa.array([len(message.places) for message in messages] + [0] * len(dead), pa.int32())
        columns[SIZE] = pa.array([message.size for message in messages] + [0] * len(dead), pa.int64())
        if others:
            columns[ROWS] = _lists(rows.select(others), groups)
        numbers = [number for numbers in given.documents for number in numbers]
        refused = [self._documents.value(numbers[place]) for place in dead]
        kind = rows.schema.field(self._document).type
        columns[self._document] = pa.concat_arrays([pa.nulls(len(messages), kind), pa.array(refused, kind)])
        errors = {len(messages) + number: failed[place] for number, place in enumerate(dead)}
        columns["error"] = error_column(len(groups), errors)
        return pa.RecordBatch.from_pydict(columns)


@dataclass(frozen=True, slots=True)
class _Shared:
    """Documents that were read together, and their ids by number."""

    batch: RoXSum
    ids: dict[int, int]


def fault(error: Exception) -> PipelineError:
    """The error in a document's row if Pathcast itself failed on it."""
    return PipelineError(f"Pathcast failed on this document ({type(error).__name__}: {error}); please report this bug")


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
    """The documents of a message as a column; raises `MessageError` if they do not fit the row."""
    if details is not None and len(details) != len(documents):
        raise MessageError(
            f"the message has {len(documents):,} documents, but its column '{ROWS}' lists {len(details):,}: the row is "
            "damaged; request the message again"
        )
    try:
        return pa.array(documents, pa.binary()).cast(kind)
    except pa.ArrowInvalid:
        raise MessageError(
            "a document in the message is not UTF-8, but the column of documents has type string; cast the column "
            "to binary, or request the message again"
        ) from None


# Schemas.


def _summary_schema(schema: t.StructType, by: list[str], document: str) -> t.StructType:
    names = schema.fieldNames()
    for name in by:
        if name == document:
            raise PipelineError(f"`by` cannot include '{name}', which is the document column; group by other columns")
        if name not in names:
            raise PipelineError(
                f"`by` names '{name}', which is not a column of the input; use one of {', '.join(names)}"
            )
        if isinstance(schema[name].dataType, t.ArrayType | t.MapType | t.StructType):
            raise PipelineError(
                f"`by` names the column '{name}' of type {schema[name].dataType.simpleString()}; "
                "group by columns of plain values"
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
            raise PipelineError(
                f"column '{ROWS}' must be an array of structs, such as summarize(…) adds, got {kind.simpleString()}"
            )
        fields += [t.StructField(field.name, field.dataType) for field in kind.elementType.fields]
    kind = schema[document].dataType if document in names else t.BinaryType()
    fields += [t.StructField(document, kind), t.StructField("error", ERROR), t.StructField(MESSAGE, t.BinaryType())]
    found = [field.name for field in fields]
    for name in found:
        if found.count(name) > 1:
            raise PipelineError(
                f"two columns of the result would be named '{name}'; rename one of them before expand(…)"
            )
    return t.StructType(fields)
