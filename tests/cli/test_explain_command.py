import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

import pathcast
from pathcast.cli import explain_command as room
from pathcast.cli.explain_command import explain

app = typer.Typer()
app.command()(explain)

STORY = "<news>\n  <p id='7'/>\n  <p id='8'/>\n</news>\n"


class Outcome:
    def __init__(self, *arguments: str | Path | int, stdin: bytes | None = None) -> None:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        self.status, self.out, self.err = result.exit_code, result.stdout, result.stderr


@pytest.fixture
def subscriptions(tmp_path: Path) -> Path:
    file = tmp_path / "subscriptions.txt"
    file.write_text("/news/p\n\n//p[@id = 9]\n")
    return file


@pytest.fixture
def story(tmp_path: Path) -> Path:
    file = tmp_path / "story.xml"
    file.write_text(STORY)
    return file


def test_a_match_is_shown_with_status_0(subscriptions: Path, story: Path) -> None:
    outcome = Outcome(subscriptions, 1, story)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.splitlines() == [
        "subscription 1 matches: /news/p",
        "  ✓ /news  /news, line 1, column 1",
        "  ✓ /p  /news/p[1], line 2, column 3; /news/p[2], line 3, column 3",
    ]


def test_a_miss_is_shown_with_status_1(subscriptions: Path, story: Path) -> None:
    outcome = Outcome(subscriptions, 3, story)
    assert (outcome.status, outcome.err) == (1, "")
    assert outcome.out.splitlines() == [
        "subscription 3 does not match: //p[@id = 9]",
        "  ✗ //p  2 tried",
        "    ✗ [@id = 9]  `@id` is 8, wanted 9: /news/p[2]/@id, line 3, column 3",
        "nearest miss: `@id` is 8, wanted 9, line 3",
    ]


def test_a_dash_is_a_document_on_stdin(subscriptions: Path, story: Path) -> None:
    assert Outcome(subscriptions, 3, "-", stdin=STORY.encode()).out == Outcome(subscriptions, 3, story).out


def test_json_has_everything(subscriptions: Path, story: Path) -> None:
    outcome = Outcome(subscriptions, 3, story, "--json")
    shown = json.loads(outcome.out)
    matcher = pathcast.Subscriptions.read(subscriptions).compile(engine="reference")
    assert outcome.status == 1
    assert shown == matcher.explain(STORY, 3).as_dict()
    assert shown["nearest"] == "`@id` is 8, wanted 9, line 3"


def test_an_index_will_do(subscriptions: Path, story: Path, tmp_path: Path) -> None:
    pathcast.Subscriptions.read(subscriptions).compile().save(tmp_path / "index")
    for number in (1, 3):
        from_index, from_file = Outcome(tmp_path / "index", number, story), Outcome(subscriptions, number, story)
        assert (from_index.status, from_index.out) == (from_file.status, from_file.out)


def test_prefixes_stand_for_the_namespaces_given(tmp_path: Path) -> None:
    file = tmp_path / "subscriptions.txt"
    file.write_text("//f:a\n")
    document = b"<a xmlns='urn:f'/>"
    assert "/f:a, line 1" in Outcome(file, 1, "-", "--namespaces", "f=urn:f", stdin=document).out
    assert Outcome(file, 1, "-", "--namespaces", "f=urn:g", stdin=document).status == 1
    assert "/a, line 1" in Outcome(file, 1, "-", "--namespaces", "ignore", stdin=document).out


def test_an_index_has_its_own_namespaces(subscriptions: Path, story: Path, tmp_path: Path) -> None:
    pathcast.Subscriptions.read(subscriptions).compile().save(tmp_path / "index")
    outcome = Outcome(tmp_path / "index", 1, story, "--namespaces", "f=urn:f")
    assert (outcome.status, outcome.out) == (2, "")
    assert "omit --namespaces" in outcome.err


def test_an_unknown_id_has_status_2_and_is_told_what_there_is(subscriptions: Path, story: Path) -> None:
    outcome = Outcome(subscriptions, 2, story)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err == f"error: {subscriptions}: unknown subscription id 2; the known ids are 1, 3\n"


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "No such file"), ("<news><p></news>", "line 1, column"), ("", "empty")]
)
def test_a_document_that_cannot_be_read_has_status_2(
    subscriptions: Path, tmp_path: Path, content: str | None, reason: str
) -> None:
    document = tmp_path / "bad.xml"
    if content is not None:
        document.write_text(content)
    outcome = Outcome(subscriptions, 1, document)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith("error: ") and reason in outcome.err and outcome.err.count(str(document)) == 1


