"""Single matches keep the GIL if nobody gains from its release."""

import threading
import time

import pytest

from pathcast import DocumentError, Matcher, Subscriptions
from pathcast.kernels import release_gil
from pathcast.matching.automaton import AutomatonEngine
from pathcast.matching.short_turns import ShortTurns


def kept(turns: ShortTurns, document: object = b"<a/>") -> bool:
    """Whether a match of a document keeps the GIL."""
    turns.begin(document)
    found = release_gil()
    turns.end()
    return found


def test_a_small_document_keeps_it() -> None:
    turns = ShortTurns()
    assert kept(turns) and kept(turns, "<a/>")
    assert not kept(turns, b"<a>" + b" " * 100_000 + b"</a>")
    assert kept(turns)


def test_threads_that_match_at_the_same_time_release_it() -> None:
    turns = ShortTurns()
    inside, end = threading.Event(), threading.Event()

    def match() -> None:
        turns.begin(b"<a/>")
        inside.set()
        end.wait()
        turns.end()

    thread = threading.Thread(target=match)
    thread.start()
    inside.wait()
    assert not kept(turns)
    end.set()
    thread.join()
    assert kept(turns)


def test_after_two_long_turns_others_get_theirs_for_a_while() -> None:
    turns = ShortTurns(longest=-1.0)
    for _ in range(2):
        turns.begin(b"<a/>")
        turns.end()
    assert not kept(turns)
    assert [kept(turns) for _ in range(100)].count(True) > 0


def matcher_of(*xpaths: str) -> tuple[Subscriptions, Matcher]:
    subscriptions = Subscriptions()
    subscriptions.add_many(xpaths)
    return subscriptions, subscriptions.compile(engine="automaton")


def test_a_match_that_fails_ends_its_turn() -> None:
    _, matcher = matcher_of("/a")
    with pytest.raises(DocumentError):
        matcher.match(b"<a>")
    assert not release_gil()
    assert matcher.match(b"<a/>").ids.tolist() == [1]
    assert not release_gil() and not matcher._turns._matching


def known_to(matcher: Matcher) -> int:
    """The number of patterns that the engine has indexed."""
    assert isinstance(matcher.engine, AutomatonEngine)
    return matcher.engine._updates.current.entries


@pytest.mark.parametrize("more", ["/b", "/a[@k = 1]"])
def test_a_pattern_is_indexed_by_the_thread_that_adds_it_while_documents_are_matched(more: str) -> None:
    subscriptions, matcher = matcher_of("/a")
    number = subscriptions.add(more)
    assert known_to(matcher) == 1
    assert matcher.match("<c/>").ids.tolist() == [] and known_to(matcher) == 2
    subscriptions.add("/c")
    assert known_to(matcher) == 3
    subscriptions.add("/d")  # many are indexed together
    assert known_to(matcher) == 3
    matcher.match("<d/>")
    subscriptions.replace(number, "/e")
    assert known_to(matcher) == 5
    assert matcher.match("<e/>").ids.tolist() == [number]


def test_changes_while_a_match_waits_for_earlier_ones_are_indexed_some_at_a_time() -> None:
    subscriptions, matcher = matcher_of("/a")
    subscriptions.add("/a[@k = 0]")
    assert isinstance(matcher.engine, AutomatonEngine)
    with matcher.engine._updates.lock:
        match = threading.Thread(target=matcher.match, args=[b"<a/>"])
        match.start()
        while not matcher._turns.in_progress:
            time.sleep(0.001)
        for number in range(1, 100):
            subscriptions.add(f"/a[@k = {number}]")
            assert len(subscriptions) - known_to(matcher) < 33
    match.join()
    assert not matcher._turns.in_progress


def test_changes_during_a_long_match_are_indexed_some_at_a_time() -> None:
    subscriptions, matcher = matcher_of("/a")
    matcher._turns.begin(b"<a/>")
    for number in range(100):
        subscriptions.add(f"/a[@k = {number}]")
        assert len(subscriptions) - known_to(matcher) < 32
    matcher._turns.end()
    before = known_to(matcher)
    for number in range(100):  # many are indexed together
        subscriptions.add(f"/b[@k = {number}]")
    assert known_to(matcher) == before
