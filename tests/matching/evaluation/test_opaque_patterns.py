"""Opaque patterns: exact in every engine, from disk, from other processes and after changes, within bounded work."""

from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest

import pathcast
from pathcast import LimitError, Limits, Subscriptions
from pathcast.documents import Names, pack, read, read_batch, unpack
from pathcast.matching import Streaming, Tuning, engines
from pathcast.matching.evaluation import CompiledExpression, NodesOfBatch
from pathcast.matching.explain import find_parts
from pathcast.matching.table.pattern_shard_merging import compile_shard, merge_shard, packed, unpacked
from pathcast.patterns import parse
from pathcast.patterns.parsing import MAX_STEPS
from pathcast.patterns.xpath import ExpressionParser
from tests import oracle
from tests.generators.xpath import NAMESPACES, Expressions, document

HOSTILE = "//*[count(.//*[count(.//*) >= 0]) > 0]"
WIDE = "<r>" + "<a><b/></a>" * 3_000 + "</r>"


class Drawn:
    """Documents and expressions of a seed, with lxml's answers."""

    def __init__(self, seed: int, expressions: int = 50) -> None:
        random = Random(seed)
        self.documents = [document(random) for _ in range(10)]
        self.expressions = [Expressions(random).subscription() for _ in range(expressions)]
        trees = [oracle.read(text.encode()) for text in self.documents]
        asked = [oracle.ask(text, NAMESPACES) for text in self.expressions]
        self.expected = [
            [number for number, question in enumerate(asked, 1) if oracle.answer(question, tree)] for tree in trees
        ]


def answers(matcher: pathcast.Matcher, documents: list[str]) -> list[list[int]]:
    return [matches.ids.tolist() for matches in matcher.match_many(documents)]


@pytest.mark.parametrize("engine", engines())
@pytest.mark.parametrize("seed", range(3))
def test_every_engine_agrees_with_lxml(seed: int, engine: str, tmp_path: Path) -> None:
    drawn = Drawn(seed)
    subscriptions = Subscriptions(NAMESPACES)
    subscriptions.add_many(drawn.expressions)
    matcher = subscriptions.compile(engine)
    assert answers(matcher, drawn.documents) == drawn.expected
    assert [matcher.match(text).ids.tolist() for text in drawn.documents] == drawn.expected
    matcher.save(tmp_path / "index")
    assert answers(pathcast.open_index(tmp_path / "index"), drawn.documents) == drawn.expected
    assert answers(pathcast.open_index(tmp_path / "index", trusted=False), drawn.documents) == drawn.expected


@pytest.mark.parametrize("engine", [name for name in engines() if name in ("yfilter", "xtrie", "gpx-ap")])
def test_a_stream_has_the_same_answers(engine: str) -> None:
    drawn = Drawn(11)
    subscriptions = Subscriptions(NAMESPACES)
    subscriptions.add_many(drawn.expressions)
    matcher = subscriptions.compile(engine)
    stream = matcher.engine
    assert isinstance(stream, Streaming)
    entries = [subscriptions.table.enter_one(text)[0] for text in drawn.expressions]
    for text, expected in zip(drawn.documents, drawn.expected, strict=True):
        read = read_batch([text], names=subscriptions.table.names)[0]
        found = stream.match_stream(read)
        assert [number for number, entry in enumerate(entries, 1) if entry in found.entries] == expected
        # With links, one match of each link suffices.
        link = np.arange(len(subscriptions.table), dtype=np.int32) % 3
        reached = {int(link[entries[number - 1]]) for number in expected}
        assert set(link[stream.match_stream(read, link=link).entries].tolist()) == reached


def test_changes_leave_the_answers_exact() -> None:
    drawn = Drawn(5, 80)
    subscriptions = Subscriptions(NAMESPACES, tuning=Tuning(unused_entries=10))
    matcher = subscriptions.compile()
    random, present = Random(5), set[int]()
    for round_ in range(40):
        for number in random.sample(range(1, 81), 15):
            if number in present:
                subscriptions.remove(number)
                present.remove(number)
            else:
                subscriptions.add_many([drawn.expressions[number - 1]], ids=[number])
                present.add(number)
        at = round_ % len(drawn.documents)
        wanted = [number for number in drawn.expected[at] if number in present]
        assert matcher.match(drawn.documents[at]).ids.tolist() == wanted


