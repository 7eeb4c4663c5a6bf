"""Columns: a column of documents in an Arrow batch as one array of bytes, and matches as a column of lists.

The bytes of a binary or string column are contiguous. They are copied once, because the scanner needs zero bytes after
the last document; offsets become 64 bits wide; no object is created per document. A long column is split into parts, so
that the memory for a batch does not depend on how large Spark made it.

Invariant: the parts of a column contain each of its rows once, in order.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa

from pathcast.documents import DocumentBatch, Limits, content
from pathcast.documents.scanner.character_kernels import PADDING
from pathcast.errors import DocumentError, PathcastError, PipelineError
from pathcast.kernels import Int64s, UInt8s
from pathcast.store import offsets_of

# The most bytes of a part, unless a single document is larger, and the most rows.
PART_BYTES = (4 << 20) - PADDING
PART_ROWS = 1 << 14
_LARGEST_OFFSET = (1 << 31) - 1

Bytes = UInt8s

# A column of the errors with which files were split: the reason of a row without a document.
ENTRY_ERROR = "entry_error"
ERROR_TYPE = pa.struct([("reason", pa.string()), ("line", pa.int32()), ("column", pa.int32())])


class Part(NamedTuple):
    """Rows `begin` to `end` of a column: document `i` of it is `data[offsets[i] : offsets[i + 1]]`.

    `structures`: their structures, split the same way (`pathcast.documents.pack`), if documents are not parsed.
    `documents`: the documents as an earlier stage in the same worker has read them, errors included.
    """

    begin: int
    end: int
    data: Bytes
    offsets: Int64s
    failed: dict[int, PathcastError]
    text: bool
    structures: tuple[Bytes, Int64s] | None = None
    documents: DocumentBatch | None = None


def parts_of_rows(rows: pa.RecordBatch, document: str) -> Iterator[Part]:
    """The documents of rows; those that have an error from splitting keep it."""
    errors = errors_of(rows.column(ENTRY_ERROR)) if ENTRY_ERROR in rows.schema.names else {}
    for part in parts_of_values(rows.column(document)):
        failed = {row - part.begin: error for row, error in errors.items() if part.begin <= row < part.end}
        yield part._replace(failed=part.failed | failed) if failed else part


def parts_of_values(column: pa.Array, *, part_bytes: int = PART_BYTES, part_rows: int = PART_ROWS) -> Iterator[Part]:
    """The documents of a binary or string column. A part is valid until the next one is requested."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if not text and not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
        text = pa.types.is_string_view(column.type)
        column = column.cast(pa.large_string() if text else pa.large_binary())
    nulls = np.empty(0, dtype=np.int64)
    if column.null_count:
        nulls = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))
    if not len(column):
        return
    width = np.int64 if pa.types.is_large_binary(column.type) or pa.types.is_large_string(column.type) else np.int32
    _, offset_buffer, data_buffer = column.buffers()
    edges = np.frombuffer(offset_buffer, width)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    data = np.empty(0, dtype=np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    room = np.empty(0, dtype=np.uint8)
    begin = 0
    while begin < len(column):
        end = int(np.searchsorted(edges, edges[begin] + part_bytes, side="right")) - 1
        end = min(max(end, begin + 1), begin + part_rows, len(column))
        first, last = int(edges[begin]), int(edges[end])
        if len(room) < last - first + PADDING:
            room = np.empty(last - first + PADDING, dtype=np.uint8)
        copied = room[: last - first + PADDING]
        copied[: last - first] = data[first:last]
        copied[last - first :] = 0
        # A null may have bytes: skip them, because the row has already failed.
        missing = nulls[np.searchsorted(nulls, begin) : np.searchsorted(nulls, end)] - begin
        failed: dict[int, PathcastError] = dict.fromkeys(
            missing.tolist(),
            PipelineError("no document: the column of documents is null; fill the column, or drop the row"),
        )
        yield Part(begin, end, copied, edges[begin : end + 1] - first, failed, text)
        begin = end


def parts_of_files(
    column: pa.Array, limits: Limits, *, part_bytes: int = PART_BYTES, part_rows: int = PART_ROWS
) -> Iterator[Part]:
    """The documents in the files that a column names, read here; a file that cannot be read has an error."""
    paths = column.to_pylist()
    begin, size = 0, 0
    contents: list[bytes] = []
    failed: dict[int, PathcastError] = {}
    for path in paths:
        try:
            data = read_file(path, limits)
        except PathcastError as error:
            failed[len(contents)] = error
            data = b""
        if contents and (size + len(data) > part_bytes or len(contents) >= part_rows):
            last = failed.pop(len(contents), None)
            yield _joined(begin, contents, failed)
            begin, size = begin + len(contents), 0
            contents, failed = [], {} if last is None else {0: last}
        contents.append(data)
        size += len(data)
    if contents:
        yield _joined(begin, contents, failed)


def read_file(path: str | None, limits: Limits) -> bytes:
    """The bytes of a file given by its path or `file:` URI."""
    return content(file_named(path), limits)[0]


def file_named(path: str | None) -> Path:
    """The file that a path or `file:` URI names."""
    if path is None:
        raise PipelineError("the path of the document is null; give a path, or drop the row")
    try:
        address = urlsplit(path)
    except ValueError as error:
        raise DocumentError(
            f"cannot read {path!r}: {error}; give a path, or a URI such as file:///folder/story.xml"
        ) from None
    if not address.scheme or not path.startswith(f"{address.scheme}:"):
        return Path(path)
    if address.scheme != "file" or address.netloc not in ("", "localhost"):
        raise DocumentError(
            f"cannot read {path}: documents by path must be on a disk of the worker; read other documents "
            "with spark.read.format('binaryFile') and match the column 'content'"
        )
    plain = Path(path.removeprefix("file:").removeprefix("//localhost"))
    # Spark escapes a space as %20 in some URIs but not in others; use the path that exists.
    return plain if plain.exists() else Path(unquote(os.fspath(plain)))


def lists(kind: pa.DataType, offsets: Int64s, values: pa.Array, missing: Mapping[int, PathcastError]) -> pa.Array:
    """The column whose row `i` is `values[offsets[i] : offsets[i + 1]]`, or null where there is an error."""
    if offsets[-1] > _LARGEST_OFFSET:
        raise PipelineError(
            f"one Arrow batch has {offsets[-1]:,} matches; at most {_LARGEST_OFFSET:,} are possible; lower "
            "spark.sql.execution.arrow.maxRecordsPerBatch"
        )
    mask = None
    if missing:
        mask = np.zeros(len(offsets) - 1, dtype=np.bool_)
        mask[list(missing)] = True
        mask = pa.array(mask)
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values, type=kind, mask=mask)


