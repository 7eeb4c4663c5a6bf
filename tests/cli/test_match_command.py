import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest
import typer
from typer.testing import CliRunner

from pathcast.cli import match_command as room
from pathcast.cli.match_command import match
from pathcast.cli.output_errors import READER_GONE
from pathcast.errors import PatternError
from pathcast.matching import Subscriptions
from pathcast.spark.publishing.index_versions import publish

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


def test_a_folder_means_all_documents_in_it_and_its_subfolders_sorted(subscriptions: Path, stories: Path) -> None:
    (stories / "2026" / "may").mkdir(parents=True)
    (stories / "2026" / "may" / "d.xml.gz").write_bytes(gzip.compress(b"<news><hl2/></news>"))
    (stories / "2026" / "C.XML").write_text("<news><title/></news>")
    (stories / ".cache.xml").write_text("<news/>")
    outcome = Outcome(subscriptions, stories, "--format", "json")
    assert outcome.rows == [
        {"document": str(stories / "2026" / "C.XML"), "matches": [1]},
        {"document": str(stories / "2026" / "may" / "d.xml.gz"), "matches": [4]},
        {"document": str(stories / "a.xml"), "matches": [1, 4]},
        {"document": str(stories / "b.xml"), "matches": [3]},
    ]
    assert (outcome.status, outcome.err) == (0, "")


NOTHING = "error: no documents found, so nothing was matched; give XML files, or folders that contain some\n"


