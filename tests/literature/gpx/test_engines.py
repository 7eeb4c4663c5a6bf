"""The GPX engines: agreement with the reference on documents full of repeated tags, in all modes."""

from pathlib import Path
from random import Random

import numpy as np
import numpy.typing as npt
import pytest

import pathcast
from pathcast import LimitError, Limits, Subscriptions
from pathcast.documents import DocumentBatch, read_batch
from pathcast.literature.gpx import GpxEngine, GpxFirstEngine, GpxLastEngine
from pathcast.literature.gpx import predicate_numbering_kernels as predicate_kernels
from pathcast.literature.gpx.document_matching_kernels import MOST_REPEATS
from pathcast.literature.gpx.pattern_table_encoder import encode_table
from pathcast.literature.gpx.predicate_lookup_tables import Columns
from pathcast.literature.gpx.predicate_numbering_kernels import AT_LEAST, EQUAL
from pathcast.literature.gpx.step_positions import Tag
from pathcast.literature.gpx.xpath_as_boolean_predicates import (
    Distance,
    FromEnd,
    Length,
    Operator,
    Position,
    Predicate,
    predicates,
)
from pathcast.matching.engine_contract import Engine
from pathcast.matching.reference import ReferenceEngine
from pathcast.matching.table.pattern_table import PatternTable
from pathcast.patterns import Namespaces
from pathcast.workloads import generate_documents, generate_subscriptions, news_schema
from tests.literature.gpx.drawn import random_element, random_path, random_pattern

FAMILY = [GpxEngine, GpxLastEngine, GpxFirstEngine]
every_engine = pytest.mark.parametrize("engine", FAMILY)
every_way = pytest.mark.parametrize("reuse", [False, True])


def table_of(xpaths: list[str], namespaces: Namespaces = None) -> PatternTable:
    subscriptions = Subscriptions(namespaces=namespaces)
    subscriptions.add_many(xpaths)
    return subscriptions.table


def answers(engine: Engine, texts: list[str]) -> list[list[int]]:
    offsets, entries = engine.match_batch(read_batch(texts))
    return [entries[offsets[i] : offsets[i + 1]].tolist() for i in range(len(texts))]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_they_answer_as_the_reference_does(seed: int) -> None:
    random = Random(seed)
    table = table_of([random_pattern(random) for _ in range(30)])
    texts = [random_element(random) for _ in range(8)]
    expected = answers(ReferenceEngine.build(table), texts)
    for engine in FAMILY:
        for reuse in (False, True):
            assert answers(engine(table, reuse=reuse), texts) == expected, (engine.name, reuse)


NEWS = [document.decode() for document in generate_documents(news_schema(), 40, seed=5)]
QUERIES = generate_subscriptions(news_schema(), 1500, seed=6)


@every_engine
@every_way
def test_they_answer_as_the_default_engine_does_on_news(engine: type, reuse: bool) -> None:
    table = table_of(list(QUERIES))
    matcher = engine(table, reuse=reuse)
    from pathcast.matching.automaton import AutomatonEngine

    assert answers(matcher, NEWS) == answers(AutomatonEngine.build(table), NEWS)
    counts = matcher.statistics()
    assert counts["delegated documents"] == 0 and counts["publications"] >= len(NEWS)


