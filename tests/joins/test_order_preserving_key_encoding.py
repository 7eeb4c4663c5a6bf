"""Keys keep the order of values, and closed ranges of keys contain the same values as intervals."""

from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathcast.joins.query.order_preserving_key_encoding import (
    DATE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    Kind,
    float_key,
    float_value,
)
from pathcast.messages import Interval

INTS = st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-3, 3)
FLOATS = st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 2.0**53, float("inf")])
NUMBERS = INTS | FLOATS
TEXTS = st.text("ab\0", max_size=3)
VALUES: list[tuple[Kind, st.SearchStrategy, st.SearchStrategy]] = [
    (INT, INTS, NUMBERS),
    (FLOAT, FLOATS, NUMBERS),
    (STRING, TEXTS, TEXTS),
    (DATE, st.dates(), st.dates()),
    (TIMESTAMP, st.datetimes(), st.datetimes()),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "values", "constants"), VALUES, ids=lambda one: getattr(one, "name", ""))
def test_a_value_is_in_an_interval_exactly_if_its_key_is_in_the_ends(kind, values, constants) -> None:
    ends = st.none() | constants | values

    @given(values, ends, ends, st.booleans(), st.booleans())
    def check(value, low, high, low_open, high_open) -> None:
        assert kind.value(kind.key(value)) == value
        interval = Interval(low, high, low_open, high_open)
        keys = kind.ends(interval)
        held = keys is not None and keys[0] <= kind.key(value) <= keys[1]
        assert held == (value in interval)

    check()


@given(FLOATS, FLOATS)
def test_float_keys_sort_as_floats(one: float, other: float) -> None:
    assert (float_key(one) < float_key(other)) == (one < other)
    assert float_value(float_key(one)) == one


def test_ends_next_to_zero_are_keys_of_floats() -> None:
    below, above = FLOAT.ends(Interval(None, 0, high_open=True)), FLOAT.ends(Interval(-5e-324, None, low_open=True))
    assert below is not None and below[1] == float_key(-5e-324)
    assert above is not None and above[0] == float_key(0.0) == float_key(-0.0)
    assert FLOAT.ends(Interval(-5e-324, 0, low_open=True, high_open=True)) is None


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        (INT, 1.5, "expected an int, got 1.5"),
        (INT, True, "expected an int, got True"),
        (INT, 1 << 63, "64 bits"),
        (FLOAT, (1 << 53) + 1, "a float cannot hold"),
        (FLOAT, float("nan"), "NaN"),
        (DATE, datetime.fromisoformat("2026-01-01"), "expected a date"),
        (TIMESTAMP, date(2026, 1, 1), "expected a timestamp"),
        (STRING, "\ud800", "surrogate"),
    ],
)
def test_values_that_do_not_fit_are_told_why(kind: Kind, value: object, reason: str) -> None:
    assert reason in (kind.check(value) or "")


def test_values_that_fit() -> None:
    for kind, value in [(INT, 5), (FLOAT, 5), (FLOAT, 2**60), (FLOAT, None), (STRING, ""), (DATE, date(1, 1, 1))]:
        assert kind.check(value) is None
