"""Aggregation loses no document, keeps its bound, and reports what it covers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.patterns import parse
from pathcast.patterns.containment.generalisation_steps import size
from pathcast.patterns.containment.pattern_containment import contains
from pathcast.routing import Aggregation, aggregate
from pathcast.routing.advertising.subscription_aggregation import Clusters
from pathcast.routing.table.pattern_covering import covers
from pathcast.workloads import SubscriptionOptions, generate_subscriptions, news_schema
from tests.generators.rounds import drawn


def aggregated(texts: list[str], keep: float) -> Aggregation:
    return aggregate([parse(text) for text in texts], keep)


@pytest.mark.parametrize("keep", [0.0, 0.1, 0.25, 0.6, 1.0])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_matches_a_pattern_matches_the_aggregate_that_covers_it(seed: int, keep: float) -> None:
    this = drawn(seed)
    found = aggregate(this.patterns, keep)
    assert found.steps <= keep * sum(map(size, this.patterns))
    assert sorted(index for indices in found.covered for index in indices) == list(range(len(this.patterns)))
    for pattern, indices in zip(found.aggregates, found.covered, strict=True):
        matched = this.asked(pattern)
        for index in indices.tolist():
            assert this.matched[index] <= matched, (str(pattern), str(this.patterns[index]))


steps = st.tuples(st.sampled_from(["/", "//"]), st.sampled_from(["a", "b", "c", "*", "a[b]", "b[@x = 5]", "c[not(a)]"]))
texts = st.lists(
    st.lists(steps, min_size=1, max_size=4).map(lambda path: "".join(axis + test for axis, test in path)), max_size=12
)


@given(texts, st.floats(0, 1))
@settings(deadline=None, max_examples=60)
def test_aggregates_contain_what_they_cover(texts: list[str], keep: float) -> None:
    patterns = [parse(text) for text in texts]
    found = aggregate(patterns, keep)
    assert found.steps <= keep * sum(map(size, patterns))
    for pattern, indices in zip(found.aggregates, found.covered, strict=True):
        assert len(indices) > 0
        assert all(contains(pattern, patterns[index]) for index in indices.tolist())


@pytest.mark.slow
@given(texts)
@settings(deadline=None, max_examples=60)
def test_a_cover_contains_and_following_it_ends(texts: list[str]) -> None:
    patterns = list({parse(text): None for text in texts})
    found = covers(patterns)
    place = {index: place for place, index in enumerate(found.order.tolist())}
    for index, by in enumerate(found.cover.tolist()):
        assert contains(patterns[by], patterns[index])
        assert by == index or place[by] < place[index]


def test_nothing_is_merged_that_need_not_be() -> None:
    found = aggregated(["/a/b", "/a/c", "/a/b"], keep=1.0)
    assert [str(pattern) for pattern in found.aggregates] == ["/a/b", "/a/c"]
    assert [indices.tolist() for indices in found.covered] == [[0, 2], [1]]


def test_siblings_become_a_wildcard() -> None:
    found = aggregated(["/a/b/c", "/a/b/d", "/a/b/e"], keep=0.34)
    assert [str(pattern) for pattern in found.aggregates] == ["/a/b/*"]


def test_what_is_contained_goes_before_anything_is_loosened() -> None:
    found = aggregated(["//b", "/a/b/c", "/x/b", "/y/z"], keep=0.5)
    assert {str(pattern) for pattern in found.aggregates} == {"//b", "/y/z"}


def test_a_pattern_alone_is_loosened_when_it_must() -> None:
    found = aggregated(["/a/b/c/d"], keep=0.5)
    assert size(found.aggregates[0]) <= 2
    assert contains(found.aggregates[0], parse("/a/b/c/d"))


def test_no_patterns_need_no_aggregate() -> None:
    assert aggregate([]).aggregates == []


def test_everything_is_covered_by_what_every_document_matches() -> None:
    found = aggregated(["/a", "/", "//b[@x = 5]", "/a[not(.)]"], keep=0.0)
    assert [str(pattern) for pattern in found.aggregates] == ["/"]


def test_a_bound_outside_0_to_1_is_refused() -> None:
    with pytest.raises(ValueError, match="keep"):
        aggregate([], keep=25)


def test_values_that_differ_are_dropped_and_shared_ones_stay() -> None:
    found = aggregated(["/a[@x = 5]/b", "/a[@x = 5]/c", "/a[@x = 5]/d"], keep=0.34)
    assert [str(pattern) for pattern in found.aggregates] == ["/a[@x = 5]/*"]
    found = aggregated(["/a/b[@x = 5]", "/a/b[@x = 6]", "/a/b[@x = 7]"], keep=0.34)
    assert [str(pattern) for pattern in found.aggregates] == ["/a/b/@x"]


def test_a_bound_of_few_patterns_is_the_least() -> None:
    clusters = Clusters([parse("/a/*")], [[0, 1, 2]], [1.0])
    clusters.tighten([parse("/a[@n >= 3]/b"), parse("/a[@n >= 5]/c"), parse("/a[@n >= 4]/c")], 3)
    assert [str(pattern) for pattern in clusters.patterns] == ["/a[@n >= 3]/*"]


def test_no_more_members_of_a_cluster_are_merged_than_must_be() -> None:
    found = aggregated([f"/a/b/c{number}" for number in range(20)], keep=0.5)
    assert len(found.aggregates) == 10
    assert str(found.aggregates[0]) == "/a/b/*"


def test_patterns_of_the_greatest_length_are_aggregated() -> None:
    found = aggregated(["/a" * 250 + "/b", "/a" * 250 + "/c", "/a" * 256], keep=0.4)
    assert len(found.aggregates) == 1


@pytest.mark.slow
def test_many_thresholds_are_not_compared_pair_by_pair() -> None:
    texts = [f"/a/b[@x >= {number}]" for number in range(3_000)]
    found = aggregated(texts, keep=0.1)
    assert found.steps <= 0.1 * 3 * 3_000


def test_many_subscriptions_of_a_schema_fit_a_quarter_of_their_steps() -> None:
    texts = generate_subscriptions(
        news_schema(), 800, SubscriptionOptions(max_depth=8, wildcard=0.1, descendant=0.1, predicates=1), seed=2
    )
    patterns = [parse(text) for text in texts]
    found = aggregate(patterns)
    total = sum(map(size, patterns))
    assert 0.2 * total < found.steps <= 0.25 * total  # the bound is used up
    for pattern, indices in zip(found.aggregates, found.covered, strict=True):
        assert all(contains(pattern, patterns[index]) for index in indices.tolist())
