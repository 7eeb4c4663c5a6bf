"""A process of its own for what may take much memory, or may not end well: what it prints, and the most it held."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

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


def measured(code: str, *, address_space: int | None = None) -> Measured:
    """Run code; `address_space` bounds what it may ask the system for, in megabytes."""
    before = ""
    if address_space is not None:
        before = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({address_space} << 20,) * 2)\n"
    command = [sys.executable, "-c", before + code + _AFTER]
    variables = {**os.environ, "PYTHONFAULTHANDLER": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=_CHECKOUT, env=variables, timeout=3600, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    *printed, megabytes = done.stdout.splitlines()
    return Measured(printed, int(megabytes))
