import numpy as np
import pytest

from pathcast_lab.harness import CheckError, Run


@pytest.fixture
def run() -> Run:
    return Run(scale="small", seed=0)


def test_a_check_that_fails_ends_the_run_with_what_was_found(run: Run) -> None:
    with pytest.raises(CheckError, match="check failed: all agree: 3 against 4"):
        run.check("all agree", False, "3 against 4")
    assert not run.checks


def test_checks_that_hold_are_counted(run: Run) -> None:
    run.check("all agree", True)
    run.check("all agree", True)
    assert run.checks == {"all agree": 2}


@pytest.mark.parametrize(
    "answers",
    [
        {"a": 3, "b": 3, "c": 3},
        {"a": np.array([1, 2]), "b": [1, 2]},
        {"a": (np.array([0, 2]), np.array([5, 6])), "b": (np.array([0, 2]), np.array([5, 6]))},
    ],
)
def test_equal_answers_pass(run: Run, answers: dict[str, object]) -> None:
    run.check_equal("all agree", answers)
    assert run.checks["all agree"] == len(answers) - 1


@pytest.mark.parametrize(
    "answers",
    [
        {"lxml": 3, "ours": 3, "theirs": 4},
        {"lxml": np.array([1, 2]), "theirs": np.array([1, 3])},
        {"lxml": np.array([1, 2]), "theirs": np.array([1, 2, 3])},
        {"lxml": (np.array([0, 2]), np.array([5, 6])), "theirs": (np.array([0, 2]), np.array([5, 7]))},
        {"lxml": [1, 2], "theirs": [1]},
    ],
)
def test_the_rival_that_differs_is_named(run: Run, answers: dict[str, object]) -> None:
    with pytest.raises(CheckError, match=r"all agree: lxml gives .*, theirs "):
        run.check_equal("all agree", answers)


def test_a_single_answer_is_no_comparison(run: Run) -> None:
    with pytest.raises(ValueError, match="at least two"):
        run.check_equal("all agree", {"ours": 3})


def test_the_observer_hears_of_each_stage_and_step() -> None:
    class Listener:
        def __init__(self) -> None:
            self.heard: list[object] = []

        def begin(self, stage: str, steps: int | None) -> None:
            self.heard.append((stage, steps))

        def advance(self) -> None:
            self.heard.append("step")

    listener = Listener()
    run = Run(scale="small", seed=0, observer=listener)
    assert list(run.steps("matching", [10, 20])) == [10, 20]
    assert listener.heard == [("matching", 2), "step", "step"]


def test_a_note_is_kept_once(run: Run) -> None:
    run.note("extrapolated")
    run.note("extrapolated")
    assert run.notes == ["extrapolated"]