def test_a_folder_without_documents_is_told_what_was_looked_for_and_has_status_1(
    subscriptions: Path, stories: Path, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    without = f"note: no documents in {empty} or its subfolders: looked for *.xml and *.xml.gz, found"
    for found in ("no other files", "2 *.json, 1 *.txt, 1 hidden, 1 without an ending"):
        outcome = Outcome(subscriptions, empty, "--format", "json")
        assert (outcome.status, outcome.out, outcome.err) == (1, "", f"{without} {found}\n{NOTHING}")
        for name in ("a.json", "sub/b.json", ".hidden.xml", "notes.txt", "README"):
            (empty / name).parent.mkdir(exist_ok=True)
            (empty / name).touch()
    beside = Outcome(subscriptions, empty, stories / "a.xml")
    assert (beside.status, beside.err) == (0, f"{without} {found}\n")


def test_a_subfolder_that_cannot_be_listed_has_status_1(
    subscriptions: Path, stories: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = stories / "closed"
    closed.mkdir()
    listed = os.scandir

    def scandir(path: str) -> object:
        if path == str(closed):
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    outcome = Outcome(subscriptions, stories, "--format", "json")
    assert (outcome.status, outcome.err) == (
        1,
        f"error: cannot read folder {closed}: Permission denied; check its permissions\n",
    )
    assert len(outcome.rows) == 2


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


def test_a_file_is_read_in_the_encoding_that_it_declares(tmp_path: Path) -> None:
    subscriptions, story = tmp_path / "subscriptions.txt", tmp_path / "story.xml"
    subscriptions.write_text("//price[. = '5 €']\n", encoding="utf-8")
    story.write_bytes("<?xml version='1.0' encoding='windows-1252'?><a><price>5 €</price></a>".encode("cp1252"))
    assert Outcome(subscriptions, story).out.splitlines()[0] == f"{story}: 1 match"


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


def test_an_empty_name_is_not_the_current_folder(subscriptions: Path) -> None:
    for arguments, what in (((subscriptions, ""), "a document"), (("", "-"), "the subscriptions")):
        outcome = Outcome(*arguments, stdin=b"<a/>")
        assert (outcome.status, outcome.out) == (2, "")
        assert outcome.err.startswith(f"error: the name of {what} is empty; give a file")


def test_an_unknown_engine_gives_the_known_ones(subscriptions: Path) -> None:
    assert "reference" in Outcome(subscriptions, "-", "--engine", "warp", stdin=b"<a/>").err


def test_a_named_engine_is_used(subscriptions: Path, stories: Path) -> None:
    assert Outcome(subscriptions, stories, "--engine", "reference").out == Outcome(subscriptions, stories).out


def test_a_bad_subscription_is_shown_with_file_line_and_a_caret(tmp_path: Path, stories: Path) -> None:
    file = tmp_path / "subscriptions.txt"
    file.write_text("//title\n/nitf/p/sideways::p\n")
    outcome = Outcome(file, stories)
    assert (outcome.status, outcome.out) == (2, "")
    first, expression, carets, *_ = outcome.err.splitlines()
    assert first.startswith(f"error: {file}: line 2, column 9: ")
    assert expression == "    /nitf/p/sideways::p"
    assert carets.startswith("            ^")


def test_all_invalid_subscriptions_are_reported_with_file_line_and_reason(tmp_path: Path, stories: Path) -> None:
    file = tmp_path / "subscriptions.csv"
    file.write_text("id,xpath\n1,//hl2\n2,//a/!=\n1_0,//b\n4,//dc:c\n5,//b/!=\n")
    outcome = Outcome(file, stories)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.splitlines() == [
        f"error: {file}: line 3, column 5: expected a step, got '!='",
        "    //a/!=",
        "        ^^",
        "  supported: XPath 1.0 and the functions of docs/reference/xpath.md",
        f"error: {file}: line 4: id must be a whole number from 1 to 2,147,483,647, got '1_0'",
        f"error: {file}: line 5, column 3: the prefix 'dc:' is not declared",
        "    //dc:c",
        "      ^^^",
        "  supported: prefixes given with --namespaces dc=http://…, or --namespaces ignore",
        f"error: {file}: line 6, column 5: expected a step, got '!='",
        "    //b/!=",
        "        ^^",
        "error: 4 of 5 subscriptions are invalid; fix them, or skip them with --skip-invalid",
    ]


def test_invalid_subscriptions_are_skipped_when_asked_for(tmp_path: Path, stories: Path) -> None:
    file = tmp_path / "subscriptions.txt"
    file.write_text("//hl2\n//a/!=\n")
    outcome = Outcome(file, stories, "--skip-invalid", "--format", "json")
    assert [row["matches"] for row in outcome.rows] == [[1], []]
    assert outcome.status == 0
    first, *_, last = outcome.err.splitlines()
    assert first == f"note: {file}: line 2, column 5: expected a step, got '!='"
    assert last == "note: 1 of 2 subscriptions is invalid and skipped"
    assert Outcome(file, stories).err.splitlines()[-1] == (
        "error: 1 of 2 subscriptions is invalid; fix it, or skip it with --skip-invalid"
    )
    file.write_text("//a/!=\n")
    outcome = Outcome(file, stories, "--skip-invalid")
    assert (outcome.status, outcome.out) == (2, "")
    file.write_text("//a/!=\n//b/!=\n")
    assert Outcome(file, stories, "--skip-invalid").err.splitlines()[-1] == (
        "error: 2 of 2 subscriptions are invalid; no valid subscription remains; fix at least one"
    )


def test_of_many_invalid_subscriptions_the_first_are_reported(tmp_path: Path, stories: Path) -> None:
    file = tmp_path / "subscriptions.txt"
    file.write_text("//a\n" + "//a/!=\n" * 1050)
    lines = Outcome(file, stories).err.splitlines()
    assert sum(line.startswith(f"error: {file}: line ") for line in lines) == 20
    assert lines[-2:] == [
        "error: and 1,030 more",
        "error: 1,050 of 1,051 subscriptions are invalid; fix them, or skip them with --skip-invalid",
    ]


def test_comments_in_subscriptions_are_skipped_and_count_as_lines(tmp_path: Path, stories: Path) -> None:
    file = tmp_path / "subscriptions.txt"
    file.write_text("# headlines\n//hl2\n  # ledes\n//p[@lede]\n")
    assert [row["matches"] for row in Outcome(file, stories, "--format", "json").rows] == [[2], [4]]


def test_expressions_take_the_place_of_a_file(stories: Path) -> None:
    outcome = Outcome("-e", "//hl2", stories, "-e", "/news/title", "--format", "json")
    assert [row["matches"] for row in outcome.rows] == [[1, 2], []]
    assert Outcome("--expression", "//p", stories / "b.xml").out.splitlines()[1].split() == ["1", "//p"]


@pytest.mark.parametrize("kind", ["file", "index"])
def test_expressions_are_added_to_those_of_a_file(
    subscriptions: Path, stories: Path, tmp_path: Path, kind: str
) -> None:
    if kind == "index":
        Subscriptions.read(subscriptions).compile().save(tmp_path / "index")
        subscriptions = tmp_path / "index"
    outcome = Outcome("-f", subscriptions, "-e", "//p", stories, "--format", "json")
    assert [row["matches"] for row in outcome.rows] == [[1, 4], [3, 5]]
    alone = Outcome("-f", subscriptions, stories, "--format", "json")
    assert [row["matches"] for row in alone.rows] == [[1, 4], [3]]
    declared = Outcome("-f", subscriptions, "-e", "//f:p", stories)
    instead = "index declares, or Q{http://…}name" if kind == "index" else "--namespaces f=http://…"
    assert declared.status == 2 and instead in declared.err


def test_an_invalid_expression_is_reported_as_those_of_files_are(stories: Path) -> None:
    outcome = Outcome("-e", "//a/!=", stories)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err == (
        "error: -e: column 5: expected a step, got '!='\n    //a/!=\n        ^^\n"
        "  supported: XPath 1.0 and the functions of docs/reference/xpath.md\n"
    )
    assert Outcome("-e", "//p", "-e", "//a/!=", stories).err.endswith(
        "error: 1 of 2 subscriptions is invalid; fix it, or skip it with --skip-invalid\n"
    )


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ("//title", "; this looks like an XPath; use -e '//title'"),
        ("//a//b", "; this looks like an XPath; use -e '//a//b'"),
        ("/nitf/head/title", "; this looks like an XPath; use -e '/nitf/head/title'"),
        ("p[@lede]", "; this looks like an XPath; use -e 'p[@lede]'"),
        ("p[. = 'x']", "; this looks like an XPath; use -e 'p[. = '\"'\"'x'\"'\"']'"),
        ("/tmp/absent.txt", "; check the path"),
        ("absent.txt", "; check the path"),
        ("-", "; for subscriptions on stdin use /dev/stdin"),
    ],
)
def test_an_xpath_in_place_of_a_file_is_told_the_option(stories: Path, given: str, advice: str) -> None:
    outcome = Outcome(given, stories)
    assert (outcome.status, outcome.out, outcome.err) == (2, "", f"error: cannot read {given}: no such file{advice}\n")


