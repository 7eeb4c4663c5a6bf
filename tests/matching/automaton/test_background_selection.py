"""Many patterns choose what they wait for in another thread, while documents are matched."""

from collections.abc import Callable, Iterator
from threading import Event

import pytest

from pathcast import Matcher, Subscriptions
from pathcast.matching.automaton.updates import index_updates as room
from pathcast.matching.automaton.verify.candidate_matcher import Layout
from tests.matching.automaton.renewing import at_rest

DOCUMENT = "<a often='v1' seldom='never'/>"
RARE = "<a often='v1' seldom='1'/>"
# Before any document, the attribute that is asked for more values seems the rarer one: here it is not.
PATTERNS = [f"/a[@often = 'v{number % 50}'][@seldom = '{number % 3}']" for number in range(300)]
PATTERNS += [f"/a[@often = 'w{number}']" for number in range(100)]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "FIRST_CHOICE", 32)
    monkeypatch.setattr(room, "CHOOSE_AT_ONCE", 20)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Event]]:
    """From its call on, nobody lays out patterns anew before the event is set."""
    chosen, go_on = Layout.chosen, Event()

    def later(*given: object) -> object:
        assert go_on.wait(60)
        return chosen(*given)  # type: ignore[arg-type]

    def begin() -> Event:
        monkeypatch.setattr(Layout, "chosen", later)
        return go_on

    yield begin
    go_on.set()


def compiled() -> tuple[Subscriptions, Matcher]:
    subscriptions = Subscriptions()
    subscriptions.add_many(PATTERNS)
    return subscriptions, subscriptions.compile(engine="automaton")


def candidates(matcher: Matcher) -> int:
    """How many patterns the document makes candidates, of which none matches."""
    before = matcher.statistics()["candidates"]
    assert not matcher.match(DOCUMENT)
    return int(matcher.statistics()["candidates"] - before)


def check(subscriptions: Subscriptions, matcher: Matcher) -> None:
    reference = subscriptions.compile(engine="reference")
    assert matcher.match(RARE).ids.tolist() == reference.match(RARE).ids.tolist() != []


def test_documents_are_matched_while_patterns_choose(slow: Callable[[], Event]) -> None:
    subscriptions, matcher = compiled()
    go_on = slow()
    for _ in range(40):  # the choice is begun, and does not end
        assert candidates(matcher) > 0
    check(subscriptions, matcher)
    added = subscriptions.add("/a")
    assert matcher.match(DOCUMENT).ids.tolist() == [added]
    subscriptions.remove(added)
    go_on.set()
    at_rest(matcher)
    assert candidates(matcher) == 0
    check(subscriptions, matcher)


def test_regions_are_there_when_a_choice_is_made(slow: Callable[[], Event]) -> None:
    subscriptions, matcher = compiled()
    go_on = slow()
    for _ in range(40):
        matcher.match(DOCUMENT)
    go_on.set()
    made = at_rest(matcher)
    assert made.waiting is not None
    regions = made.waiting.joins._regions
    assert regions is not None and regions.of is made.states and (regions.runs.spans[:, 0] >= 0).any()
    check(subscriptions, matcher)


def test_a_choice_that_falls_due_during_a_renewal_is_made_after_it(
    slow: Callable[[], Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "FRESH_TREES", 6)
    subscriptions, matcher = compiled()
    go_on = slow()
    for number in range(8):  # which begins a renewal
        subscriptions.add(f"/b[@x = {number}]")
        matcher.match(DOCUMENT)
    for _ in range(40):
        assert candidates(matcher) > 0
    go_on.set()
    at_rest(matcher)
    assert candidates(matcher) == 0
    assert matcher.statistics()["renewals"] == 1
    check(subscriptions, matcher)


def test_patterns_that_become_many_during_a_choice_are_renewed_after_it(
    slow: Callable[[], Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "FRESH_TREES", 6)
    subscriptions, matcher = compiled()
    go_on = slow()
    for _ in range(40):
        matcher.match(DOCUMENT)
    for number in range(8):
        subscriptions.add(f"/a[@seldom = '1'][@x != {number}]")
        matcher.match(DOCUMENT)
    assert matcher.statistics()["fresh patterns"] > 6
    go_on.set()
    made = at_rest(matcher)
    assert made.lately is not None and matcher.statistics()["fresh patterns"] == 0
    assert candidates(matcher) == 0
    check(subscriptions, matcher)