def test_paths_from_the_trie_have_the_predicates_of_the_encoding() -> None:
    """A kernel encodes the trie's paths in bulk; `xpath_as_boolean_predicates.py` defines the expected result."""
    random = Random(3)
    table = table_of([random_path(random, 7) for _ in range(300)])
    paths = encode_table(table)
    columns = Columns(paths)
    operator: dict[int, Operator] = {EQUAL: "=", AT_LEAST: ">="}

    def predicate(number: int) -> Predicate:
        first = Tag(table.names[int(columns.tag[number])], int(columns.first[number]))
        value, compares = int(columns.value[number]), operator[int(columns.operator[number])]
        match int(columns.kind[number]):
            case predicate_kernels.POSITION:
                return Position(first, compares, value)
            case predicate_kernels.FROM_END:
                return FromEnd(first, value)
        second = Tag(table.names[int(columns.other[number])], int(columns.second[number]))
        return Distance(first, second, compares, value)

    assert len(paths.entry) + len(paths.lengths) == len(table) and paths.lengths
    for path, entry in enumerate(paths.entry.tolist()):
        mine = paths.predicates[paths.begin[path] : paths.begin[path + 1]].tolist()
        assert tuple(map(predicate, mine)) == predicates(table.pattern(entry)), table.text(entry)
    for length, entry in paths.lengths:
        assert predicates(table.pattern(entry)) == (Length(length),)


def test_reuse_evaluates_fewer_tuples_and_checks_fewer_paths() -> None:
    table = table_of([f"//{a}//{b}" for a in "abc" for b in "def"])
    text = "<a><b><c><d/><e/><f/><d/><e/><f/></c></b></a>"
    apart, shared = GpxLastEngine(table), GpxLastEngine(table, reuse=True)
    assert answers(apart, [text]) == answers(shared, [text]) == [list(range(9))]
    assert shared.statistics()["tuples"] < apart.statistics()["tuples"]
    assert shared.statistics()["predicates satisfied"] < apart.statistics()["predicates satisfied"]


@every_engine
def test_clusters_check_only_paths_whose_access_predicate_holds(engine: type[GpxEngine]) -> None:
    table = table_of([f"/a/{tag}" for tag in "bcdefgh"])
    matcher = engine(table)
    assert answers(matcher, ["<a><b/></a>"]) == [[0]]
    counts = matcher.statistics()
    name = "hits counted" if engine is GpxEngine else "paths checked"
    # gpx: p(a) = 1 is in seven paths, d(a, b) = 1 in one. By the last predicate one path, by the first all seven.
    assert counts[name] == {GpxEngine: 8, GpxLastEngine: 1, GpxFirstEngine: 7}[engine]
    assert counts["paths compared"] == (7 if engine is GpxEngine else 0)


# The power set, and delegation.


@every_engine
@every_way
def test_too_many_repetitions_go_to_another_engine_and_are_counted(engine: type, reuse: bool) -> None:
    table = table_of(["/a" * 5, "//a" * 12, "/a//b", "//b[@k]", "//a[b or c]", "/*/*", "//a[b]/a"])
    deep = "<a>" * (MOST_REPEATS + 2) + "<b k='1'/>" + "</a>" * (MOST_REPEATS + 2)
    fits = "<a>" * (MOST_REPEATS + 1) + "<b/>" + "</a>" * (MOST_REPEATS + 1)
    matcher = engine(table, reuse=reuse)
    texts = ["<a/>", deep, fits, "<b k=''/>"]
    assert answers(matcher, texts) == answers(ReferenceEngine.build(table), texts)
    assert matcher.statistics()["delegated documents"] == 1
    assert matcher.statistics()["delegated patterns"] == 1


