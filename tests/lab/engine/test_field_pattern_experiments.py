"""Field patterns: XPath finds what the plain matcher finds, and rivals are compared before they are timed."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

import pathcast
from pathcast_lab.engine.field_pattern_workload import draw_events, draw_patterns
from pathcast_lab.engine.field_patterns import matches, to_xml, to_xpath
from pathcast_lab.harness import CheckError, Verdict, find, perform
from tests import oracle

NAIVE = Path(__file__).parents[1] / "harness" / "naive_rival.py"
EVENT = {"a": "x & 'y'", "n": 5, "t": True, "d": {"e": "<i-01>", "f": {"g": "7"}}}
FEW = ["sizes=60", "events=40", "checked=40", "rounds=1"]


def command(fault: str = "") -> str:
    return shlex.join([sys.executable, str(NAIVE), *([fault] if fault else [])])


@pytest.mark.parametrize(
    ("pattern", "xpath", "expected"),
    [
        ({"a": ["x & 'y'"]}, "/event[a = \"x & 'y'\"]", True),
        ({"a": ["x", "x & 'y'"]}, "/event[a = 'x' or a = \"x & 'y'\"]", True),
        ({"n": [5]}, "/event[n = 5]", True),
        ({"n": [6]}, "/event[n = 6]", False),
        ({"t": [True]}, "/event[t = 'true']", True),
        ({"t": [False]}, "/event[t = 'false']", False),
        ({"d": {"e": [{"prefix": "<i-"}]}}, "/event[starts-with(d/e, '<i-')]", True),
        ({"d": {"e": [{"prefix": "i-"}]}}, "/event[starts-with(d/e, 'i-')]", False),
        ({"d": {"f": {"g": [{"anything-but": ["8"]}]}}}, "/event[d/f/g != '8']", True),
        ({"d": {"f": {"g": [{"anything-but": ["8", "7"]}]}}}, "/event[(d/f/g != '8' and d/f/g != '7')]", False),
        ({"z": [{"anything-but": ["8"]}]}, "/event[z != '8']", False),
        ({"d": {"f": {"g": [{"exists": True}]}}}, "/event[d/f/g]", True),
        ({"d": {"z": [{"exists": False}]}}, "/event[not(d/z)]", True),
        ({"z": {"y": [{"exists": False}]}}, "/event[not(z/y)]", True),
        ({"d": {"e": [{"exists": False}]}}, "/event[not(d/e)]", False),
        ({"n": [5], "d": {"e": [{"exists": False}, {"prefix": "<"}]}}, None, True),
    ],
)
def test_each_alternative_in_xpath(pattern: dict[str, Any], xpath: str | None, expected: bool) -> None:
    assert xpath is None or to_xpath(pattern) == xpath
    assert matches(pattern, EVENT) is expected
    assert oracle.matches(to_xpath(pattern), to_xml(EVENT)) is expected


def test_random_patterns_match_the_same_events_in_xpath() -> None:
    patterns, events = draw_patterns(2_000, seed=3), draw_events(60, seed=3)
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many([to_xpath(pattern) for pattern in patterns])
    found = [each.ids.tolist() for each in subscriptions.compile().match_many([to_xml(event) for event in events])]
    plain = [[number for number, pattern in enumerate(patterns, 1) if matches(pattern, event)] for event in events]
    assert found == plain
    used = {number for answer in plain for number in answer}
    kinds = json.dumps([patterns[number - 1] for number in used])
    assert all(kind in kinds for kind in ("prefix", "anything-but", '"exists": true', '"exists": false', '"spot"'))


def test_patterns_are_distinct_and_repeatable() -> None:
    patterns = draw_patterns(500, seed=1)
    assert len({json.dumps(pattern, sort_keys=True) for pattern in patterns}) == 500
    assert patterns == draw_patterns(500, seed=1) != draw_patterns(500, seed=2)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ({"a b": ["x"]}, "field 'a b' is not a name of XML elements"),
        ({"a": "x"}, "field 'a': expected an object or a list of alternatives, got 'x'"),
        ({"a": []}, "field 'a': expected an object or a list"),
        (
            {"a": [{"suffix": "x"}]},
            "unknown kind of alternative 'suffix'; the kinds are exists, prefix and anything-but",
        ),
        ({"a": [1.5]}, "expected a text, an integer, true or false, got 1.5"),
        ({"a": ["'\""]}, "XPath has no literal for a text with both kinds of quotes"),
    ],
)
def test_patterns_that_have_no_translation(pattern: dict[str, Any], reason: str) -> None:
    with pytest.raises((TypeError, ValueError), match=reason):
        to_xpath(pattern)


def test_events_that_have_no_translation() -> None:
    with pytest.raises(TypeError, match=r"expected an object, a text, an integer, true or false, got \[1\]"):
        to_xml({"a": [1]})


def test_a_rival_is_compared_and_timed() -> None:
    (experiment,) = find(["engine-fields"])
    result = perform(experiment, changes=FEW, rivals={"quamina": command(), "yfilter": "not this experiment's"})
    assert result.rows.distinct("series") == ["pathcast", "quamina"]
    assert result.rows.number("events_per_s", series="quamina") > 0
    assert set(result.checks) == {"the plain matcher over JSON finds what ours finds", "quamina finds what ours finds"}
    verdicts = [claim.verdict for claim in result.claims]
    assert verdicts[0] in (Verdict.HELD, Verdict.NOT_HELD)
    assert verdicts[1:] == [Verdict.NOT_MEASURABLE] * 2
    assert not any("No rival took part" in note for note in result.notes)


@pytest.mark.parametrize("fault", ["misses", "invents", "repeats", "miscounts"])
def test_a_rival_with_a_wrong_answer_gets_no_times(fault: str) -> None:
    (experiment,) = find(["engine-fields"])
    with pytest.raises(CheckError, match="quamina"):
        perform(experiment, changes=FEW, rivals={"quamina": command(fault)})


def test_without_rivals_ours_is_measured_alone() -> None:
    (experiment,) = find(["engine-fields"])
    result = perform(experiment, changes=FEW)
    assert result.rows.distinct("series") == ["pathcast"]
    assert {claim.verdict for claim in result.claims} == {Verdict.NOT_MEASURABLE}
    assert any("No rival took part" in note for note in result.notes)