def test_bad_subscriptions_have_status_2(tmp_path: Path, story: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_text("//a\n//a/!=\n")
    (tmp_path / "empty").mkdir()
    for path, reason in (
        (bad, "line 2, column 5"),
        (tmp_path / "absent.txt", "no such file"),
        (tmp_path / "empty", ""),
    ):
        outcome = Outcome(path, 1, story)
        assert (outcome.status, outcome.out) == (2, "")
        assert outcome.err.startswith("error: ") and str(path) in outcome.err and reason in outcome.err


USAGE = "usage: pathcast explain SUBSCRIPTIONS ID DOCUMENT, or pathcast explain -e XPATH DOCUMENT"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["story.xml", "1"], f"ID must be a number, got 'story.xml'; {USAGE}"),
        (["1_0", "story.xml"], f"ID must be a number, got '1_0'; {USAGE}"),
        (["٣", "story.xml"], f"ID must be a number, got '٣'; {USAGE}"),
        (["story.xml"], f"ID must be a number, got 'story.xml'; {USAGE}"),
        (["1"], f"no document given; {USAGE}"),
        ([], f"no ID and no document given; {USAGE}"),
        (
            ["1", "story.xml", "-e", "//p"],
            "-e takes one document as the only argument, got 3 arguments; usage: pathcast explain -e XPATH DOCUMENT",
        ),
    ],
    ids=str,
)
def test_bad_arguments_have_status_2_and_are_told_the_order(
    subscriptions: Path, arguments: list[str], reason: str
) -> None:
    outcome = Outcome(subscriptions, *arguments)
    assert (outcome.status, outcome.out, outcome.err) == (2, "", f"error: {reason}\n")


def test_no_arguments_and_too_many_have_status_2(subscriptions: Path, story: Path) -> None:
    assert Outcome().err == f"error: no subscriptions given; {USAGE}\n"
    assert Outcome("-e", "//p").err == f"error: no document given; {USAGE}\n"
    assert Outcome(subscriptions, 1, story, story).status == 2


def test_expressions_take_the_place_of_a_file(story: Path) -> None:
    one = Outcome("-e", "//p[@id = 9]", story)
    assert (one.status, one.out.splitlines()[0]) == (1, "subscription 1 does not match: //p[@id = 9]")
    both = Outcome("-e", "//p", "--expression", "//q", story, "--json")
    assert both.status == 1
    assert [json.loads(line)["matches"] for line in both.out.splitlines()] == [True, False]
    assert Outcome("-e", "//p", "-e", "//*", story).status == 0


def test_an_xpath_in_place_of_a_file_is_told_the_option(story: Path) -> None:
    outcome = Outcome("//p", story)
    assert (outcome.status, outcome.err) == (
        2,
        "error: cannot read //p: no such file; this looks like an XPath; use -e '//p'\n",
    )


def test_a_compressed_document_is_read(subscriptions: Path, tmp_path: Path) -> None:
    (tmp_path / "story.xml.gz").write_bytes(gzip.compress(STORY.encode()))
    assert Outcome(subscriptions, 1, tmp_path / "story.xml.gz").status == 0


def test_invalid_subscriptions_are_skipped_when_asked_for(tmp_path: Path, story: Path) -> None:
    (tmp_path / "some.txt").write_text("//p\n//p/!=\n")
    assert Outcome(tmp_path / "some.txt", 1, story).status == 2
    assert Outcome(tmp_path / "some.txt", 1, story, "--skip-invalid").status == 0


def test_a_terminal_gets_colours_and_the_same_words(subscriptions: Path) -> None:
    explanation = pathcast.Subscriptions.read(subscriptions).compile(engine="reference").explain(STORY, 3)
    coloured, plain = io.StringIO(), io.StringIO()
    room._print_coloured(explanation, Console(file=coloured, force_terminal=True, width=40, color_system="standard"))
    room._print_coloured(explanation, Console(file=plain, width=40))
    assert "\x1b[" in coloured.getvalue()
    assert plain.getvalue() == f"{explanation}\n"


def test_nothing_in_a_document_acts_on_the_terminal(tmp_path: Path) -> None:
    file = tmp_path / "subscriptions.csv"
    file.write_text('id,xpath,subscriber\n1,//a[. = 5],"a\x1b[31mda"\n')
    outcome = Outcome(file, 1, "-", stdin="<a>[red]\u009b31m</a>".encode())
    assert "\x1b" not in outcome.out and "\u009b" not in outcome.out
    assert "`a` is '[red]\\x9b31m', not a number, wanted 5" in outcome.out


@pytest.mark.slow
def test_a_stream_that_cannot_write_marks_gets_them_escaped(subscriptions: Path, story: Path) -> None:
    program = "from pathcast.cli.app import main; main()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(
        [sys.executable, "-c", program, "explain", str(subscriptions), "1", str(story)],
        capture_output=True,
        env=environment,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\u2713 /news" in done.stdout


def test_help_shows_an_example() -> None:
    assert "Example: pathcast explain subscriptions.txt" in Outcome("--help").out
