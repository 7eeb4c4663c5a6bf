import dataclasses
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pathcast.errors import PathcastError
from pathcast_lab.harness import (
    CheckError,
    Experiment,
    Row,
    Run,
    Verdict,
    default_output,
    default_publication,
    perform,
    run_experiment,
)
from pathcast_lab.harness.experiment_parameters import ParameterError


def everything_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_result_says_what_was_measured_with_what_and_how_it_was_judged(toy: Experiment) -> None:
    result = perform(toy, seed=3, changes=["sizes=1,100"], now=lambda: datetime(2030, 1, 2, 3, 4, tzinfo=UTC))
    assert (result.experiment, result.scale, result.seed, result.date) == (
        "counting",
        "small",
        3,
        "2030-01-02 03:04 UTC",
    )
    assert (result.parameters, result.changes) == ({"sizes": "1,100", "rival": "theirs"}, ("sizes=1,100",))
    assert [(row["size"], row["counter"]) for row in result.rows] == [
        (1, "ours"),
        (1, "theirs"),
        (100, "ours"),
        (100, "theirs"),
    ]
    assert [claim.verdict for claim in result.claims] == [Verdict.HELD, Verdict.NOT_HELD]
    assert result.checks == {"both count the same": 2}
    assert "Counted on paper." in result.notes
    assert result.method == "Counts to each size."


@pytest.mark.parametrize(("load", "notes"), [(0.2, 1), (64_000.0, 2)])
def test_a_busy_machine_is_noted_in_the_result(
    toy: Experiment, monkeypatch: pytest.MonkeyPatch, load: float, notes: int
) -> None:
    monkeypatch.setattr("pathcast_lab.harness.machine_description.load", lambda: load)
    result = perform(toy)
    assert len(result.notes) == notes
    assert result.machine["load"] == f"{load:.1f} when the run began"


def test_the_scale_chooses_the_parameters(toy: Experiment) -> None:
    assert perform(toy, scale="paper").parameters["sizes"] == "1,10,100,1000"


def test_a_claim_about_a_row_that_is_missing_does_not_cost_the_run(toy: Experiment) -> None:
    result = perform(toy, changes=["sizes=1"])
    assert result.claims[0].verdict is Verdict.NOT_MEASURABLE
    assert len(result.rows) == 2


def test_an_unknown_parameter_ends_the_run_before_it_begins(toy_with: Callable[..., Experiment]) -> None:
    def measure(run: Run, parameters: Any) -> Iterator[Row]:
        raise AssertionError("must not run")

    with pytest.raises(ParameterError):
        perform(toy_with(measure), changes=["size=1"])


def test_a_row_before_any_check_is_refused(toy_with: Callable[..., Experiment]) -> None:
    def unchecked(run: Run, parameters: Any) -> Iterator[Row]:
        yield {"size": 1, "counter": "ours", "ms": 1.0}
        run.check("too late", True)

    with pytest.raises(CheckError, match="before it checked an answer"):
        perform(toy_with(unchecked))


@pytest.mark.parametrize("fault", [CheckError("no"), RuntimeError("no"), KeyboardInterrupt()], ids=repr)
def test_a_run_that_fails_half_way_leaves_former_results_untouched(
    toy: Experiment, toy_with: Callable[..., Experiment], tmp_path: Path, fault: BaseException
) -> None:
    run_experiment(toy, output=tmp_path)
    before = everything_in(tmp_path)

    def fails(run: Run, parameters: Any) -> Iterator[Row]:
        run.check("fine so far", True)
        yield {"size": 1, "counter": "ours", "ms": 77.0}
        raise fault

    with pytest.raises(type(fault)):
        run_experiment(toy_with(fails), output=tmp_path)
    assert everything_in(tmp_path) == before


def test_a_first_run_that_fails_leaves_no_trace(toy_with: Callable[..., Experiment], tmp_path: Path) -> None:
    def fails(run: Run, parameters: Any) -> Iterator[Row]:
        run.check_equal("both agree", {"ours": 1, "theirs": 2})
        yield {}

    with pytest.raises(CheckError):
        run_experiment(toy_with(fails), output=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_missing_matplotlib_is_said_before_anything_is_measured(
    drawn_toy: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(run: Run, parameters: Any) -> Iterator[Row]:
        raise AssertionError("must not run")

    monkeypatch.setattr("pathcast_lab.harness.experiment_runner.find_spec", lambda name: None)
    with pytest.raises(PathcastError, match="pip install matplotlib"):
        run_experiment(dataclasses.replace(drawn_toy, measure=measure), output=tmp_path)


def test_results_go_to_a_folder_of_the_checkout_and_otherwise_where_the_user_stands(tmp_path: Path) -> None:
    assert (default_output(tmp_path), default_publication(tmp_path)) == (
        Path("pathcast-results"),
        Path("pathcast-report"),
    )
    (tmp_path / "pyproject.toml").touch()
    assert (default_output(tmp_path), default_publication(tmp_path)) == (
        tmp_path / "results",
        tmp_path / "docs" / "results",
    )


def test_a_result_names_the_code_that_it_was_measured_with(toy: Experiment) -> None:
    from pathcast_lab.engine import reading_experiments

    def measure(run: Run, parameters: Any) -> Iterator[Row]:
        run.check("counted", True)
        yield {"size": 1, "counter": "ours", "ms": 1.0}

    measure.__module__ = reading_experiments.__name__
    result = perform(dataclasses.replace(toy, measure=measure))
    assert result.version
    assert result.sources is not None and len(result.sources) == 16
    assert perform(toy).sources is None, "no module of ours"
