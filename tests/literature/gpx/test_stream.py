"""`gpx-ap` as a stream: which entries it skips, where matches are certain, when it stops."""

from random import Random

import numpy as np
import pytest

import pathcast
from pathcast.documents import Document, read_batch
from pathcast.literature.gpx import GpxEngine, GpxFirstEngine, GpxLastEngine
from pathcast.literature.gpx.document_matching_kernels import MOST_REPEATS
from pathcast.matching.engine_contract import Limited, Skipping, Streaming
from pathcast.matching.reference import ReferenceEngine
from pathcast.matching.table.pattern_table import PatternTable
from pathcast.workloads import SubscriptionOptions, generate_documents, generate_subscriptions, news_schema
from tests.literature.gpx.drawn import random_element, random_pattern
from tests.literature.gpx.test_engines import answers, table_of


def beginnings(document: Document) -> list[str]:
    """The document after each of its start tags, with open elements closed."""
    texts = []
    for size in range(1, len(document) + 1):
        text = ""
        open_tags: list[str] = []
        for element in range(size):
            while len(open_tags) >= document.depth(element):
                text += f"</{open_tags.pop()}>"
            attributes = "".join(f' {name}="{value}"' for name, value in document.attributes(element).items())
            text += f"<{document.name(element)}{attributes}>"
            open_tags.append(document.name(element))
        texts.append(text + "".join(f"</{tag}>" for tag in reversed(open_tags)))
    return texts


def encodable_table(random: Random, count: int) -> PatternTable:
    """Patterns of which none is delegated."""
    xpaths: list[str] = []
    while len(xpaths) < count:
        xpath = random_pattern(random)
        if not GpxLastEngine(table_of([xpath])).statistics()["delegated patterns"]:
            xpaths.append(xpath)
    return table_of(xpaths)


def test_only_the_engine_of_the_last_predicate_streams_and_skips() -> None:
    table = table_of(["//a"])
    assert isinstance(GpxLastEngine(table), Streaming) and isinstance(GpxLastEngine(table), Skipping)
    for engine in (GpxEngine, GpxFirstEngine):
        assert not isinstance(engine(table), Streaming) and not isinstance(engine(table), Skipping)
        assert isinstance(engine(table), Limited)


@pytest.mark.parametrize("seed", range(10))
def test_a_match_is_certain_at_the_first_start_tag_after_which_the_document_matches(seed: int) -> None:
    random = Random(seed)
    table = encodable_table(random, 15)
    engine = GpxLastEngine(table)
    document = read_batch([random_element(random, 3)])[0]
    found = engine.match_stream(document)
    after = [set(entries) for entries in answers(ReferenceEngine.build(table), beginnings(document))]
    expected = {entry: next(n + 1 for n, entries in enumerate(after) if entry in entries) for entry in after[-1]}
    assert dict(zip(found.entries.tolist(), found.positions.tolist(), strict=True)) == expected
    assert found.entries.tolist() == sorted(expected) and found.read == len(document)


@pytest.mark.parametrize("seed", range(10))
def test_skipped_entries_are_left_out_and_others_are_not(seed: int) -> None:
    random = Random(seed)
    table = table_of(["//a[not(k)]", "//b[. = '' or c]", *(random_pattern(random) for _ in range(20))])
    texts = [random_element(random) for _ in range(4)]
    skip = np.array([random.random() < 0.5 for _ in range(len(table))])
    batch = read_batch(texts)
    engine = GpxLastEngine(table)
    offsets, entries = engine.match_except(batch, skip)
    expected_offsets, expected = ReferenceEngine.build(table).match_except(batch, skip)
    assert offsets.tolist() == expected_offsets.tolist() and entries.tolist() == expected.tolist()
    for index, document in enumerate(batch):
        mine = expected[expected_offsets[index] : expected_offsets[index + 1]]
        assert engine.match_stream(document, skip=skip).entries.tolist() == mine.tolist()


def test_a_skipped_path_is_not_checked() -> None:
    table = table_of([f"/{tag}/a/b" for tag in "cdefg"])
    engine = GpxLastEngine(table)
    batch = read_batch(["<c><a><b/></a></c>"])
    engine.match_except(batch, np.ones(5, dtype=np.bool_))
    assert engine.statistics()["paths checked"] == 0
    assert engine.match_except(batch, np.array([False, True, True, True, True]))[1].tolist() == [0]
    assert engine.statistics()["paths checked"] == 1


LINKED = ["//a", "//b", "//c", "//d", "//a[b]", "//e[not(x)]"]


def test_a_stream_stops_when_every_link_is_decided() -> None:
    engine = GpxLastEngine(table_of(LINKED))
    document = read_batch(["<r><a/><b/><c/><d/><e/></r>"])[0]

    def run(links: list[int], skip: list[int] | None = None) -> tuple[list[int], list[int], int]:
        mask = None if skip is None else np.isin(np.arange(6), skip)
        found = engine.match_stream(document, skip=mask, link=np.array(links, dtype=np.int32))
        return found.entries.tolist(), found.positions.tolist(), found.read

    assert run([0, 0, 1, -1, -1, -1]) == ([0, 2], [2, 4], 4)
    assert run([0, -1, -1, -1, -1, -1]) == ([0], [2], 2)
    assert run([0, 1, 0, 1, 0, 1]) == ([0, 1], [2, 3], 3)
    assert run([0, 1, 1, 0, -1, -1], skip=[0, 1]) == ([2, 3], [4, 5], 5)
    assert run([0, 1, 1, -1, -1, 1], skip=[1, 2, 5]) == ([0], [2], 2)
    assert run([-1] * 6) == ([], [], 0)
    # The link of a pattern that never matches stays open to the end, that of a delegated one is decided there.
    assert run([0, -1, -1, -1, 1, -1])[2] == 6
    assert run([0, 0, 0, 0, 0, 1]) == ([0, 5], [2, 6], 6)


def test_a_delegated_document_is_certain_at_its_end() -> None:
    engine = GpxLastEngine(table_of(["//a/b", "//a//a", "//c"]))
    many = MOST_REPEATS + 2
    document = read_batch(["<a>" * many + "<b/>" + "</a>" * many])[0]
    found = engine.match_stream(document, skip=np.array([False, True, False]))
    assert (found.entries.tolist(), found.positions.tolist(), found.read) == ([0], [many + 1], many + 1)
    assert engine.statistics()["delegated documents"] == 1


def test_a_stream_takes_a_document_out_of_a_batch() -> None:
    engine = GpxLastEngine(table_of(["//b[@k = 'x']"]))
    batch = read_batch(["<a/>", "<a><b k='x'/></a>", "<b k='y'/>"])
    assert [engine.match_stream(document).entries.tolist() for document in batch] == [[], [0], []]


def test_a_document_that_is_begun_again_for_want_of_room_decides_all_links() -> None:
    schema = news_schema()
    document = next(generate_documents(schema, 1, seed=1))
    drawn = generate_subscriptions(
        schema,
        400,
        SubscriptionOptions(max_depth=8, nested_probability=0.2, match_rate=0.3),
        seed=1,
        documents=[document],
    )
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many([f"/*[.//news]{path}" if path.startswith("//") else path for path in drawn])
    engine = subscriptions.compile(engine="gpx-ap").engine
    assert isinstance(engine, Streaming)
    read = read_batch([document], names=engine.table.names)
    links = np.arange(len(engine.table), dtype=np.int32)
    first = engine.match_stream(read[0], link=links)  # the engine's buffers still have their initial size
    assert sorted(first.entries.tolist()) == engine.match_batch(read)[1].tolist()
