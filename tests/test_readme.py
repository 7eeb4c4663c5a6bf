"""The documentation is correct: its examples run, its tables are true, its links work.

In `README.md`, the pages of `docs/` that show Python, and the READMEs of the packages

- Python blocks run in order, in one namespace per file and in an empty folder; if `# → value` ends a statement, its
  value must print so. A block that imports `pathcast.spark` runs by itself, on the tests' Spark if it is running;
- shell blocks with a `pathcast` command run too, in order and in one folder; targets of make and extras of pip that
  are named must exist;
- a `text` block right after either is what the block prints;
- rows of tables whose heading says what they claim (`subscription | matches | …`) are claims to check.
"""

import ast
import contextlib
import io
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer.main

import pathcast
from pathcast.cli.app import app
from pathcast.matching import engines
from pathcast.patterns import Pattern, parse
from pathcast_lab.harness.publishing.markdown_report import shown_scales
from pathcast_lab.harness.publishing.published_records import load_records

PROJECT = Path(__file__).resolve().parent.parent
README = PROJECT / "README.md"
XPATH = PROJECT / "docs" / "reference" / "xpath.md"
FEED = PROJECT / "docs" / "tutorial.md"
EXPLAIN = PROJECT / "docs" / "guides" / "explain.md"
JOINS = PROJECT / "docs" / "guides" / "joins.md"
MEDIATION = PROJECT / "docs" / "guides" / "mediation.md"
NETWORK = PROJECT / "docs" / "guides" / "network.md"
ROUTING = PROJECT / "docs" / "guides" / "routing.md"
PYTHON = PROJECT / "docs" / "guides" / "python.md"
ENTRIES = PROJECT / "docs" / "guides" / "entries.md"
HOME = PROJECT / "docs" / "index.md"
ERRORS = PROJECT / "docs" / "reference" / "errors.md"
CONCEPTS = [PROJECT / "docs" / "concepts" / f"{name}.md" for name in ("gpx", "mediation", "piggyback", "roxsum")]
PAGES = sorted(
    {
        *PROJECT.glob("*.md"),
        *(page for page in (PROJECT / "docs").rglob("*.md") if "results" not in page.parts),
        *(PROJECT / "src").rglob("*.md"),
        *(PROJECT / "lab").rglob("*.md"),
    }
)

ROOMS = [
    PROJECT / "src" / "pathcast" / page
    for page in (
        "documents/README.md",
        "joins/README.md",
        "log/README.md",
        "mediation/README.md",
        "messages/README.md",
        "network/README.md",
        "patterns/README.md",
        "routing/annotations/README.md",
        "roxsum/README.md",
        "store/README.md",
        "transmission/README.md",
        "workloads/README.md",
    )
]
ROOMS.append(PROJECT / "lab" / "src" / "pathcast_lab" / "workloads" / "README.md")

SHOWN = re.compile(r"#\s*→\s*(?P<value>.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block; `shown` is the `text` block that follows it directly."""

    language: str
    text: str
    line: int
    shown: str | None = None


def blocks(page: Path) -> list[Block]:
    lines = page.read_text(encoding="utf-8").splitlines()
    fences = [number for number, line in enumerate(lines) if line.startswith("```")]
    pairs = list(zip(fences[::2], fences[1::2], strict=True))
    found = [
        Block(lines[begin].removeprefix("```"), "\n".join(lines[begin + 1 : end]) + "\n", begin + 1)
        for begin, end in pairs
    ]
    for index, ((_, end), (begin, _)) in enumerate(pairwise(pairs)):
        follows = not "".join(lines[end + 1 : begin]).strip()
        if follows and found[index].language in {"python", "sh"} and found[index + 1].language == "text":
            one = found[index]
            found[index] = Block(one.language, one.text, one.line, found[index + 1].text)
    return found


def tables(page: Path, *heading: str) -> list[tuple[str, ...]]:
    """The rows of all tables on a page that have this heading, without code marks and escapes."""
    rows = []
    wanted = False
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])
        if not cells:
            wanted = False
        elif cells == heading:
            wanted = True
        elif wanted and not set("".join(cells)) <= set("-: "):
            rows.append(tuple(bare(cell) for cell in cells))
    assert rows, heading
    return rows


