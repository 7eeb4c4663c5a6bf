"""Compressed files of subscriptions, within bounds: a small file cannot unpack to a huge one.

A file of subscriptions compresses to a fifth or a tenth; a malicious one to a thousandth, and two bytes of it can be a
subscription, which takes 4 µs and 250 bytes. A file may therefore unpack to `AMPLIFICATION` times its size, or to
`FLOOR` bytes if that is more. The bound is checked while gzip unpacks, and for Parquet by the sizes that its metadata
declares, before any column is read: bytes of pages, and 8 per row.

Invariant: memory never holds more than one piece beyond the bound.
"""

import gzip
import io
from pathlib import Path
from typing import TYPE_CHECKING

from pathcast.errors import LimitError

if TYPE_CHECKING:
    from pyarrow import ChunkedArray, DataType
    from pyarrow.parquet import FileMetaData

AMPLIFICATION = 30
FLOOR = 1 << 20
_PIECE = 1 << 20
_ROW = 8  # bytes: a row refers at least to its expression


class Bound:
    """The largest unpacked size of a file; `amplification` is the caller's, or the default."""

    def __init__(self, file: Path, size: int, amplification: int) -> None:
        self._file, self._amplification = file, amplification
        self.bytes = max(FLOOR, amplification * size)

    def check(self, size: int) -> None:
        """`LimitError` if a file unpacks to more than its bound."""
        if size > self.bytes:
            raise LimitError(
                f"{self._file} unpacks to more than {self.bytes:,} bytes; the limit is {self._amplification} "
                f"times its size, and at least {FLOOR:,} bytes (raise the limit with Subscriptions.read(…, "
                "amplification=…), or unpack the file)"
            )


def unpacked(data: bytes, bound: Bound) -> bytes:
    """The content of a gzip file; `OSError`, `EOFError` or `zlib.error` if it is not one."""
    pieces = []
    size = 0
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
        while piece := packed.read(_PIECE):
            size += len(piece)
            bound.check(size)
            pieces.append(piece)
    return b"".join(pieces)


def check_parquet(metadata: "FileMetaData", bound: Bound) -> None:
    """`LimitError` for a Parquet file that declares more bytes or rows than allowed."""
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    bound.check(_ROW * metadata.num_rows + sum(group.total_byte_size for group in groups))


def is_text_kind(kind: "DataType") -> bool:
    """Whether a column of this kind holds texts, or only nulls."""
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    texts = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary, types.is_null)
    return any(is_kind(kind) for is_kind in texts)


def texts_of(column: "ChunkedArray") -> list[str | None]:
    """The texts of a column that was read as a dictionary; rows with the same text share it."""
    import pyarrow

    found: list[str | None] = []
    for chunk in column.chunks:
        if pyarrow.types.is_null(chunk.type):
            found += [None] * len(chunk)
            continue
        texts = [*chunk.dictionary.cast(pyarrow.string()).to_pylist(), None]
        found += map(texts.__getitem__, chunk.indices.fill_null(len(texts) - 1).to_numpy().tolist())
    return found
