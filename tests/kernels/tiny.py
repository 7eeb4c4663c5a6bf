"""A minimal package, compiled as Pathcast is: a kernel that uses a part and a constant of another file."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from pathcast.kernels.compilation import kernel_cache as cache

CALLER = """
from .callee_kernels import FACTOR, scaled
from .kernels import kernel


@kernel("int64(int64)")
def answer(number):
    return scaled(number) + FACTOR


@kernel("int64(ro_i4[::1])")
def total(values):
    found = 0
    for index in range(len(values)):
        found += values[index]
    return found
"""
CALLEE = """
from .kernels import part

FACTOR = 2


@part
def scaled(number):
    return number * 10
"""
RUN = (
    "from tiny.caller_kernels import answer; from tiny.kernels.compilation.kernel_compiler import COMPILED; "
    "print(answer(4), *COMPILED)"
)


@dataclass(frozen=True)
class Tiny:
    """The package `tiny` in a folder, and a folder for its compiled kernels."""

    folder: Path
    cache: Path

    @classmethod
    def make(cls, folder: Path) -> "Tiny":
        package = folder / "tiny"
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(Path(cache.__file__).parents[1], package / "kernels", ignore=ignored)
        (package / "__init__.py").touch()
        (package / "caller_kernels.py").write_text(CALLER)
        (package / "callee_kernels.py").write_text(CALLEE)
        return cls(folder, folder / "cache")

    def replace(self, name: str, old: str, new: str) -> None:
        """Change the text of one file."""
        path = self.folder / "tiny" / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def environment(self, **more: str) -> dict[str, str]:
        known = {"PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1", "PATHCAST_CACHE": str(self.cache)}
        return {**os.environ, **known, **more}

    def run(self, code: str = RUN, **more: str) -> str:
        """The standard output of a process; its standard error must be empty."""
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment(**more), check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.strip()