def bare(cell: str) -> str:
    """The text of a cell: code is unchanged, except for escaped bars."""
    cell = cell.replace("\\|", "|")
    return cell[1:-1] if re.fullmatch("`[^`]*`", cell) else cell.replace("\\*", "*")


def of_language(page: Path, language: str) -> list[Block]:
    return [block for block in blocks(page) if block.language == language]


# Python.


def run_python(block: Block, names: dict[str, Any]) -> str:
    """Run a block statement by statement, compare the values that it shows, return what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for statement in ast.parse(block.text).body:
            shown = SHOWN.search(block.text.splitlines()[(statement.end_lineno or 1) - 1])
            if isinstance(statement, ast.Expr):
                value = eval(compile(ast.Expression(statement.value), "<example>", "eval"), names)  # noqa: S307 - our own examples
            else:
                exec(compile(ast.Module([statement], []), "<example>", "exec"), names)  # noqa: S102 - our own examples
                value = names[ast.unparse(statement).partition(" = ")[0]] if shown else None
            if shown:
                assert repr(value) == shown["value"], f"line {block.line}: {ast.unparse(statement)}"
    return printed.getvalue()


def uses_spark(block: Block) -> bool:
    return "pathcast.spark" in block.text


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [README, HOME, PYTHON, ENTRIES, XPATH, ERRORS, EXPLAIN, JOINS, MEDIATION, NETWORK, ROUTING, *CONCEPTS, *ROOMS],
    ids=lambda page: str(page.relative_to(PROJECT)),
)
def test_python_examples_give_what_they_show(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    examples = [block for block in of_language(page, "python") if not uses_spark(block)]
    assert any(block.shown or SHOWN.search(block.text) for block in examples), "nothing is compared"
    for block in examples:
        printed = run_python(block, names)
        assert printed == (block.shown or ""), f"line {block.line}"


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_the_spark_example_gives_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    from pathcast.spark.sessions.spark_session import running, session
    from tests.spark.conftest import TEST_SETTINGS

    monkeypatch.chdir(tmp_path)
    ours = running() is None
    spark = running() or session("tests", TEST_SETTINGS)
    try:
        with spark_folder(spark, tmp_path):
            examples = [block for block in of_language(README, "python") if uses_spark(block)]
            assert examples
            for block in examples:
                assert run_python(block, {}) == (block.shown or ""), f"line {block.line}"
    finally:
        if ours:
            spark.stop()


@contextlib.contextmanager
def spark_folder(spark: Any, folder: Path) -> Iterator[None]:
    """Spark resolves relative paths in the folder where its Java was started, which may be another one."""
    hadoop = spark._jvm.org.apache.hadoop.fs
    files = hadoop.FileSystem.get(spark._jsc.hadoopConfiguration())
    before = files.getWorkingDirectory()
    files.setWorkingDirectory(hadoop.Path(str(folder)))
    try:
        yield
    finally:
        files.setWorkingDirectory(before)


# The shell.


def runs_pathcast(block: Block) -> bool:
    return re.search(r"^pathcast ", block.text, re.MULTILINE) is not None


@pytest.mark.slow
def test_shell_examples_print_what_they_show(tmp_path: Path) -> None:
    commands = tmp_path / "bin"
    commands.mkdir()
    program = "import sys; sys.argv[0] = 'pathcast'; from pathcast.cli.app import main; main()"
    (commands / "pathcast").write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{program}" "$@"\n')
    (commands / "pathcast").chmod(0o755)
    folder = tmp_path / "work"
    folder.mkdir()
    environment = {**os.environ, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"}
    environment["PYTHONPATH"] = os.pathsep.join(
        path for path in (str(PROJECT / "src"), os.environ.get("PYTHONPATH")) if path
    )
    examples = [
        block for page in (README, FEED, XPATH, JOINS) for block in of_language(page, "sh") if runs_pathcast(block)
    ]
    assert examples
    for block in examples:
        done = subprocess.run(
            ["sh", "-eu"], input=block.text, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"line {block.line}: {done.stderr}"
        assert done.stdout == (block.shown or ""), f"line {block.line}"


def test_targets_and_extras_that_are_named_exist() -> None:
    makefile = (PROJECT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^(\w+):", makefile, re.MULTILINE))
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert set(re.findall(r"(?:^|`)make (\w+)", text, re.MULTILINE)) <= targets, page
        named = re.findall(r'pip install "[\w.]*\[([\w,]+)\]"', text)
        assert {extra for one in named for extra in one.split(",")} <= extras.keys(), page


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 160


def test_commands_that_the_readme_names_exist() -> None:
    known: Any = typer.main.get_command(app)
    text = README.read_text(encoding="utf-8")
    (listed,) = re.findall(r"`pathcast --help` lists all commands: (.+)\.$", text, re.MULTILINE)
    named = {*re.findall(r"(?:^|`)pathcast ([a-z]+)", text, re.MULTILINE), *re.findall(r"`(\w+)`", listed)}
    assert named and named <= set(known.commands)
    assert {"match", "generate"} | set(re.findall(r"`(\w+)`", listed)) == set(known.commands)


# A measured time or ratio, as the front pages write it.
MEASURED = re.compile(r"\d[\d.,]* (?:µs|ms|s|times)\b")


@pytest.mark.parametrize("page", [README, HOME], ids=lambda page: page.name)
def test_figures_on_the_front_pages_are_published_with_a_code_version(page: Path) -> None:
    """To fix: write what `sentences` gives, or no figure. Where it gives no sentence, no record has a code version."""
    left = " ".join(page.read_text(encoding="utf-8").split())
    known = [*sentences()]
    for sentence in known:
        left = left.replace(sentence, "")
    assert MEASURED.findall(left) == [], f"the results give: {known}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_no_other_page_states_a_measured_time(page: Path) -> None:
    """Results have the code version that they were measured with; a time in a guide has none. Link to the results."""
    if page not in (README, HOME, PROJECT / "CHANGELOG.md"):
        assert re.findall(r".*\d µs.*", page.read_text(encoding="utf-8")) == []


def sentences() -> Iterator[str]:
    """The sentences with figures that results with a code version support."""
    if engine := shown("engine", 153_928):
        assert processor("engine") in README.read_text(encoding="utf-8")
        ours, lxml = engine["read, match, write ids"], engine["lxml, one by one (extrapolated)"]
        times = two_digits(lxml / ours)
        yield f"in {ours:.0f} µs.**"
        yield f"{ours:.0f} µs per document against 153,928 paths on one core"
        yield (
            f"needs {lxml / 1000:.0f} ms to evaluate the same expressions one by one (extrapolated from a sample), "
            f"{times:,} times as long"
        )
        yield f"{times:,} times slower at 153,928 expressions, one core"
    if values := shown("engine-values", 1_000_000):
        spent = [time / 1000 for kind, time in values.items() if kind[0].isdigit()]
        yield f"with values or branches take {min(spent):.1f} to {max(spent):.1f} ms per document"
    if (index := shown("engine-index", 1_000_000)) and index["open"] < 0.1:
        yield "An index of a million subscriptions opens in less than 0.1 s"
    if spark := shown("spark-documents", 10_000):
        times = two_digits(spark["matching, by subscriber"] / spark["xpath_boolean (extrapolated)"])
        yield f"{times:,} times slower at 10,000 expressions, 2 cores"
    if broker := shown("broker-deliveries", 0):
        times = two_digits(broker["pathcast"] / broker["ActiveMQ 5.17, XPath selectors"])
        yield f"{times:,} times slower end to end at 1,000 expressions"


def processor(experiment: str) -> str:
    """The processor that a figure was measured on, without marks: `AMD EPYC`, `Intel Xeon`."""
    (record,) = (
        each for each in shown_scales(load_records(PROJECT / "docs" / "results")) if each.experiment == experiment
    )
    return " ".join(record.machine["processor"].replace("(R)", "").replace("Processor", "").split(" (")[0].split())


def shown(experiment: str, x: int) -> dict[str, float]:
    """The values at an x in the record that the page shows, by series; empty for a record without a code version."""
    records = shown_scales(load_records(PROJECT / "docs" / "results"))
    (record,) = (each for each in records if each.experiment == experiment)
    assert record.chart is not None
    found = {each.name: y for each in record.chart.panels[0].series for at, y in each.points if at == x}
    return found if record.version is not None else {}


def two_digits(number: float) -> int:
    return int(float(f"{number:.1e}"))


# Tables.


def matches(subscription: str, document: str) -> set[bool]:
    """The answers of all engines."""
    subscriptions = pathcast.Subscriptions()
    subscriptions.add(subscription)
    return {bool(subscriptions.compile(engine=engine).match(document)) for engine in engines()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("subscription", "match", "miss", "because"), tables(XPATH, "subscription", "matches", "does not match", "because")
)
def test_a_subscription_matches_one_document_and_not_the_other(
    subscription: str, match: str, miss: str, because: str
) -> None:
    assert matches(subscription, match) == {True}, because
    assert matches(subscription, miss) == {False}, because


@pytest.mark.parametrize(("one", "other", "since"), tables(XPATH, "subscription", "the same as", "since"))
def test_two_subscriptions_are_one(one: str, other: str, since: str) -> None:
    assert parse(one) == parse(other), since
    assert str(parse(one)) == str(parse(other)), since


@pytest.mark.parametrize(
    ("subscription", "candidates", "what"), tables(XPATH, "subscription", "candidates", "evaluated in full")
)
def test_an_opaque_subscription_has_the_candidates_shown(subscription: str, candidates: str, what: str) -> None:
    pattern = parse(subscription)
    assert pattern.expression, what
    assert str(Pattern(pattern.root)) == str(parse(candidates))


@pytest.mark.parametrize(("subscription", "what"), tables(XPATH, "subscription", "what is counted"))
def test_places_are_looked_up(subscription: str, what: str) -> None:
    assert parse(subscription).counted is not None, what


@pytest.mark.parametrize(
    ("subscription", "candidates", "what"), tables(XPATH, "subscription", "candidates", "evaluated in full")
)
def test_an_opaque_subscription_has_no_places(subscription: str, candidates: str, what: str) -> None:
    assert parse(subscription).counted is None


@pytest.mark.parametrize(
    ("expression", "column", "reason", "instead"), tables(XPATH, "expression", "column", "reason", "instead")
)
def test_a_refused_expression_has_its_reason(expression: str, column: str, reason: str, instead: str) -> None:
    with pytest.raises(pathcast.PatternError) as refused:
        parse(expression)
    assert (refused.value.reason, str(refused.value.column)) == (reason, column)
    if instead != "–":
        parse(instead)


def test_error_texts_are_the_real_ones() -> None:
    texts = [block.text for page in (README, XPATH) for block in of_language(page, "text")]
    errors = [text for text in texts if text.startswith("PatternError: ")]
    assert errors
    for text in errors:
        with pytest.raises(pathcast.PatternError) as rejected:
            parse(text.splitlines()[1].strip())
        assert f"PatternError: {rejected.value}\n" == text


@pytest.mark.parametrize(("form", "example", "meaning"), tables(PYTHON, "form", "example", "meaning"))
def test_forms_of_the_guide_are_supported(form: str, example: str, meaning: str) -> None:
    parse(example)


# Links.


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        if anchor:
            assert anchor in headings(target), link


def headings(page: Path) -> set[str]:
    """The anchors of a page, as GitHub makes them."""
    found = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}
