"""Engines that run over start and end tags: twigs, values, skipping, streams, and delegation."""

import re
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import pathcast
from pathcast import Subscriptions
from pathcast.documents import DocumentBatch, read_batch
from pathcast.literature.streaming.streaming_engine_frame import EventEngine
from pathcast.matching import engines
from pathcast.matching.engine_contract import Expiring, Skipping, Streaming
from pathcast.matching.engine_registry import engine_class
from pathcast.workloads import SubscriptionOptions, generate_documents, generate_subscriptions, news_schema
from tests import oracle
from tests.generators import NAMESPACES, expression, random_document, random_pattern

DOCUMENTS = list(generate_documents(news_schema(), 30, seed=3))
PLAIN = generate_subscriptions(
    news_schema(), 300, SubscriptionOptions(max_depth=7, wildcard=0.3, descendant=0.3), seed=3
)
CONDITIONED = generate_subscriptions(
    news_schema(),
    300,
    SubscriptionOptions(predicates=1, nested_probability=0.1, predicate_targets=("attribute",)),
    seed=4,
)


@pytest.fixture(params=[name for name in engines() if issubclass(engine_class(name), EventEngine)])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def engine_for(xpaths: list[str], name: str) -> EventEngine[Any, Any]:
    subscriptions = Subscriptions()
    subscriptions.add_many(xpaths)
    engine = subscriptions.compile(engine=name).engine
    assert isinstance(engine, EventEngine)
    return engine


def reference(xpaths: list[str], batch: DocumentBatch) -> list[list[int]]:
    subscriptions = Subscriptions()
    subscriptions.add_many(xpaths)
    return rows(*subscriptions.compile(engine="automaton").engine.match_batch(batch))


def rows(offsets: np.ndarray, entries: np.ndarray) -> list[list[int]]:
    return [sorted(entries[offsets[i] : offsets[i + 1]].tolist()) for i in range(len(offsets) - 1)]


@pytest.mark.parametrize(
    ("xpath", "document", "expected"),
    [
        ("/a[b/c]/d", b"<a><b><c/></b><d/></a>", True),
        ("/r/a[b/c]/d", b"<r><a><b><c/></b></a><a><d/></a></r>", False),
        ("//a[b][c]", b"<a><a><b/></a><c/></a>", False),
        ("//a[b][.//c]", b"<a><a><c/></a><b/></a>", True),
        ("/a[.//b[@x = 1][c]]/d", b"<a><e><b x='2'><c/></b><b x='1'><c/></b></e><d/></a>", True),
        ("/a[.//b[@x = 1][c]]/d", b"<a><e><b x='1'/><b x='2'><c/></b></e><d/></a>", False),
        ("//a[b]//a[c]", b"<a><c/><b/><a><a><c/></a></a></a>", True),
        ("//*[@k = 5]", b"<a><b><c k='5'/></b></a>", True),
        ("//a[@x = 1]//b[@y = 2]", b"<a x='1'><a x='2'><b y='1'/><c><b y='2'/></c></a></a>", True),
        ("//a[@x = 1]/b[@y = 2]", b"<a x='1'><a x='2'><b y='2'/></a><b y='3'/></a>", False),
    ],
)
def test_elements_are_shared_by_the_paths_of_a_query(name: str, xpath: str, document: bytes, expected: bool) -> None:
    engine = engine_for([xpath], name)
    assert (rows(*engine.match_batch(read_batch([document]))) == [[0]]) is expected
    assert engine.statistics()["delegated patterns"] == 0


def test_it_agrees_with_the_default_engine_on_news(name: str) -> None:
    batch = read_batch(DOCUMENTS)
    for xpaths in (PLAIN, CONDITIONED, PLAIN + CONDITIONED):
        engine = engine_for(xpaths, name)
        assert rows(*engine.match_batch(batch)) == reference(xpaths, batch)
        assert engine.statistics()["delegated patterns"] == 0


def test_what_it_does_not_take_is_counted(name: str) -> None:
    engine = engine_for(["/a[b or c]", "/a[not(b)]", "/a[//c]", "//a//@x", "/a[@x = 1]/b"], name)
    documents = read_batch([b"<a x='1'><b/><c/></a>", b"<z/>"])
    assert rows(*engine.match_batch(documents)) == [[0, 2, 3, 4], []]
    statistics = engine.statistics()
    assert statistics["delegated patterns"] == 3 and statistics["delegated documents"] == 1


