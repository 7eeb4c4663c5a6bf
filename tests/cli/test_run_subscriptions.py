"""`pathcast run` and a small table of subscriptions: checked by a dry run, and published, without Spark."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import pathcast
from pathcast.cli import work_on_spark as command
from pathcast.cli.app import app
from pathcast.spark.publishing.index_versions import version_folder, versions
from pathcast.store.snapshot import MANIFEST

PIPELINE = """
[source]
format = "files"
path = "feed"
[subscriptions]
index = "index"
table = "wanted.csv"
{more}
[deliveries]
path = "deliveries"
"""
HEADING = "id,subscriber,xpath"
ROWS = [f"{number},reader,/a/b{number}[@c]" for number in range(1, 13)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    def started(*_):
        raise AssertionError("Spark was started")

    monkeypatch.setattr(command, "_session", started)
    (tmp_path / "feed").mkdir()
    return tmp_path


def ran(folder: Path, *options: str, rows: list[str] | None = None, more: str = "") -> tuple[int, str, str]:
    """Exit status and output of a run."""
    (folder / "pipeline.toml").write_text(PIPELINE.format(more=more))
    if rows is not None:
        (folder / "wanted.csv").write_text("\n".join([HEADING, *rows, ""]))
    answer = CliRunner().invoke(app, ["run", str(folder / "pipeline.toml"), *options])
    raised = "" if answer.exception is None or isinstance(answer.exception, SystemExit) else str(answer.exception)
    return answer.exit_code, answer.stdout, answer.stderr + raised


def kept(folder: Path, version: int) -> list[int]:
    return [one.id for one in pathcast.open_index(version_folder(folder / "index", version)).subscriptions]


def test_publishing_reports_the_difference_from_the_version_before(folder):
    assert ran(folder, "--publish", rows=ROWS) == (
        0, "", "subscriptions: version 1: 12 subscriptions, 12 added, 0 removed, 0 changed, 0 unchanged, 0 invalid\n"
    )  # fmt: skip
    rows = [*ROWS[2:-1], "12,reader,/changed", "20,new,//new"]
    assert ran(folder, "--publish", rows=rows)[2] == (
        "subscriptions: version 2: 11 subscriptions, 1 added, 2 removed, 1 changed, 9 unchanged, 0 invalid\n"
    )
    assert kept(folder, 2) == [*range(3, 13), 20]
    assert pathcast.open_index(version_folder(folder / "index", 2)).match("<changed/>").subscribers == ["reader"]


def test_a_table_that_changes_nothing_publishes_nothing(folder):
    ran(folder, "--publish", rows=ROWS)
    assert ran(folder, "--publish")[2] == "subscriptions: version 1, unchanged: 12 subscriptions, 0 invalid\n"
    assert versions(folder / "index") == [1]
    assert "version 2: 12 subscriptions, 0 added" in ran(folder, "--publish", more='namespaces = { n = "urn:n" }')[2]


def test_a_damaged_version_is_published_anew(folder):
    ran(folder, "--publish", rows=ROWS)
    for file in version_folder(folder / "index", 1).rglob("*"):
        if file.is_file() and file.name != MANIFEST:
            file.write_bytes(b"")
    assert "version 2: 12 subscriptions, 12 added, 0 removed" in ran(folder, "--publish")[2]
    assert kept(folder, 2) == [*range(1, 13)]


def test_a_dry_run_checks_expressions_and_prefixes(folder):
    rows = [*ROWS, "13,ada,//n:a", "14,ada,//n:b", "15,ada,//m:b", "16,ada,//[", "17,ada,//a[middle()]"]
    status, out, errors = ran(folder, "--dry-run", rows=rows)
    assert status == 1
    assert "subscriptions  12 valid, 5 invalid; 12 added, 0 removed, 0 changed, 0 unchanged\n" in out
    assert errors.splitlines()[:5] == [
        "5 of 17 subscriptions are invalid:",
        "  2 × the prefix 'n:' is not declared, such as id 13, column 3: //n:a",
        "  1 × the prefix 'm:' is not declared, such as id 15, column 3: //m:b",
        "  1 × expected a step, got '[', such as id 16, column 3: //[",
        "  1 × other reasons",
    ]
    assert 'key subscriptions.namespaces: namespaces = { m = "http://…", n = "http://…" }' in errors
    assert "would publish nothing" not in errors
    assert not (folder / "index").exists()
    declared = ran(folder, "--dry-run", rows=rows[:-2], more='namespaces = { m = "urn:m", n = "urn:n" }')
    assert declared[0] == 0 and declared[2] == ""
    assert "15 valid, 0 invalid" in declared[1]


def test_a_dry_run_says_when_it_has_not_checked_the_table(folder):
    status, out, _ = ran(folder, "--dry-run", rows=ROWS, more='table_format = "orc"')
    assert status == 0
    assert "subscriptions  not checked: format 'orc' needs Spark; the run checks the table with Spark\n" in out


@pytest.mark.slow
def test_mostly_invalid_subscriptions_end_the_run_before_anything_is_published(folder):
    ran(folder, "--publish", rows=ROWS)
    rows = ["1,ada,//a", "2,ada,//n:a", "3,ada,//n:b"]
    assert "the run would publish nothing and end" in ran(folder, "--dry-run", rows=rows)[2]
    for option in (["--publish"], []):
        status, _, errors = ran(folder, *option, more='invalid = "invalid"')
        assert status == 1
        assert (
            "nothing published: 2 of 3 subscriptions are invalid, more than subscriptions.max_invalid = 0.5" in errors
        )
        assert "  2 × the prefix 'n:' is not declared, such as id 2, column 3: //n:a\n" in errors
        assert f"all invalid subscriptions, with reasons: {folder / 'invalid'}\n" in errors
    assert [row["id"] for row in pq.read_table(folder / "invalid").to_pylist()] == [2, 3]
    assert versions(folder / "index") == [1]
    status, _, errors = ran(folder, "--publish", more="max_invalid = 1")
    assert status == 0
    assert "version 2: 1 subscriptions, 0 added, 11 removed, 1 changed, 0 unchanged, 2 invalid" in errors
    assert "  2 × the prefix 'n:' is not declared" in errors


def test_a_folder_that_cannot_be_written_is_an_error(folder):
    (folder / "index").write_text("in the way")
    status, _, errors = ran(folder, "--publish", rows=ROWS)
    assert status == 1
    assert errors.startswith("error: ") and "the subscriptions cannot be published: " in errors


def test_a_table_without_expressions_is_an_error(folder):
    (folder / "wanted.csv").write_text("id;subscriber;xpath\n1;ada;//a\n")
    for option in ("--publish", "--dry-run"):
        status, _, errors = ran(folder, option)
        assert status != 0
        assert (
            "the subscriptions have no column 'xpath' (the columns are id;subscriber;xpath); "
            "add or rename a column; the file seems to be separated by ';': use commas"
        ) in errors
        assert errors.strip().endswith("separated by ';': use commas")


def test_a_pipeline_may_accept_no_invalid_subscription(folder):
    status, _, errors = ran(folder, "--publish", rows=[*ROWS, "13,reader,//["], more="max_invalid = 0")
    assert status == 1
    assert "nothing published: 1 of 13 subscriptions is invalid, more than subscriptions.max_invalid = 0" in errors
    assert versions(folder / "index") == []
    assert ran(folder, "--publish", rows=ROWS, more="max_invalid = 0")[0] == 0


def test_the_folder_of_invalid_subscriptions_may_be_a_link(folder):
    (folder / "elsewhere").mkdir()
    (folder / "invalid").symlink_to(folder / "elsewhere")
    for _ in range(2):
        status, _, errors = ran(folder, "--publish", rows=[*ROWS, "13,reader,//["], more='invalid = "invalid"')
        assert status == 0, errors
    assert [row["id"] for row in pq.read_table(folder / "elsewhere").to_pylist()] == [13]
    assert (folder / "invalid").is_symlink()
