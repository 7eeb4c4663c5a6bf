"""The table of filters compared with the flat matcher, and covering compared with messages."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.messages import Between, Box, Covers, Filter, In, Interval, Message, Points, SomePoint, compare
from pathcast.network.content_addressable.filter_point_index import BLOCK, PointSet, maximal
from pathcast.network.content_addressable.filter_point_transformation import Probe, shape
from pathcast.network.tree.filter_covering_index import FilterTable
from tests.messages.strategies import FILTERS, MESSAGES


def table_of(filters, target=0):
    table = FilterTable()
    table.add_many(range(len(filters)), [shape(one) for one in filters], target)
    return table


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(st.lists(FILTERS, max_size=8), st.lists(MESSAGES, min_size=1, max_size=4), st.data())
def test_a_table_finds_what_the_flat_matcher_finds(filters, messages, data):
    table = table_of(filters)
    gone = data.draw(st.sets(st.integers(0, len(filters) - 1))) if filters else set()
    for entry in gone:
        table.remove(entry)
    for message in messages:
        flat = [at for at, one in enumerate(filters) if at not in gone and one.matches(message)]
        assert sorted(table.match(Probe(message))[0].tolist()) == flat


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(st.lists(FILTERS, max_size=8), FILTERS)
def test_what_a_table_calls_covering_is_so(filters, one):
    table = table_of(filters)
    shaped = shape(one)
    assert all(filters[entry].covers(one) or one == filters[entry] for entry in table.covering(shaped))
    assert all(one.covers(filters[entry]) or one == filters[entry] for entry in table.covered(shaped))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=20), st.integers(0, 9), st.integers(0, 9))
def test_covering_of_plain_ranges_is_complete(pairs, low, high):
    ranges = [Interval(min(pair), max(pair)) for pair in pairs]
    one = Interval(min(low, high), max(low, high))
    table = table_of([Filter((In("a", each), compare("k", "=", 1))) for each in ranges])
    shaped = shape(Filter((In("a", one), compare("k", "=", 1))))
    if one.low == one.high:
        return
    wide = [at for at, each in enumerate(ranges) if each.holds(one)]
    assert sorted(table.covering(shaped)) == wide
    narrow = [at for at, each in enumerate(ranges) if one.holds(each)]
    assert sorted(table.covered(shaped)) == narrow


def draw_around_five(draw):
    def around():
        return Interval(draw.choice([None, 1, 2, 3]), draw.choice([None, 7, 8, 9]), draw.random() < 0.3)

    def term():
        boxed = SomePoint("s", Box.of({axis: around() for axis in draw.choice(["c", "d", "cd"])}))
        rare = [
            compare("a", "=", 5),
            compare("k", "=", 5),
            boxed,
            Covers("l", "h", around()),
            Between("l", "h", around()),
        ]
        return draw.choice([In("a", around()), In("a", around()), draw.choice(rare)])

    return Filter(tuple(term() for _ in range(draw.randrange(1, 4))))


@pytest.mark.slow
def test_what_is_covered_by_something_that_is_covered_is_covered_in_turn():
    draw = random.Random(4)
    further = 0
    for _ in range(40):
        filters = [draw_around_five(draw) for _ in range(12)]
        shaped, table = [shape(one) for one in filters], table_of(filters)
        below = [set(table.covered(one)) for one in shaped]
        for at, one in enumerate(shaped):
            for other in table.covering(one):
                below[other].add(at)
        for at, one in enumerate(shaped):
            found = set(table.covered_in_turn(one))
            in_turn = {at}
            while more := set().union(*(below[other] for other in in_turn)) - in_turn:
                in_turn |= more
            assert in_turn <= found
            further += len(in_turn - below[at]) - (at not in below[at])
    assert further > 10


def test_open_ends_are_told_from_whole_numbers_beyond_53_bits_and_from_infinity():
    inf, big = float("inf"), 1 << 53
    for end in (big, -big, float(big), 1e18, -1e18, inf, -inf):
        filters = [Filter((compare("a", operator, end),)) for operator in ("<", "<=", ">", ">=")]
        table = table_of(filters)
        for value in (end, *((int(end) - 1, int(end) + 1) if abs(end) < inf else (0,))):
            message = Message({"a": value})
            flat = [at for at, one in enumerate(filters) if one.matches(message)]
            assert sorted(table.match(Probe(message))[0].tolist()) == flat


@pytest.mark.slow
def test_a_large_table_answers_from_few_blocks():
    draw = random.Random(3)
    filters = []
    for _ in range(1_200):
        low, at = draw.randrange(100_000), draw.randrange(100_000)
        mine, other = Interval(low, low + 500), Interval(at, at + 800)
        filters.append(Filter((compare("f", "=", 1), In("a", mine), SomePoint("s", Box.of({"c": other})))))
        filters.append(Filter((compare("f", "=", 2), In("at", mine), Between("lo", "hi", mine), In("c", other))))
    table = table_of(filters)
    for entry in range(0, 2_400, 7):
        table.remove(entry)
    left = [(at, one) for at, one in enumerate(filters) if at % 7]
    for _ in range(40):
        a, c = draw.randrange(100_000), draw.randrange(100_000)
        skyline = Points.of(["c"], [(c, c), (c + 9_000, c + 8_000)], pairs=True)
        for message in (
            Message({"f": 1, "a": a, "s": skyline}),
            Message({"f": 2, "at": a, "lo": a - 900, "hi": None, "c": c}),
        ):
            expected = [at for at, one in left if one.matches(message)]
            assert sorted(table.match(Probe(message))[0].tolist()) == expected


def test_new_points_are_found_before_and_after_they_are_laid_out():
    points = PointSet(2)
    rows = np.random.default_rng(1).random((20 * BLOCK, 2))
    for at, row in enumerate(rows):
        points.add([at], [row], at % 3)
        if at % 97 == 0:
            inside = points.below([0.5, 0.5])
            assert (
                sorted(points.entries[inside].tolist()) == np.flatnonzero((rows[: at + 1] <= 0.5).all(axis=1)).tolist()
            )
    inside = points.above([0.9, 0.9])
    assert sorted(points.entries[inside].tolist()) == np.flatnonzero((rows >= 0.9).all(1)).tolist()


def test_the_maximal_points_are_below_all():
    rows = np.random.default_rng(2).integers(0, 30, (2_000, 3)).astype(float)
    kept = rows[maximal(rows)]
    for row in rows:
        assert (kept <= row).all(axis=1).any()
    for at, row in enumerate(kept):
        others = np.delete(kept, at, axis=0)
        assert not (others <= row).all(axis=1).any()
