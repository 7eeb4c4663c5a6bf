"""The automaton engine's own guarantees: what it caches, what it tries, and that neither changes an answer."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pathcast
from pathcast import Subscriptions
from pathcast.documents import read_batch
from pathcast.kernels import kernel
from pathcast.matching import Tuning
from pathcast.matching.automaton.values.value_comparison_kernels import number
from pathcast.patterns.xpath_value_comparison import number_of
from pathcast.workloads import SubscriptionOptions, generate_documents, generate_subscriptions, news_schema

DOCUMENTS = list(generate_documents(news_schema(), 60, seed=11))


def matcher_for(xpaths: list[str], engine: str = "automaton", tuning: Tuning | None = None) -> pathcast.Matcher:
    subscriptions = Subscriptions(tuning=tuning)
    subscriptions.add_many(xpaths)
    return subscriptions.compile(engine=engine)


def answers(matcher: pathcast.Matcher, documents: list[bytes] = DOCUMENTS) -> list[list[int]]:
    return [list(found) for found in matcher.match_many(documents)]


def test_it_is_the_default() -> None:
    assert Subscriptions().compile().engine_name == "automaton"


def test_a_document_seen_before_needs_no_new_state() -> None:
    matcher = matcher_for(["/news//p", "//title", "/news/*/section"])
    answers(matcher)
    before = matcher.statistics()
    answers(matcher)
    after = matcher.statistics()
    assert before["states"] == after["states"] > 3 and before["new label paths"] == after["new label paths"] > 0


def test_names_that_nobody_asks_for_are_one_symbol() -> None:
    matcher = matcher_for(["/a/b", "//c"])
    documents = [b"<a>" + b"".join(b"<n%d><m%d/></n%d>" % (n, n, n) for n in range(start, start + 50)) + b"</a>"
                 for start in range(0, 500, 50)]  # fmt: skip
    answers(matcher, documents)
    assert matcher.statistics()["states"] <= 4


def test_copies_of_a_subscription_are_one_pattern() -> None:
    matcher = matcher_for(["//p", "p", ".//p"] * 1000)
    assert matcher.statistics()["patterns"] == 1
    assert list(matcher.match(b"<p/>")) == list(range(1, 3001))


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 1 << 16])
def test_forgetting_states_changes_no_answer(limit: int) -> None:
    xpaths = generate_subscriptions(news_schema(), 300, SubscriptionOptions(max_depth=7, predicates=1), seed=4)
    documents = [*DOCUMENTS, *generate_documents(news_schema(), 200, seed=12)]
    wanted = answers(matcher_for(xpaths), documents)
    matcher = matcher_for(xpaths, tuning=Tuning(state_bytes=limit))
    assert [list(matcher.match(document)) for document in documents] == wanted
    statistics = matcher.statistics()
    assert limit > 1 or statistics["evictions"] == statistics["simulated"] > 10


@pytest.mark.slow
def test_a_warm_memo_travels_with_the_index(tmp_path: Path) -> None:
    xpaths = generate_subscriptions(
        news_schema(), 500, SubscriptionOptions(max_depth=7, nested_probability=0.1), seed=5
    )
    matcher = matcher_for(xpaths)
    wanted = answers(matcher)
    matcher.save(tmp_path / "warm")
    matcher.save(tmp_path / "cold", memo=False)
    warm, cold = pathcast.open_index(tmp_path / "warm"), pathcast.open_index(tmp_path / "cold")
    assert answers(warm) == answers(cold) == wanted
    assert warm.statistics()["new label paths"] == 0 < cold.statistics()["new label paths"]
    fresh = list(generate_documents(news_schema(), 40, seed=99))
    assert answers(warm, fresh) == answers(matcher, fresh)
    assert warm.statistics()["new label paths"] > 0, "new label paths are worked out on top of the warm ones"


def test_a_value_that_no_document_has_makes_no_candidate() -> None:
    matcher = matcher_for([f"//trade[@symbol = 'S{n}']" for n in range(2000)] + ["//trade[@lot = 7.50]/leg"])
    assert list(matcher.match(b"<r><trade symbol='S77'/><trade symbol='other' lot='7.5'/></r>")) == [78]
    assert matcher.statistics()["candidates"] == 1, "one by value; the other's gate is shut"
    assert list(matcher.match(b"<trade lot=' 7.5000 '><leg/></trade>")) == [2001]
    assert matcher.statistics()["candidates"] == 2


def test_a_shut_gate_makes_no_candidate() -> None:
    matcher = matcher_for(["/a[@x > 1]/b/c", "/a/b[not(d)]/c[e = 5]", "//*[@k]"])
    assert list(matcher.match(b"<a x='5'><b><e>5</e></b></a>")) == []
    assert matcher.statistics()["candidates"] == 1, "//*[@k] demands some element only"


@pytest.mark.slow
@pytest.mark.parametrize("namespaces", [None, "ignore"])
def test_it_agrees_with_the_reference_on_news(namespaces: str | None) -> None:
    xpaths = generate_subscriptions(
        news_schema(), 400, SubscriptionOptions(predicates=1, nested_probability=0.15, max_depth=6), seed=6
    )
    found = []
    for engine in ("automaton", "reference"):
        subscriptions = Subscriptions(namespaces=namespaces)  # type: ignore[arg-type]
        subscriptions.add_many(xpaths)
        found.append(answers(subscriptions.compile(engine=engine), DOCUMENTS[:20]))
    assert found[0] == found[1]


read_number = kernel("float64(ro_u1[::1], int64, int64)", late=True)(number.py_func)  # type: ignore[attr-defined]


@pytest.mark.slow
@settings(max_examples=2000)
@given(st.one_of(st.text("0123456789.eE+- \t", max_size=30), st.floats(allow_nan=False).map(repr), st.text(max_size=6)))
def test_kernels_read_numbers_as_the_plain_twin_does(text: str) -> None:
    wanted = number_of(text)
    data = np.frombuffer(text.encode("utf-8", "ignore"), dtype=np.uint8)
    found = read_number(data, 0, len(data))
    assert found == wanted or (math.isnan(found) and math.isnan(wanted)), (text, found, wanted)


def test_paths_that_come_after_trees_are_found_beside_them() -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(["//a[@x = '1']", "//b"])
    matcher = subscriptions.compile()
    document = b"<a x='1'>" + b"".join(b"<n%d/>" % place for place in range(300)) + b"</a>"
    assert list(matcher.match(document)) == [1]
    for place in range(300):
        subscriptions.add(f"/a/n{place}")
        assert list(matcher.match(document)) == [1, *range(3, 4 + place)]


def test_a_fresh_pattern_costs_nothing_where_its_gate_is_shut() -> None:
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many(["/a/b", "/a[c]/b"])
    matcher = subscriptions.compile()
    fresh = [
        "/a[x]/b",
        "//new[@k != 1]/b/c",
        "/a[not(b)]",
        "//@k",
        "/a/b[. = 2]",
        "//other[@k or b]",
        "/x/y//z[not(c)]",
    ]
    for xpath in fresh:
        subscriptions.add(xpath)
    documents = ["<a><b>2</b></a>", "<b/>", "<a><new k='2'><b><c/></b></new></a>", "<a k='1'><x/><b/></a>", "<other/>"]
    reference = subscriptions.compile(engine="reference")
    looked_at = []
    for document in documents:
        before = matcher.statistics()["candidates"]
        assert matcher.match(document).ids.tolist() == reference.match(document).ids.tolist()
        looked_at.append(matcher.statistics()["candidates"] - before)
    assert matcher.statistics()["pending patterns"] == len(fresh)
    # Those that any document might match, those whose path it has, and those behind "/a[c]/b".
    assert looked_at == [5, 1, 3, 5, 2]


@pytest.mark.parametrize("documents", [1, 2, 3])
def test_answers_stay_what_they_are_when_more_documents_are_matched(documents: int) -> None:
    """Also if no pattern with a predicate matches: the entries of plain paths are not those of a reused buffer."""
    subscriptions = Subscriptions()
    subscriptions.add_many(["/a", "/b", "//x[@k = 1]", "//x[y][z]", "//x[not(y)]/z"])
    matcher = subscriptions.compile(engine="automaton")
    _, before = matcher.engine.match_batch(read_batch(["<a/>"] * documents))
    _, after = matcher.engine.match_batch(read_batch(["<b/>"] * documents))
    assert before.tolist() == [0] * documents
    assert after.tolist() == [1] * documents
