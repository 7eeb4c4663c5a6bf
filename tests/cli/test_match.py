import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from pathcast.cli import match as room
from pathcast.cli.match import match
from pathcast.cli.output import READER_GONE
from pathcast.matching import Subscriptions
from pathcast.spark.versions import publish

app = typer.Typer()
app.command()(match)

SCRIPT = "from pathcast.cli.app import main; main()"


class Outcome:
    def __init__(self, *arguments: str | Path, stdin: bytes | None = None) -> None:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        self.status, self.out, self.err = result.exit_code, result.stdout, result.stderr

    @property
    def rows(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def subscriptions(tmp_path: Path) -> Path:
    file = tmp_path / "subscriptions.txt"
    file.write_text("/news/title\n\n//p[@lede='true']\n//hl2\n")
    return file


@pytest.fixture
def stories(tmp_path: Path) -> Path:
    folder = tmp_path / "stories"
    folder.mkdir()
    (folder / "b.xml").write_text("<news><p lede='true'/></news>")
    (folder / "a.xml").write_text("<news><title/><body><hl2/></body></news>")
    (folder / "notes.txt").write_text("no document")
    return folder


def test_json_gives_an_object_per_document_with_ids_by_line(subscriptions: Path, stories: Path) -> None:
    one, other = stories / "a.xml", stories / "b.xml"
    outcome = Outcome(subscriptions, other, one, "--format", "json")
    assert outcome.rows == [{"document": str(other), "matches": [3]}, {"document": str(one), "matches": [1, 4]}]
    assert (outcome.status, outcome.err) == (0, "")


def test_a_folder_means_all_xml_files_in_it_sorted(subscriptions: Path, stories: Path) -> None:
    rows = Outcome(subscriptions, stories, "--format", "json").rows
    assert [row["document"] for row in rows] == [str(stories / "a.xml"), str(stories / "b.xml")]


def test_a_folder_without_documents_is_pointed_out(subscriptions: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    outcome = Outcome(subscriptions, tmp_path / "empty", "--format", "json")
    assert (outcome.status, outcome.out) == (0, "")
    assert "no *.xml in" in outcome.err


def test_a_dash_reads_one_document_from_stdin(subscriptions: Path, stories: Path) -> None:
    outcome = Outcome(subscriptions, "-", stories / "b.xml", "--format", "json", stdin=b"<news><hl2/></news>")
    assert [(row["document"], row["matches"]) for row in outcome.rows] == [("-", [4]), (str(stories / "b.xml"), [3])]


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "No such file"), ("<news><title></news>", "line 1, column"), ("", "empty")]
)
def test_a_document_that_cannot_be_read_is_a_row_in_its_place_and_status_1(
    subscriptions: Path, stories: Path, content: str | None, reason: str
) -> None:
    bad = stories / "bad.xml"
    if content is not None:
        bad.write_text(content)
    outcome = Outcome(subscriptions, stories / "a.xml", bad, stories / "b.xml", "--format", "json")
    assert outcome.status == 1
    assert [set(row) for row in outcome.rows] == [
        {"document", "matches"},
        {"document", "error"},
        {"document", "matches"},
    ]
    assert outcome.rows[1]["document"] == str(bad)
    assert reason in str(outcome.rows[1]["error"])


def test_text_shows_count_ids_expressions_and_subscribers(tmp_path: Path, stories: Path) -> None:
    file = tmp_path / "subscriptions.csv"
    file.write_text("id,xpath,subscriber\n7,//hl2,ada\n8,/news/title,\n9,//none,bob\n")
    outcome = Outcome(file, stories)
    assert outcome.status == 0
    assert outcome.out.splitlines() == [
        f"{stories / 'a.xml'}: 2 matches",
        "           7  //hl2  ada",
        "           8  /news/title",
        f"{stories / 'b.xml'}: no match",
    ]


def test_text_says_why_a_document_could_not_be_read(subscriptions: Path, tmp_path: Path) -> None:
    outcome = Outcome(subscriptions, tmp_path / "absent.xml")
    assert outcome.status == 1
    assert outcome.out.startswith(f"{tmp_path / 'absent.xml'}: error: cannot read the file")


