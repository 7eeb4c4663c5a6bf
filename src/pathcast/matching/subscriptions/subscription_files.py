"""Subscription files: text, CSV and Parquet to rows of (id, xpath, subscriber), each with its line.

In a text file a line that begins with `#`, after any blanks, is a comment: no XPath begins with `#`. CSV has no
comments, since any field may begin with `#`.

An invalid row is left out and recorded (`Rows.errors`), so that all faults can be reported at once. An unreadable file
raises.
"""

import csv
import io
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from pathcast.errors import PatternError
from pathcast.extras import extra

from .bounded_decompression import AMPLIFICATION, Bound, check_parquet, is_text_kind, texts_of, unpacked
from .csv_field_limit import fields_of_any_length

LARGEST_ID = (1 << 31) - 1
_BLOCK = 1 << 16  # characters of text that are split into lines at a time
_LONGEST_ID = 40  # with leading zeros
_SHOWN = 200  # characters of a heading in an error


@dataclass(frozen=True, slots=True)
class Rows:
    """Subscriptions of a file; `lines` has the line of each (in Parquet, the row, from 1).

    `errors` has the rows that are left out, each with its line.
    """

    xpaths: list[str]
    ids: list[int] | None
    subscribers: list[str | None] | None
    lines: Sequence[int]
    errors: list[PatternError] = field(default_factory=list)


def read_rows(path: str | os.PathLike[str], amplification: int = AMPLIFICATION) -> Rows:
    """The rows of a file, whose extension gives its format. Ids are checked here, where their lines are known.

    A compressed file unpacks to at most `amplification` times its size (`bounded_decompression.py`).
    """
    rows = _read(path, amplification)
    return rows if rows.ids is None or rows.ids is rows.lines else _with_good_ids(rows, rows.ids)


def _with_good_ids(rows: Rows, given: Sequence[object]) -> Rows:
    """The rows with valid ids; the others are errors."""
    line_of: dict[int, int] = {}
    kept, errors = [], rows.errors
    for at, (value, line) in enumerate(zip(given, rows.lines, strict=True)):
        number = _id(value)
        if number is None:
            errors.append(
                PatternError(f"id must be a whole number from 1 to {LARGEST_ID:,}, got {value!r:.60}", line=line)
            )
        elif line_of.setdefault(number, line) != line:
            errors.append(
                PatternError(
                    f"id {number} is already in use in line {line_of[number]}; give each subscription its own id",
                    line=line,
                )
            )
        else:
            kept.append(at)
    subscribers = None if rows.subscribers is None else [rows.subscribers[at] for at in kept]
    return Rows([rows.xpaths[at] for at in kept], list(line_of), subscribers, [rows.lines[at] for at in kept], errors)


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
        raise PatternError(f"{file} is not UTF-8 text (byte {error.start}); convert it to UTF-8") from None
    except (OSError, EOFError, zlib.error) as error:
        raise PatternError(
            f"cannot read the subscriptions {file}: {getattr(error, 'strerror', None) or error}; check the path"
        ) from None
    except ValueError:  # a NUL character, or a character that the file system's encoding lacks
        raise PatternError(
            f"cannot read the subscriptions {str(file)!r}: the name contains a NUL or an invalid "
            "character; give another path"
        ) from None
    return _csv(file, text) if endings[-1:] == [".csv"] else plain_rows(text)


