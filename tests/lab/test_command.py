import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pathcast_lab.command import app
from pathcast_lab.harness import Claim, RivalProgram, Row, Rows, Run, experiment, experiments, judged
from pathcast_lab.harness import experiment_registry as registry
from tests.spark.machines import CTRL_C_WORKS, MINUTES


@dataclass(frozen=True)
class Toy:
    size: int = 3
    wrong: bool = False


def toy(run: Run, parameters: Toy) -> Iterator[Row]:
    """Counts."""
    run.check_equal("both count the same", {"ours": parameters.size, "theirs": parameters.size + parameters.wrong})
    yield {"size": parameters.size, "seed": run.seed, "scale": run.scale}


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    experiments()
    monkeypatch.setattr(registry, "_registry", {})
    claim = Claim("at least 3", "target", lambda rows: judged(rows.numbers("size")[0] >= 3, f"{rows.numbers('size')}"))
    for name in ("counting", "counting-again"):
        experiment(name, title="How far one counts", small=Toy(), paper=Toy(size=1000), claims=[claim])(toy)


class Outcome:
    def __init__(self, *arguments: str) -> None:
        result = CliRunner().invoke(app, list(arguments))
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        self.status, self.out, self.err = result.exit_code, result.stdout, result.stderr


def rows_in(folder: Path, name: str = "counting", scale: str = "small") -> Rows:
    from pathcast_lab.harness.result_archive import load

    return load(folder / name / scale).rows


def test_list_shows_name_title_claims_and_the_parameters_of_each_scale() -> None:
    lines = Outcome("list").out.splitlines()
    assert lines[:4] == [
        "counting  How far one counts",
        "    claim (target): at least 3",
        "    --scale small: size=3 wrong=false",
        "    --scale paper: size=1000 wrong=false",
    ]


def test_run_writes_results_prints_verdicts_and_where_they_lie(tmp_path: Path) -> None:
    outcome = Outcome("run", "counting", "--output", str(tmp_path))
    assert outcome.status == 0
    assert re.search(r"^  held +at least 3: measured \[3\]$", outcome.out, re.MULTILINE)
    assert str(tmp_path / "counting" / "small") in outcome.out
    assert [path.name for path in tmp_path.iterdir()] == ["counting"]


def test_scale_seed_and_parameters_reach_the_experiment(tmp_path: Path) -> None:
    Outcome("run", "counting", "--output", str(tmp_path), "--scale", "paper", "--seed", "7", "--set", "size=12")
    assert list(rows_in(tmp_path, scale="paper")) == [{"size": 12, "seed": 7, "scale": "paper"}]


def test_a_claim_that_does_not_hold_is_a_result_not_a_failure(tmp_path: Path) -> None:
    outcome = Outcome("run", "counting", "--output", str(tmp_path), "--set", "size=1")
    assert outcome.status == 0
    assert "not held" in outcome.out


def test_in_a_pipe_nothing_but_the_result_is_printed(tmp_path: Path) -> None:
    outcome = Outcome("run", "counting", "--output", str(tmp_path))
    assert outcome.err == ""
    assert "\x1b" not in outcome.out


def test_a_run_that_stopped_goes_on_where_it_stopped(tmp_path: Path) -> None:
    given = ("run", "counting", "counting-again", "--output", str(tmp_path), "--resume")
    assert Outcome("run", "counting", "--output", str(tmp_path)).status == 0
    first = (tmp_path / "counting" / "small" / "record.json").stat().st_mtime_ns
    outcome = Outcome(*given)
    assert outcome.out.startswith("counting  measured before, with the same parameters and code")
    assert "counting-again  How far one counts" in outcome.out
    assert (tmp_path / "counting" / "small" / "record.json").stat().st_mtime_ns == first
    for change in (("--seed", "1"), ("--set", "size=4"), ("--scale", "paper")):
        assert "measured before" not in Outcome("run", "counting", "--output", str(tmp_path), "--resume", *change).out


def test_a_result_of_other_code_or_without_a_record_is_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ("run", "counting", "--output", str(tmp_path), "--resume")
    assert "measured before" not in Outcome(*given).out
    assert "measured before" in Outcome(*given).out
    monkeypatch.setattr("pathcast_lab.harness.experiment_runner.source_hash", lambda module: "0" * 16)
    assert "measured before" not in Outcome(*given).out
    assert "measured before" in Outcome(*given).out
    (tmp_path / "counting" / "small" / "record.json").write_text("{")
    assert "measured before" not in Outcome(*given).out


