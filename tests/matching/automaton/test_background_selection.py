"""Many patterns re-select their access predicates in another thread, while documents are matched."""

from collections.abc import Callable, Iterator
from threading import Event

import pytest

from pathcast import Matcher, Subscriptions
from pathcast.matching import Tuning
from pathcast.matching.automaton.verify.tree_pattern_store import TreeLayout
from tests.matching.automaton.promotion import at_rest

DOCUMENT = "<a often='v1' seldom='never'/>"
RARE = "<a often='v1' seldom='1'/>"
# Before any document, the attribute with more tested values seems the rarer one: here it is not.
PATTERNS = [f"/a[@often = 'v{number % 50}'][@seldom = '{number % 3}']" for number in range(300)]
PATTERNS += [f"/a[@often = 'w{number}']" for number in range(100)]


SOON = Tuning(first_selection=32, selection_in_background=20, pending_trees=6)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Event]]:
    """From its call on, no thread lays out patterns again before the event is set."""
    selected, go_on = TreeLayout.selected, Event()

    def later(*given: object) -> object:
        assert go_on.wait(60)
        return selected(*given)  # type: ignore[arg-type]

    def begin() -> Event:
        monkeypatch.setattr(TreeLayout, "selected", later)
        return go_on

    yield begin
    go_on.set()


def compiled() -> tuple[Subscriptions, Matcher]:
    subscriptions = Subscriptions(tuning=SOON)
    subscriptions.add_many(PATTERNS)
    return subscriptions, subscriptions.compile(engine="automaton")


def candidates(matcher: Matcher) -> int:
    """The number of candidates for the document, none of which matches."""
    before = matcher.statistics()["candidates"]
    assert not matcher.match(DOCUMENT)
    return int(matcher.statistics()["candidates"] - before)


def check(subscriptions: Subscriptions, matcher: Matcher) -> None:
    reference = subscriptions.compile(engine="reference")
    assert matcher.match(RARE).ids.tolist() == reference.match(RARE).ids.tolist() != []


def test_documents_are_matched_while_patterns_choose(slow: Callable[[], Event]) -> None:
    subscriptions, matcher = compiled()
    go_on = slow()
    for _ in range(40):  # the selection has begun, and does not end
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
    assert made.base.trees is not None
    regions = made.base.trees.gated.joins.regions
    assert regions is not None and regions.of is made.base.states and (regions.patterns.regions.spans[:, 0] >= 0).any()
    check(subscriptions, matcher)


def test_a_choice_that_falls_due_during_a_promotion_is_made_after_it(slow: Callable[[], Event]) -> None:
    subscriptions, matcher = compiled()
    go_on = slow()
    for number in range(8):  # this begins a promotion
        subscriptions.add(f"/b[@x = {number}]")
        matcher.match(DOCUMENT)
    for _ in range(40):
        assert candidates(matcher) > 0
    go_on.set()
    at_rest(matcher)
    assert candidates(matcher) == 0
    assert matcher.statistics()["promotions"] == 1
    check(subscriptions, matcher)


def test_patterns_that_become_many_during_a_choice_are_promoted_after_it(slow: Callable[[], Event]) -> None:
    subscriptions, matcher = compiled()
    go_on = slow()
    for _ in range(40):
        matcher.match(DOCUMENT)
    for number in range(8):
        subscriptions.add(f"/a[@seldom = '1'][@x != {number}]")
        matcher.match(DOCUMENT)
    assert matcher.statistics()["pending patterns"] > 6
    go_on.set()
    made = at_rest(matcher)
    assert made.delta is not None and matcher.statistics()["pending patterns"] == 0
    assert candidates(matcher) == 0
    check(subscriptions, matcher)
