"""`pathcast generate`."""

import csv
import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from lxml import etree
from pyarrow import parquet
from typer.testing import CliRunner, Result

import pathcast
from pathcast.cli.arguments import subscription_writer as subscription_files
from pathcast.cli.generate_command import app
from pathcast.workloads import (
    DocumentOptions,
    SubscriptionOptions,
    generate_documents,
    generate_subscriptions,
    news_schema,
)


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def dtd(tmp_path: Path) -> Path:
    file = tmp_path / "some.dtd"
    file.write_text("<!ELEMENT r (a | b)*> <!ELEMENT a (#PCDATA)> <!ELEMENT b EMPTY> <!ATTLIST b x CDATA #IMPLIED>")
    return file


def test_documents_are_written_as_the_library_makes_them(tmp_path: Path) -> None:
    output = tmp_path / "new" / "folder"
    result = run("documents", output, "--count", 12, "--seed", 5, "--max-levels", 4, "--attribute-probability", 0.5)
    assert result.exit_code == 0
    written = [file.read_bytes() for file in sorted(output.iterdir())]
    assert written == list(
        generate_documents(news_schema(), 12, DocumentOptions(max_levels=4, attribute_probability=0.5), seed=5)
    )
    assert sorted(file.name for file in output.iterdir())[:2] == ["document-000001.xml", "document-000002.xml"]


def test_documents_come_from_a_given_dtd_and_root(tmp_path: Path, dtd: Path) -> None:
    assert run("documents", tmp_path / "r", "--dtd", dtd, "-n", 3).exit_code == 0
    assert run("documents", tmp_path / "a", "--dtd", dtd, "--root", "a", "-n", 3).exit_code == 0
    for name in "ra":
        assert {etree.parse(file).getroot().tag for file in (tmp_path / name).iterdir()} == {name}


def test_a_collection_can_be_made_in_parts(tmp_path: Path) -> None:
    assert run("documents", tmp_path / "whole", "-n", 6).exit_code == 0
    assert run("documents", tmp_path / "parts", "-n", 3).exit_code == 0
    assert run("documents", tmp_path / "parts", "-n", 3, "--start", 3, "--force").exit_code == 0
    whole, parts = (
        {file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in ("whole", "parts")
    )
    assert whole == parts


def test_words_can_be_asked_for(tmp_path: Path) -> None:
    run("documents", tmp_path / "news", "-n", 1, "--text", "words")
    assert len((etree.parse(tmp_path / "news/document-000001.xml").findtext("head/title") or "").split()) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["s.txt", "s.csv", "s.parquet", "s.txt.gz", "s.csv.gz"])
def test_every_format_reads_back_as_the_same_subscriptions(tmp_path: Path, name: str) -> None:
    output = tmp_path / "new" / name
    options = ("--count", 50, "--seed", 3, "--predicates", 2, "--nested", 1, "--distinct")
    assert run("subscriptions", output, *options).exit_code == 0
    expected = generate_subscriptions(
        news_schema(), 50, SubscriptionOptions(predicates=2, nested=1, distinct=True), seed=3
    )
    again = tmp_path / ("again-" + name)
    read = pathcast.Subscriptions.read(output)
    assert len(read) == 50
    assert run("subscriptions", again, *options).exit_code == 0
    assert again.read_bytes() == output.read_bytes()
    if name.endswith(".gz"):
        assert output.read_bytes()[4:8] == bytes(4), "a time in the header would make equal files differ"
    assert columns(output)["xpath"] == expected
    assert [file.name for file in output.parent.iterdir()] == [name]


def columns(file: Path) -> dict[str, list[object]]:
    if file.suffix == ".parquet":
        return dict(parquet.read_table(file).to_pydict())
    data = file.read_bytes()
    text = (gzip.decompress(data) if file.suffix == ".gz" else data).decode()
    if ".txt" in file.suffixes:
        return {"xpath": list(text.splitlines())}
    rows = list(csv.DictReader(text.splitlines()))
    return {name: [row[name] for row in rows] for name in rows[0]}


