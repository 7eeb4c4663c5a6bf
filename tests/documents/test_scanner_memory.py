"""The scanner never reads or writes outside its arrays; see `guarded.py` for how that is noticed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

_CHECKOUT = Path(__file__).resolve().parents[2]


def guarded(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tests.documents.guarded", *arguments]
    variables = {**os.environ, **environment}
    return subprocess.run(
        command, capture_output=True, text=True, cwd=_CHECKOUT, env=variables, timeout=3600, check=False
    )


@pytest.mark.slow
def test_the_scanner_stays_inside_its_arrays() -> None:
    done = guarded("0", "1")
    assert done.returncode == 0, done.stderr
    assert "right" in done.stdout


@pytest.mark.slow
def test_a_scan_beyond_the_data_is_noticed() -> None:
    assert guarded("unpadded").returncode == -signal.SIGSEGV


def test_the_scanner_stays_inside_its_arrays_as_numba_checks_it(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--long"):
        pytest.skip("kernels with checks take long to compile; run with --long")
    checked = {"NUMBA_BOUNDSCHECK": "1", "PATHCAST_CACHE": str(tmp_path)}
    noticed = guarded("cramped", **checked)
    assert "IndexError: index is out of bounds" in noticed.stderr
    done = guarded("1", "20", **checked)
    assert done.returncode == 0, done.stderr
    assert "right" in done.stdout
