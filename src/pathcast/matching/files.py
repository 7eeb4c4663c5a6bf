"""Subscription files: text, CSV and Parquet to rows of (id, xpath, subscriber), each with its line."""

import csv
import io
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import LimitError, PatternError
from .unpacking import AMPLIFICATION, Bound, check_parquet, is_text_kind, texts_of, unpacked

LARGEST_ID = (1 << 31) - 1
_BLOCK = 1 << 16  # characters of text that are cut into lines at a time


@dataclass(frozen=True, slots=True)
class Rows:
    """Subscriptions as a file holds them; `lines` says where each stands (rows from 1 in Parquet)."""

    xpaths: list[str]
    ids: list[int] | None
    subscribers: list[str | None] | None
    lines: Sequence[int]


def read_rows(path: str | os.PathLike[str], amplification: int = AMPLIFICATION) -> Rows:
    """The rows of a file; its ending says what it is. Ids are checked here, where their lines are known.

    A compressed file unpacks to at most `amplification` times its size (`unpacking.py`).
    """
    rows = _read(path, amplification)
    seen: set[int] = set()
    for number, line in zip(rows.ids or (), rows.lines, strict=False):
        if not 0 < number <= LARGEST_ID:
            raise PatternError(f"id {number}: an id is a whole number from 1 to {LARGEST_ID:,}", line=line)
        if number in seen:
            raise PatternError(f"id {number} is given twice", line=line)
        seen.add(number)
    return rows


def _read(path: str | os.PathLike[str], amplification: int) -> Rows:
    file = Path(path)
    endings = [ending.lower() for ending in file.suffixes]
    try:
        data = file.read_bytes()
        bound = Bound(file, len(data), amplification)
        if endings[-1:] == [".gz"]:
            data = unpacked(data, bound)
            endings.pop()
        if endings[-1:] == [".parquet"]:
            return _parquet(file, data, bound)
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PatternError(f"{file} is not UTF-8 text (byte {error.start})") from None
    except (OSError, EOFError, zlib.error) as error:
        raise PatternError(
            f"cannot read the subscriptions {file}: {getattr(error, 'strerror', None) or error}"
        ) from None
    return _csv(file, text) if endings[-1:] == [".csv"] else _plain(text)


def _plain(text: str) -> Rows:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    xpaths: list[str] = []
    numbers: list[int] = []
    begin, first = 0, 1
    while begin < len(text):
        end = text.find("\n", begin + _BLOCK) + 1 or len(text)
        block = text[begin:end]
        if not block.isspace():  # blank lines in bulk are no lines
            lines = list(map(str.strip, block.split("\n")))
            numbers += [number for number, line in enumerate(lines, first) if line]
            xpaths += filter(None, lines)
        begin, first = end, first + block.count("\n")
    return Rows(xpaths, numbers, None, numbers)


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
        if "field limit" in str(error):
            reason = f"{file}: a field has more than {csv.field_size_limit():,} characters"
            raise LimitError(f"{reason} (raise it with csv.field_size_limit)", line=reader.line_num) from None
        raise PatternError(f"{file} is not CSV: {error}", line=reader.line_num) from None
    ids = [_id(file, row.get("id"), line) for row, line in zip(rows, lines, strict=True)] if "id" in columns else None
    subscribers = [row.get("subscriber") or None for row in rows] if "subscriber" in columns else None
    return Rows([row.get("xpath", "") for row in rows], ids, subscribers, lines)


def _parquet(file: Path, data: bytes, bound: Bound) -> Rows:
    import pyarrow
    from pyarrow import parquet

    source = pyarrow.BufferReader(data)
    try:
        declared = parquet.ParquetFile(source)
        check_parquet(declared.metadata, bound)
        kinds = dict(zip(declared.schema_arrow.names, declared.schema_arrow.types, strict=True))
        _check_columns(file, declared.schema_arrow.names)
        if not is_text_kind(kinds["xpath"]):
            raise PatternError(f"{file}: column 'xpath' holds {kinds['xpath']}, not strings")
        columns = [name for name in ("xpath", "id", "subscriber") if name in kinds]
        texts = [name for name in columns if is_text_kind(kinds[name])]
        table = parquet.ParquetFile(source, read_dictionary=texts).read(columns)
    except pyarrow.ArrowException as error:
        raise PatternError(f"{file} is not Parquet: {error}") from None
    read = {name: _texts(file, name, table[name], kinds[name]) for name in texts}
    xpaths = [xpath or "" for xpath in read["xpath"]]
    lines = range(1, len(xpaths) + 1)
    ids = None
    if "id" in table.column_names:
        ids = [_id(file, number, line) for number, line in zip(table["id"].to_pylist(), lines, strict=True)]
    subscribers = read.get("subscriber")
    if subscribers is None and "subscriber" in columns:
        subscribers = table["subscriber"].to_pylist()
    return Rows(xpaths, ids, subscribers, lines)


def _texts(file: Path, name: str, column: Any, kind: object) -> list[str | None]:
    import pyarrow

    try:
        return texts_of(column)
    except pyarrow.ArrowException:
        raise PatternError(f"{file}: column '{name}' holds {kind}, not strings") from None


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