def test_a_result_does_not_stand_for_a_run_with_rivals(tmp_path: Path) -> None:
    experiment("racing", title="Racing", small=Toy(), paper=Toy(), rivals=["yfilter"])(with_rivals)
    given = ("run", "racing", "--output", str(tmp_path), "--resume")
    Outcome(*given)
    assert "measured before" in Outcome(*given).out
    assert "measured before" not in Outcome(*given, "--rival", "yfilter=/y").out
    assert [row["rivals"] for row in rows_in(tmp_path, "racing")] == ["yfilter=/y"]


def test_the_name_of_a_page_stands_for_its_experiments(tmp_path: Path) -> None:
    for name in ("network-a", "joins-b", "gpx-c"):
        experiment(name, title=name, small=Toy(), paper=Toy())(toy)
    assert Outcome("run", "select-join", "--output", str(tmp_path)).status == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["joins-b", "network-a"]
    assert "unknown experiment 'select-joint'; did you mean select-join, " in Outcome("run", "select-joint").err


def test_an_unknown_name_gives_near_ones_and_status_2_before_anything_runs(tmp_path: Path) -> None:
    outcome = Outcome("run", "counting", "conting", "--output", str(tmp_path))
    assert outcome.status == 2
    assert "unknown experiment 'conting'; did you mean counting, counting-again?" in outcome.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("change", ["sise=1", "size=x", "size"])
def test_a_parameter_that_cannot_be_set_has_status_2(tmp_path: Path, change: str) -> None:
    outcome = Outcome("run", "counting", "--output", str(tmp_path), "--set", change)
    assert (outcome.status, list(tmp_path.iterdir())) == (2, [])
    assert change.partition("=")[0] in outcome.err


@pytest.mark.parametrize(
    "arguments", [["run"], ["run", "counting", "--scale", "huge"], ["run", "counting", "--seed", "x"]]
)
def test_bad_arguments_have_status_2(arguments: list[str]) -> None:
    assert Outcome(*arguments).status == 2


def with_rivals(run: Run, parameters: Toy) -> Iterator[Row]:
    """Yields the rivals of the run."""
    run.check("the answer is right", parameters.size > 0)
    yield {"rivals": " ".join(f"{name}={path}" for name, path in run.rivals.items())}


def test_rivals_reach_the_experiments_that_know_them_and_no_record(tmp_path: Path) -> None:
    for name, rivals in (("racing", ["quamina", "yfilter"]), ("jogging", ["yfilter"])):
        experiment(name, title="Racing", small=Toy(), paper=Toy(), rivals=rivals)(with_rivals)
    given = ("--rival", "quamina=/q -x", "--rival", "yfilter=/y")
    assert Outcome("run", "racing", "jogging", "counting", "--output", str(tmp_path), *given).status == 0
    assert [row["rivals"] for row in rows_in(tmp_path, "racing")] == ["quamina=/q -x yfilter=/y"]
    assert [row["rivals"] for row in rows_in(tmp_path, "jogging")] == ["yfilter=/y"]
    assert "/q" not in (tmp_path / "racing" / "small" / "record.json").read_text()
    assert "    accepts --rival NAME=PATH: quamina, yfilter" in Outcome("list").out.splitlines()


@pytest.mark.parametrize(("given", "reason"), [("ruler=/r", "unknown rival 'ruler'"), ("quamina", "NAME=PATH")])
def test_a_rival_that_cannot_take_part_has_status_2_before_anything_runs(
    tmp_path: Path, given: str, reason: str
) -> None:
    experiment("racing", title="Racing", small=Toy(), paper=Toy(), rivals=["quamina"])(with_rivals)
    outcome = Outcome("run", "racing", "--output", str(tmp_path), "--rival", given)
    assert (outcome.status, list(tmp_path.iterdir())) == (2, [])
    assert reason in outcome.err


def test_a_rival_that_breaks_down_has_status_1(tmp_path: Path) -> None:
    def broken(run: Run, parameters: Toy) -> Iterator[Row]:
        with RivalProgram("quamina", run.rivals["quamina"]) as rival:
            rival.build(["{}"], ["{}"])
        yield {}

    experiment("racing", title="Racing", small=Toy(), paper=Toy(), rivals=["quamina"])(broken)
    outcome = Outcome("run", "racing", "--output", str(tmp_path), "--rival", "quamina=/no/such/program")
    assert (outcome.status, list(tmp_path.iterdir())) == (1, [])
    assert "racing: rival 'quamina' cannot be started" in outcome.err


