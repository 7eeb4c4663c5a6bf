"""Filters: each kind of term on one message, covering, printing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast import MessageError
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
    Term,
    compare,
)

from .strategies import FILTERS, MESSAGES

SKYLINE = Message({"s": Points.of(["x"], [(2, 2), (7, 5)], pairs=True)})


@pytest.mark.parametrize(
    ("operator", "found"),
    [("=", [5]), ("!=", [4, 6]), ("<", [4]), ("<=", [4, 5]), (">", [6]), (">=", [5, 6])],
)
def test_a_comparison_is_a_term(operator: str, found: list[int]) -> None:
    term = compare("a", operator, 5)
    assert [value for value in (4, 5, 6) if term.matches({"a": value})] == found
    assert str(term) == f"a {operator} 5"
    assert not term.matches({}) and not term.matches({"a": None})


def test_comparisons_that_are_none_are_refused() -> None:
    with pytest.raises(MessageError, match="unknown comparison 'like'"):
        compare("a", "like", "b")
    with pytest.raises(MessageError, match="NULL"):
        compare("a", "=", None)


def test_ranges_contain_each_other_both_ways() -> None:
    message = Message({"l": 3, "h": 6})
    assert Covers("l", "h", Interval(3, 6)).matches(message)
    assert not Covers("l", "h", Interval(3, 6, high_open=True)).matches(message)
    assert Between("l", "h", Interval(4, 5)).matches(message)
    assert Between("l", "h", Interval(3, 6, low_open=True, high_open=True)).matches(message)
    assert not Between("l", "h", Interval(3, 5)).matches(message)
    assert not Between("l", "z", Interval(4, 5)).matches(message)
    assert Between("l", "z", Interval(4, 5)).matches(Message({"l": 3, "z": None}))


def test_a_skyline_point_covers_ranges_to_its_north_west() -> None:
    box = {
        (1, 3): True, (2, 2): True, (3, 4): False, (3, 5): True, (5, 6): True, (6, 7): True, (7, 7): True,
        (8, 9): False, (0, 1): False,
    }  # fmt: skip
    for (low, high), covered in box.items():
        mine = Box.of({"x": Interval(low, high)})
        assert SomePoint("s", mine).matches(SKYLINE) == covered, (low, high)
        assert NoPoint("s", mine).matches(SKYLINE) != covered


def test_points_lie_in_a_box_on_all_axes_at_once() -> None:
    message = Message({"p": Points.of(["x", "y"], [(1, 9), (9, 1)])})
    assert not SomePoint("p", Box.of({"x": Interval(0, 5), "y": Interval(0, 5)})).matches(message)
    assert SomePoint("p", Box.of({"x": Interval(0, 5), "y": Interval(5, 9)})).matches(message)
    assert SomePoint("p", Box.of({"x": Interval(0, 5)})).matches(message)
    assert not SomePoint("p", Box.of({"z": Interval(0, 5)})).matches(message)
    assert SomePoint("p", Box(())).matches(message)


def test_no_point_holds_where_none_is_listed() -> None:
    assert NoPoint("p", Box(())).matches(Message({}))
    assert NoPoint("p", Box(())).matches(Message({"p": Points((), ())}))
    assert not NoPoint("p", Box(())).matches(Message({"p": Points((), ((),))}))


@pytest.mark.slow
@given(FILTERS, FILTERS, MESSAGES)
@settings(max_examples=600)
def test_a_covering_filter_matches_what_the_other_matches(one: Filter, other: Filter, message: Message) -> None:
    if one.covers(other) and other.matches(message):
        assert one.matches(message)


@given(FILTERS)
def test_a_filter_covers_itself_and_what_has_more_terms(one: Filter) -> None:
    assert one.covers(one)
    assert one.covers(one & Filter((In("z", Interval(1, 2)),)))
    assert Filter().covers(one)


def test_covering_of_each_kind_of_term() -> None:
    narrow, wide = Interval(4, 5), Interval(3, 6)
    boxes = Box.of({"x": narrow, "y": narrow}), Box.of({"x": wide})
    pairs: list[tuple[Term, Term]] = [
        (In("a", wide), In("a", narrow)),
        (Differs("a", 7), In("a", narrow)),
        (Covers("l", "h", wide), Covers("l", "h", narrow)),
        (Between("l", "h", narrow), Between("l", "h", wide)),
        (SomePoint("p", boxes[1]), SomePoint("p", boxes[0])),
        (NoPoint("p", boxes[0]), NoPoint("p", boxes[1])),
    ]
    for weaker, stronger in pairs:
        assert Filter((weaker,)).covers(Filter((stronger,))), weaker
        assert not Filter((stronger,)).covers(Filter((weaker,))), weaker


def test_ranges_of_one_attribute_count_together() -> None:
    both = Filter((compare("a", ">", 3), compare("a", "<", 5)))
    assert Filter((In("a", Interval(3, 5)),)).covers(both)
    assert not Filter((In("a", Interval(4, 5)),)).covers(both)


def test_what_nothing_matches_is_covered_by_everything() -> None:
    other = Filter((In("b", Interval(1, 2)),))
    assert other.covers(Filter((compare("a", ">", 5), compare("a", "<", 3))))
    assert other.covers(Filter((compare("a", ">", 5), compare("a", "=", "x"))))
    assert other.covers(Filter((compare("a", "=", 5), compare("a", "!=", 5))))
    assert other.covers(Filter((SomePoint("p", Box.of({"x": Interval(2, 1)})),)))


def test_a_filter_reads_as_it_was_meant() -> None:
    one = Filter(
        (
            compare("s", "=", "it's"),
            In("a", Interval(1, 2, high_open=True)),
            Between("l", "h", Interval(1, None)),
            NoPoint("p", Box.of({"x": Interval(1, 2)})),
        )
    )
    assert str(one) == "s = 'it''s' and a in [1, 2) and [1, ∞) within (l, h) and no p in x [1, 2]"
    assert str(Filter()) == "true"


@pytest.mark.slow
@given(data=st.data())
def test_covering_of_ranges_is_complete(data: st.DataObject) -> None:
    """For conjunctions of ranges alone: covering holds if no value distinguishes the two filters."""
    values = [number / 2 for number in range(-1, 10)]

    def drawn() -> Filter:
        terms = []
        for _ in range(data.draw(st.integers(0, 3))):
            low, high = sorted(data.draw(st.tuples(st.integers(0, 4), st.integers(0, 4))))
            interval = Interval(low, high, data.draw(st.booleans()), data.draw(st.booleans()))
            terms.append(In(data.draw(st.sampled_from("ab")), interval))
        return Filter(tuple(terms))

    one, other = drawn(), drawn()
    messages = [Message({"a": a, "b": b}) for a in values for b in values]
    messages += [Message({}), *(Message({"a": a}) for a in values), *(Message({"b": b}) for b in values)]
    expected = all(one.matches(message) for message in messages if other.matches(message))
    assert one.covers(other) == expected