@pytest.mark.parametrize("name", ["s.csv", "s.parquet"])
def test_subscribers_are_written_where_there_is_a_column(tmp_path: Path, name: str) -> None:
    assert run("subscriptions", tmp_path / name, "-n", 40, "--readers", 3).exit_code == 0
    written = columns(tmp_path / name)
    assert set(written) == {"id", "xpath", "subscriber"}
    assert set(written["subscriber"]) == {"reader-001", "reader-002", "reader-003"}
    assert list(map(int, map(str, written["id"]))) == list(range(1, 41))


def test_a_match_rate_is_measured_on_a_folder_of_documents(tmp_path: Path, dtd: Path) -> None:
    sample = tmp_path / "sample"
    sample.mkdir()
    for number in range(9):
        (sample / f"{number}.xml").write_text("<r><b/></r>")
    (sample / "more").mkdir()
    (sample / "more" / "9.xml.gz").write_bytes(gzip.compress(b"<r><a>1</a></r>"))
    output = tmp_path / "s.txt"
    options = ("--dtd", dtd, "-n", 100, "--max-depth", 2, "--min-depth", 2, "--wildcard", 0, "--descendant", 0)
    assert run("subscriptions", output, *options, "--match-rate", 0.3, "--sample", sample).exit_code == 0
    counts = {path: output.read_text().splitlines().count(path) for path in ("/r/a", "/r/b")}
    assert counts == {"/r/a": 75, "/r/b": 25}


def test_operators_and_targets_may_be_repeated(tmp_path: Path) -> None:
    output = tmp_path / "s.txt"
    options = ("--predicates", 1, "--operator", "<=", "--operator", ">=", "--predicate-target", "attribute", "-n", 200)
    assert run("subscriptions", output, *options).exit_code == 0
    text = output.read_text()
    assert "<=" in text
    assert ">=" in text
    assert "text()" not in text
    assert "[@lang=" not in text


def test_nothing_is_overwritten_without_force(tmp_path: Path) -> None:
    folder, file = tmp_path / "documents", tmp_path / "s.txt"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    file.write_text("mine")
    for arguments in (("documents", folder, "-n", 1), ("subscriptions", file, "-n", 1)):
        refused = run(*arguments)
        assert refused.exit_code == 2
        assert "--force" in refused.stderr
    assert [each.name for each in folder.iterdir()] == ["mine.txt"]
    assert file.read_text() == "mine"
    assert run("documents", folder, "-n", 1, "--force").exit_code == 0
    assert run("subscriptions", file, "-n", 1, "--force").exit_code == 0
    assert (folder / "mine.txt").read_text() == "mine"
    assert file.read_text().startswith("/")


