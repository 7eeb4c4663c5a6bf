"""`pathcast joins`: the messages that changes of tables cause for standing joins.

The tables are empty at first. Changes are applied one after the other, and every message goes to the client of every
subscription that takes it. A change that cannot be applied is reported with its line and leaves the tables unchanged;
the next changes are still applied.

Exit status: 0 when every change was applied, 1 when one was not, 2 for invalid arguments, schema or subscriptions.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .arguments.shared_arguments import printable, refuse
from .arguments.subscription_sources import REPORTED

if TYPE_CHECKING:
    from pathcast.joins import Client, JoinServer, Schema

_CHANGE = '{"change": "insert", "table": "Stocks", "row": {"symbol": "GOOG", "per": 52.1}}'


def joins(
    schema: Annotated[
        Path,
        typer.Argument(metavar="SCHEMA.TOML", help="TOML: joins = ['A.x = B.x'], and \\[tables] with A = 'x int, y'."),
    ],
    subscriptions: Annotated[
        Path,
        typer.Argument(
            metavar="SUBSCRIPTIONS",
            help="One SQL query per line; its id is the line number, and -- starts a comment. Use - for stdin.",
        ),
    ],
    changes: Annotated[
        Path, typer.Argument(metavar="CHANGES.JSONL", help="One change per line, as a JSON object; - for stdin.")
    ],
    scheme: Annotated[
        str | None, typer.Option(metavar="NAME", help="Message scheme, see docs/guides/joins.md. Default: ref-sj-clu+.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per message, with its bytes.")] = False,
    rows: Annotated[bool, typer.Option("--rows", help="At the end, print the rows of every subscription.")] = False,
) -> None:
    """Apply changes to tables; print each message that they cause: its size, recipients and content.

    A change is {"change": "insert", "table": …, "row": {…}}, or "delete", or "update" with "values": {…}.

    Exit status 0: every change was applied; 1: one was not; 2: invalid arguments, schema or subscriptions.

    Example: pathcast joins market.toml subscriptions.sql changes.jsonl

    Example: pathcast joins market.toml subscriptions.sql - --scheme enum-j --json < changes.jsonl
    """
    from pathcast.errors import ChangeError

    if str(subscriptions) == str(changes) == "-":
        refuse("subscriptions and changes cannot both come from stdin; give a file for one of them")
    server, clients = _prepared(_schema(schema), subscriptions, scheme)
    totals = [0, 0, 0]
    refused = 0
    for line, text in _lines(changes):
        try:
            messages = server.apply([_change(server.schema, text)])
        except (ChangeError, ValueError) as error:
            refused += 1
            typer.echo(f"{changes}, line {line}: {error}", err=True)
            continue
        for message in messages:
            takers = [id for id, client in clients.items() if client.receive(message)]
            totals = [totals[0] + 1, totals[1] + message.size, totals[2] + len(takers)]
            if as_json:
                _print({"line": line, "bytes": message.size, "to": takers, "message": message.encode().hex()})
            else:
                named = ", ".join(map(str, takers)) or "nobody"
                typer.echo(f"{line}: {message.size} bytes to {named}: {printable(str(message))}")
    _finish(clients, totals, as_json=as_json, rows=rows)
    if refused:
        raise typer.Exit(1)


def _finish(clients: "dict[int, Client]", totals: list[int], *, as_json: bool, rows: bool) -> None:
    from pathcast.joins.query import write_row

    for id, client in clients.items() if rows else ():
        found = [write_row(dict(zip(client.columns, row, strict=True))) for row in client.rows()]
        for row in sorted(found):
            typer.echo(f'{{"subscription": {id}, "row": {row}}}' if as_json else f"subscription {id}: {printable(row)}")
    messages, size, deliveries = totals
    typer.echo(f"{messages:,} messages, {size:,} bytes, {deliveries:,} deliveries", err=as_json)


def _print(one: dict[str, Any]) -> None:
    typer.echo(json.dumps(one, ensure_ascii=False))


def _prepared(schema: "Schema", file: Path, scheme: str | None) -> "tuple[JoinServer, dict[int, Client]]":
    """A server with all subscriptions, and a client for each, by line number."""
    from pathcast.errors import PathcastError
    from pathcast.joins import Client, JoinServer

    clients = {}
    try:
        server = JoinServer(schema, scheme) if scheme else JoinServer(schema)
    except PathcastError as error:
        refuse(f"invalid --scheme: {error}")
    invalid = []
    for line, text in _lines(file):
        if text.startswith("--"):
            continue
        try:
            clients[line] = Client(schema, server.subscribe(text, subscriber=line))
        except PathcastError as error:
            invalid.append(f"error: {file}, line {line}: {error}")
    if invalid:
        shown = invalid[:REPORTED] + [f"error: and {len(invalid) - REPORTED:,} more"] * (len(invalid) > REPORTED)
        typer.echo("\n".join(shown), err=True)
        raise typer.Exit(2)
    return server, clients


def _schema(file: Path) -> "Schema":
    from pathcast.errors import PathcastError
    from pathcast.joins.query import read_schema_file

    try:
        return read_schema_file(file).schema
    except PathcastError as error:
        refuse(str(error))


def _change(schema: "Schema", text: str) -> tuple[Any, ...]:
    """Parse a change for the server; raises `ValueError` if it is malformed."""
    try:
        given = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"the change is not valid JSON: {error}; write one JSON object per line") from None
    except RecursionError:
        raise ValueError("not a change: the JSON is nested too deeply; give rows of plain values") from None
    needed = {"change", "table", "row"}
    if not isinstance(given, dict) or not needed <= given.keys() <= {*needed, "values"}:
        raise ValueError(f"{_malformed(given, needed)}; expected {_CHANGE}, for an update also 'values'")
    rows = [_row(schema, given["table"], given[part]) for part in ("row", "values") if part in given]
    return given["change"], given["table"], *rows


def _malformed(given: Any, needed: set[str]) -> str:
    """Why a JSON value is not a change."""
    if not isinstance(given, dict):
        return "not a change: the line is not a JSON object"
    missing, unknown = sorted(needed - given.keys()), sorted(given.keys() - needed - {"values"})
    return f"not a change: {f'{missing[0]!r} is missing' if missing else f'unknown key {unknown[0]!r}'}"


def _row(schema: "Schema", table: Any, row: Any) -> Any:
    """Convert JSON values to the columns' types; the server rejects a row that does not fit the table."""
    from pathcast.joins.query import read_value

    if not isinstance(row, dict) or not isinstance(table, str) or table not in schema.columns:
        return row
    values = {}
    for name, value in row.items():
        kind = schema.kind(table, name) if name in schema.columns[table] else None
        try:
            values[name] = value if kind is None else read_value(kind, value)
        except ValueError as error:
            raise ValueError(f"invalid value of column {table}.{name}: {error}") from None
    return values


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers."""
    lines: Iterable[str] = _stdin() if str(file) == "-" else _read(file).split("\n")  # JSON may contain other line ends
    return ((number, line.strip()) for number, line in enumerate(lines, 1) if line.strip())


def _stdin() -> Iterator[str]:
    """The lines of stdin as they arrive; bytes that are not UTF-8 make their line fail later."""
    return (line.decode("utf-8-sig", "surrogateescape") for line in sys.stdin.buffer)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        refuse(f"cannot read {file}: {error.strerror}; check the path")
    except UnicodeDecodeError:
        refuse(f"the file {file} is not UTF-8; convert it to UTF-8")
