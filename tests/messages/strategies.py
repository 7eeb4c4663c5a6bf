"""Random values, messages and filters; few distinct ones, so that filters match messages."""

from datetime import date, datetime

from hypothesis import strategies as st

from pathcast.messages import (
    Between,
    Box,
    Covers,
    Differs,
    Filter,
    In,
    Interval,
    Message,
    NoPoint,
    Points,
    SomePoint,
)

ANY_SCALARS = (
    st.none()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.dates()
    | st.datetimes().map(lambda at: at.replace(fold=0))
    | st.binary()
)
NUMBERS = st.integers(0, 6) | st.sampled_from([0.5, 2.5, 5.5])
SCALARS = NUMBERS | st.sampled_from([None, "a", "b", date(2026, 1, 1), datetime.fromisoformat("2026-01-01")])
NAMES = st.sampled_from("abc")
AXES = ("x", "y")


@st.composite
def points(draw, values=NUMBERS):
    axes = draw(st.sampled_from([("x",), ("y",), ("x", "y"), ()]))
    pairs = draw(st.booleans())
    row = st.tuples(*[values] * (len(axes) * (2 if pairs else 1)))
    return Points.of(axes, draw(st.lists(row, max_size=4)), pairs=pairs)


@st.composite
def intervals(draw):
    ends = NUMBERS | st.none()
    return Interval(draw(ends), draw(ends), draw(st.booleans()), draw(st.booleans()))


BOXES = st.dictionaries(st.sampled_from(AXES), intervals(), max_size=2).map(Box.of)
TERMS = st.one_of(
    st.builds(In, NAMES, intervals()),
    st.builds(In, NAMES, st.sampled_from([Interval.only("a"), Interval("a", None, low_open=True)])),
    st.builds(Differs, NAMES, SCALARS.filter(lambda one: one is not None)),
    st.builds(Covers, NAMES, NAMES, intervals()),
    st.builds(Between, NAMES, NAMES, intervals()),
    st.builds(SomePoint, NAMES, BOXES),
    st.builds(NoPoint, NAMES, BOXES),
)
FILTERS = st.lists(TERMS, max_size=3).map(lambda terms: Filter(tuple(terms)))
MESSAGES = st.dictionaries(NAMES, SCALARS | points(), max_size=3).map(Message)
ANY_MESSAGES = st.dictionaries(st.text(min_size=1), ANY_SCALARS | points(ANY_SCALARS), max_size=4).flatmap(
    lambda found: st.sets(st.sampled_from(sorted(found)) if found else st.nothing()).map(
        lambda payload: Message(found, payload)
    )
)