def test_a_long_list_of_matches_is_cut_with_a_count_unless_all_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "many.txt"
    file.write_text("//hl2\n" * 1212)
    cut = Outcome(file, "-", stdin=b"<hl2/>").out.splitlines()
    assert cut[0] == "-: 1,212 matches"
    assert len(cut) == 1 + room.SHOWN + 1
    assert cut[-1].split() == ["…", "and", "1,202", "more", "(--all", "shows", "them)"]
    assert len(Outcome(file, "-", "--all", stdin=b"<hl2/>").out.splitlines()) == 1 + 1212


def test_json_is_never_cut(tmp_path: Path) -> None:
    file = tmp_path / "many.txt"
    file.write_text("//hl2\n" * 50)
    assert Outcome(file, "-", "--format", "json", stdin=b"<hl2/>").rows[0]["matches"] == list(range(1, 51))


def test_text_from_outside_cannot_act_on_the_terminal(tmp_path: Path) -> None:
    file = tmp_path / "subscriptions.csv"
    file.write_text('xpath,subscriber\n//hl2,"a\x1b[31mda"\n')
    assert "\x1b" not in Outcome(file, "-", stdin=b"<hl2/>").out


def test_prefixes_stand_for_the_namespaces_given(tmp_path: Path) -> None:
    file = tmp_path / "subscriptions.txt"
    file.write_text("//f:a\n//g:a\n")
    document = b"<a xmlns='urn:f'/>"

    def matched(*options: str) -> object:
        return Outcome(file, "-", "--format", "json", *options, stdin=document).rows[0]["matches"]

    assert matched("--namespaces", "f=urn:f", "--namespaces", "g=urn:g") == [1]
    assert matched("--namespaces", "f=urn:g g=urn:f") == [2]
    assert matched("--namespaces", "ignore") == [1, 2]


@pytest.mark.parametrize(
    "options",
    [
        ["--namespaces", "f"],
        ["--namespaces", "ignore f=urn:f"],
        ["--namespaces", "f=urn:f f=urn:g"],
        ["--engine", "warp"],
        ["--format", "xml"],
        [],
    ],
    ids=" ".join,
)
def test_bad_arguments_have_status_2_and_print_no_rows(subscriptions: Path, options: list[str]) -> None:
    documents = ["-"] if options else []
    outcome = Outcome(subscriptions, *documents, *options, stdin=b"<a/>")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err


def test_an_unknown_engine_gives_the_known_ones(subscriptions: Path) -> None:
    assert "reference" in Outcome(subscriptions, "-", "--engine", "warp", stdin=b"<a/>").err


def test_a_named_engine_is_used(subscriptions: Path, stories: Path) -> None:
    assert Outcome(subscriptions, stories, "--engine", "reference").out == Outcome(subscriptions, stories).out


def test_a_bad_subscription_is_shown_with_file_line_and_a_caret(tmp_path: Path, stories: Path) -> None:
    file = tmp_path / "subscriptions.txt"
    file.write_text("//title\n/nitf/p/following-sibling::p\n")
    outcome = Outcome(file, stories)
    assert (outcome.status, outcome.out) == (2, "")
    first, expression, carets, *_ = outcome.err.splitlines()
    assert first.startswith(f"error: {file}: line 2, column 9: ")
    assert expression == "    /nitf/p/following-sibling::p"
    assert carets.startswith("            ^")


@pytest.mark.parametrize("name", ["absent.txt", "absent.parquet"])
def test_missing_subscriptions_have_status_2(tmp_path: Path, stories: Path, name: str) -> None:
    outcome = Outcome(tmp_path / name, stories)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.count(name) == 1


def test_subscriptions_with_an_id_given_twice_have_status_2(tmp_path: Path, stories: Path) -> None:
    file = tmp_path / "subscriptions.csv"
    file.write_text("id,xpath\n1,//a\n1,//b\n")
    outcome = Outcome(file, stories)
    assert outcome.status == 2
    assert outcome.err.startswith(f"error: {file}: ")


def test_packed_subscriptions_are_read(tmp_path: Path, stories: Path) -> None:
    file = tmp_path / "subscriptions.txt.gz"
    file.write_bytes(gzip.compress(b"//hl2\n"))
    assert [row["matches"] for row in Outcome(file, stories, "--format", "json").rows] == [[1], []]