def plain_rows(text: str, block: int = _BLOCK) -> Rows:
    """The rows of a text with one expression per line, split into lines by blocks of some `block` characters."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    xpaths: list[str] = []
    numbers: list[int] = []
    begin, first = 0, 1
    while begin < len(text):
        end = text.find("\n", begin + block) + 1 or len(text)
        some = text[begin:end]
        if not some.isspace():  # a run of blank lines needs no splitting
            lines = list(map(str.strip, some.split("\n")))
            kept = [(number, line) for number, line in enumerate(lines, first) if line and line[0] != "#"]
            numbers += [number for number, _ in kept]
            xpaths += [line for _, line in kept]
        begin, first = end, first + some.count("\n")
    return Rows(xpaths, numbers, None, numbers)


def _csv(file: Path, text: str) -> Rows:
    rows: list[dict[str, str]] = []
    lines: list[int] = []
    errors: list[PatternError] = []
    with fields_of_any_length():
        found = _csv_rows(file, text)
        columns, _ = next(found, ([], 1))
        if isinstance(columns, str):
            raise PatternError(
                f"the heading of {file} is not CSV: {columns}; separate column names with commas, such as id,xpath",
                line=1,
            )
        _check_columns(file, columns)
        for row, line in found:
            if isinstance(row, str):
                advice = "double each quote inside a quoted field"
                errors.append(PatternError(f"the row is not CSV: {row}; {advice}", line=line))
            elif len(row) > len(columns):
                fields = f"{len(row)} fields, but the heading has {len(columns)}; quote fields that contain a comma"
                errors.append(PatternError(f"the row has {fields}", line=line))
            elif row:
                rows.append(dict(zip(columns, row, strict=False)))
                lines.append(line)
    ids: Any = [row.get("id") for row in rows] if "id" in columns else None
    subscribers = [row.get("subscriber") or None for row in rows] if "subscriber" in columns else None
    return Rows([row.get("xpath", "") for row in rows], ids, subscribers, lines, errors)


def _csv_rows(file: Path, text: str) -> Iterator[tuple[list[str] | str, int]]:
    """The fields of each row, or what is wrong with the row; and its last line."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)  # else an open quote takes in all that follows
    while True:
        before = reader.line_num
        try:
            yield next(reader), reader.line_num
        except StopIteration:
            return
        except csv.Error as error:
            if "end of data" in str(error):
                raise PatternError(
                    f"a quote in {file} is not closed; close it, or double it to write a quote", line=before + 1
                ) from None
            yield str(error), reader.line_num


def _parquet(file: Path, data: bytes, bound: Bound) -> Rows:
    with extra("parquet"):
        import pyarrow
        from pyarrow import parquet

    source = pyarrow.BufferReader(data)
    try:
        declared = parquet.ParquetFile(source)
        check_parquet(declared.metadata, bound)
        kinds = dict(zip(declared.schema_arrow.names, declared.schema_arrow.types, strict=True))
        _check_columns(file, declared.schema_arrow.names)
        if not is_text_kind(kinds["xpath"]):
            raise PatternError(f"column 'xpath' of {file} has type {kinds['xpath']}, not string; convert the column")
        columns = [name for name in ("xpath", "id", "subscriber") if name in kinds]
        texts = [name for name in columns if is_text_kind(kinds[name])]
        table = parquet.ParquetFile(source, read_dictionary=texts).read(columns)
    except pyarrow.ArrowException as error:
        raise PatternError(
            f"{file} is not Parquet, or is damaged: {error}; write the file again, or rename it if it is CSV or text"
        ) from None
    read = {name: _texts(file, name, table[name], kinds[name]) for name in texts}
    xpaths = [xpath or "" for xpath in read["xpath"]]
    lines = range(1, len(xpaths) + 1)
    ids = table["id"].to_pylist() if "id" in table.column_names else None
    subscribers = read.get("subscriber")
    if subscribers is None and "subscriber" in columns:
        subscribers = table["subscriber"].to_pylist()
    return Rows(xpaths, ids, subscribers, lines)


def _texts(file: Path, name: str, column: Any, kind: object) -> list[str | None]:
    import pyarrow

    try:
        return texts_of(column)
    except pyarrow.ArrowException:
        raise PatternError(
            f"column '{name}' of {file} has type {kind}, but some values are not UTF-8 text; convert the column"
        ) from None


def _check_columns(file: Path, columns: Sequence[str]) -> None:
    if "xpath" not in columns:
        found = ", ".join(columns) or "none"
        found = found if len(found) <= _SHOWN else f"{found[:_SHOWN]}…"
        used = next((mark for mark in ";\t|" if "xpath" in columns[0].split(mark)), None) if columns else None
        advice = (
            "name the column of expressions 'xpath'" if used is None else f"separate columns with commas, not {used!r}"
        )
        raise PatternError(f"{file} has no column 'xpath' (its columns: {found}); {advice}", line=1)
    for name in ("xpath", "id", "subscriber"):
        if columns.count(name) > 1:
            raise PatternError(f"{file} has two columns '{name}'; remove or rename one of them", line=1)


def _id(value: object) -> int | None:
    """The id in a field: digits 0 to 9, or a whole number; None for anything else."""
    if isinstance(value, str):
        digits = value.strip(" \t")
        usable = digits.isascii() and digits.isdecimal() and len(digits) <= _LONGEST_ID
        number = int(digits) if usable else 0
    elif isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        number = int(value) if 0 < value <= LARGEST_ID and value == int(value) else 0
    else:
        number = 0
    return number if 0 < number <= LARGEST_ID else None
