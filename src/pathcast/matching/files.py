"""Subscription files: text, CSV and Parquet to rows of (id, xpath, subscriber), each with its line."""

import csv
import gzip
import io
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import PatternError

LARGEST_ID = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Rows:
    """Subscriptions as a file holds them; `lines` says where each stands (rows from 1 in Parquet)."""

    xpaths: list[str]
    ids: list[int] | None
    subscribers: list[str | None] | None
    lines: Sequence[int]


def read_rows(path: str | os.PathLike[str]) -> Rows:
    """The rows of a file; its ending says what it is. Ids are checked here, where their lines are known."""
    rows = _read(path)
    seen: set[int] = set()
    for number, line in zip(rows.ids or (), rows.lines, strict=False):
        if not 0 < number <= LARGEST_ID:
            raise PatternError(f"id {number}: an id is a whole number from 1 to {LARGEST_ID:,}", line=line)
        if number in seen:
            raise PatternError(f"id {number} is given twice", line=line)
        seen.add(number)
    return rows


def _read(path: str | os.PathLike[str]) -> Rows:
    file = Path(path)
    endings = [ending.lower() for ending in file.suffixes]
    try:
        data = file.read_bytes()
        if endings[-1:] == [".gz"]:
            data = gzip.decompress(data)
            endings.pop()
        if endings[-1:] == [".parquet"]:
            return _parquet(file, data)
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PatternError(f"{file} is not UTF-8 text (byte {error.start})") from None
    except (OSError, EOFError, zlib.error) as error:
        raise PatternError(
            f"cannot read the subscriptions {file}: {getattr(error, 'strerror', None) or error}"
        ) from None
    return _csv(file, text) if endings[-1:] == [".csv"] else _plain(text)


def _plain(text: str) -> Rows:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    numbers = [number for number, line in enumerate(lines, 1) if line.strip()]
    return Rows([lines[number - 1].strip() for number in numbers], numbers, None, numbers)


def _csv(file: Path, text: str) -> Rows:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)  # else an open quote takes in all that follows
    rows, lines = [], []
    try:
        columns = next(reader, [])
        _check_columns(file, columns)
        for row in reader:
            if len(row) > len(columns):
                fields = f"{len(row)} fields, the heading {len(columns)}; one that holds a comma stands in quotes"
                raise PatternError(f"{file}: the row has {fields}", line=reader.line_num)
            if row:
                rows.append(dict(zip(columns, row, strict=False)))
                lines.append(reader.line_num)
    except csv.Error as error:
        if "end of data" in str(error):
            raise PatternError(f"{file}: a quote is not closed", line=lines[-1] + 1 if lines else 2) from None
        raise PatternError(f"{file} is not CSV: {error}", line=reader.line_num) from None
    ids = [_id(file, row.get("id"), line) for row, line in zip(rows, lines, strict=True)] if "id" in columns else None
    subscribers = [row.get("subscriber") or None for row in rows] if "subscriber" in columns else None
    return Rows([row.get("xpath", "") for row in rows], ids, subscribers, lines)


def _parquet(file: Path, data: bytes) -> Rows:
    import pyarrow
    from pyarrow import parquet

    try:
        table = parquet.ParquetFile(pyarrow.BufferReader(data)).read()
    except pyarrow.ArrowException as error:
        raise PatternError(f"{file} is not Parquet: {error}") from None
    _check_columns(file, table.column_names)
    kind = table["xpath"].type
    try:
        if pyarrow.types.is_primitive(kind):  # numbers would pass for strings
            raise pyarrow.ArrowTypeError
        xpaths = [xpath or "" for xpath in table["xpath"].cast(pyarrow.string()).to_pylist()]
    except pyarrow.ArrowException:
        raise PatternError(f"{file}: column 'xpath' holds {kind}, not strings") from None
    lines = range(1, len(xpaths) + 1)
    ids = None
    if "id" in table.column_names:
        ids = [_id(file, number, line) for number, line in zip(table["id"].to_pylist(), lines, strict=True)]
    subscribers = table["subscriber"].to_pylist() if "subscriber" in table.column_names else None
    return Rows(xpaths, ids, subscribers, lines)


def _check_columns(file: Path, columns: Sequence[str]) -> None:
    if "xpath" not in columns:
        found = ", ".join(columns) or "none"
        raise PatternError(f"{file} has no column 'xpath' (its columns: {found})", line=1)
    for name in ("xpath", "id", "subscriber"):
        if columns.count(name) > 1:
            raise PatternError(f"{file} has two columns '{name}'", line=1)


def _id(file: Path, value: object, line: int) -> int:
    try:
        number = int(value)  # type: ignore[call-overload]
        if not isinstance(value, float) or number == value:
            return int(number)
    except (TypeError, ValueError, OverflowError):
        pass
    raise PatternError(f"{file}: id {value!r} is not a whole number", line=line)
