"""A process of its own for what may take much memory, or may not end well: what it prints, and the most it held."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from pathcast import Subscriptions

_CHECKOUT = Path(__file__).resolve().parents[2]
_AFTER = """
import resource as _resource
print(_resource.getrusage(_resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@dataclass(frozen=True)
class Measured:
    printed: list[str]
    megabytes: int
    """The most memory that the process held at a time, Python and all libraries included (some 180)."""


def measured(code: str) -> Measured:
    """Run code that finds its kernels compiled."""
    Subscriptions().compile()
    command = [sys.executable, "-c", code + _AFTER]
    variables = {**os.environ, "PYTHONFAULTHANDLER": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=_CHECKOUT, env=variables, timeout=3600, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    *printed, megabytes = done.stdout.splitlines()
    return Measured(printed, int(megabytes))
