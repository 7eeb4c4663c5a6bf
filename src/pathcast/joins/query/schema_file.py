"""Schema files: tables, joins and where rows stand in documents, in TOML.

    joins = ["Stocks.symbol = Reviews.symbol"]

    [tables]
    Stocks = "symbol string, per float"
    Reviews = "symbol string, rating float"

    [rows.Stocks]                      # for whoever cuts rows out of documents (row_extraction.py)
    rows = "//stock"
    columns = { symbol = "@symbol", per = "ratio/per" }
    required = ["symbol"]
    change = "@do"

Kinds stand with the tables, once. A table without `rows` gets its changes from elsewhere.
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pathcast.errors import PathcastError, SchemaError

from .row_extraction import Extraction
from .schema import Schema

_PARTS = {"tables", "joins", "payloads", "rows"}
_ROWS = {"rows", "columns", "required", "change"}


class SchemaFile(NamedTuple):
    """What a schema file says."""

    schema: Schema
    extractions: tuple[Extraction, ...]


def read_schema_file(file: str | os.PathLike[str]) -> SchemaFile:
    """The schema of a file; `SchemaError` names the file and what is wrong with it."""
    try:
        given = tomllib.loads(Path(file).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise SchemaError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SchemaError(f"{file}: the file is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise SchemaError(f"{file}: {error}") from None
    unknown = sorted(given.keys() - _PARTS)
    if unknown or not isinstance(given.get("tables"), dict):
        named = f"there is no '{unknown[0]}'" if unknown else "[tables] is missing"
        raise SchemaError(f"{file}: {named}; a schema has [tables], joins, [payloads] and [rows.TABLE]")
    if not isinstance(given.get("payloads", {}), dict):
        raise SchemaError(f"{file}: payloads: write [payloads], and there TABLE = 'column, column'")
    try:
        schema = Schema(given["tables"], given.get("joins", ()), given.get("payloads"))
        return SchemaFile(schema, tuple(_extractions(schema, given.get("rows", {}))))
    except (PathcastError, TypeError, AttributeError) as error:
        raise SchemaError(f"{file}: {getattr(error, 'reason', error)}") from None


def _extractions(schema: Schema, given: Any) -> list[Extraction]:
    if not isinstance(given, Mapping):
        raise SchemaError("rows: write [rows.TABLE] for each table")
    made = []
    for table, said in given.items():
        if table not in schema.columns:
            raise SchemaError(f"rows.{table}: there is no table '{table}'; there are {', '.join(schema.columns)}")
        if not isinstance(said, Mapping) or said.keys() - _ROWS or not _is_written(said):
            raise SchemaError(
                f"rows.{table}: give rows (a path), columns (name = path), and if wanted required, change"
            )
        if "rows" not in said:
            raise SchemaError(f"rows.{table}: 'rows' is missing, the path of the elements that are rows")
        columns = schema.columns[table]
        for column in columns:
            if column not in said["columns"]:
                raise SchemaError(f"rows.{table}.columns: '{column}' is missing, a column of {table}")
        for column in said["columns"]:
            schema.place(table, column)
        paths = {column: f"{said['columns'][column]}{_kind(schema, table, column)}" for column in columns}
        joined = schema.join_columns(table)
        required = said.get("required", [column for column in columns if column in joined])
        made.append(Extraction(table, said["rows"], paths, required, said.get("change", "insert")))
    return made


def _is_written(said: Mapping[str, Any]) -> bool:
    """Whether what is said of a table's rows are texts, a list of texts, and a table of texts, where they belong."""
    required, columns = said.get("required", []), said.get("columns")
    if not isinstance(required, list) or not isinstance(columns, Mapping):
        return False
    texts = [*required, *columns.values(), said.get("rows", ""), said.get("change", "")]
    return all(isinstance(one, str) for one in texts)


def _kind(schema: Schema, table: str, column: str) -> str:
    kind = schema.kind(table, column)
    return "" if kind is None else f" {kind.name}"
