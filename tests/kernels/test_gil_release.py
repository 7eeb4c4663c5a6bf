"""Kernels release the GIL, except in a thread that keeps it."""

import sys
import threading
from collections.abc import Iterator
from time import monotonic, sleep

import numpy as np
import pytest

from pathcast.kernels import keep_gil, release_gil
from pathcast.matching.results.match_expansion_kernels import pick

PLACES = np.arange(1 << 20, dtype=np.int32)
OUT = np.zeros(len(PLACES), dtype=np.int32)
ENOUGH = 120.0


class Turns:
    """Counts the turns that another thread gets; it gets one only if the GIL is released."""

    def __init__(self) -> None:
        self.count, self._ended = 0, False
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._ended:
            self.count += 1
            sleep(0)

    def __enter__(self) -> "Turns":
        self._thread.start()
        while not self.count:
            sleep(0.001)
        return self

    def __exit__(self, *raised: object) -> None:
        self._ended = True
        self._thread.join()


@pytest.fixture(autouse=True)
def _no_forced_turns() -> Iterator[None]:
    """No thread loses the GIL unless it releases it."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000.0)
    yield
    sys.setswitchinterval(before)
    release_gil()


def kernel_gives_turns(turns: Turns, most: int) -> bool:
    """Whether another thread gets a turn during one of at most `most` calls of a kernel."""
    end = monotonic() + ENOUGH
    for _ in range(most):
        before = turns.count
        pick(PLACES, PLACES, OUT)
        if turns.count != before:
            return True
        if monotonic() > end:
            break
    return False


def test_a_kernel_releases_the_gil() -> None:
    with Turns() as turns:
        assert kernel_gives_turns(turns, 1_000_000)


def test_a_thread_may_keep_it_for_a_while() -> None:
    with Turns() as turns:
        keep_gil()
        assert not kernel_gives_turns(turns, 100)
        assert release_gil()
        assert kernel_gives_turns(turns, 1_000_000)


def test_only_the_thread_that_keeps_it_stops_keeping_it() -> None:
    answers = []
    keep_gil()
    thread = threading.Thread(target=lambda: answers.append(release_gil()))
    thread.start()
    thread.join()
    assert answers == [False]
    assert release_gil() and not release_gil()
