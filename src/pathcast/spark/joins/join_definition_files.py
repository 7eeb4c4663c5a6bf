"""The files that standing joins of a pipeline need: a schema file and subscriptions, read and checked without Spark.

With a folder of versions, a file of subscriptions lists all wanted subscriptions: it is compared with the newest
version, line by line, and the difference becomes the next version. A line that stays keeps its id; batches of
subscriptions that a program has published stay as well.

Invariant: after `publish_file` the newest version has the subscriptions of the file, under the ids that they had.
"""

import csv
import io
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from pathcast.errors import PathcastError, PipelineError
from pathcast.joins import Schema
from pathcast.joins.partition import StandingJoins, describe
from pathcast.joins.query import SchemaFile, read_schema_file

from ..pipeline.pipeline_sections import Joins
from ..publishing.index_versions import latest, versions
from .join_version_folder import open_joins, publish_joins

Queries = dict[str | None, list[str]]


def read_tables(joins: Joins) -> SchemaFile:
    """The schema, and the paths of rows in documents."""
    found = read_schema_file(joins.schema)
    if not found.extractions:
        raise PipelineError(
            f"the schema {joins.schema} has no [rows.TABLE] section; add a section for each table that lists "
            "the paths to the table's rows in a document"
        )
    return found


def read_join_subscriptions(file: str) -> Queries:
    """The queries of a file by subscriber: CSV of `subscriber` and `query`, or text with a query per line, without
    subscriber, and comments that begin with `--`.
    """
    path = Path(file)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise PipelineError(f"cannot read {path}: {error.strerror}; check the path") from None
    except UnicodeDecodeError:
        raise PipelineError(f"{path} is not UTF-8; convert it to UTF-8") from None
    if path.suffix != ".csv":
        lines = (line.strip() for line in text.split("\n"))
        return {None: [line for line in lines if line and not line.startswith("--")]}
    found: Queries = {}
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        if not {"subscriber", "query"} <= set(reader.fieldnames or ()):
            columns = ", ".join(reader.fieldnames or ()) or "none"
            raise PipelineError(f"the first line of {path} must name the columns subscriber and query, got {columns}")
        for row in reader:
            if None in row:
                raise PipelineError(
                    f"{path}, line {reader.line_num}: too many columns; put a query that contains a comma in quotes"
                )
            found.setdefault(row["subscriber"] or None, []).append(row["query"] or "")
    except csv.Error as error:
        raise PipelineError(f"{path}, line {reader.reader.line_num}: invalid CSV: {error}; check the quotes") from None
    return found


class JoinFiles(NamedTuple):
    """The content of the files of standing joins: the number of tables with rows in documents; the newest version, if
    there is one, and the changes to it; without one, the subscriptions.
    """

    tables: int
    newest: StandingJoins | None
    add: Queries
    remove: list[int]

    @property
    def subscriptions(self) -> int:
        """The number of subscriptions after the change."""
        there = 0 if self.newest is None else sum(1 for _ in self.newest)
        return there + sum(map(len, self.add.values())) - len(self.remove)


def check_joins(joins: Joins) -> JoinFiles:
    """Read the files of joins; raises `PathcastError` if they are invalid."""
    schema, tables = read_tables(joins)
    newest = None
    if joins.versions is not None and versions(joins.versions):
        newest = open_joins(joins.versions)
        _check_same(joins, joins.versions, schema, newest)
    elif joins.subscriptions is None:
        raise PipelineError(
            f"joins.versions: no subscriptions at {joins.versions}; set joins.subscriptions to a file of "
            "subscriptions, or publish the first version with publish_joins(folder, standing)"
        )
    add: Queries = {}
    remove: list[int] = []
    if joins.subscriptions is not None:
        add, remove = _compared(newest, read_join_subscriptions(joins.subscriptions))
        try:
            _ = StandingJoins(schema, add, joins.scheme) if newest is None else newest.changed(add, remove)
        except PathcastError as error:
            raise PipelineError(f"invalid subscriptions in {joins.subscriptions}: {error}") from None
    return JoinFiles(len(tables), newest, add, remove)


def publish_file(joins: Joins) -> str:
    """Publish what has changed in the file of subscriptions, if there are a file and versions; return a report."""
    if joins.versions is None or joins.subscriptions is None:
        return ""
    found = check_joins(joins)
    added, removed = sum(map(len, found.add.values())), len(found.remove)
    if found.newest is None:
        schema = read_tables(joins).schema
        number = publish_joins(joins.versions, StandingJoins(schema, found.add, joins.scheme)).number
    elif added or removed:
        number = publish_joins(joins.versions, add=found.add, remove=found.remove).number
    else:
        number = latest(joins.versions)
    return f"joins: version {number}: {found.subscriptions:,} subscriptions, {added:,} added, {removed:,} removed"


def _check_same(joins: Joins, folder: str, schema: Schema, newest: StandingJoins) -> None:
    """Reject versions of other tables or of another scheme."""
    if newest.scheme != joins.scheme:
        raise PipelineError(
            f"joins.scheme: the subscriptions at {folder} are for {newest.scheme}, not {joins.scheme}; set "
            f"joins.scheme = {newest.scheme!r}, or choose another folder for joins.versions and another checkpoint"
        )
    if describe(newest.schema) != describe(schema):
        raise PipelineError(
            f"joins.schema: the tables or joins of {joins.schema} differ from those of the subscriptions at {folder}; "
            "restore the schema of these subscriptions, or choose another folder for joins.versions and another "
            "checkpoint"
        )


def _compared(newest: StandingJoins | None, wanted: Queries) -> tuple[Queries, list[int]]:
    """The subscriptions to add, in the order of the file, and the ids to remove."""
    left = Counter((subscriber, query) for subscriber, queries in wanted.items() for query in queries)
    remove: list[int] = []
    for one in newest.asked if newest is not None else ():
        said = one.subscriber, one.query
        if left[said]:  # type: ignore[index]
            left[said] -= 1  # type: ignore[index]
        else:
            remove.append(one.id)
    add: Queries = {}
    for subscriber, queries in wanted.items():
        for query in queries:
            if left[subscriber, query]:
                left[subscriber, query] -= 1
                add.setdefault(subscriber, []).append(query)
    return add, remove