def test_shards_of_another_process_are_merged() -> None:
    drawn = Drawn(7)
    subscriptions = Subscriptions(NAMESPACES)
    matcher = subscriptions.compile()
    subscriptions.add_many(drawn.expressions[:5])
    shard = unpacked(packed(compile_shard(drawn.expressions, NAMESPACES, MAX_STEPS, "automaton")))
    merged = merge_shard(subscriptions.table, matcher.engine, shard)  # type: ignore[arg-type]
    matcher.engine.refresh()
    batch = read_batch(drawn.documents, names=subscriptions.table.names)
    offsets, entries = matcher.engine.match_batch(batch)
    for index, expected in enumerate(drawn.expected):
        found = set(entries[offsets[index] : offsets[index + 1]].tolist())
        left = set(merged.left)
        wanted = {number for number in expected if number - 1 not in left}
        assert {n for n, e in enumerate(merged.entries.tolist(), 1) if e in found and n - 1 not in left} == wanted


def test_packed_documents_have_the_same_answers() -> None:
    drawn = Drawn(9)
    subscriptions = Subscriptions(NAMESPACES)
    subscriptions.add_many(drawn.expressions)
    matcher = subscriptions.compile()
    batch = read_batch([*drawn.documents, drawn.documents[0].encode("utf-16")])
    names: Names = subscriptions.table.names
    again = unpack(*pack(batch), batch.data, batch.data_offsets, names)
    offsets, ids = matcher.match_batch(again)
    found = [sorted(ids[begin:end].tolist()) for begin, end in pairwise(offsets)]
    assert found == [*drawn.expected, drawn.expected[0]]


def test_ignored_namespaces_are_ignored_in_expressions() -> None:
    text = "<x:a xmlns:x='urn:x'><b/><x:b n='1'/></x:a>"
    subscriptions = Subscriptions("ignore")
    subscriptions.add_many(["/a/b[2]/@n", "//q:b[2]", "//b/parent::a", "//*[name() = 'x:b']", "/a/q:*[3]"])
    for engine in engines():
        assert subscriptions.compile(engine).match(text).ids.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("engine", engines())
def test_an_expression_beyond_the_limit_fails_its_document_alone(engine: str) -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many([HOSTILE, "//a", "//b[2]"])
    matcher = subscriptions.compile(engine, limits=Limits(evaluation=1_000_000))
    wide = "<r>" + "<a><b/></a>" * 5 + "<c>" * 900 + "<a/>" * 4_000 + "</c>" * 900 + "</r>"
    first, failed, last = matcher.match_many(["<r><a/></r>", wide, "<a><b/><b/></a>"], errors="return")
    assert not isinstance(first, pathcast.PathcastError) and first.ids.tolist() == [1, 2]
    assert not isinstance(last, pathcast.PathcastError) and last.ids.tolist() == [1, 2, 3]
    assert isinstance(failed, LimitError)
    assert HOSTILE in failed.reason and "Limits(evaluation=…)" in failed.reason
    with pytest.raises(LimitError):
        matcher.match(wide)


def test_the_work_of_an_evaluation_is_bounded() -> None:
    compiled = CompiledExpression(ExpressionParser("//a[.//b = //a//b]", None, 256, 64).subscription())
    nodes = NodesOfBatch(read_batch([WIDE]), ignore_namespaces=False).of(0, compiled)
    assert compiled.holds(nodes, 1 << 20)
    assert (1 << 20) - nodes.work < 40 * 6_000


def test_absolute_paths_are_evaluated_once() -> None:
    subscriptions = Subscriptions()
    subscriptions.add("//a[count(//*[count(//b) > 2]) > 1_0]".replace("_", ""))
    assert subscriptions.compile(limits=Limits(evaluation=100_000)).match(WIDE).ids.tolist() == [1]