def test_documents_are_not_all_held_in_memory(
    subscriptions: Path, stories: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pathcast.matching import Matcher

    groups: list[int] = []
    original = Matcher.match_many

    def counted(self: Matcher, documents: list[object], errors: str) -> object:
        groups.append(len(documents))
        return original(self, documents, errors)  # type: ignore[arg-type]

    monkeypatch.setattr(Matcher, "match_many", counted)
    size = (stories / "a.xml").stat().st_size
    documents = [stories / "a.xml"] * 7
    monkeypatch.setattr(room, "BATCH_BYTES", 3 * size)
    Outcome(subscriptions, *documents)
    assert groups == [3, 3, 1]
    groups.clear()
    monkeypatch.setattr(room, "BATCH_DOCUMENTS", 2)
    assert len(Outcome(subscriptions, *documents, "--format", "json").rows) == 7
    assert groups == [2, 2, 2, 1]


def test_of_a_document_without_end_no_more_is_read_than_it_takes_to_refuse_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(b"<a>" + b"x" * 1000))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert [len(source.document) for source in room._sources([Path("-")], largest=10)] == [11]  # type: ignore[arg-type]


def test_help_shows_an_example() -> None:
    assert "Example: pathcast match subscriptions.txt" in Outcome("--help").out


@pytest.mark.parametrize("kind", ["index", "versions"])
def test_an_index_is_matched_as_its_file_is(subscriptions: Path, stories: Path, tmp_path: Path, kind: str) -> None:
    matcher = Subscriptions.read(subscriptions).compile()
    for _ in range(2) if kind == "versions" else ():
        publish(matcher, tmp_path / kind)
    if kind == "index":
        matcher.save(tmp_path / kind)
    for options in ([], ["--engine", "reference"]):
        assert Outcome(tmp_path / kind, stories, *options).out == Outcome(subscriptions, stories, *options).out
    refused = Outcome(tmp_path / kind, stories, "--namespaces", "ignore")
    assert refused.status == 2 and "leave the option out" in refused.err


def test_a_folder_without_an_index_is_refused(stories: Path) -> None:
    refused = Outcome(stories, stories)
    assert refused.status == 2 and "there is no index in this folder" in refused.err


def test_a_reader_that_goes_away_is_no_reason_to_complain(subscriptions: Path, stories: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    documents = [str(stories / "a.xml")] * 3000
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, "match", str(subscriptions), *documents, "--format", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert b'"matches": [1, 4]' in process.stdout.readline()
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert (process.wait(timeout=60), errors) == (READER_GONE, b"")


def test_a_prefix_that_is_not_declared_is_told_with_the_option_that_declares_it(tmp_path: Path) -> None:
    (tmp_path / "wishes.txt").write_text("//dc:creator\n")
    outcome = Outcome(tmp_path / "wishes.txt", tmp_path)
    assert outcome.status == 2
    assert "supported: prefixes given with --namespaces dc=http://…, or --namespaces ignore" in outcome.err


def test_documents_before_subscriptions_are_told_so(tmp_path: Path, subscriptions: Path) -> None:
    (tmp_path / "feed.xml").write_text("<?xml version='1.0'?>\n<feed/>")
    outcome = Outcome(tmp_path / "feed.xml", subscriptions)
    assert (outcome.status, "give subscriptions first, then documents" in outcome.err) == (2, True)


def test_a_file_without_subscriptions_is_noted(tmp_path: Path, stories: Path) -> None:
    (tmp_path / "empty.txt").touch()
    outcome = Outcome(tmp_path / "empty.txt", stories / "a.xml")
    assert (outcome.status, outcome.err) == (0, f"note: no subscriptions in {tmp_path}/empty.txt\n")


@pytest.mark.parametrize("kind", ["file", "index"])
def test_entities_are_expanded_when_asked_for(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a.xml").write_text("<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>")
    wishes = tmp_path / "wishes.txt"
    wishes.write_text("/a[. = 'x']\n")
    if kind == "index":
        Subscriptions.read(wishes).compile().save(tmp_path / "index")
        wishes = tmp_path / "index"
    assert "declares the entity 'e'" in Outcome(wishes, tmp_path / "a.xml").out
    assert Outcome(wishes, tmp_path / "a.xml", "--format", "json", "--entities", "expand").rows[0]["matches"] == [1]