def test_an_empty_folder_may_be_filled(tmp_path: Path) -> None:
    assert run("documents", tmp_path, "-n", 1).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("documents", "{tmp}/d", "--count", "-1"), "--count"),
        (("documents", "{tmp}/d", "--attribute-probability", "2"), "--attribute-probability"),
        (("documents", "{tmp}/d", "--dtd", "{tmp}/missing.dtd"), "--dtd"),
        (("documents", "{tmp}/d", "--dtd", "{tmp}/bad.dtd"), "bad.dtd: line 2, column 15: the DTD is malformed"),
        (("documents", "{tmp}/d", "--root", "nobody"), "does not declare the root element 'nobody'"),
        (("documents", "{tmp}/bad.dtd"), "bad.dtd is a file; give a folder"),
        (("documents", "{tmp}/d", "--text", "verse"), "--text"),
        (("documents", "{tmp}/d", "--largest", "9999999999"), "--largest"),
        (("subscriptions", "{tmp}/s.zip"), "s.zip: unknown suffix; use one of .txt, .csv, .parquet"),
        (("subscriptions", "{tmp}/s.txt", "--readers", "3"), "a text file cannot hold subscribers"),
        (("subscriptions", "{tmp}/s.txt", "--wildcard", "2"), "--wildcard"),
        (("subscriptions", "{tmp}/s.txt", "--operator", "!="), "--operator"),
        (("subscriptions", "{tmp}/s.txt", "--min-depth", "9"), "min_depth <= max_depth"),
        (
            ("subscriptions", "{tmp}/s.txt", "--predicates", "1", "--predicate-probability", "0.5"),
            "cannot be combined; give only one",
        ),
        (
            ("subscriptions", "{tmp}/s.txt", "--match-rate", "0.1", "--sample", "{tmp}/empty"),
            "the sample has no documents; give at least one",
        ),
        (("subscriptions", "{tmp}/s.txt", "--sample", "{tmp}/empty"), "--sample needs --match-rate"),
        (("subscriptions", "{tmp}/s.txt", "--match-rate", "0.1", "--sample", "{tmp}/torn"), "document 1 of the sample"),
        (("subscriptions", "{tmp}/folder.txt"), "folder.txt is a folder"),
    ],
)
def test_bad_arguments_are_refused_with_status_2_and_nothing_is_written(
    tmp_path: Path, arguments: tuple[str, ...], reason: str
) -> None:
    (tmp_path / "bad.dtd").write_text("<!ELEMENT a EMPTY>\n<!ELEMENT b (c")
    for folder in ("empty", "torn", "folder.txt"):
        (tmp_path / folder).mkdir()
    (tmp_path / "torn/1.xml").write_text("<a>")
    before = sorted(tmp_path.rglob("*"))
    result = run(*(argument.format(tmp=tmp_path) for argument in arguments))
    assert result.exit_code == 2
    assert reason in " ".join(result.stderr.replace("│", " ").split())
    assert sorted(tmp_path.rglob("*")) == before


def test_a_request_that_cannot_be_met_is_refused_and_leaves_no_file(tmp_path: Path, dtd: Path) -> None:
    result = run("subscriptions", tmp_path / "s.txt", "--dtd", dtd, "--distinct", "--count", 1000)
    assert result.exit_code == 2
    assert "of 1,000 distinct subscriptions" in result.stderr
    assert not (tmp_path / "s.txt").exists()


def test_what_cannot_be_written_ends_with_status_1_and_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    file = tmp_path / "s.txt"
    file.write_text("old")
    monkeypatch.setattr(subscription_files, "_write_text", fail)
    result = run("subscriptions", file, "-n", 1, "--force")
    assert result.exit_code == 1
    assert "No space left" in result.stderr
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


@pytest.fixture
def in_a_pipe(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def start(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, **settings, "PYTHONPATH": os.pathsep.join(sys.path)}
        code = "from pathcast.cli.generate_command import app; app()"
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env=environment, cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip

    return start


@pytest.mark.slow
def test_it_is_quiet_in_a_pipe_and_talks_on_a_terminal(
    in_a_pipe: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    quiet = in_a_pipe("documents", "d", "-n", "3")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
    quiet = in_a_pipe("subscriptions", "s.txt", "-n", "3")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
    talking = in_a_pipe("subscriptions", "t.txt", "-n", "3", FORCE_COLOR="1")
    assert (talking.returncode, talking.stdout) == (0, "")
    assert "3/3" in talking.stderr
    assert "3 subscriptions in t.txt" in talking.stderr


@pytest.mark.parametrize("command", ["documents", "subscriptions"])
def test_help_names_every_option_with_an_example(command: str) -> None:
    shown = " ".join(run(command, "--help").stdout.split())
    assert "--seed" in shown
    assert "--force" in shown
    assert f"Example: pathcast generate {command}" in shown


@pytest.mark.slow
def test_help_loads_no_generator() -> None:
    code = (
        "import sys; import pathcast.cli.generate_command; "
        "print([m for m in ('lxml', 'numpy', 'pyarrow') if m in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
