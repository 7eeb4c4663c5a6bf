"""The files that standing joins of a pipeline need: a schema file and subscriptions, read and checked without Spark."""

import csv
from pathlib import Path

from pathcast.errors import PathcastError, PipelineError
from pathcast.joins.schema_file import SchemaFile, read_schema_file
from pathcast.joins.standing import StandingJoins

from .pipeline_sections import Joins


def read_tables(joins: Joins) -> SchemaFile:
    """The schema, and where rows stand in documents."""
    found = read_schema_file(joins.schema)
    if not found.extractions:
        raise PipelineError(f"{joins.schema}: there is no [rows.TABLE], so documents have no rows of any table")
    return found


def read_join_subscriptions(file: str) -> dict[str | None, list[str]]:
    """The queries of a file by subscriber: CSV of `subscriber` and `query`, or text with a query a line, of nobody."""
    path = Path(file)
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise PipelineError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise PipelineError(f"{path} is not UTF-8") from None
    found: dict[str | None, list[str]] = {}
    if path.suffix != ".csv":
        return {None: [line.strip() for line in lines if line.strip()]}
    reader = csv.DictReader(lines)
    if not {"subscriber", "query"} <= set(reader.fieldnames or ()):
        raise PipelineError(f"{path}: its columns are {', '.join(reader.fieldnames or ())}, not subscriber, query")
    for row in reader:
        found.setdefault(row["subscriber"] or None, []).append(row["query"] or "")
    return found


def check_joins(joins: Joins) -> tuple[int, int]:
    """Read the files that joins need; how many tables and subscriptions there are. `PathcastError`: what is wrong."""
    schema, tables = read_tables(joins)
    asked = read_join_subscriptions(joins.subscriptions)
    try:
        StandingJoins(schema, asked, joins.scheme)
    except PathcastError as error:
        raise PipelineError(f"{joins.subscriptions}: {error}") from None
    return len(tables), sum(map(len, asked.values()))
