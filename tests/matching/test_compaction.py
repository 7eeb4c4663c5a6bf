"""The table of patterns gives back what is not used any more, and nobody notices."""

from pathlib import Path
from random import Random

import pytest

import pathcast
from pathcast import Subscriptions
from pathcast.matching import engines, table
from pathcast.workloads import generate_documents, generate_subscriptions, news_schema

DOCUMENTS = list(generate_documents(news_schema(), 12, seed=5))
PATTERNS = generate_subscriptions(
    news_schema(), 900, seed=6, max_depth=6, predicate_probability=0.05, nested_probability=0.1, distinct=True
)


@pytest.fixture(autouse=True)
def _few_are_waste_already(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "FEW_UNUSED", 20)


def answers(matcher: pathcast.Matcher) -> list[list[int]]:
    return [matcher.match(document).ids.tolist() for document in DOCUMENTS]


def anew(subscriptions: Subscriptions) -> list[list[int]]:
    """What an index built anew says."""
    fresh = Subscriptions()
    for each in subscriptions:
        fresh.add(each.xpath, id=each.id)
    return answers(fresh.compile())


@pytest.mark.parametrize("engine", engines())
def test_patterns_come_and_go_and_the_table_stays_small(engine: str) -> None:
    random = Random(1)
    subscriptions = Subscriptions()
    kept = list(subscriptions.add_many(PATTERNS[:40]))
    matcher = subscriptions.compile(engine=engine)
    largest = 0
    for place, xpath in enumerate(PATTERNS[40:] if engine == "automaton" else PATTERNS[40:300]):
        kept.append(subscriptions.add(xpath, f"somebody {place % 7}"))
        gone = kept.pop(random.randrange(len(kept)))
        subscriptions.remove(gone)
        largest = max(largest, len(subscriptions.table))
        if place % 100 == 0:
            assert answers(matcher) == anew(subscriptions)
    assert largest < 130
    assert answers(matcher) == anew(subscriptions)
    assert sorted(each.id for each in subscriptions) == sorted(kept)


def test_matches_keep_their_meaning() -> None:
    subscriptions = Subscriptions()
    ids = subscriptions.add_many(PATTERNS[:200], subscribers=[f"s{place % 5}" for place in range(200)])
    matcher = subscriptions.compile()
    before = [matcher.match(document) for document in DOCUMENTS]
    wanted = [(found.ids.tolist(), found.subscribers) for found in anew_matches(subscriptions)]
    first = subscriptions.table
    for id in ids[:190]:
        subscriptions.remove(id)
    assert answers(matcher) == anew(subscriptions)
    assert subscriptions.table is not first and len(subscriptions.table) < 60
    assert [(found.ids.tolist(), found.subscribers) for found in before] == wanted


def anew_matches(subscriptions: Subscriptions) -> list[pathcast.Matches]:
    fresh = Subscriptions()
    for each in subscriptions:
        fresh.add(each.xpath, each.subscriber, id=each.id)
    matcher = fresh.compile()
    return [matcher.match(document) for document in DOCUMENTS]


def test_what_documents_have_shown_is_not_forgotten() -> None:
    subscriptions = Subscriptions()
    ids = subscriptions.add_many(PATTERNS[:300])
    matcher = subscriptions.compile()
    answers(matcher)
    known = matcher.statistics()["new label paths"]
    assert known > 20
    for id in ids[:280]:
        subscriptions.remove(id)
    answers(matcher)
    assert matcher.statistics()["new label paths"] == known


def test_a_compacted_index_is_saved_and_opened(tmp_path: Path) -> None:
    subscriptions = Subscriptions()
    ids = subscriptions.add_many(PATTERNS[:300])
    matcher = subscriptions.compile()
    answers(matcher)
    for id in ids[::3]:
        subscriptions.remove(id)
    for id in ids[1::3]:
        subscriptions.replace(id, PATTERNS[0])
    matcher.save(tmp_path / "index")
    opened = pathcast.open_index(tmp_path / "index")
    assert answers(opened) == answers(matcher) == anew(subscriptions)
    assert opened.subscriptions.table.unused == 0 or len(opened.subscriptions.table) < 300


def test_names_and_long_paths_survive() -> None:
    subscriptions = Subscriptions(max_steps=2000)
    long = "/a" * 1500
    ids = subscriptions.add_many([long, "/", "//b", *(f"//n{place}" for place in range(60))])
    matcher = subscriptions.compile(limits=pathcast.Limits(depth=5000))
    for id in ids[3:]:
        subscriptions.remove(id)
    assert len(subscriptions.table) < 30
    document = b"<a>" * 1500 + b"</a>" * 1500
    assert matcher.match(document).ids.tolist() == [1, 2]
    assert [each.xpath for each in subscriptions] == [long, "/", "//b"]
