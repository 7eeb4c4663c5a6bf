"""The XTrie engine: partial matchings by level, certainty at tags, skipping, room, and hostile documents."""

import itertools
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import numpy as np
import pytest

from pathcast import Subscriptions
from pathcast.documents import read_batch
from pathcast.literature.streaming.value_tests import is_conjunctive
from pathcast.literature.xtrie import XTrieEngine
from pathcast.literature.xtrie.table_and_stack_layout_kernels import P_COLUMNS, V_ROWS, Y_ROWS
from pathcast.matching.reference import ReferenceEngine
from pathcast.matching.table.pattern_table import PatternTable
from pathcast.patterns import parse
from tests.literature.gpx.drawn import random_element, random_pattern
from tests.literature.gpx.test_stream import beginnings

_CHECKOUT = Path(__file__).resolve().parents[3]


def table_of(xpaths: list[str]) -> PatternTable:
    subscriptions = Subscriptions()
    subscriptions.add_many(xpaths)
    return subscriptions.table


def engine_for(*xpaths: str) -> XTrieEngine:
    return XTrieEngine.build(table_of(list(xpaths)))


def answers(engine: XTrieEngine | ReferenceEngine, documents: list[str]) -> list[list[int]]:
    offsets, entries = engine.match_batch(read_batch(documents))
    return [entries[begin:end].tolist() for begin, end in itertools.pairwise(offsets)]


def found(engine: XTrieEngine, document: str, skip: set[str] | None = None) -> set[str]:
    """The patterns that match, in normal form."""
    batch, texts = read_batch([document]), [engine.table.text(entry) for entry in range(len(engine.table))]
    mask = np.array([skip is not None and text in skip for text in texts])
    _, entries = engine.match_batch(batch) if skip is None else engine.match_except(batch, mask)
    return {texts[entry] for entry in entries}


@pytest.mark.parametrize(
    ("xpath", "document", "expected"),
    [
        # The last `*` of a path only demands an element that far below.
        ("/a/*/*", "<a><b/><c><d/></c></a>", True),
        ("/a/*/*", "<a><b/><c/></a>", False),
        ("//b/*/*", "<a><b><c/></b><b><c/><c><d/></c></b></a>", True),
        ("//a[b][*/*]", "<a><a><b/></a><c><d/></c></a>", False),
        ("//a[b][*/*]", "<a><b/><c><d/></c></a>", True),
        ("/*[*/*][@k]", "<a k='1'><b/><c><d/></c></a>", True),
        # Below a `*` that branches, any element may occur.
        ("//*[b][c]", "<u><v><b/><c/></v></u>", True),
        ("//*[b]//*[c]", "<u><b/><v><w><c/></w></v></u>", True),
        ("//*[b]//*[c]", "<u><b/><c/></u>", False),
        ("/u/*[b]//c", "<u><v><b/><w><c/></w></v></u>", True),
        # A substring that ends at several levels: each has its own partial matching.
        ("//a[b]/a[c]", "<a><b/><a><a><c/></a></a></a>", False),
        ("//a[b]/a[c]", "<a><a><b/><a><c/></a></a></a>", True),
        ("//a[b]//a[c]", "<a><b/><a><a><c/></a></a></a>", True),
        ("/a/a[b][.//c]", "<a><a><a><b/><c/></a></a></a>", False),
        ("//a/a[b][.//c]", "<a><a><a><b/><c/></a></a></a>", True),
        # An attribute anywhere inside, of the element itself, too.
        ("/a[.//@k][b]", "<a k='1'><b/></a>", True),
        ("/a[.//@k = 1][b]", "<a k='2'><b><c k='1'/></b></a>", True),
        ("/r/a[.//@k][b]", "<r k='1'><a><b/></a><a k='1'/></r>", False),
        ("//*[@k = 1]/b", "<a><a k='1'><b/></a></a>", True),
        ("//*[@k = 1]", "<a><a k='2'><b k='1'/></a></a>", True),
        # Levels in reach, at most and at least.
        ("//a/*/*/b[@k]", "<a><a><c><c><b k='1'/></c></c></a></a>", True),
        ("//a/*/*/b[@k]", "<a><a><c><b k='1'/></c></a></a>", True),
        ("/a/*/*/b[@k]", "<a><a><c><c><b k='1'/></c></c></a></a>", False),
        ("/a[@k]/*//b[c]", "<a k='1'><b><c/></b></a>", False),
        ("/a[@k]/*//b[c]", "<a k='1'><d><b><c/></b></d></a>", True),
        # Tests of text wait for the end tag, also those of branches that are complete before it.
        ("//a[b = 5][c]", "<a><c/><b>5</b></a>", True),
        ("//a[b[c] = 5]/d", "<a><b>5<c/></b><d/></a>", True),
        ("//a[b[c] = 5]/d", "<a><b>5</b><b>6<c/></b><d/></a>", False),
        ("//a[text() = 'x'][b]", "<a><a>x</a><b/>y</a>", False),
    ],
)
def test_rows_match_at_levels_in_reach(xpath: str, document: str, expected: bool) -> None:
    engine = engine_for(xpath)
    assert answers(engine, [document]) == [[0] if expected else []]
    assert engine.statistics()["delegated patterns"] == 0


