"""Intervals: the values that they contain, and relations between two intervals."""

from datetime import date, datetime

import pytest
from hypothesis import given

from pathcast import MessageError
from pathcast.messages import Interval

from .strategies import NUMBERS, intervals

GRID = [quarter / 4 for quarter in range(-4, 32)]


def members(interval: Interval) -> list[float]:
    """The values of an interval on a grid that is finer than the numbers of the strategies."""
    return [at for at in GRID if at in interval]


def test_ends_may_be_open_closed_or_absent() -> None:
    assert 5 in Interval(5, 7) and 7 in Interval(5, 7)
    assert 5 not in Interval(5, 7, low_open=True) and 7 not in Interval(5, 7, high_open=True)
    assert 10**15 in Interval(5, None) and -0.5 in Interval(None, 5)


def test_other_families_and_null_are_in_no_interval() -> None:
    for value in (None, "6", date(2026, 1, 1), b"6"):
        assert value not in Interval(5, 7) and value not in Interval(5, None) and value not in Interval(None, 7)
    assert None not in Interval() and "6" in Interval()
    assert datetime.fromisoformat("2026-01-01") not in Interval(date(2025, 1, 1), date(2027, 1, 1))


def test_ends_of_two_families_are_refused() -> None:
    with pytest.raises(MessageError, match="from 5 to 'a'"):
        Interval(5, "a")
    with pytest.raises(MessageError, match="cannot intersect intervals"):
        _ = Interval(5, None) & Interval("a", None)
    with pytest.raises(MessageError, match="NaN"):
        Interval(float("nan"), None)


@given(intervals(), intervals())
def test_holding_and_meeting_are_those_of_sets(one: Interval, other: Interval) -> None:
    assert members(one & other) == [at for at in members(one) if at in other]
    assert one.empty == (not members(one))
    assert one.holds(other) == (set(members(other)) <= set(members(one)) and not _longer(other, one))


def _longer(other: Interval, one: Interval) -> bool:
    """Whether `other` extends beyond the grid where `one` does not."""
    if other.empty:
        return False
    return (other.low is None and one.low is not None) or (other.high is None and one.high is not None)


@given(intervals(), NUMBERS, NUMBERS)
def test_between_is_to_contain_neither_neighbour(one: Interval, low: float, high: float) -> None:
    inside = [at for at in members(one) if low < at < high]
    if inside and low <= high:
        assert one.between(low, high) == (low not in one and high not in one)
        assert one.between(None, high) == (high not in one)
        assert one.between(low, None) == (low not in one)
    assert one.between(None, None)


@given(intervals(), NUMBERS, NUMBERS)
def test_covering_a_point_below_the_diagonal_is_to_reach_in_between(one: Interval, low: float, high: float) -> None:
    if low <= high:
        assert one.covers(low, high) == (low in one and high in one)
    elif low in one or high in one:
        assert one.covers(low, high)
    elif one.covers(low, high):
        assert members(one) and all(high < at < low for at in members(one))