def test_an_output_that_is_a_file_has_status_2(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    outcome = Outcome("run", "counting", "--output", str(tmp_path / "file"))
    assert outcome.status == 2
    assert "is not a folder" in outcome.err


def test_a_failed_check_has_status_1_and_the_other_experiments_still_run(tmp_path: Path) -> None:
    experiment("broken", title="Broken", small=Toy(wrong=True), paper=Toy())(toy)
    outcome = Outcome("run", "broken", "counting", "--output", str(tmp_path))
    assert outcome.status == 1
    assert "broken: check failed: both count the same: ours gives 3, theirs 4" in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["counting"]


def test_what_cannot_be_measured_with_a_change_is_said(tmp_path: Path) -> None:
    def shares(run: Run, parameters: Toy) -> Iterator[Row]:
        yield {"share": 1 / parameters.size}

    experiment("shares", title="Shares", small=Toy(), paper=Toy())(shares)
    outcome = Outcome("run", "shares", "--output", str(tmp_path), "--set", "size=0")
    assert outcome.status == 1
    assert "shares: cannot be measured with --set size=0: division by zero" in outcome.err


def test_report_publishes_the_results_of_the_experiments_named(tmp_path: Path) -> None:
    places = ("--results", str(tmp_path / "results"), "--output", str(tmp_path / "docs"))
    Outcome("run", "counting*", "--output", str(tmp_path / "results"))
    outcome = Outcome("report", "counting", *places)
    assert (outcome.status, outcome.out) == (0, f"new results: 1; pages → {tmp_path / 'docs'}\n")
    page = (tmp_path / "docs" / "others.md").read_text()
    assert "experiment run counting --scale" in page
    assert "counting-again" not in page
    Outcome("report", "*", *places)
    assert "counting-again" in (tmp_path / "docs" / "others.md").read_text()


def test_report_says_what_to_run_where_a_result_is_missing(tmp_path: Path) -> None:
    outcome = Outcome("report", "counting", "--results", str(tmp_path), "--output", str(tmp_path / "docs"))
    assert outcome.status == 1
    assert "no result of counting" in outcome.err
    assert "run: pathcast experiment run counting" in outcome.err
    assert not (tmp_path / "docs").exists()


def test_stale_names_the_figures_whose_code_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pathcast_lab.harness.experiment_runner.source_hash", lambda module: "before")
    monkeypatch.setattr("pathcast_lab.harness.experiment_runner.code_version", lambda: "v1")
    Outcome("run", "counting*", "--output", str(tmp_path / "results"))
    Outcome("report", "*", "--results", str(tmp_path / "results"), "--output", str(tmp_path))
    lines = Outcome("stale", "--published", str(tmp_path)).out.splitlines()
    assert lines[0] == "counting  scale small, measured with version v1"
    assert lines[-1] == "2 of 2 figures are stale; 0 were measured before code versions were recorded"
    assert (
        "**Measured with version v1; the code it exercises has changed since.**" in (tmp_path / "others.md").read_text()
    )


def test_several_experiments_by_one_pattern(tmp_path: Path) -> None:
    Outcome("run", "counting*", "--output", str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["counting", "counting-again"]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "sigterm"])
def test_a_signal_ends_the_run_quietly_and_writes_nothing(tmp_path: Path, number: int, status: int) -> None:
    script = f"""{CTRL_C_WORKS}
import time
from dataclasses import dataclass
from pathcast.cli.app import main
from pathcast_lab.harness import experiment

@dataclass(frozen=True)
class Nothing: pass

@experiment("sleeping", title="Sleeping", small=Nothing(), paper=Nothing())
def sleeping(run, parameters):
    run.check("it sleeps", True)
    yield {{"n": 1}}
    print("asleep", flush=True)
    time.sleep(3600)

main()
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", script, "experiment", "run", "sleeping", "--output", str(tmp_path / "new")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "asleep\n"
            process.send_signal(number)
            _, errors = process.communicate(timeout=MINUTES)
        finally:
            process.kill()
    assert process.returncode == status
    assert errors == "sleeping: interrupted; earlier results are unchanged\n"
    assert not (tmp_path / "new").exists()