def test_an_entry_that_is_skipped_is_neither_reported_nor_tried(name: str) -> None:
    xpaths = [*PLAIN[:100], *CONDITIONED[:100], "//body[not(x)]", "/"]
    engine = engine_for(xpaths, name)
    assert isinstance(engine, Skipping)
    batch = read_batch(DOCUMENTS)
    everything = rows(*engine.match_batch(batch))
    for share in (0.5, 0.93, 0.98):  # if few are left, engines may use another method
        skip = np.random.default_rng(1).random(len(engine.table)) < share
        left = [[e for e in found if not skip[e]] for found in everything]
        assert any(left)
        assert rows(*engine.match_except(batch, skip)) == left
        assert [sorted(engine.match_stream(each, skip=skip).entries.tolist()) for each in batch] == left
    tried = engine.statistics()["selections tried"]
    engine.match_except(batch, np.ones(len(engine.table), dtype=np.bool_))
    assert engine.statistics()["selections tried"] == tried
    assert rows(*engine.match_batch(batch)) == everything


def test_an_entry_is_not_looked_for_past_its_expiry(name: str) -> None:
    """Given the true position of its first match, an entry is found; given less, twigs and values are not tested."""
    xpaths = [*PLAIN[:100], *CONDITIONED[:100], "//body[not(x)]", "/"]
    engine = engine_for(xpaths, name)
    assert isinstance(engine, Expiring)
    nothing = np.zeros(len(engine.table), dtype=np.bool_)
    for data in DOCUMENTS[:10]:
        batch = read_batch([data])
        stream = engine.match_stream(batch[0])
        expiry = np.zeros(len(engine.table), dtype=np.int32)
        expiry[stream.entries] = stream.positions
        assert rows(*engine.match_until(batch, nothing, expiry)) == [stream.entries.tolist()]
        tried = engine.statistics()["selections tried"]
        engine.match_until(batch, nothing, np.zeros_like(expiry))
        assert engine.statistics()["selections tried"] == tried
        assert rows(*engine.match_batch(batch)) == [stream.entries.tolist()]


def first_tags(document: bytes, count: int) -> bytes:
    """The document up to its first `count` start tags, with open elements closed."""
    kept, seen = b"", 0
    still_open: list[bytes] = []
    for tag in re.finditer(rb"<(/?)([\w.-]+)[^>]*?(/?)>", document):
        if tag[1]:
            still_open.pop()
        else:
            if seen == count:
                break
            seen += 1
            if not tag[3]:
                still_open.append(tag[2])
        kept += tag[0]
    return kept + b"".join(b"</" + name + b">" for name in reversed(still_open))


def test_a_stream_says_when_each_match_was_certain(name: str) -> None:
    """A positive pattern over elements and attributes is certain with the first start tags that match by themselves."""
    xpaths = [*PLAIN[:150], *CONDITIONED[:150], "/"]
    engine = engine_for(xpaths, name)
    assert isinstance(engine, Streaming)
    some = 0
    for data in DOCUMENTS[:6]:
        document = read_batch([data])[0]
        prefixes = read_batch([first_tags(data, count) for count in range(1, len(document) + 1)])
        appears: dict[int, int] = {}
        for count, found in enumerate(rows(*engine.match_batch(prefixes)), 1):
            for entry in found:
                appears.setdefault(entry, count)
        stream = engine.match_stream(document)
        found_at = dict(zip(stream.entries.tolist(), stream.positions.tolist(), strict=True))
        assert {entry: max(1, position) for entry, position in found_at.items()} == appears
        assert stream.read == len(document) and stream.entries.tolist() == sorted(appears)
        some += sum(position > 3 for position in found_at.values())
    assert some > 50


@pytest.mark.parametrize(
    ("xpath", "document", "position"),
    [
        ("/a/b[. = 5]", b"<a><c/><b>5</b><d/><e/></a>", 3),
        ("/a[text() = 'x']/b", b"<a><b/>x<c/></a>", 3),
        ("/a[. = 'x']", b"<a><b>x</b><c/></a>", 3),
        ("//a[. = 5]//b", b"<a><a>5<b/><c/></a><d/></a>", 4),
        ("/a[not(z)]", b"<a><b/><c/></a>", 3),
    ],
)
def test_tests_of_text_are_certain_at_the_end_of_their_element(
    name: str, xpath: str, document: bytes, position: int
) -> None:
    stream = engine_for([xpath], name).match_stream(read_batch([document])[0])
    assert stream.entries.tolist() == [0]
    assert stream.positions.tolist() == [position]


