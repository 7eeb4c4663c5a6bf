"""Compare the speed of two revisions, measured alternately, and report noise as noise.

    scripts/perf-compare main~1 main                 the short list, some minutes
    scripts/perf-compare main . --only matching      the working tree against a revision, one case

Each revision is checked out into a temporary folder and runs the cases of perf_cases.py in its own process; rounds
alternate A B B A A B …, so that a machine that slows down slows both. The table has the time of each case in both
revisions, and the ratio of new to old with an interval: the geometric mean over rounds, and the middle 95 % of
bootstrap means.

    same      the interval lies within 3 % of 1
    slower    all of it lies above 1.03;   faster    all of it lies below 0.97
    noise     the interval is too wide: run more rounds, or use a quieter machine

The exit status is 1 if a case is slower, 2 if a revision cannot be run. Spark's figure is a ratio already: matching
over a `mapInArrow` that changes nothing.
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from perf_cases import CASES, SPARK

_HERE = Path(__file__).resolve().parent
_TOLERANCE = 0.03
_RESAMPLES = 2_000
_WORKING_TREE = "."


class Comparison(NamedTuple):
    """The ratio of new to old, and the interval in which it lies."""

    ratio: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """The conclusion that the interval allows."""
        if self.low > 1 + _TOLERANCE:
            return "slower"
        if self.high < 1 - _TOLERANCE:
            return "faster"
        return "same" if self.low >= 1 - _TOLERANCE and self.high <= 1 + _TOLERANCE else "noise"


def compare(old: Sequence[float], new: Sequence[float]) -> Comparison:
    """The ratio of paired times, with an interval by bootstrap; the same input gives the same interval."""
    logs = [math.log(after / before) for before, after in zip(old, new, strict=True)]
    rng = random.Random(0)
    means = sorted(sum(rng.choices(logs, k=len(logs))) / len(logs) for _ in range(_RESAMPLES))
    low, high = means[int(0.025 * _RESAMPLES)], means[int(0.975 * _RESAMPLES) - 1]
    return Comparison(math.exp(sum(logs) / len(logs)), math.exp(low), math.exp(high))


def main() -> None:
    """Parse the arguments, run the rounds, print the table."""
    parser = argparse.ArgumentParser(prog="perf-compare", description=__doc__, formatter_class=_Plain)
    parser.add_argument("old", help="a revision, such as main~1 or a tag")
    parser.add_argument("new", help="another one, or . for the working tree")
    names = [*CASES, SPARK]
    parser.add_argument("--only", nargs="+", choices=names, metavar="CASE", help=f"cases to run: {', '.join(names)}")
    parser.add_argument("--rounds", type=_count, default=7, help="how often each revision runs (default: 7)")
    given = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="perf-compare-") as folder:
            sources = [_checked_out(given.old, Path(folder) / "old"), _checked_out(given.new, Path(folder) / "new")]
            rounds = _rounds(sources, given.only or names, given.rounds)
    finally:
        _git("worktree", "prune")
    print(f"{'case':<18}{'old ms':>10}{'new ms':>10}{'ratio':>8}  95 % interval")
    slower = False
    for name in given.only or names:
        old, new = ([each[name] for each in times] for times in rounds)
        found = compare(old, new)
        scale = 1 if name == SPARK else 1_000
        print(
            f"{name:<18}{scale * min(old):>10.2f}{scale * min(new):>10.2f}{found.ratio:>8.3f}"
            f"  {found.low:.3f}-{found.high:.3f}  {found.verdict}"
        )
        slower |= found.verdict == "slower"
    sys.exit(1 if slower else 0)


class _Plain(argparse.RawDescriptionHelpFormatter):
    pass


def _count(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() else 0
    if not number:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rounds; give at least 1")
    return number


def _rounds(sources: list[Path], names: list[str], count: int) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
    times: tuple[list[dict[str, float]], list[dict[str, float]]] = ([], [])
    for source in sources:  # kernels are compiled before anything is timed
        _say(f"warming up {source.parent.name} …")
        _timed(source, names)
    for number in range(count):
        _say(f"round {number + 1} of {count} …")
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            times[which].append(_timed(sources[which], names))
    return times


def _timed(source: Path, names: list[str]) -> dict[str, float]:
    """The seconds of each case with the Pathcast in a folder of sources."""
    done = subprocess.run(
        [sys.executable, str(_HERE / "perf_cases.py"), *names],
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        _fail(f"the cases failed with {source}:\n{done.stderr.strip()[-2_000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _checked_out(revision: str, folder: Path) -> Path:
    """The folder of sources of a revision."""
    if revision == _WORKING_TREE:
        return _HERE.parent / "src"
    done = _git("worktree", "add", "--detach", "--quiet", str(folder), revision)
    if done.returncode:
        _fail(f"cannot check out {revision!r}: {done.stderr.strip()}")
    return folder / "src"


def _git(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = ["git", "-C", str(_HERE.parent), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _fail(text: str) -> None:
    print(f"error: {text}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
