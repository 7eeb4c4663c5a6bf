"""Runs code that may take much memory or crash in a separate process; returns its output and peak memory."""

import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parents[2]
# (Not `ru_maxrss`: that of a process begins with what its parent held.)
_AFTER = """
for _line in open("/proc/self/status"):
    if _line.startswith("VmHWM:"):
        print(int(_line.split()[1]) // 1024)
"""
_ALL_KERNELS = """
import importlib
from pathcast.kernels.compilation.kernel_cache import PACKAGE, kernel_sources
for source in kernel_sources():
    module = importlib.import_module(".".join(["pathcast", *source.relative_to(PACKAGE).with_suffix("").parts]))
    for value in list(vars(module).values()):
        if hasattr(value, "ready") and not isinstance(value, type):
            value.ready()
"""


@dataclass(frozen=True)
class Measured:
    printed: list[str]
    megabytes: int
    """The peak memory of the process, Python and all libraries included (some 180)."""


@cache
def compile_kernels() -> None:
    """Compile all kernels to disk, in a separate process."""
    subprocess.run([sys.executable, "-c", _ALL_KERNELS], cwd=_CHECKOUT, check=True)


def measured(code: str) -> Measured:
    """Run code with its kernels already compiled: compiling takes more memory than the measured code."""
    compile_kernels()
    command = [sys.executable, "-c", code + _AFTER]
    variables = {**os.environ, "PYTHONFAULTHANDLER": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=_CHECKOUT, env=variables, timeout=3600, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    *printed, megabytes = done.stdout.splitlines()
    return Measured(printed, int(megabytes))
