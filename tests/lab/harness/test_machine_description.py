import os
import platform
import re
from pathlib import Path

import numpy
import pyarrow

from pathcast_lab.harness.machine_description import machine


def test_the_machine_is_described_so_that_figures_can_be_judged() -> None:
    found = machine()
    assert list(found) == ["processor", "cores", "memory", "load", "system", "Python", "libraries"]
    assert all(found.values())
    assert platform.python_version() in found["Python"]
    assert f"numpy {numpy.__version__}" in found["libraries"]
    assert f"pyarrow {pyarrow.__version__}" in found["libraries"]
    assert re.fullmatch(r"\d+ GiB|unknown", found["memory"])
    assert found["cores"].endswith(str(os.cpu_count()))


def test_nothing_names_the_machine_or_its_user() -> None:
    text = " ".join(machine().values())
    assert platform.node() not in text
    assert str(Path.home()) not in text
