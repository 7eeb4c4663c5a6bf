"""A process that works on a log until it is killed, and prints what it has done.

The standard input is a pickled `Place` and a number of records per append. Each line of the output is a completed call:
`append FIRST LAST`, `checkpoint SEQUENCE`, `trim FIRST`. Record n has the content of `records(1, n)`.
"""

import os
import pickle
import subprocess
import sys
from pathlib import Path
from random import Random
from time import sleep
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .places import Place

_CHECKOUT = Path(__file__).resolve().parents[2]


class AppendingProcess:
    """Started with a place and a seed; `lines` are the calls that have returned."""

    def __init__(self, place: "Place", seed: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.log.appending_process"],
            cwd=_CHECKOUT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(pickle.dumps((place, seed)))
        self._process.stdin.close()

    def kill_after(self, calls: int, seconds: float) -> list[list[str]]:
        """Kill the process when it has returned from some calls and some seconds later; all calls that returned."""
        assert self._process.stdout is not None
        lines = [self._process.stdout.readline() for _ in range(calls)]
        sleep(seconds)
        self._process.kill()
        rest = self._process.stdout.read()
        self._process.stdout.close()
        self._process.wait()
        assert lines[-1], "the process ended by itself: see its error output"
        *whole, _ = (b"".join(lines) + rest).decode().split("\n")  # the last line may be cut
        return [line.split() for line in whole]


def main() -> None:
    """Append, write checkpoints and trim, for ever."""
    from .places import records

    place, seed = pickle.load(sys.stdin.buffer)
    random = Random(seed)
    log = place.open()

    def report(*words: object) -> None:
        os.write(1, (" ".join(map(str, words)) + "\n").encode())

    while True:
        count = random.choice([1, 1, 2, 8, 64])
        begin = log.append(records(count, log.head + 1))
        report("append", begin, begin + count - 1)
        if random.random() < 0.2:
            log.write_checkpoint(log.head, b"%d" % log.head * 1000)
            report("checkpoint", log.head)
            log.trim(max(1, log.head - random.randrange(100)))
            report("trim", log.first)


if __name__ == "__main__":
    main()