def drawn_table(random: Random, count: int) -> PatternTable:
    """Patterns of which none is delegated, nor waits for an end tag."""
    xpaths: list[str] = []
    while len(xpaths) < count:
        xpath = random_pattern(random)
        if is_conjunctive(parse(xpath)):
            xpaths.append(xpath)
    return table_of(xpaths)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(15))
def test_it_agrees_with_the_reference_where_names_repeat(seed: int) -> None:
    random = Random(seed)
    table = drawn_table(random, 120)
    documents = [random_element(random, 5) for _ in range(8)]
    engine = XTrieEngine.build(table)
    assert answers(engine, documents) == answers(ReferenceEngine.build(table), documents)
    assert engine.statistics()["delegated patterns"] == 0


@pytest.mark.parametrize("seed", range(10))
def test_a_match_is_certain_at_the_first_start_tag_after_which_the_document_matches(seed: int) -> None:
    random = Random(seed)
    table = drawn_table(random, 40)
    document = read_batch([random_element(random, 4)])[0]
    stream = XTrieEngine.build(table).match_stream(document)
    after = [set(entries) for entries in answers(ReferenceEngine.build(table), beginnings(document))]
    expected = {entry: next(n + 1 for n, entries in enumerate(after) if entry in entries) for entry in after[-1]}
    assert dict(zip(stream.entries.tolist(), stream.positions.tolist(), strict=True)) == expected


def test_what_is_skipped_makes_nothing_live_and_nothing_partial() -> None:
    xpaths = {"/a/b//c", "/a/b//d", "/a[b][c]", "/a[@k]/b", "/a[not(b)]", "//b/*"}
    engine, document = engine_for(*xpaths), "<a k='1'><b><c/><d/></b><c/></a>"
    everything = {engine.table.text(entry) for entry in range(len(xpaths))}
    assert len(found(engine, document)) == 5
    before = engine.statistics()
    assert not found(engine, document, everything)
    after = engine.statistics()
    for count in ("partial matchings", "selections tried", "delegated documents"):
        assert after[count] == before[count]
    assert not engine._scratch.wanted_rows.any()
    assert found(engine, document, everything - {"/a/b//d"}) == {"/a/b//d"}
    assert int(engine._scratch.wanted_rows.sum()) == 3, "the document, /a/b and the row below it"


@pytest.mark.parametrize("seed", range(5))
def test_a_document_that_finds_no_room_is_run_again(seed: int) -> None:
    random = Random(seed)
    table = drawn_table(random, 150)
    table.enter(["//a[not(b)]", "//b[. = '1' or k]"])
    documents = [random_element(random, 5) for _ in range(6)]
    expected = answers(ReferenceEngine.build(table), documents)
    engine = XTrieEngine.build(table)
    scratch = engine._scratch

    def cramp() -> None:
        live, occurrences = np.zeros((2, V_ROWS, 1), dtype=np.int32)
        partial, ready = np.zeros((1, P_COLUMNS), dtype=np.int64), np.zeros((Y_ROWS, 1), dtype=np.int32)
        scratch.stacks = scratch.stacks._replace(live=live, occurrences=occurrences, partial=partial, ready=ready)
        scratch.out, scratch.gates = np.zeros((2, 1), dtype=np.int32)

    cramp()
    assert answers(engine, documents) == expected
    for document, entries in zip(read_batch(documents), expected, strict=True):
        cramp()
        assert engine.match_stream(document).entries.tolist() == entries


def test_deep_documents_of_one_name_cost_each_branch_of_a_partial_matching_once() -> None:
    """Each `//` could bind each of many levels; there is at most one matching per row and element."""
    depth, width = 300, 300
    xpaths = ["//a[b]" + "//a[.//b]" * 6 + "[d]", "//a[.//b][.//a[.//b][.//d]]", "//*[.//b]//*[.//b]//*[d]"]
    engine = engine_for(*xpaths)
    document = "<a>" * depth + "<a><b/></a>" * width + "</a>" * depth
    assert answers(engine, [document]) == [[]]
    made = engine.statistics()["partial matchings"]
    assert made <= engine.statistics()["rows of twigs"] * (depth + 2 * width)


def test_an_opened_engine_has_the_tables_that_were_kept() -> None:
    table = table_of(["/a/b//c[@k]", "//a[b][c]", "/a/*", "//d[not(e)]"])
    built = XTrieEngine.build(table)
    opened = XTrieEngine.restore(table, built.arrays())
    for document, count in (("<a><b><x><c k='1'/></x></b></a>", 2), ("<a><b/><c/><d/></a>", 3)):
        assert found(opened, document) == found(built, document)
        assert len(found(opened, document)) == count


def test_kernels_stay_inside_their_arrays_as_numba_checks_it(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--long"):
        pytest.skip("kernels with checks take long to compile; run with --long")
    here = [__file__, str(_CHECKOUT / "tests/matching/test_cases.py"), "-k", "xtrie and not numba"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *here],
        capture_output=True, text=True, cwd=_CHECKOUT, timeout=3600, check=False,
        env={**os.environ, "NUMBA_BOUNDSCHECK": "1", "PATHCAST_CACHE": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
