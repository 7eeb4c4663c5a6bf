"""Schema files: tables, joins and the paths of rows in documents, in TOML.

    joins = ["Stocks.symbol = Reviews.symbol"]

    [tables]
    Stocks = "symbol string, per float"
    Reviews = "symbol string, rating float"

    [rows.Stocks]                      # to extract rows from documents (row_extraction.py)
    rows = "//stock"
    columns = { symbol = "@symbol", per = "ratio/per" }

`SchemaPart` declares all keys; docs/guides/joins.md lists them. Kinds are declared once, with the tables. A table
without `rows` gets its changes from another source.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pathcast.errors import PathcastError, SchemaError
from pathcast.toml_files import TEXT, TEXTS, Kind, TomlFile, key, named_sections
from pathcast.toml_files import reference as reference_of

from .join_graph_schema import Schema
from .row_extraction import Extraction


def _list(value: Any, _: Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise _LIST.refused(value)
    return tuple(value)


_LIST = Kind("a list of texts", _list)


@dataclass(frozen=True, kw_only=True)
class RowsPart:
    """Where documents hold the rows of a table."""

    rows: str = key(TEXT, "The path of the elements that become rows.")
    columns: Mapping[str, str] = key(TEXTS, "For each column of the table, its path relative to the row's element.")
    required: tuple[str, ...] | None = key(_LIST, "Columns that must have a value.", None, without="the join columns")
    change: str = key(
        TEXT,
        "The change that a row makes: `insert` or `delete`, or the path of an attribute or element with it.",
        "insert",
    )


@dataclass(frozen=True, kw_only=True)
class SchemaPart:
    """The content of a schema file."""

    joins: tuple[str, ...] = key(
        _LIST,
        "The joins that subscriptions may use: `Stocks.symbol = Reviews.symbol`; join several columns with `and`.",
        (),
    )
    tables: Mapping[str, str] = key(
        TEXTS, 'For each table, its columns and their kinds: `Stocks = "symbol string, per float"`.'
    )
    payloads: Mapping[str, str] | None = key(
        TEXTS, "For each table, its payload: large columns that the join server sends separately.", None
    )
    rows: Mapping[str, RowsPart] = named_sections(
        RowsPart, "For each table, the place of its rows in documents. Needed to extract rows from documents.", "TABLE"
    )


class SchemaFile(NamedTuple):
    """The schema of a file, and how to extract the rows of its tables from documents."""

    schema: Schema
    extractions: tuple[Extraction, ...]


def reference() -> str:
    """The reference of all keys, in Markdown."""
    return reference_of(SchemaPart, "Tables and joins.")


def read_schema_file(file: str | os.PathLike[str]) -> SchemaFile:
    """The schema of a file; `SchemaError` names the file, the lines and the problems."""
    given = TomlFile(file)
    said = given.read(SchemaPart)
    if said is not None:
        try:
            schema = Schema(said.tables, said.joins, said.payloads)
            for name, reason in _wrong_rows(schema, said):
                given.wrong(name, reason)
            if not given.problems:
                return SchemaFile(schema, tuple(_extractions(schema, said)))
        except (PathcastError, TypeError) as error:
            given.wrong("", getattr(error, "reason", str(error)))
    raise SchemaError(given.told())


def _wrong_rows(schema: Schema, said: SchemaPart) -> Iterator[tuple[str, str]]:
    for table, rows in said.rows.items():
        if table not in schema.columns:
            yield f"rows.{table}", f"unknown table '{table}'; use one of {', '.join(schema.columns)}"
            continue
        columns = schema.columns[table]
        for column in columns:
            if column not in rows.columns:
                yield f"rows.{table}.columns", f"the column '{column}' of {table} is missing; add {column} = \"path\""
        for column in rows.columns:
            if column not in columns:
                known = ", ".join(columns)
                yield f"rows.{table}.columns", f"'{column}' is not a column of {table}; the columns are {known}"


def _extractions(schema: Schema, said: SchemaPart) -> Iterator[Extraction]:
    for table, rows in said.rows.items():
        columns = schema.columns[table]
        paths = {column: f"{rows.columns[column]}{_kind(schema, table, column)}" for column in columns}
        joined = schema.join_columns(table)
        required = [column for column in columns if column in joined] if rows.required is None else rows.required
        yield Extraction(table, rows.rows, paths, required, rows.change)


def _kind(schema: Schema, table: str, column: str) -> str:
    kind = schema.kind(table, column)
    return "" if kind is None else f" {kind.name}"
