"""An incremental aggregation covers the current subscriptions, within its bound, and reports its changes."""

from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pathcast.patterns import Pattern, parse
from pathcast.patterns.containment.generalisation_steps import size
from pathcast.patterns.containment.pattern_containment import contains
from pathcast.routing import Overlay
from pathcast.routing.advertising.incremental_aggregation import ChangingAggregation
from pathcast.routing.advertising.subscriptions_by_wildcard_bindings import SimpleAggregates
from pathcast.routing.annotations.advertised_annotation_hints import Budget, ChangingDerived
from pathcast.routing.annotations.commonly_required_paths import DataTable, contained
from pathcast.routing.table.pattern_covering import CoverIndex
from pathcast.transmission import Topology
from pathcast.workloads import SubscriptionOptions, generate_subscriptions, news_schema
from tests.generators.rounds import drawn

TEXTS = [
    f"{first}{second}{third}"
    for first in ("/a", "//a", "/*")
    for second in ("/b", "//c", "/d[x]", "/d[@n = 5]")
    for third in ("", "/e", "/f", "//g")
]


def check(changing: ChangingAggregation) -> None:
    """Every subscription is behind one aggregate, which contains it."""
    assert sorted(number for numbers in changing.covered.values() for number in numbers) == sorted(changing.patterns)
    assert changing.covered.keys() == changing.aggregates.keys()
    for aggregate, numbers in changing.covered.items():
        assert numbers
        for number in numbers:
            assert changing.aggregate_of[number] == aggregate
            assert contains(changing.aggregates[aggregate], changing.patterns[number])
    assert changing.steps == sum(map(size, changing.aggregates.values()))
    assert changing.original_steps == sum(map(size, changing.patterns.values()))


class Following(RuleBasedStateMachine):
    """A receiver that gets only changes has the same aggregates as the sender at every version."""

    def __init__(self) -> None:
        super().__init__()
        self.changing = ChangingAggregation(0.4)
        self.heard: dict[int, Pattern] = {}
        self.seen: dict[int, Pattern] = {}
        self.version = 0
        self.next = 0

    @rule(texts=st.lists(st.sampled_from(TEXTS), max_size=5), data=st.data())
    def change(self, texts: list[str], data: st.DataObject) -> None:
        there = sorted(self.changing.patterns)
        going = data.draw(st.lists(st.sampled_from(there), unique=True, max_size=4)) if there else []
        coming = {self.next + place: parse(text) for place, text in enumerate(texts)}
        self.next += len(texts)
        changes = self.changing.change(coming, going)
        assert changes.version == self.changing.version
        for number, pattern in self.changing.aggregates.items():  # a number never means two patterns
            assert self.seen.setdefault(number, pattern) == pattern

    @rule()
    def hear(self) -> None:
        changes = self.changing.changes_since(self.version)
        assert changes is not None
        assert not changes.gone & changes.added.keys()
        assert not changes.regrouped - self.changing.aggregates.keys()
        for number in changes.gone:
            del self.heard[number]
        self.heard.update(changes.added)
        self.version = changes.version
        assert self.heard == self.changing.aggregates

    @invariant()
    def holds(self) -> None:
        check(self.changing)


Following.TestCase.settings = settings(max_examples=25, stateful_step_count=12, deadline=None)
TestFollowing = Following.TestCase


def patterns(count: int, seed: int = 4) -> list[Pattern]:
    texts = generate_subscriptions(
        news_schema(), count, SubscriptionOptions(max_depth=7, wildcard=0.1, descendant=0.1, predicates=1), seed=seed
    )
    return [parse(text) for text in texts]


def test_a_subscription_that_an_aggregate_contains_changes_no_aggregate() -> None:
    changing = ChangingAggregation(0.5)
    changing.change({0: parse("/a/b/c"), 1: parse("/a/b/d"), 2: parse("//x")})
    changes = changing.change({3: parse("/a/b/e")})
    assert (changes.added, changes.gone) == ({}, frozenset())
    (aggregate,) = changes.regrouped
    assert changing.covered[aggregate] == {0, 1, 3}


def test_one_that_nothing_contains_becomes_an_aggregate_and_goes_again() -> None:
    changing = ChangingAggregation(1.0)
    changing.change({0: parse("/a/b"), 1: parse("/a/c")})
    (number,) = changing.change({2: parse("/x/y")}).added
    assert changing.change(remove=[2]).gone == {number}
    assert changing.version == 3


@pytest.mark.slow
def test_changes_are_within_the_bound_and_its_slack() -> None:
    everything = patterns(900)
    random = Random(1)
    changing = ChangingAggregation(0.25)
    changing.change(dict(enumerate(everything[:500])))
    for number in range(500, 900):
        changing.change({number: everything[number]}, [random.choice(sorted(changing.patterns))])
        assert changing.steps <= 1.1 * 0.25 * changing.original_steps + 64
    check(changing)
    assert changing.version > 300


def test_a_receiver_that_slept_too_long_is_told_so() -> None:
    changing = ChangingAggregation(1.0)
    for number in range(300):
        changing.change({number: parse(f"/a/b{number}")})
    assert changing.changes_since(0) is None
    assert changing.changes_since(changing.version - 5) is not None
    changes = changing.changes_since(changing.version)
    assert changes is not None and not changes.added