def binary_column(data: Bytes, edges: Int64s, missing: Mapping[int, PathcastError]) -> pa.Array:
    """The binary column whose row `i` is `data[edges[i] : edges[i + 1]]`, or null where there is an error."""
    if edges[-1] > _LARGEST_OFFSET:
        raise PipelineError(
            f"one Arrow batch has {edges[-1]:,} bytes; at most {_LARGEST_OFFSET:,} are possible; lower "
            "spark.sql.execution.arrow.maxRecordsPerBatch"
        )
    present = np.ones(len(edges) - 1, dtype=np.bool_)
    present[list(missing)] = False
    valid = pa.py_buffer(np.packbits(present, bitorder="little"))
    offsets = pa.py_buffer(edges.astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(present), [valid, offsets, pa.py_buffer(data)])


def bytes_of(column: pa.Array) -> tuple[Bytes, Int64s]:
    """A binary column as one array of bytes, and the start of each row; bytes of nulls are ignored."""
    if column.null_count:
        column = column.fill_null(b"")
    _, offset_buffer, data_buffer = column.buffers()
    wide = pa.types.is_large_binary(column.type)
    edges = np.frombuffer(offset_buffer, np.int64 if wide else np.int32)[
        column.offset : column.offset + len(column) + 1
    ]
    data = np.empty(0, dtype=np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    return data[edges[0] : edges[-1]], edges.astype(np.int64) - int(edges[0])


def errors_of(column: pa.Array) -> dict[int, PathcastError]:
    """The errors that a column of errors already has, by row."""
    if column.null_count == len(column):
        return {}
    found = ((place, row) for place, row in enumerate(column.to_pylist()) if row is not None)
    return {place: PathcastError(row["reason"], line=row["line"], column=row["column"]) for place, row in found}


def error_column(count: int, errors: Mapping[int, PathcastError]) -> pa.Array:
    """A column of `count` rows with reason, line and column of the errors, null elsewhere."""
    if not errors:
        return pa.nulls(count, ERROR_TYPE)
    rows: list[dict[str, object] | None] = [None] * count
    for index, error in errors.items():
        rows[index] = {"reason": error.reason, "line": error.line, "column": error.column}
    return pa.array(rows, ERROR_TYPE)


def _joined(begin: int, contents: Sequence[bytes], failed: dict[int, PathcastError]) -> Part:
    offsets = offsets_of([len(data) for data in contents])
    data = np.frombuffer(b"".join((*contents, bytes(PADDING))), dtype=np.uint8)
    return Part(begin, begin + len(contents), data, offsets, failed, text=False)
