"""Subscription files: text, CSV and Parquet to rows of (id, xpath, subscriber), each with its line."""

import csv
import gzip
import io
import os
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
    except (OSError, EOFError) as error:
        raise PatternError(
            f"cannot read the subscriptions {file}: {getattr(error, 'strerror', None) or error}"
        ) from None
    return _csv(file, text) if endings[-1:] == [".csv"] else _plain(text)


def _plain(text: str) -> Rows:
    lines = text.replace("\r\n", "\n").split("\n")
    numbers = [number for number, line in enumerate(lines, 1) if line.strip()]
    return Rows([lines[number - 1].strip() for number in numbers], numbers, None, numbers)


def _csv(file: Path, text: str) -> Rows:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    columns = reader.fieldnames or []
    _check_columns(file, columns)
    rows, lines = [], []
    try:
        for row in reader:
            rows.append(row)
            lines.append(reader.line_num)
    except csv.Error as error:
        raise PatternError(f"{file} is not CSV: {error}", line=reader.line_num) from None
    ids = [_id(file, row["id"], line) for row, line in zip(rows, lines, strict=True)] if "id" in columns else None
    subscribers = [row["subscriber"] or None for row in rows] if "subscriber" in columns else None
    return Rows([row["xpath"] or "" for row in rows], ids, subscribers, lines)


def _parquet(file: Path, data: bytes) -> Rows:
    import pyarrow
    from pyarrow import parquet

    try:
        table = parquet.read_table(pyarrow.BufferReader(data))
    except pyarrow.ArrowException as error:
        raise PatternError(f"{file} is not Parquet: {error}") from None
    _check_columns(file, table.column_names)
    xpaths = ["" if xpath is None else xpath for xpath in table["xpath"].to_pylist()]
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


def _id(file: Path, value: object, line: int) -> int:
    try:
        return int(value)  # type: ignore[call-overload, no-any-return]
    except (TypeError, ValueError):
        raise PatternError(f"{file}: id {value!r} is not a whole number", line=line) from None
