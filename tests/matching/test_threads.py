"""One matcher in many threads: every answer is consistent with one moment, whatever changes meanwhile."""

import sys
import threading
from collections.abc import Generator, Iterator
from itertools import pairwise
from random import Random
from typing import Any

import pytest

import pathcast
from pathcast import Subscriptions
from pathcast.matching import Matches, Tuning
from pathcast.workloads import SubscriptionOptions, generate_documents, generate_subscriptions, news_schema

DOCUMENTS = list(generate_documents(news_schema(), 24, seed=7))
PATTERNS = [
    *generate_subscriptions(
        news_schema(),
        120,
        SubscriptionOptions(max_depth=6, predicates=1, nested_probability=0.2, distinct=True),
        seed=8,
    ),
    "/",
    "//*",
    "/news//p[contains(., 'the ')]",
    "//section[@number > 2]",
    "//title[. = 'x']",
]


@pytest.fixture(autouse=True)
def threads_take_turns_often() -> Iterator[None]:
    """Makes a race that occurs once in a thousand runs occur in most of them."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def truth() -> list[set[int]]:
    """For each document the numbers of the patterns that it matches."""
    subscriptions = Subscriptions()
    subscriptions.add_many(PATTERNS)
    reference = subscriptions.compile(engine="reference")
    return [{id - 1 for id in reference.match(document).ids.tolist()} for document in DOCUMENTS]


RESTLESS = Tuning(
    state_bytes=300_000,
    fewest_marked=0,
    grouped_at_once=200,
    fewest_pending_bits=60,
    most_pending_bits=60,
    pending_trees=4,
    first_selection=8,
    selection_in_background=30,
    unused_entries=10,
)
MANY = 300  # subscriptions at a time, so that a long run keeps no more of each answer than a short one


class History:
    """Subscriptions that one thread changes, and their state at each version."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.subscriptions = Subscriptions(tuning=RESTLESS)
        self.subscribed: dict[int, int] = {}  # the pattern number of each id
        self.at: dict[int, dict[int, int]] = {}
        self.note()

    def note(self) -> None:
        self.at[self.subscriptions.version] = dict(self.subscribed)

    def change(self) -> None:
        random, subscriptions = self.random, self.subscriptions
        number = random.randrange(len(PATTERNS))
        kind = random.random() if len(self.subscribed) < MANY else random.uniform(0.55, 0.85)
        if kind < 0.45 or len(self.subscribed) < 5:
            self.subscribed[subscriptions.add(PATTERNS[number])] = number
        elif kind < 0.55:
            numbers = random.sample(range(len(PATTERNS)), 10)
            ids = subscriptions.add_many([PATTERNS[number] for number in numbers])
            self.subscribed.update(zip(ids, numbers, strict=True))
        elif kind < 0.8:
            id = random.choice(list(self.subscribed))
            subscriptions.remove(id)
            del self.subscribed[id]
        else:
            id = random.choice(list(self.subscribed))
            subscriptions.replace(id, PATTERNS[number])
            self.subscribed[id] = number
        self.note()


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["automaton", "reference"])
def test_every_answer_is_that_of_the_subscriptions_at_one_moment(engine: str, request: pytest.FixtureRequest) -> None:
    """States are dropped, patterns promoted and access predicates re-selected all the time."""
    wanted = truth()
    history = History(Random(1))
    matcher = history.subscriptions.compile(engine=engine)
    found: list[tuple[int, int, list[int]]] = []
    failed: list[BaseException] = []
    stop = threading.Event()

    def match(seed: int) -> None:
        random = Random(seed)
        try:
            while not stop.is_set():
                index = random.randrange(len(DOCUMENTS))
                matches = matcher.match(DOCUMENTS[index])
                found.append((index, matches._expansion.version, matches.ids.tolist()))
        except BaseException as error:  # noqa: BLE001 - told to the test
            failed.append(error)

    threads = [threading.Thread(target=match, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(20_000 if request.config.getoption("--long") else 600):
        history.change()
        stop.wait(0.001)
    stop.set()
    for thread in threads:
        thread.join(30)
    assert not failed
    assert len(found) > 100
    for index, version, ids in found:
        subscribed = history.at[version]
        assert ids == sorted(id for id, number in subscribed.items() if number in wanted[index]), (index, version)
    assert len({version for _, version, _ in found}) > 10
    if engine == "automaton":
        statistics = matcher.statistics()
        assert statistics["promotions"] > 0 and statistics["candidates that match"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_many_documents_in_threads_come_back_in_order(threads: int) -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(PATTERNS)
    matcher = subscriptions.compile()
    documents: list[Any] = [DOCUMENTS[number % 24] for number in range(1500)]
    documents[700] = b"<broken>"
    documents[900] = pathcast.documents.read(DOCUMENTS[3])
    documents[1200] = "<broken/>"
    wanted = truth()
    answers = list(matcher.match_many(documents, errors="return", threads=threads))
    assert isinstance(answers[700], pathcast.DocumentError)
    found = {number: list(answer) for number, answer in enumerate(answers) if isinstance(answer, Matches)}
    assert len(found) == 1499
    assert found[1200] == [1 + PATTERNS.index("/"), 1 + PATTERNS.index("//*")]
    for number, ids in found.items():
        if number not in (900, 1200):
            assert {id - 1 for id in ids} == wanted[number % 24]
    assert {id - 1 for id in found[900]} == wanted[3]
    assert matcher.statistics()["documents"] == 1500


@pytest.mark.slow
def test_threads_that_meet_new_label_paths_at_the_same_time_agree() -> None:
    """Each round starts with an engine that has seen no document, so all threads extend it at once."""
    wanted = truth()
    for _ in range(20):
        subscriptions = Subscriptions()
        subscriptions.add_many(PATTERNS)
        matcher, wrong = subscriptions.compile(), list[int]()

        def match(first: int, matcher: pathcast.Matcher = matcher, wrong: list[int] = wrong) -> None:
            for number in range(len(DOCUMENTS)):
                index = (first + number) % len(DOCUMENTS)
                if {id - 1 for id in matcher.match(DOCUMENTS[index]).ids.tolist()} != wanted[index]:
                    wrong.append(index)

        threads = [threading.Thread(target=match, args=(first,)) for first in range(0, 24, 4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong


def test_threads_match_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    subscriptions = Subscriptions()
    subscriptions.add("//p")
    matcher = subscriptions.compile()
    both = threading.Barrier(2)
    match_batch = matcher.engine.match_batch

    def meeting(batch: pathcast.documents.DocumentBatch) -> Any:
        both.wait(10)
        return match_batch(batch)

    monkeypatch.setattr(matcher.engine, "match_batch", meeting)
    documents = ["<p/>", "<q/>"] * 512  # four groups
    assert [list(matches) for matches in matcher.match_many(documents, threads=2)] == [[1], []] * 512


def test_threads_stop_when_nobody_asks_any_more() -> None:
    subscriptions = Subscriptions()
    subscriptions.add("//p")
    matcher = subscriptions.compile()
    taken = []

    def documents() -> Any:
        for number in range(1_000_000):
            taken.append(number)
            yield DOCUMENTS[number % 24]

    before = threading.active_count()
    answers = matcher.match_many(documents(), threads=2)
    next(answers)
    assert isinstance(answers, Generator)
    answers.close()
    assert len(taken) < 10_000
    assert threading.active_count() == before


@pytest.mark.parametrize("threads", [1, 2])
def test_what_documents_come_from_may_fail_and_those_that_came_are_answered(threads: int) -> None:
    subscriptions = Subscriptions()
    subscriptions.add("//p")

    def documents() -> Any:
        yield from ["<p/>"] * 600
        raise OSError("no more")

    answers = subscriptions.compile().match_many(documents(), threads=threads)
    assert [list(next(answers)) for _ in range(600)] == [[1]] * 600
    with pytest.raises(OSError, match="no more"):
        next(answers)


def test_an_error_in_a_thread_is_raised_at_its_place() -> None:
    subscriptions = Subscriptions()
    subscriptions.add("//p")
    matcher = subscriptions.compile()
    answers = matcher.match_many([*DOCUMENTS[:3], b"<a>", *DOCUMENTS], threads=2)
    with pytest.raises(pathcast.DocumentError):
        list(answers)
    with pytest.raises(ValueError, match="threads must be a whole number of at least 1, got 0"):
        matcher.match_many([], threads=0)
    with pytest.raises(TypeError, match=r"got a single \w+; use match\(\)"):
        matcher.match_many("<a/>")
    with pytest.raises(TypeError, match="got NoneType"):
        list(matcher.match_many([None]))  # type: ignore[list-item]


def test_answers_are_cut_where_they_belong() -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(PATTERNS)
    matcher = subscriptions.compile()
    batch = pathcast.documents.read_batch(DOCUMENTS)
    offsets, ids = matcher.match_batch(batch)
    assert [set(ids[a:b].tolist()) for a, b in pairwise(offsets)] == [{n + 1 for n in found} for found in truth()]
