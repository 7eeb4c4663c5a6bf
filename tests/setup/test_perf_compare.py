"""`scripts/perf-compare`: its verdict on times, and that its cases run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from perf_cases import CASES, SPARK  # noqa: E402
from perf_compare import compare  # noqa: E402

NOISE = [1.0, 1.3, 0.8, 1.1, 0.9, 1.25, 0.85]


@pytest.mark.parametrize(
    ("factor", "noise", "verdict"),
    [
        (1.0, [1.0] * 7, "same"),
        (1.02, [1.0] * 7, "same"),
        (1.1, [1.0] * 7, "slower"),
        (0.9, [1.0] * 7, "faster"),
        (1.0, NOISE, "noise"),
        (1.1, NOISE, "noise"),
        (2.0, NOISE, "slower"),
    ],
)
def test_only_what_the_interval_allows_is_said(factor: float, noise: list[float], verdict: str) -> None:
    found = compare([0.5] * 7, [0.5 * factor * each for each in noise])
    assert found.verdict == verdict
    assert found.low <= found.ratio <= found.high


def test_a_machine_that_slows_down_slows_both() -> None:
    drift = [1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0]
    assert compare(drift, [1.2 * each for each in drift]).ratio == pytest.approx(1.2)


@pytest.mark.slow
def test_every_case_runs_and_has_a_time() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / "perf_cases.py"), *CASES],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert list(found) == list(CASES)
    assert all(seconds > 0 for seconds in found.values())
    assert SPARK not in CASES, "Spark's case is run apart"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere", "."], "error: cannot check out 'nowhere'"),
        ([".", ".", "--rounds", "0"], "'0' is not a number of rounds; give at least 1"),
        ([".", ".", "--only", "nothing"], "invalid choice: 'nothing'"),
    ],
)
def test_arguments_that_cannot_be_used_are_reported(arguments: list[str], said: str) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / "perf_compare.py"), *arguments],
        capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip
    assert done.returncode == 2
    assert said in done.stderr
