"""Rivals named by the user: the answers of a driver are compared before it is timed, and a broken one is an error."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from pathcast_lab.harness import CheckError, RivalError, RivalProgram, Run, check_matches, named_rivals

DRIVER = Path(__file__).with_name("naive_rival.py")
PATTERNS = ['{"a":["x"]}', '{"a":[{"prefix":"x"}],"b":{"c":[{"exists":false}]}}', '{"b":{"c":[1,2]}}']
EVENTS = ['{"a":"x"}', '{"a":"xy","b":{"c":2}}', '{"a":"y"}']
ANSWERS = [[1, 2], [3], []]


def naive(fault: str = "") -> str:
    return shlex.join([sys.executable, str(DRIVER), *([fault] if fault else [])])


def test_a_driver_builds_answers_and_counts() -> None:
    with RivalProgram("naive", naive()) as rival:
        assert rival.build(PATTERNS, EVENTS) > 0
        assert rival.match() == ANSWERS
        assert (rival.run(), rival.run(10)) == (3, 30)
        rival.run_checked(3)
        process = rival._process
    assert process.returncode == 0


def test_a_driver_that_finds_another_number_while_it_is_timed_ends_the_run() -> None:
    with RivalProgram("naive", naive("miscounts")) as rival:
        rival.build(PATTERNS, EVENTS)
        assert rival.match() == ANSWERS
        with pytest.raises(CheckError, match="'naive' found 4 matches while it was timed, not 3"):
            rival.run_checked(3)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("misses", r"event 2: misses \[3\], wrongly has \[\], and has 0 numbers twice"),
        ("invents", r"event 2: misses \[\], wrongly has \[1000000\]"),
        ("repeats", r"event 2: misses \[\], wrongly has \[\], and has 1 numbers twice"),
    ],
)
def test_a_wrong_answer_ends_the_run_and_names_the_event(fault: str, reason: str) -> None:
    run = Run(scale="small", seed=0)
    with RivalProgram("naive", naive(fault)) as rival:
        rival.build(PATTERNS, EVENTS)
        with pytest.raises(CheckError, match=f"check failed: naive finds what ours finds: {reason}"):
            check_matches(run, "naive", ANSWERS, rival.match())
    assert not run.checks


def test_right_answers_are_one_check_and_fewer_answers_are_none() -> None:
    run = Run(scale="small", seed=0)
    check_matches(run, "naive", ANSWERS, [[2, 1], [3], []])
    assert run.checks == {"naive finds what ours finds": 1}
    with pytest.raises(CheckError, match="2 answers for 3 events"):
        check_matches(run, "naive", ANSWERS, ANSWERS[:2])


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("dies", r"ended before it answered 'build'; exit status 1; it wrote: out of memory: 3 patterns"),
        ("rejects", r"reports 'error no such field'"),
        ("babbles", r"answered 'welcome' to 'build', expected 'ready'"),
        ("stalls", r"gave no answer to 'build' within 0.5 s"),
    ],
)
def test_a_driver_that_cannot_build_is_an_error_with_its_own_words(fault: str, reason: str) -> None:
    with (
        RivalProgram("naive", naive(fault), patience=0.5 if fault == "stalls" else 60) as rival,
        pytest.raises(RivalError, match=f"rival 'naive' {reason}"),
    ):
        rival.build(PATTERNS, EVENTS)


@pytest.mark.parametrize("fault", ["deserts", "shortens"])
def test_a_driver_that_ends_amid_its_answers_is_an_error(fault: str) -> None:
    with RivalProgram("naive", naive(fault)) as rival:
        rival.build(PATTERNS, EVENTS)
        with pytest.raises(RivalError, match="ended before it answered 'match'; exit status 0"):
            rival.match()


def test_a_program_that_is_not_there_is_an_error() -> None:
    with pytest.raises(RivalError, match="rival 'naive' cannot be started: .*; check --rival naive="):
        RivalProgram("naive", "/no/such/program")


def test_a_program_that_ends_at_once_is_an_error_though_nobody_reads_what_we_write() -> None:
    many = [json.dumps({"a": [f"{number:09}"]}) for number in range(20_000)]
    with (
        RivalProgram("naive", shlex.join([sys.executable, "-c", "exit(3)"])) as rival,
        pytest.raises(RivalError, match="rival 'naive' ended before .*; exit status 3"),
    ):
        rival.build(many, EVENTS)


def test_answers_that_are_no_numbers_are_an_error() -> None:
    with RivalProgram("cat", "cat") as rival, pytest.raises(RivalError, match="answered 'pattern x' to 'build'"):
        rival.build(["x"], [])


def test_a_line_break_cannot_be_sent() -> None:
    with (
        RivalProgram("naive", naive()) as rival,
        pytest.raises(RivalError, match="pattern 2 has a line break, which the protocol of rivals cannot carry"),
    ):
        rival.build(["{}", "{\n}"], [])


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("quamina", "a rival is given as NAME=PATH, such as --rival quamina=/path/to/driver, got 'quamina'"),
        ("quamina=", "a rival is given as NAME=PATH"),
        ("ruler=x", "unknown rival 'ruler'; the rivals of the chosen experiments are event-ruler, quamina"),
    ],
)
def test_a_rival_must_be_known_and_have_a_path(given: str, reason: str) -> None:
    with pytest.raises(RivalError, match=reason):
        named_rivals([given], {"quamina", "event-ruler"})


def test_each_rival_is_given_once() -> None:
    assert named_rivals(["quamina=/a b", " event-ruler = c -d=e"], {"quamina", "event-ruler"}) == {
        "quamina": "/a b",
        "event-ruler": "c -d=e",
    }
    with pytest.raises(RivalError, match="rival 'quamina' is given twice; give it once"):
        named_rivals(["quamina=a", "quamina=b"], {"quamina"})
