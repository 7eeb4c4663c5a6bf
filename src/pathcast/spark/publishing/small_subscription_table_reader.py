"""Small tables of subscriptions: CSV, JSON and Parquet files that one process reads without starting Spark.

    feed.csv ── read_small ──▶ rows as Spark reads them (subscription_row_parser.py) ──▶ checked or published here

Spark takes seconds to start, and would compile a small table in one task anyway. Unusual tables are left to Spark, and
`NotSmallError` states why: large or remote tables, other formats and types, files that the readers here cannot read.

Invariant: a table that is read here has the rows that Spark would have read.
Cost: some 2 µs per row.
"""

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from pathcast.matching.subscriptions import fields_of_any_length

from ..pipeline.pipeline_file import is_address
from .parallel_pattern_compilation import MANY
from .subscription_row_parser import ADDED, CHANGES, TABLE, check_names

# The rows that `index_publishing_task.py` expects, as in `subscription_row_parser.ROWS`.
ROW_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        *((name, pa.string()) for name in ("subscriber", "xpath", "change", "given")),
        ("of", pa.int32()),
        ("place", pa.int64()),
    ]
)
COLUMNS = ("id", "subscriber", "xpath", "router", "change", "sequence")
# Suffixes of files that Spark decompresses, besides `.gz`.
_PACKED = {".bz2", ".deflate", ".lz4", ".snappy", ".zst"}
# As Spark casts text to bigint: ASCII digits, with blanks around them.
_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,18}\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Small:
    """The bounds of a small table.

    `rows`: from this number on Spark may have several workers compile the expressions, which is worth the start of
    Spark; below it, one task compiles them all. `bytes`: 50,000 rows of some 600 bytes, which one process holds with
    ease.
    """

    rows: int = MANY
    bytes: int = 32 << 20


class NotSmallError(Exception):
    """A table that is left to Spark, with the reason."""


class SmallTable(NamedTuple):
    """The relevant columns of a table, as lists; `names` of all its columns; whether it is one file."""

    columns: dict[str, list[Any]]
    names: list[str]
    single: bool

    def rows(self, of: int) -> Iterator[dict[str, Any]]:
        """The rows of a table or of changes, in order: the columns of `subscription_row_parser.ROWS`, and `router`."""
        order = list(range(max(map(len, self.columns.values()), default=0)))
        if of == CHANGES and "sequence" in self.columns:
            sequence = self.columns["sequence"]
            order.sort(key=lambda row: (sequence[row] is not None, sequence[row]))
        nothing = [None] * len(order)
        ids, subscribers, xpaths, routers, changes = (self.columns.get(name, nothing) for name in COLUMNS[:-1])
        for place, row in enumerate(order):
            yield {
                "id": whole_number(ids[row]),
                "subscriber": subscribers[row] or None,
                "xpath": xpaths[row] or "",
                "router": routers[row],
                "change": changes[row] if of == CHANGES else ADDED,
                "given": ("" if ids is nothing else None) if ids[row] is None else str(ids[row]),
                "of": of,
                "place": place,
            }


def read_small(path: str, form: str, small: Small | None = None) -> SmallTable:
    """Read a table from a file, or from a folder of files; raises `NotSmallError` if Spark has to read it."""
    bounds = small or Small()
    files = _files(path)
    if form not in _READERS:
        raise NotSmallError(f"format {form!r} needs Spark")
    if (size := sum(file.stat().st_size for file in files)) > bounds.bytes:
        raise NotSmallError(f"{path} has {size:,} bytes; at most {bounds.bytes:,} are read without Spark")
    names: list[str] | None = None
    columns: dict[str, list[Any]] = {}
    for file in files:
        try:
            mine, rows = _READERS[form](file, bounds)
        except (OSError, EOFError, zlib.error, ValueError, RecursionError, csv.Error, pa.ArrowException) as error:
            raise NotSmallError(f"{file.name} cannot be read without Spark: {error}") from None
        if names is not None and mine != names:
            raise NotSmallError(
                f"{file.name} has the columns {', '.join(mine)}, but the file before it has {', '.join(names)}"
            )
        if len({name.lower() for name in mine}) < len(mine):
            raise NotSmallError(f"two columns of {file.name} have the same name")
        names = mine
        for name in COLUMNS:
            if name in mine:
                columns.setdefault(name, []).extend(row.get(name) for row in rows)
        if len(next(iter(columns.values()), ())) >= bounds.rows:
            raise NotSmallError(f"the table has {bounds.rows:,} rows or more")
    _check_types(columns)
    return SmallTable(columns, names or [], len(files) == 1)