def test_numbers_that_are_wrong_are_refused() -> None:
    changing = ChangingAggregation(1.0)
    changing.change({0: parse("/a")})
    with pytest.raises(KeyError, match="7"):
        changing.change(remove=[7])
    with pytest.raises(ValueError, match="in use"):
        changing.change({0: parse("/b")})
    with pytest.raises(ValueError, match="keep"):
        ChangingAggregation(2)
    changing.change({0: parse("/b")}, [0])  # another one under its number
    assert [str(pattern) for pattern in changing.aggregates.values()] == ["/b"]


def test_the_aggregation_is_there_by_places() -> None:
    changing = ChangingAggregation(0.5)
    changing.change({10: parse("/a/b/c"), 20: parse("/a/b/d"), 30: parse("//x")})
    aggregates, subscriptions, aggregation = changing.aggregation()
    assert subscriptions == [10, 20, 30]
    assert [str(pattern) for pattern in aggregation.aggregates] == [
        str(changing.aggregates[each]) for each in aggregates
    ]
    assert sorted(place for places in aggregation.covered for place in places.tolist()) == [0, 1, 2]


def test_nothing_is_lost_over_the_whole_fragment() -> None:
    this = drawn(9)
    changing = ChangingAggregation(0.3)
    half = len(this.patterns) // 2
    changing.change(dict(enumerate(this.patterns[:half])))
    for number in range(half, len(this.patterns)):
        changing.change({number: this.patterns[number]}, [number - half] if number % 2 else [])
    for aggregate, numbers in changing.covered.items():
        matched = this.asked(changing.aggregates[aggregate])
        assert all(this.matched[number] <= matched for number in numbers)


def test_an_index_finds_what_contains_a_pattern() -> None:
    index = CoverIndex({0: parse("//b"), 1: parse("/a/b"), 2: parse("/a/*[@n >= 3]")})
    assert index.find(parse("/a/b/c")) == 1
    assert index.find(parse("/x/b")) == 0
    assert index.find(parse("/a/c[@n >= 5]")) == 2
    assert index.find(parse("/a/c[@n >= 2]")) is None
    index.remove(1)
    assert index.find(parse("/a/b/c")) == 0
    index.add({7: parse("/a/b/c")})
    assert index.find(parse("/a/b/c")) == 7


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_derived_information_follows_as_if_it_were_made_anew(seed: int) -> None:
    random = Random(seed)
    pool = [parse(text) for text in TEXTS] + patterns(60, seed)
    changing = ChangingAggregation(0.4)
    changing.change({number: random.choice(pool) for number in range(40)})
    derived = ChangingDerived(changing, Budget(data=30))
    free = 40
    for _ in range(12):
        going = random.sample(sorted(changing.patterns), random.randint(0, 6))
        coming = {free + place: random.choice(pool) for place in range(random.randint(0, 6))}
        if going and random.random() < 0.3:
            coming[going[0]] = random.choice(pool)  # another one under its number
        free += 6
        changing.change(coming, going)
        if random.random() < 0.3:
            continue  # several versions at once
        derived.follow()
        anew = SimpleAggregates()
        for number, aggregate in changing.aggregates.items():
            anew.follow(number, aggregate, {index: changing.patterns[index] for index in changing.covered[number]})
        assert derived.simple == anew.simple
        for number in changing.aggregates:
            for labels in ("b", "d", "e"):
                bindings = tuple((place, (labels,)) for place in range(3))
                assert derived.known(number, bindings).tolist() == anew.known(number, bindings).tolist()
        check_data(derived.data, changing.patterns)


def check_data(table: DataTable, subscriptions: dict[int, Pattern]) -> None:
    for labels, containing, expiring in zip(table.patterns, table.containing, table.expiring, strict=True):
        found = {number: dict(sorted(contained(pattern))) for number, pattern in sorted(subscriptions.items())}
        assert containing.tolist() == [number for number, each in found.items() if labels in each]
        assert expiring.tolist() == [number for number, each in found.items() if each.get(labels)]


def test_a_subscription_that_comes_later_is_spared_work_like_the_others() -> None:
    overlay = Overlay(Topology.chain(3))
    for number in range(200):
        overlay.subscribe("r3", f"/a/b/c{number}", f"reader {number}")
    overlay.advertise(0.5)
    overlay.publish("<a/>", "L", "yfilter")
    late = overlay.subscribe("r3", "/a/b/c8/d", "late")
    report = overlay.publish("<a><b><c7/></b></a>", "L-d", "yfilter")
    assert report.per_router["r3"].skipped["-d"] == 200  # all but reader 7, the late one among them
    overlay.unsubscribe(late)
    again = overlay.subscribe("r3", "/a/b/c250", "later")
    report = overlay.publish("<a><b><c250/></b></a>", "L+s", "yfilter")
    assert [delivery.subscriber for delivery in report.deliveries] == ["later"]
    assert not report.per_router["r2"].parsed  # known by the binding of c250
    overlay.unsubscribe(again)
    assert overlay.publish("<a><b><c250/></b></a>", "L+s", "yfilter").deliveries == ()
