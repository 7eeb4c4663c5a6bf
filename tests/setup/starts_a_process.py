"""A test that starts a process, for test_fast_tests.py; its name keeps it out of other runs."""

import subprocess


def test_a_process_is_started() -> None:
    subprocess.run(["true"], check=True)
