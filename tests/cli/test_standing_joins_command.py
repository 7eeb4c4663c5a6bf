"""`pathcast joins`: messages, rows and totals; errors and their exit status."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from pathcast.cli.standing_joins_command import joins
from pathcast.joins import SCHEMES
from pathcast.messages import decode

app = typer.Typer()
app.command()(joins)

SCHEMA = """
joins = ["Stocks.symbol = Reviews.symbol"]
[tables]
Stocks = "symbol string, per float, day date, logo bytes"
Reviews = "symbol string, rating float"
[payloads]
Stocks = "logo"
"""
SUBSCRIPTIONS = (
    "select * from Stocks natural join Reviews where per between 45 and 70 and rating >= 6\n\n"
    "select * from Stocks where day >= date '2026-01-01'\n"
)
GOOG = {"symbol": "GOOG", "per": 51.7, "day": "2026-01-31", "logo": "AAEC"}
CHANGES = [
    {"change": "insert", "table": "Reviews", "row": {"symbol": "GOOG", "rating": 7}},
    {"change": "insert", "table": "Stocks", "row": GOOG},
    {"change": "update", "table": "Stocks", "row": GOOG, "values": {"day": "2025-12-31"}},
]


class Outcome:
    def __init__(self, folder: Path, *options: str, changes: str | None = None, **files: str) -> None:
        text = "".join(json.dumps(change) + "\n" for change in CHANGES)
        for name, content in {"schema": SCHEMA, "subscriptions": SUBSCRIPTIONS, "changes": text, **files}.items():
            (folder / name).write_text(content)
        names = [str(folder / name) for name in ("schema", "subscriptions", "changes")]
        if changes is not None:
            names[2] = "-"
        result = CliRunner().invoke(app, [*names, *options], input=(changes or "").encode("utf-8", "surrogateescape"))
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        self.status, self.out, self.err = result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_ends_with_the_same_rows(tmp_path: Path, scheme: str) -> None:
    outcome = Outcome(tmp_path, "--scheme", scheme, "--rows")
    assert (outcome.status, outcome.err) == (0, "")
    *messages, row, totals = outcome.out.splitlines()
    assert messages and all(message.startswith(("2: ", "3: ", "1: ")) for message in messages)
    # The second subscription, of line 3, has lost the row.
    expected = {**GOOG, "day": "2025-12-31", "rating": 7.0}
    prefix = "subscription 1: "
    assert row.startswith(prefix) and json.loads(row[len(prefix) :]) == expected
    assert totals.startswith(f"{len(messages)} messages, ")


def test_json_has_the_bytes_and_who_takes_them(tmp_path: Path) -> None:
    outcome = Outcome(tmp_path, "--json", "--rows", changes=json.dumps(CHANGES[0]) + "\n" + json.dumps(CHANGES[1]))
    assert outcome.status == 0 and "messages" in outcome.err
    objects = [json.loads(line) for line in outcome.out.splitlines()]
    messages = [one for one in objects if "message" in one]
    assert all(len(bytes.fromhex(one["message"])) == one["bytes"] for one in messages)
    assert any(decode(bytes.fromhex(one["message"])).get("logo") == b"\x00\x01\x02" for one in messages)
    assert {id for one in messages for id in one["to"]} == {1, 3}
    assert [one["subscription"] for one in objects if "row" in one] == [1, 3]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not valid JSON"),
        pytest.param("[" * 100_000, "not a change", id="deep"),
        pytest.param('{"change": "\udcff"}', "not a change: 'row' is missing; expected", id="bytes"),
        ('{"change": "insert", "table": "Stocks"}', "not a change: 'row' is missing; expected"),
        ('{"change": "insert", "table": ["Stocks"], "row": {}}', "must be a string, got ['Stocks']"),
        (
            '{"change": "update", "table": "Reviews", "row": {"symbol": "X", "rating": 1}}',
            "an update without new values",
        ),
        ('{"change": "insert", "table": "Nope", "row": {}}', "unknown table 'Nope'"),
        ('{"change": "delete", "table": "Reviews", "row": {"symbol": "X", "rating": 1}}', "has no row"),
        (
            '{"change": "insert", "table": "Reviews", "row": {"symbol": "X", "rating": "high"}}',
            "Reviews.rating: expected a float",
        ),
        ('{"change": "insert", "table": "Reviews", "row": {"symbol": null, "rating": 1}}', "must not be NULL"),
        ('{"change": "insert", "table": "Reviews", "row": {"symbol": "X", "nope": 1}}', "no column 'nope'"),
        ('{"change": "insert", "table": "Reviews", "row": 5}', "a row must map columns to values"),
        ('{"change": "upsert", "table": "Reviews", "row": {"symbol": "X", "rating": 1}}', "got 'upsert'"),
    ],
)
def test_a_change_that_can_not_be_made_is_told_and_the_others_go_on(tmp_path: Path, line: str, reason: str) -> None:
    text = "\n".join([line, *map(json.dumps, CHANGES)])
    outcome = Outcome(tmp_path, "--rows", changes=text)
    assert outcome.status == 1 and "line 1: " in outcome.err and reason in outcome.err
    assert "subscription 1: " in outcome.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "options", "reason"),
    [
        ({"schema": "tables = 5"}, [], "schema, line 1: tables: must be a table of texts, got 5"),
        ({"schema": "joins = []"}, [], "schema: tables: is missing: For each table, its columns"),
        (
            {"schema": "[tables]\nA = 'x'\n[joints]"},
            [],
            "schema, line 3: joints: unknown key; did you mean joins?",
        ),
        ({"schema": "[tables"}, [], "schema: is not valid TOML: "),
        ({"schema": "joins = ['A.x']\n[tables]\nA = 'x'"}, [], "a join must read"),
        ({"schema": "[tables]\nA = 5"}, [], "schema, line 1: tables: must be a table of texts, got {'A': 5}"),
        ({"subscriptions": "select * from Stocks\nselect x"}, [], "subscriptions, line 2: "),
        ({}, ["--scheme", "nope"], "unknown scheme 'nope'"),
    ],
)
def test_what_is_wrong_from_the_start_ends_with_status_2(
    tmp_path: Path, files: dict[str, str], options: list[str], reason: str
) -> None:
    outcome = Outcome(tmp_path, *options, **files)
    assert outcome.status == 2 and outcome.err.startswith("error: ") and reason in outcome.err and not outcome.out


def test_all_bad_subscriptions_are_reported_and_comments_are_skipped(tmp_path: Path) -> None:
    commented = "-- stocks\n" + SUBSCRIPTIONS
    assert "subscription 2: " in Outcome(tmp_path, "--rows", subscriptions=commented).out
    outcome = Outcome(tmp_path, subscriptions="select x\n" * 21 + "select * from Stocks\nselect y\n")
    assert (outcome.status, outcome.out) == (2, "")
    told = [line for line in outcome.err.splitlines() if line.startswith("error: ")]
    file = tmp_path / "subscriptions"
    assert [line.split(": ")[1] for line in told[:-1]] == [f"{file}, line {number}" for number in range(1, 21)]
    assert told[-1] == "error: and 2 more"


def test_a_line_ends_where_json_says_and_a_terminal_is_not_acted_on(tmp_path: Path) -> None:
    row = {"symbol": "G\x1b[1m\u2028", "rating": 7}
    line = json.dumps({"change": "insert", "table": "Reviews", "row": row}, ensure_ascii=False)
    outcome = Outcome(tmp_path, "--rows", changes="\ufeff" + line, subscriptions="\ufeffselect * from Reviews\n")
    assert (outcome.status, outcome.err) == (0, "")
    assert "G·[1m·" in outcome.out and "\x1b" not in outcome.out
    (tmp_path / "changes").write_text("\ufeff" + line)
    result = CliRunner().invoke(
        app, [str(tmp_path / one) for one in ("schema", "subscriptions", "changes")] + ["--rows"]
    )
    assert (result.exit_code, result.stdout) == (0, outcome.out)


def test_stdin_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "schema").write_text(SCHEMA)
    result = CliRunner().invoke(app, [str(tmp_path / "schema"), "-", "-"], input=SUBSCRIPTIONS)
    assert result.exit_code == 2 and "cannot both come from stdin" in result.stderr


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [str(tmp_path / name) for name in ("none", "b", "c")])
    assert result.exit_code == 2 and "none: cannot be read: No such file" in result.stderr