def accepted(subscriptions: Subscriptions, expression: str) -> bool:
    """Add an expression unless it is nested too deeply."""
    try:
        subscriptions.add(expression)
    except LimitError as error:
        if "nested more than" not in error.reason:
            raise
        return False
    return True


def test_deeply_nested_expressions_are_evaluated() -> None:
    deepest = []
    for nest in (
        "b[1 < 2 + 3 * count({} | c) and c or d]",
        "b[not({})]",
        "b[{}]",
        "b[(({}) = 1)]",
        "b[1 + (2 + ({}))]",
    ):
        subscriptions, nested = Subscriptions(), "b[2]"
        while accepted(subscriptions, f"/a[{nested}]"):
            nested = nest.format(nested)
        text = "<b/><b/><c/>"
        for _ in range(40):
            text = f"<b>{text}</b><b/><c/>"
        subscriptions.compile().match(f"<a>{text}</a>")
        deepest.append(len(subscriptions))
    assert min(deepest) > 8


def test_statistics_count_evaluations() -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(["//a", "//b[@x][2]", "//c[@x][2]", "//b[2]"])
    matcher = subscriptions.compile()
    matcher.match("<a><b x=''/></a>")
    matcher.match("<a><b x=''/><b x=''/></a>")
    counted = matcher.statistics()
    assert (counted["opaque patterns"], counted["opaque patterns by places"]) == (3, 1)
    assert (counted["full evaluations"], counted["full evaluations that match"]) == (2, 1)
    assert counted["most expensive"][0]["xpath"] == "//b[@x][2]"
    assert counted["most expensive"][0]["tried on"] == 2


@pytest.mark.parametrize("seed", range(4))
def test_explanations_agree_with_the_answers(seed: int) -> None:
    drawn = Drawn(seed + 20, 25)
    subscriptions = Subscriptions(NAMESPACES)
    subscriptions.add_many(drawn.expressions)
    matcher = subscriptions.compile()
    for text, expected in zip(drawn.documents, drawn.expected, strict=True):
        for number in range(1, 26):
            explanation = matcher.explain(text, number)
            assert explanation.matches is (number in expected)
            assert str(explanation)
            assert bool(explanation.nearest) is not explanation.matches


def test_an_explanation_shows_the_step_that_selects_nothing() -> None:
    subscriptions = Subscriptions()
    subscriptions.add("//p[2]/following-sibling::q")
    explanation = subscriptions.compile().explain("<r><p/><p/></r>", 1)
    assert [(step.text, step.holds) for step in explanation.steps] == [
        ("//p[2]", True),
        ("/following-sibling::q", False),
    ]
    assert explanation.steps[0].places[0].path == "/r/p[2]"
    assert explanation.nearest == "`/following-sibling::q` selects no node"


def test_an_expression_beyond_the_limit_matches_no_document_that_was_accepted_earlier() -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(["//*[count(.//*[count(.//*) >= 0]) > 1000000]", "//a"])
    view = subscriptions.compile().view().within(Limits(evaluation=1 << 60))
    wide = "<r>" + "<c>" * 900 + "<a/>" * 8_000 + "</c>" * 900 + "</r>"
    batch = read_batch([wide], names=subscriptions.table.names)
    assert view.match_ids(batch)[1].tolist() == [2]
    assert not batch.errors


def test_the_nodes_that_an_expression_selects_are_its_parts() -> None:

    text = "<r><p x='1'/><p>two</p><!--c--></r>"
    for expression, wanted in (
        ("//p[2]", ["<p>two</p>"]),
        ("//p[1]/@*", ["x='1'"]),
        ("//p | //q[1]", ["<p x='1'/>", "<p>two</p>"]),
        ("count(//p) = 2 and //p[2]", []),
    ):
        parts = find_parts(read(text), parse(expression), None, 10).parts
        assert [text[part.begin : part.end] for part in parts] == wanted
