"""Packed messages: the messages and errors of one key and micro-batch travel as one row, and are then unfolded.

    `answers`   sequences (int64), numbers (int32), lengths (int32), the bytes of all messages one after the other
    `refused`   changes that could not be applied: sequence, table, change, row, values, error

Invariant: the rows of a key stand in the order of sequence and number.
Cost: per message only its bytes are created; errors are objects.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import types as t

from pathcast.joins import Schema
from pathcast.joins.partition import Event
from pathcast.joins.query import write_row
from pathcast.joins.schemes import EncodedMessages
from pathcast.store import MessagePack

from ..arrow_to_spark_types import spark_schema
from ..matching.arrow_document_columns import ERROR_TYPE, binary_column
from .extract_rows import SEQUENCE
from .table_change_fan_out import FANNED, LETTER

ANSWERED = t.StructType(
    [*FANNED.fields[:2], t.StructField("answers", t.BinaryType()), t.StructField("refused", t.BinaryType())]
)
_ARROW_MESSAGES = pa.schema(
    [
        ("edge", pa.int32()),
        ("join_value", pa.string()),
        (SEQUENCE, pa.int64()),
        ("number", pa.int32()),
        ("message", pa.binary()),
        *((name, pa.string()) for name in LETTER),
        ("error", ERROR_TYPE),
    ]
)
MESSAGES = spark_schema(_ARROW_MESSAGES)
# Bytes and rows of an Arrow batch of messages, approximately.
_BATCH_BYTES, _BATCH_ROWS = 8 << 20, 50_000
_Text: TypeAlias = str | None
_Number: TypeAlias = int | None
# A change that cannot be applied: sequence, table, change, row, values; reason, line and column of the error.
Refusal = tuple[_Number, _Text, _Text, _Text, _Text, tuple[_Text, _Number, _Number]]
_Key = tuple[int | None, str | None]
_Packed = tuple[bytes, bytes, bytes, bytes]
_ADVICE = "install the same version of Pathcast on all workers"
_ANSWERS: MessagePack[_Packed] = MessagePack(_Packed, "the answers of a key", _ADVICE)
_REFUSALS: MessagePack[list[Refusal]] = MessagePack(list[Refusal], "the rejected changes of a key", _ADVICE)
_Batches = Iterator[pa.RecordBatch]


def pack(messages: EncodedMessages, schema: Schema) -> tuple[bytes | None, bytes | None]:
    """The messages of a key as bytes, and the changes that could not be applied; None if there are none."""
    refused = [
        (event.sequence, *_letter(schema, event), (error.reason, error.line, error.column))
        for event, error in messages.errors
    ]
    sequences, numbers, lengths, data, _ = messages
    packed: _Packed = sequences.tobytes(), numbers.tobytes(), lengths.tobytes(), data
    return _ANSWERS.write(packed) if data else None, pack_refused(refused)


def pack_refused(refused: Iterable[Refusal]) -> bytes | None:
    """Changes that cannot be applied, as bytes; None if there are none."""
    found = list(refused)
    return _REFUSALS.write(found) if found else None


def unfold(batches: _Batches) -> _Batches:
    """A row for each message and error in the answers of keys."""
    waiting: list[tuple[_Key, _Packed]] = []
    rows = size = 0
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in ANSWERED.fieldNames()]
        refused: list[tuple[_Key, Refusal]] = []
        for edge, value, answers, refusals in zip(*columns, strict=True):
            if answers is not None:
                packed = _read_answers(answers)
                waiting.append(((edge, value), packed))
                rows, size = rows + len(packed[1]) // 4, size + len(packed[3])
            if refusals is not None:
                refused += [((edge, value), one) for one in _REFUSALS.read(refusals)]
            if rows >= _BATCH_ROWS or size >= _BATCH_BYTES:
                yield _messages(waiting)
                waiting, rows, size = [], 0, 0
        if refused:
            yield _refusals(refused)
    if waiting:
        yield _messages(waiting)


def _read_answers(data: bytes) -> _Packed:
    packed = _ANSWERS.read(data)
    sequences, numbers, lengths, messages = packed
    sizes = np.frombuffer(lengths, np.int32) if len(lengths) % 4 == 0 else np.array([-1])
    count = len(sizes)
    if len(sequences) != 8 * count or len(numbers) != 4 * count or (sizes < 0).any() or sizes.sum() != len(messages):
        raise _ANSWERS.damaged("the number or total size of its messages does not match their stored lengths")
    return packed


def _messages(packed: Sequence[tuple[_Key, _Packed]]) -> pa.RecordBatch:
    def together(place: int, kind: type) -> Any:
        return np.frombuffer(b"".join([one[place] for _, one in packed]), kind)

    counts = [len(one[1]) // 4 for _, one in packed]
    places = pa.array(np.repeat(np.arange(len(packed)), counts))
    lengths = together(2, np.int32)
    edges = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=edges[1:])
    columns: list[pa.Array] = [
        pa.array([edge for (edge, _), _ in packed], pa.int32()).take(places),
        pa.array([value for (_, value), _ in packed], pa.string()).take(places),
        pa.array(together(0, np.int64)),
        pa.array(together(1, np.int32)),
        binary_column(together(3, np.uint8), edges, {}),
    ]
    columns += [pa.nulls(len(lengths), kind) for kind in _ARROW_MESSAGES.types[len(columns) :]]
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW_MESSAGES)


def _refusals(refused: Sequence[tuple[_Key, Refusal]]) -> pa.RecordBatch:
    rows = [(*key, one[0], None, None, *one[1:]) for key, one in refused]
    columns = zip(*rows, strict=True)
    arrays = [pa.array(values, kind) for values, kind in zip(columns, _ARROW_MESSAGES.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW_MESSAGES)


def _letter(schema: Schema, event: Event) -> tuple[str, str, _Text, _Text]:
    """An event as the change that it came from: table, change, row and values."""
    old, new = (
        None if row is None else write_row(dict(zip(schema.columns[event.table], row, strict=True)))
        for row in (event.old, event.new)
    )
    if old is None or new is None:
        return event.table, "delete" if new is None else "insert", old or new, None
    return event.table, "update", old, new
