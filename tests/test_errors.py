"""Errors explain what to do, and survive the transfer from a Spark worker to the driver."""

import pickle

import pytest

import pathcast
from pathcast import errors

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, pathcast.PathcastError)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_pickles_to_an_equal_one(kind: type[pathcast.PathcastError]) -> None:
    error = kind("something is wrong", line=3, column=7)
    error.index = 12
    again = pickle.loads(pickle.dumps(error))
    assert again == error and type(again) is kind
    assert (again.reason, again.line, again.column, again.index) == ("something is wrong", 3, 7, 12)
    assert str(again) == "line 3, column 7: something is wrong"


def test_a_pattern_error_keeps_its_expression_through_a_pickle() -> None:
    with pytest.raises(pathcast.PatternError) as caught:
        pathcast.Subscriptions().add("/a/sideways::b")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_pattern_error_points_at_the_offending_text() -> None:
    with pytest.raises(pathcast.PatternError) as caught:
        pathcast.Subscriptions().add("/nitf/p[count(q, r)]")
    caught.value.line = 12
    assert str(caught.value) == (
        "line 12, column 18: count() takes 1 argument\n"
        "    /nitf/p[count(q, r)]\n"
        "                     ^\n"
        "  supported: XPath 1.0 and the functions of docs/reference/xpath.md"
    )


def test_a_long_expression_is_shown_around_its_fault() -> None:
    expression = "/a" * 90 + "[1 1]"
    with pytest.raises(pathcast.PatternError) as caught:
        pathcast.Subscriptions().add(expression)
    shown, carets = str(caught.value).splitlines()[1:3]
    assert len(shown) < 110 and shown[carets.index("^")] == "1"


def test_errors_with_different_positions_differ() -> None:
    assert pathcast.DocumentError("x", line=1) != pathcast.DocumentError("x", line=2)
    assert pathcast.DocumentError("x") != pathcast.LimitError("x")
