"""The BPA engine: chains of occurrences, and delegation."""

from pathlib import Path

import numpy as np
import pytest

import pathcast
from pathcast import Subscriptions
from pathcast.documents import DocumentBatch, read_batch
from pathcast.literature.bpa.document_matching_kernels import LONGEST
from pathcast.matching.engine_contract import Engine
from pathcast.workloads import SubscriptionOptions, generate_documents, generate_subscriptions, news_schema

DOCUMENTS = list(generate_documents(news_schema(), 30, seed=3))
PLAIN = generate_subscriptions(
    news_schema(), 400, SubscriptionOptions(max_depth=7, wildcard=0.4, descendant=0.3), seed=3
)
SELECTIVE = generate_subscriptions(news_schema(), 300, SubscriptionOptions(predicates=2), seed=4)


def engine_for(xpaths: list[str], name: str = "bpa") -> Engine:
    subscriptions = Subscriptions()
    subscriptions.add_many(xpaths)
    return subscriptions.compile(engine=name).engine


def rows(engine: Engine, batch: DocumentBatch) -> list[list[int]]:
    offsets, entries = engine.match_batch(batch)
    return [entries[offsets[i] : offsets[i + 1]].tolist() for i in range(len(batch))]


@pytest.mark.parametrize(
    ("xpath", "document", "expected"),
    [
        ("a/b/a/b", b"<a><b><a><c><b/></c></a></b></a>", False),
        ("a/b/a/b", b"<a><b><a><b/></a></b></a>", True),
        ("a/b//a", b"<a><c><b/></c><b><a/></b></a>", True),
        ("a//a/*/a", b"<a><a><b><c/></b></a></a>", False),
        ("a//a/*/a", b"<a><x><a><b><a/></b></a></x></a>", True),
        ("/*/a/*/*", b"<r><a><b/></a></r>", False),
        ("/*/a/*/*", b"<r><a><b><c/></b></a></r>", True),
        ("/*/*/*", b"<r><a/></r>", False),
        ("/*/*", b"<r><a/></r>", True),
        ("//b/*", b"<r><b><x/></b></r>", True),
        ("b/c[@x = 1]/*", b"<r><b><c x='1'/><c><d/></c></b></r>", False),
        ("b[@x = 1]//b/c[@x = 1]/*", b"<b x='1'><b><c x='1'><d/></c></b></b>", True),
        ("/*[@x = 1]/*", b"<b x='1'><c/></b>", True),
    ],
)
def test_occurrences_must_link(xpath: str, document: bytes, expected: bool) -> None:
    engine = engine_for([xpath])
    assert rows(engine, read_batch([document])) == [[0] if expected else []]
    assert engine.statistics()["delegated patterns"] == 0


def test_it_agrees_with_the_default_engine_on_news() -> None:
    batch = read_batch(DOCUMENTS)
    for xpaths in (PLAIN, SELECTIVE, PLAIN + SELECTIVE):
        engine = engine_for(xpaths)
        assert rows(engine, batch) == rows(engine_for(xpaths, "automaton"), batch)
        statistics = engine.statistics()
        assert statistics["delegated patterns"] == statistics["delegated documents"] == 0


def test_chains_that_begin_alike_share_their_beginning() -> None:
    engine = engine_for(["/a/b/c", "/a/b/d", "/a/b", "/a/b/*/e"])
    assert engine.statistics()["chain nodes"] == 6, "the root, a, b, c, d, e"
    engine.match_batch(read_batch([b"<z><y/></z>"]))
    assert engine.statistics()["occurrence determinations"] == 0, "no access predicate holds"


def test_what_it_does_not_take_is_counted() -> None:
    engine = engine_for(["/a[b or c]", "/a[b]/c", "/a/b"])
    assert rows(engine, read_batch([b"<a><b/><c/></a>", b"<z/>"])) == [[0, 1, 2], []]
    statistics = engine.statistics()
    assert statistics["delegated patterns"] == 2 and statistics["delegated documents"] == 1


def test_documents_that_are_too_deep_go_elsewhere() -> None:
    xpaths = ["//b", "/a/a", "//a//b", f"/{'/'.join(['a'] * (LONGEST + 1))}", "//c"]
    engine = engine_for(xpaths)
    fits = b"<a>" * (LONGEST - 1) + b"<b/>" + b"</a>" * (LONGEST - 1)
    deep = b"<a>" * 100 + b"<b/>" + b"</a>" * 100
    assert rows(engine, read_batch([fits, deep, b"<c/>"])) == [[0, 1, 2], [0, 1, 2, 3], [4]]
    assert engine.statistics()["documents too deep"] == engine.statistics()["delegated documents"] == 1


def test_long_runs_of_wildcards_are_no_trouble() -> None:
    many = "/*" * 200
    batch = read_batch([b"<a><b/></a>", b"<a>" * 62 + b"</a>" * 62])
    assert rows(engine_for([many, f"/a{many}", f"/a{many}/b", "//a/*" + "/*" * 60]), batch) == [[], [3]]


def test_new_subscriptions_are_taken_up(tmp_path: Path) -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(PLAIN[:50] + SELECTIVE[:50])
    matcher = subscriptions.compile(engine="bpa")
    matcher.save(tmp_path / "index")
    for one in (matcher, pathcast.open_index(tmp_path / "index")):
        one.subscriptions.add_many(PLAIN[50:] + SELECTIVE[50:])
        fresh = one.subscriptions.compile(engine="automaton")
        for document in DOCUMENTS:
            assert np.array_equal(one.match(document).ids, fresh.match(document).ids)