def whole_number(value: Any) -> int | None:
    """An id as Spark casts it."""
    if isinstance(value, str):
        return int(value) if _WHOLE.fullmatch(value) else None
    return None if value is None else int(value)


def _files(path: str) -> list[Path]:
    place = Path(path)
    if is_address(path) or not place.exists():
        raise NotSmallError(f"{path} is not a file or folder on this machine")
    if place.is_file():
        return [place]
    found = sorted(entry for entry in place.iterdir() if not entry.name.startswith(("_", ".")))
    if not found:
        raise NotSmallError(f"the folder {path} has no files")
    if not all(entry.is_file() for entry in found):
        raise NotSmallError(f"the folder {path} contains other folders")
    return found


def _check_types(columns: dict[str, list[Any]]) -> None:
    """Leave types that Spark would cast, and values that Arrow cannot hold, to Spark."""
    for name, values in columns.items():
        kinds = {type(value) for value in values} - {type(None)}
        usual: tuple[set[type], ...] = ({str},) if name not in ("id", "sequence") else ({str}, {int})
        if kinds and kinds not in usual:
            raise NotSmallError(
                f"column '{name}' has values of type {', '.join(sorted(kind.__name__ for kind in kinds))}, which "
                "need Spark"
            )
        try:
            pa.array(values)
        except (OverflowError, ValueError) as error:  # numbers beyond 64 bits; half of a surrogate pair
            raise NotSmallError(f"column '{name}': {error}") from None


def rows_in_order(
    table: SmallTable, changes: SmallTable | None, needed: tuple[str, ...] = ()
) -> Iterator[dict[str, Any]]:
    """The rows of a table, then those of changes to it; raises `PipelineError` if a column is missing."""
    for of, given in ((TABLE, table), (CHANGES, changes)):
        if given is not None:
            check_names(given.names, of, needed)
            yield from given.rows(of)


_Rows = tuple[list[str], list[dict[str, Any]]]


def _text(file: Path, bounds: Small) -> str:
    if file.suffix in _PACKED:
        raise NotSmallError(f"files with the suffix {file.suffix!r} need Spark")
    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
        data = stream.read(bounds.bytes + 1)
    if len(data) > bounds.bytes:
        raise NotSmallError(f"{file.name} unpacks to more than {bounds.bytes:,} bytes; no more are read without Spark")
    return data.decode("utf-8-sig", errors="replace")


def _csv(file: Path, bounds: Small) -> _Rows:
    """Rows as `subscription_row_parser.read_table` reads them: a line with too many fields replaces the expression."""
    taken: list[str] = []

    def lines() -> Iterable[str]:
        for line in io.StringIO(_text(file, bounds), newline=""):
            taken.append(line)
            yield line

    rows = []
    with fields_of_any_length():
        reader = csv.reader(lines(), strict=True)
        names = next(reader, [])
        if not names or not all(names):
            raise NotSmallError(f"the heading of {file.name} has an empty column name")
        taken.clear()
        for fields in reader:
            row: dict[str, Any] = {name: value or None for name, value in zip(names, fields, strict=False)}
            if len(fields) > len(names) and fields[len(names) - 1]:  # Spark finds no others
                row["xpath"] = "".join(taken).rstrip("\r\n")
            if fields:
                rows.append(row)
            taken.clear()
    return names, rows


def _json(file: Path, bounds: Small) -> _Rows:
    """Rows of JSON Lines."""
    rows = []
    names: dict[str, None] = {}
    for line in re.split(r"[\r\n]+", _text(file, bounds)):
        if line.strip():
            row = json.loads(line)
            if not isinstance(row, dict):
                raise NotSmallError(f"{file.name} has a line that is not a JSON object")
            rows.append(row)
            names.update(dict.fromkeys(row))
    return sorted(names), rows


def _parquet(file: Path, bounds: Small) -> _Rows:
    from pyarrow import parquet

    with parquet.ParquetFile(file) as opened:
        facts = opened.metadata
        size = sum(facts.row_group(number).total_byte_size for number in range(facts.num_row_groups))
        if facts.num_rows >= bounds.rows or size > bounds.bytes:
            raise NotSmallError(
                f"the table has {facts.num_rows:,} rows and {size >> 20} MiB, but at most {bounds.rows:,} and "
                f"{bounds.bytes >> 20} MiB are read without Spark"
            )
        names = opened.schema_arrow.names
        table = opened.read([name for name in COLUMNS if name in names])
    return names, table.to_pylist()


_READERS: dict[str, Callable[[Path, Small], _Rows]] = {"csv": _csv, "json": _json, "parquet": _parquet}