def test_missing_arguments_are_reported_with_the_usage(subscriptions: Path) -> None:
    usage = "usage: pathcast match SUBSCRIPTIONS DOCUMENT…, or pathcast match -e XPATH DOCUMENT…"
    assert Outcome().err == f"error: no subscriptions given; {usage}\n"
    assert Outcome(subscriptions).err == f"error: no documents given; {usage}\n"
    assert Outcome("-e", "//p").err == f"error: no documents given; {usage}\n"


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

    def counted(self: Matcher, documents: list[Path | bytes], errors: Literal["return"]) -> object:
        groups.append(len(documents))
        return original(self, documents, errors)

    monkeypatch.setattr(Matcher, "match_many", counted)
    (stories / "large.xml").write_bytes(b"<a>".ljust(room.BATCH_BYTES // 3) + b"</a>")
    Outcome(subscriptions, *[stories / "large.xml"] * 5)
    assert groups == [2, 2, 1]
    groups.clear()
    count = 2 * room.BATCH_DOCUMENTS + 1
    assert len(Outcome(subscriptions, *[stories / "a.xml"] * count, "--format", "json").rows) == count
    assert groups == [room.BATCH_DOCUMENTS, room.BATCH_DOCUMENTS, 1]


def test_of_a_document_without_end_no_more_is_read_than_it_takes_to_refuse_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(b"<a>" + b"x" * 1000))
    monkeypatch.setattr(sys, "stdin", stdin)
    sources, unread = room.document_sources(["-"], largest=10)
    documents = [source.document for source in sources]
    assert (documents, unread) == ([b"<a>xxxxxxxx"], 0)


def test_help_shows_an_example() -> None:
    assert "Example: pathcast match subscriptions.txt" in Outcome("--help").out


@pytest.mark.slow
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
    assert refused.status == 2 and "omit --namespaces" in refused.err


def test_a_folder_without_an_index_is_refused(stories: Path) -> None:
    refused = Outcome(stories, stories)
    assert refused.status == 2 and "no index in the folder" in refused.err


@pytest.mark.slow
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
    assert outcome.status == 2
    reason = "is an XML file, not a subscription file; give the subscription file first, then the documents"
    assert outcome.err == f"error: {tmp_path / 'feed.xml'} {reason}\n"


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


FEED = """<f:feed xmlns:f='urn:f'><f:head/>
<entry><a/></entry><entry>&unknown;</entry>
<entry><b/></entry></f:feed>"""


def test_split_matches_each_entry_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "feed.xml.gz").write_bytes(gzip.compress(FEED.encode()))
    file = tmp_path / "feed.xml.gz"
    options = ["-e", "/entry/a", "-e", "/entry/b", "--format", "json", "--split"]
    found = Outcome(*options, "/f:feed/entry", "--namespaces", "f=urn:f", file)
    assert found.status == 1
    assert [row["document"] for row in found.rows] == [f"{file}#1", f"{file}#2", f"{file}#3"]
    assert [row.get("matches") for row in found.rows] == [[1], None, [2]]
    assert "undefined entity '&unknown;'" in str(found.rows[1]["error"])
    piped = Outcome(*options, "/Q{urn:f}feed/entry", "-", stdin=FEED.encode())
    assert [row["document"] for row in piped.rows] == ["-#1", "-#2", "-#3"]


def test_split_reports_where_a_file_ends(tmp_path: Path) -> None:
    (tmp_path / "feed.xml").write_text("<feed><entry><a/></entry><entry>")
    found = Outcome("-e", "//a", "--split", "/feed/entry", tmp_path / "feed.xml")
    assert found.status == 1
    assert "feed.xml#1: 1 match" in found.out
    assert "feed.xml#2: error: the file ends before the end of its root element" in found.out


def test_a_wrong_path_of_entries_is_an_error_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(PatternError, match="'//' is not supported"):
        Outcome("-e", "//a", "--split", "//entry", tmp_path / "none.xml")