def test_a_twig_with_a_test_of_text_is_certain_when_that_is_or_at_the_end(name: str) -> None:
    """YFilter joins such paths when the document has ended."""
    stream = engine_for(["/a[b = 5][c]"], name).match_stream(read_batch([b"<a><c/><b>5</b><d/></a>"])[0])
    assert stream.positions.tolist() == [4 if name == "yfilter" else 3]


def test_a_stream_stops_when_every_link_is_decided(name: str) -> None:
    engine = engine_for(["/a/b", "//c", "//d", "/a/z", "//e[. = 5]"], name)
    document = read_batch([b"<a><b/><c/><d/><e>5</e><z/></a>"])[0]

    def stream(links: list[int], skip: list[bool] | None = None) -> tuple[list[int], list[int], int]:
        mask = None if skip is None else np.array(skip)
        found = engine.match_stream(document, skip=mask, link=np.array(links, dtype=np.int32))
        return found.entries.tolist(), found.positions.tolist(), found.read

    assert stream([0, 0, 0, 0, 0]) == ([0], [2], 2)
    assert stream([0, 1, -1, 0, -1]) == ([0, 1], [2, 3], 3)
    assert stream([1, 1, 1, 0, 1])[2] == 6, "link 0 waits for the last element"
    assert stream([-1, 2, 2, -1, 7]) == ([0, 1, 2, 4], [2, 3, 4, 5], 5)
    assert stream([1, 1, 1, 0, 1], [False, False, False, True, False]) == ([0], [2], 2)
    assert stream([-1] * 5) == ([], [], 0)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_stream_finds_what_a_batch_finds_over_the_whole_fragment(name: str, seed: int) -> None:
    """Delegated patterns, tests of text and joins included; skipped entries are left out of both."""
    random = Random(seed)
    documents = [random_document(random, odd=0.3).data for _ in range(12)]
    trees = [oracle.read(document).getroot() for document in documents]
    xpaths = [expression(random_pattern(random, random.choice(trees)), random) for _ in range(150)]
    subscriptions = Subscriptions(namespaces=NAMESPACES)
    subscriptions.add_many(xpaths)
    engine = engine_class(name).build(subscriptions.table)
    assert isinstance(engine, EventEngine)
    skip = np.random.default_rng(seed).random(len(subscriptions.table)) < 0.3
    batch = read_batch(documents, entities="expand")
    everything, rest = rows(*engine.match_batch(batch)), rows(*engine.match_except(batch, skip))
    assert sum(map(len, everything)) > 100
    for document, found, left in zip(batch, everything, rest, strict=True):
        stream = engine.match_stream(document)
        assert stream.entries.tolist() == found
        assert stream.read == len(document) >= stream.positions.max(initial=0)
        assert engine.match_stream(document, skip=skip).entries.tolist() == left == [e for e in found if not skip[e]]


def test_new_subscriptions_are_taken_up(name: str) -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(PLAIN[:50])
    matcher = subscriptions.compile(engine=name)
    matcher.match(DOCUMENTS[0])
    subscriptions.add_many(PLAIN[50:] + CONDITIONED)
    fresh = subscriptions.compile(engine="automaton")
    for document in DOCUMENTS:
        assert list(matcher.match(document)) == list(fresh.match(document))


def test_an_opened_index_can_be_added_to(name: str, tmp_path: Path) -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(PLAIN[:50] + CONDITIONED[:50] + ["/news[not(zzz)]"])
    subscriptions.compile(engine=name).save(tmp_path / "index")
    matcher = pathcast.open_index(tmp_path / "index")
    assert matcher.engine_name == name
    matcher.subscriptions.add_many(PLAIN[50:100] + CONDITIONED[50:100])
    fresh = matcher.subscriptions.compile(engine="automaton")
    for document in DOCUMENTS:
        assert list(matcher.match(document)) == list(fresh.match(document))


def test_an_engine_leaves_the_table_as_it_was(name: str) -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(CONDITIONED)
    before = subscriptions.table.trie.count
    subscriptions.compile(engine=name)
    assert subscriptions.table.trie.count == before