@every_engine
def test_a_document_with_too_many_tuples_is_delegated(engine: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wide document of deep paths that repeat tags: each path is within bounds, the document is not."""
    spine = "<a>" * 11 + "<b/>" * 700 + "</a>" * 11
    matcher = engine(table_of(["//a/b", "//a//a/b"]))
    assert answers(matcher, [spine, "<a><b/></a>"]) == [[0, 1], [0]]
    assert matcher.statistics()["delegated documents"] == 1


@every_engine
def test_names_that_no_pattern_has_repeat_for_free(engine: type) -> None:
    matcher = engine(table_of(["//b", "//k[@u]"]))
    assert answers(matcher, ["<u>" * 40 + "<b/>" + "</u>" * 40]) == [[0]]
    assert matcher.statistics()["publications"] == 1


# Not conjunctions; text and functions; an attribute of any element below; a `*` without a fixed position; more parts
# than bits; a comparison with infinity.
DELEGATED = [
    "//a[not(b)]", "//a[b or c]", "//a[. = 1]", "//a[contains(@k, '2')]", "//a[contains(., 'x')]", "//a//@k", "//@k",
    "//a/text()", "//*[@k]", "//a[b]//*[c]//*[a][b]", "//a" + "".join(f"[x{n}]" for n in range(63)),
    f"//a[@k < {'9' * 400}]",
]  # fmt: skip


@every_engine
def test_delegated_patterns_are_counted_and_answered(engine: type) -> None:
    table = table_of([*DELEGATED, "//a/b"])
    matcher = engine(table)
    texts = ["<a k='2'><b/></a>", "<c>x<a>x</a></c>", "<a><b/><c/></a>"]
    assert answers(matcher, texts) == answers(ReferenceEngine.build(table), texts)
    assert matcher.statistics()["delegated patterns"] == len(DELEGATED)
    assert answers(matcher, []) == []


TAKEN = [
    "/*[@k]", "/*/*[@k = 2]/*", "/*[@k]//b", "/*[*/*][a]", "/*[@k != 'x'][a/b]", "//a[@k != 2]", "//a[@k != 'x']",
    "//a[@k > 2]", "//a[@k < 2.5]", "//a[@k > 1][@k < 3]", "//a[@l != 1]/b", "/a[/a/b]/c", "//b[/a[@k]][//c]",
    "/*[/*/*/b]",
]  # fmt: skip


@every_engine
@every_way
def test_what_the_calculus_can_say_is_not_delegated(engine: type, reuse: bool) -> None:
    table = table_of(TAKEN)
    random = Random(7)
    texts = [random_element(random, 3) for _ in range(60)] + ["<a k='nan'/>", "<a k=''><b/></a>", "<a k='2'><b/></a>"]
    matcher = engine(table, reuse=reuse)
    found = answers(matcher, texts)
    assert found == answers(ReferenceEngine.build(table), texts)
    assert matcher.statistics()["delegated patterns"] == 0
    assert {entry for entries in found for entry in entries} == set(range(len(table)))


def test_a_delegated_document_that_is_refused_keeps_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing:
        limits = Limits()

        @classmethod
        def build(cls, table: PatternTable) -> "Refusing":
            return cls()

        def match_batch(self, batch: DocumentBatch) -> tuple[object, npt.NDArray[np.int32]]:
            batch.errors[0] = LimitError(f"at most {self.limits.work}")
            return None, np.empty(0, dtype=np.int32)

    monkeypatch.setattr("pathcast.literature.gpx.automaton_delegation.AutomatonEngine", Refusing)
    matcher = GpxEngine(table_of(["//a"]))
    matcher.limits = Limits(work=7)
    batch = read_batch(["<a/>", "<a>" * 20 + "</a>" * 20, "<a/>"])
    offsets, _ = matcher.match_batch(batch)
    assert offsets.tolist() == [0, 1, 1, 2]
    assert {index: error.reason for index, error in batch.errors.items()} == {1: "at most 7"}


# Joins.


@pytest.mark.parametrize(
    ("xpath", "text", "expected"),
    [
        ("/a[b]/c", "<a><b/><c/></a>", True),
        ("/a/c[d][e]", "<a><c><d/></c><c><e/></c></a>", False),
        ("/a[b]/c[d][e]", "<a><b/><c><d/><e/></c></a>", True),
        ("/a[b]/c[d][e]", "<a><c><d/><e/></c></a>", False),
        ("//a[b]//c[d][e]", "<a><b/><a><c><d/><e/></c></a></a>", True),
        ("//a[b]//c[d][e]", "<r><a><b/></a><a><c><d/><e/></c></a></r>", False),
        ("//a[b][c]", "<a><b/><a><c/></a></a>", False),
        ("/*[a][b]", "<r><a/><b/></r>", True),
        ("/*/*[a][b]", "<r><r><a/></r><r><b/></r></r>", False),
        ("//*[a][b]", "<r><r><a/></r><r><a/><b/></r></r>", True),
        ("//a/*[b]/c", "<a><x><b/></x><y><c/></y></a>", False),
        ("//a[.//b[@k = 1]]/c", "<a><c/><x><b k='1'/></x></a>", True),
        ("//a[@k][b][.//a/b]", "<a><b/><a k=''><b/><a><b/></a></a></a>", True),
    ],
)
@every_engine
@every_way
def test_pieces_join_on_the_elements_they_share(
    engine: type, reuse: bool, xpath: str, text: str, expected: bool
) -> None:
    matcher = engine(table_of([xpath]), reuse=reuse)
    assert answers(matcher, [text]) == [[0] if expected else []]
    assert matcher.statistics()["delegated patterns"] == 0


@every_engine
def test_a_join_may_need_more_bindings_than_there_is_room_for_at_first(engine: type) -> None:
    table = table_of(["/r", "//a[b]/c", "//a[c]//a[b]"])
    text = "<r>" + "<a><b/></a>" * 500 + "<a><b/><c/></a>" + "</r>"
    assert answers(engine(table), [text, "<r/>"]) == [[0, 1], [0]]


# Snapshots and changes.


@pytest.mark.parametrize("name", ["gpx", "gpx-ap", "gpx-apf"])
def test_an_index_from_disk_answers_alike_and_goes_on_growing(name: str, tmp_path: Path) -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(["/a/b", "//a[b]/c", "//b[@k = 'v']", "/*", "//a[not(b)]"])
    matcher = subscriptions.compile(engine=name)
    matcher.save(tmp_path / "index")
    again = pathcast.open_index(tmp_path / "index")
    texts = ["<a><b k='v'/><c/></a>", "<b/>"]
    assert [m.ids.tolist() for m in again.match_many(texts)] == [m.ids.tolist() for m in matcher.match_many(texts)]
    number = again.subscriptions.add("//c")
    assert number in again.match(texts[0])


@every_engine
def test_an_index_is_built_anew_only_for_new_patterns(engine: type, monkeypatch: pytest.MonkeyPatch) -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(["//a", "//b"])
    matcher = engine(subscriptions.table)
    before = matcher.arrays()["cells"]
    subscriptions.add("//a")
    subscriptions.remove(2)
    matcher.refresh()
    assert matcher.arrays()["cells"] is before
    subscriptions.add("//c")
    matcher.refresh()
    assert answers(matcher, ["<c/>"]) == [[2]]


def test_a_new_name_reaches_documents_after_the_refresh() -> None:
    subscriptions = Subscriptions()
    subscriptions.add("//a")
    matcher = subscriptions.compile(engine="gpx-ap")
    assert matcher.match("<a><new k='1'/></a>").ids.tolist() == [1]
    subscriptions.add_many(["//new", "//new[@k >= 1]"])
    assert matcher.match("<a><new k='1'/></a>").ids.tolist() == [1, 2, 3]
    assert matcher.statistics()["publications"] == 2


@every_engine
def test_an_empty_table_and_an_empty_batch(engine: type) -> None:
    assert answers(engine(table_of([])), ["<a/>"]) == [[]]
    assert answers(engine(table_of(["//a"])), []) == []


def test_attributes_of_one_local_name_are_asked_together_where_namespaces_are_ignored() -> None:
    table = table_of(["//a[@k = 1][@k = 2]", "//a[@k[. >= 2][. <= 1]]", "//a[@k >= 2][@k <= 1]"], namespaces="ignore")
    texts = ["<a xmlns:p='u' xmlns:q='v' p:k='1' q:k='2'/>", "<a k='1'/>"]
    for engine in FAMILY:
        assert answers(engine(table), texts) == answers(ReferenceEngine.build(table), texts)
