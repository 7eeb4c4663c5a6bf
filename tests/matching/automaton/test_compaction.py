"""The table of patterns frees unused entries, and matches do not change."""

import threading
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

import pathcast
from pathcast import Matcher, Subscriptions
from pathcast.documents import read as read_document
from pathcast.matching import Tuning, engines
from pathcast.matching.engine_contract import Engine
from pathcast.matching.table.pattern_table import PatternTable
from pathcast.workloads import SubscriptionOptions, generate_documents, generate_subscriptions, news_schema

# With this tuning, a few unused entries count as many.
FEW = Tuning(unused_entries=20)
DOCUMENTS = list(generate_documents(news_schema(), 12, seed=5))
PATTERNS = generate_subscriptions(
    news_schema(),
    900,
    SubscriptionOptions(max_depth=6, predicate_probability=0.05, nested_probability=0.1, distinct=True),
    seed=6,
)


def answers(matcher: pathcast.Matcher) -> list[list[int]]:
    return [matcher.match(document).ids.tolist() for document in DOCUMENTS]


def anew(subscriptions: Subscriptions) -> list[list[int]]:
    """The answers of a newly built index."""
    fresh = Subscriptions(tuning=FEW)
    for each in subscriptions:
        fresh.add(each.xpath, id=each.id)
    return answers(fresh.compile())


@pytest.mark.slow
@pytest.mark.parametrize("engine", engines())
def test_patterns_come_and_go_and_the_table_stays_small(engine: str) -> None:
    random = Random(1)
    subscriptions = Subscriptions(tuning=FEW)
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
    subscriptions = Subscriptions(tuning=FEW)
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
    fresh = Subscriptions(tuning=FEW)
    for each in subscriptions:
        fresh.add(each.xpath, each.subscriber, id=each.id)
    matcher = fresh.compile()
    return [matcher.match(document) for document in DOCUMENTS]


def test_what_documents_have_shown_is_not_forgotten() -> None:
    subscriptions = Subscriptions(tuning=FEW)
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
    subscriptions = Subscriptions(tuning=FEW)
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
    subscriptions = Subscriptions(max_steps=2000, tuning=FEW)
    long = "/a" * 1500
    ids = subscriptions.add_many([long, "/", "//b", *(f"//n{place}" for place in range(60))])
    matcher = subscriptions.compile(limits=pathcast.Limits(depth=5000))
    for id in ids[3:]:
        subscriptions.remove(id)
    assert len(subscriptions.table) < 30
    document = b"<a>" * 1500 + b"</a>" * 1500
    assert matcher.match(document).ids.tolist() == [1, 2]
    assert [each.xpath for each in subscriptions] == [long, "/", "//b"]


@pytest.mark.slow
@pytest.mark.parametrize("engine", engines())
def test_names_that_nobody_mentions_any_more_are_given_back(engine: str) -> None:
    subscriptions = Subscriptions({"p": "urn:p"}, tuning=replace(FEW, names=100))
    kept = list(subscriptions.add_many(["//a/b", "/a[b = 'x']", "//p:c[@p:k]", "//*[c]"]))
    matcher = subscriptions.compile(engine=engine)
    documents = ["<a><b>x</b></a>", "<q:c xmlns:q='urn:p' q:k='1'/>", "<r><n7/><c/></r>"]
    read = [read_document(document) for document in documents]
    expected = [[kept[0], kept[1]], [kept[2]], [kept[3]]]
    largest = 0
    for number in range(600):
        names = f"n{number}", f"m{number}"
        gone = [subscriptions.add(f"//{names[0]}"), subscriptions.add(f"/a[{names[1]}/@o{number} > 3]")]
        if number % 20 == 0:
            found = matcher.match(f"<a><{names[0]}/><{names[1]} o{number}='4'/></a>").ids.tolist()
            assert found == gone
            assert [matcher.match(document).ids.tolist() for document in documents] == expected
            assert [matcher.match(document).ids.tolist() for document in read] == expected
        for id in gone:
            subscriptions.remove(id)
        largest = max(largest, len(subscriptions.table.names))
    assert largest < 400
    assert [matcher.match(document).ids.tolist() for document in documents] == expected
    assert [each.xpath for each in subscriptions] == ["//a/b", "/a[b = 'x']", "//p:c[@p:k]", "//*[c]"]


def test_names_are_given_back_with_the_last_subscription() -> None:
    subscriptions = Subscriptions(tuning=replace(FEW, names=20))
    matcher = subscriptions.compile()
    for id in subscriptions.add_many([f"//n{number}" for number in range(FEW.unused_entries + 1)]):
        subscriptions.remove(id)
    assert len(subscriptions.table.names) < 20
    assert not matcher.match("<n1/>")
    subscriptions.add("//n1")
    assert matcher.match("<n1/>").ids.tolist() == [FEW.unused_entries + 2]


def test_counts_go_on_when_names_are_given_back() -> None:
    subscriptions = Subscriptions(tuning=replace(FEW, names=20))
    subscriptions.add("//a[@b = 1][c]")
    matcher = subscriptions.compile()
    names = subscriptions.table.names
    for _ in range(2):
        assert matcher.match("<a b='1'><c/></a>")
        for number in range(60):
            subscriptions.remove(subscriptions.add(f"//n{number}"))
    assert subscriptions.table.names is not names
    statistics = matcher.statistics()
    assert (statistics["elements"], statistics["candidates that match"]) == (4, 2)


def test_threads_match_while_names_are_given_back() -> None:
    subscriptions = Subscriptions(tuning=replace(FEW, names=50))
    kept = list(subscriptions.add_many(["//a/b", "/a[b = 'x']"]))
    matcher = subscriptions.compile()
    wrong: list[list[int]] = []
    stop = threading.Event()

    def match() -> None:
        while not stop.is_set():
            found = matcher.match("<a><b>x</b><n/></a>").ids.tolist()
            if found[:2] != kept:
                wrong.append(found)

    threads = [threading.Thread(target=match) for _ in range(2)]
    for thread in threads:
        thread.start()
    before = subscriptions.table.names
    for number in range(400):
        subscriptions.remove(subscriptions.add(f"//n{number}/m{number}"))
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong
    assert subscriptions.table.names is not before


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["automaton", "yfilter"])
def test_who_changes_makes_the_engine_for_the_next_table_and_no_match_does(
    monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    subscriptions = Subscriptions(tuning=FEW)
    ids = list(subscriptions.add_many(PATTERNS[:300]))
    used, unused = (subscriptions.compile(engine=engine) for _ in range(2))
    tables = [subscriptions.table]
    matching, make = False, Matcher._engine_for

    def engine_for(matcher: Matcher, table: PatternTable) -> Engine:
        assert not matching
        return make(matcher, table)

    monkeypatch.setattr(Matcher, "_engine_for", engine_for)
    elements = []
    while ids:
        for _ in range(10):
            subscriptions.remove(ids.pop())
        if subscriptions.table is not tables[-1]:
            tables.append(subscriptions.table)
        matching = True
        assert answers(used) == anew(subscriptions)
        matching = False
        elements.append(used.statistics().get("elements", 0))
    assert len(tables) > 3 and used.engine.table is tables[-1]
    assert elements == [elements[0] * (place + 1) for place in range(len(elements))], "counts continue"
    assert unused.engine.table is tables[0], "it was never used to match"
    assert answers(unused) == anew(subscriptions)
