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
    assert made.err.splitlines()[0] == "mapped 4 of 5 nodes: 1 to check, 1 without a place"
    assert "  no place    staff/person/badge" in made.err.splitlines()
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
    assert again.err.startswith("mapped 5 of 5 nodes: ")


def test_a_schema_that_stays_mostly_unmapped_is_a_failure(folder: Path) -> None:
    (folder / "plants.tree").write_text(
        "greenhouse\n  orchid*\n    soil #text\n    humidity #text\n  fern*\n    age #text\n"
    )
    found = Outcome("mediate", "map", folder / "global.tree", folder / "plants.tree")
    assert found.status == 1
    assert found.err.startswith("mapped 1 of 6 nodes: ")
    assert Mapping.read(found.out).correspondence == {"greenhouse": "staff"}


def test_paths_with_namespaces_are_given_and_reported_with_prefixes(folder: Path) -> None:
    uri = "urn:x:schema:OfficeStaff-2"
    (folder / "long.tree").write_text(
        f"{{{uri}}}staff\n  {{{uri}}}desk*\n    {{{uri}}}zzz #text\n    {{{uri}}}qqq #text\n"
    )
    arguments = ("mediate", "map", folder / "global.tree", folder / "long.tree", "--pair")
    for pair in ("os:staff/os:desk/os:zzz=staff/person/room", "staff/desk/zzz=staff/person/room"):
        found = Outcome(*arguments, pair)
        path = f"{{{uri}}}staff/{{{uri}}}desk/{{{uri}}}zzz"
        assert Mapping.read(found.out).correspondence[path] == "staff/person/room"
        assert "  no place    os:staff/os:desk/os:qqq" in found.err.splitlines()
        assert f"  os = {uri}" in found.err.splitlines()


def test_samples_of_both_sides_are_evidence(folder: Path) -> None:
    (folder / "a").mkdir()
    (folder / "b").mkdir()
    (folder / "ours.tree").write_text("r\n  p*\n    f1 #text\n    f2 #text\n")
    (folder / "theirs.tree").write_text("r\n  p*\n    g1 #text\n    g2 #text\n")
    for number, (person, day) in enumerate([("Ada Bell", "2023-01-05"), ("Kim Moss", "2023-02-07")]):
        (folder / "a" / f"{number}.xml").write_text(f"<r><p><f1>{person}</f1><f2>{day}</f2></p></r>")
        (folder / "b" / f"{number}.xml").write_text(f"<r><p><g1>{day}</g1><g2>{person}</g2></p></r>")
    found = Outcome(
        "mediate", "map", folder / "ours.tree", folder / "theirs.tree",
        "--samples", folder / "b", "--global-samples", folder / "a",
    )  # fmt: skip
    assert Mapping.read(found.out).correspondence == {"r": "r", "r/p": "r/p", "r/p/g1": "r/p/f2", "r/p/g2": "r/p/f1"}
    schemas = ("mediate", "map", folder / "ours.tree", folder / "theirs.tree")
    twins = Outcome(*schemas, "--twins", f"{folder / 'b'}={folder / 'a'}")
    assert Mapping.read(twins.out).correspondence == Mapping.read(found.out).correspondence
    uneven = f"{folder / 'a'}={folder / 'a' / '0.xml'}"
    for option, value in (("--samples", folder / "nowhere"), ("--twins", "a"), ("--twins", uneven)):
        wrong = Outcome(*schemas, option, value)
        assert wrong.status == 2


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
