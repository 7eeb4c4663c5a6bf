"""`make test-fast`: which tests it skips, and that none of the others starts a process."""

import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]


def fast(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--fast", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=CHECKOUT, check=False)


@pytest.mark.slow
def test_spark_the_laboratory_and_slow_tests_are_left_out() -> None:
    found = fast("--collect-only", "tests").stdout
    assert "tests/store/test_" in found and "tests/setup/test_perf_compare.py::test_a_machine" in found
    assert "tests/spark" not in found and "tests/lab" not in found
    assert "test_every_case_runs_and_has_a_time" not in found


@pytest.mark.slow
def test_a_test_that_starts_a_process_fails() -> None:
    assert "mark it with @pytest.mark.slow" in fast("tests/setup/starts_a_process.py").stdout
