"""`pathcast mediate`: mappings are derived, checked, tried out, and used for matching."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from pathcast.cli.app import app
from pathcast.errors import PathcastError
from pathcast.mediation import Mapping
from pathcast.mediation.mappings.schema_mapping import read_tree

GLOBAL = "staff\n  person*\n    name #text\n    room? #text\n"
LOCAL = "staff\n  person* @name\n    room? #text\n    badge? #text\n"
DOCUMENT = "<staff><person name='x'><room>1</room></person></staff>"


class Outcome:
    def __init__(self, *arguments: object, stdin: str | None = None) -> None:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        self.status, self.out, self.err = result.exit_code, result.stdout, result.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("global.tree", GLOBAL), ("annex.tree", LOCAL), ("a.xml", DOCUMENT)):
        (tmp_path / name).write_text(text)
    (tmp_path / "wanted.txt").write_text("//person[name = 'x']/room\n//person/badge\n//person/@name\n")
    return tmp_path


def test_a_mapping_is_derived_checked_and_used(folder: Path) -> None:
    file = folder / "annex.toml"
    made = Outcome("mediate", "map", folder / "global.tree", folder / "annex.tree", "-o", file)
    assert made.status == 0
    assert "'staff/person/badge' has no counterpart in the global schema" in made.err
    assert [operator.kind for operator in Mapping.open(file).operators] == ["to-element"]
    checked = Outcome("mediate", "check", file)
    assert checked.status == 1
    assert checked.out.splitlines() == [
        "annex, version 1: 4 elements; operators: 1 to-element",
        "  'staff/person/badge' has no counterpart in the global schema; it stays unchanged",
    ]
    rewritten = "<staff><person><name>x</name><room>1</room></person></staff>\n"
    assert Outcome("mediate", "rewrite", file, folder / "a.xml").out == rewritten
    assert Outcome("mediate", "rewrite", file, "-", stdin=DOCUMENT).out == rewritten
    matched = Outcome("match", folder / "wanted.txt", folder / "a.xml", "--mapping", file, "--format", "json")
    assert matched.out.endswith('"matches": [1]}\n')
    other = folder / "b.xml"
    other.write_text("<news/>")
    wrong = Outcome("match", folder / "wanted.txt", other, "--mapping", file)
    assert wrong.status == 1
    assert "the document's root element is 'news', but its schema has the root 'staff'" in wrong.out


def test_pairs_that_are_known_are_taken(folder: Path) -> None:
    pair = "staff/person/badge=staff/person/room"
    found = Outcome("mediate", "map", folder / "global.tree", folder / "annex.tree", "--pair", pair, "--name", "x")
    assert Mapping.read(found.out).correspondence["staff/person/badge"] == "staff/person/room"
    assert Mapping.read(found.out).name == "x"


def test_schemas_are_integrated_to_one_that_can_be_used(folder: Path) -> None:
    file = folder / "both.tree"
    (folder / "global.tree").write_text("\ufeff" + GLOBAL)  # as some editors write it
    assert Outcome("mediate", "integrate", folder / "global.tree", folder / "annex.tree", "-o", file).status == 0
    assert "    badge? #text" in file.read_text().splitlines()
    again = Outcome("mediate", "map", file, folder / "annex.tree")
    assert again.err == ""


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["map", "global.tree", "nothing.dtd"], "nothing.dtd: no such file"),
        (["map", "global.tree", "annex.tree", "--pair", "a"], "invalid --pair a: expected LOCAL=GLOBAL"),
        (["map", "global.tree", "annex.tree", "--pair", "a=staff"], "the local schema has no path 'a'"),
        (["map", "global.tree", "annex.tree", "--pair", "staff=b"], "the global schema has no path 'b'"),
        (["rewrite", "annex.tree", "."], ".: this is a folder; give one document"),
        (["rewrite", "ours.toml", "wrong.xml"], "wrong.xml: line 1, column 8: no element found"),
        (["rewrite", "ours.toml", "other.xml"], "other.xml: the document's root element is 'news'"),
        (["rewrite", "annex.tree", "nothing.xml"], "nothing.xml: no such file"),
        (["integrate", "global.tree", "-o", "no/such/folder"], "cannot write"),
    ],
)
def test_what_is_wrong_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], reason: str
) -> None:
    monkeypatch.chdir(folder)
    Mapping("ours", read_tree(LOCAL), ()).save("ours.toml")
    Path("wrong.xml").write_text("<staff>")
    Path("other.xml").write_text("<news/>")
    found = Outcome("mediate", *arguments)
    assert found.status == 2
    assert reason in found.err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["integrate", "global.tree", "samples"], "samples.b.xml: no element found"),
        (["integrate", "bad.dtd"], "bad.dtd: the DTD is malformed"),
        (["integrate", "bytes.tree"], "bytes.tree is not UTF-8; save it"),
        (["check", "bytes.tree"], "bytes.tree is not UTF-8; save it"),
    ],
    ids=["sample", "dtd", "tree", "mapping"],
)
def test_a_file_that_can_not_be_read_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], reason: str
) -> None:
    monkeypatch.chdir(folder)
    Path("samples").mkdir()
    for file, content in {
        "samples/a.xml": b"<a/>",
        "samples/b.xml": b"<a>",
        "bad.dtd": b"<",
        "bytes.tree": b"\xff",
    }.items():
        Path(file).write_bytes(content)
    with pytest.raises(PathcastError, match=reason):
        Outcome("mediate", *arguments)
