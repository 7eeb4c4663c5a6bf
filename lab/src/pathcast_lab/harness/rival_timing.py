"""Timing that accounts for noise.

Rivals are timed in one process and in alternation: a *round* calls each of them once, and the order rotates from round
to round. Anything that slows the machine for a while (other processes, the clock frequency, the cache) then slows all
of them, so the ratio of two rivals is computed per round and then summarised.

A figure is a median with an interval: the order statistics that hold the true median with at least 95 % probability,
whatever the distribution (with fewer than 6 rounds, simply the smallest and the largest). Two rivals differ if the
interval of their ratio does not contain 1; everything else is noise. The `best` round is for floors: the machine's
best.

Cost: one uncounted call per rival to warm up, then `rounds` samples of at least `at_least` seconds each.
"""

import gc
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from time import perf_counter, thread_time

Rival = Callable[[], object]


@dataclass(frozen=True)
class Timing:
    """Seconds per call, one figure per round, in the order of the rounds."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def best(self) -> float:
        return min(self.seconds)

    @property
    def interval(self) -> tuple[float, float]:
        """Holds the true median with at least 95 % probability, given 6 rounds or more."""
        return median_interval(self.seconds)

    @property
    def spread(self) -> float:
        """Half the width of the interval as a share of the median: 0.02 means ± 2 %."""
        low, high = self.interval
        return (high - low) / 2 / self.median if self.median else 0.0


@dataclass(frozen=True)
class Ratio:
    """The ratio of the times of two rivals: the median over the rounds, and its interval."""

    median: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Whether the two differ by more than noise."""
        return not self.low <= 1 <= self.high


def race(
    rivals: Mapping[str, Rival],
    *,
    rounds: int = 7,
    at_least: float = 0.02,
    budget: float = math.inf,
    after_round: Callable[[], object] | None = None,
) -> dict[str, Timing]:
    """Time the rivals against each other.

    A call shorter than `at_least` seconds is repeated within its sample. Once `budget` seconds are spent and 3 rounds
    are done the race ends early, for all rivals alike. `after_round` is called after each round (for progress).
    """
    if rounds < 1:
        raise ValueError(f"rounds must be at least 1, got {rounds}")
    calls = {name: _calls_for(rival, at_least) for name, rival in rivals.items()}
    samples: dict[str, list[float]] = {name: [] for name in rivals}
    order = list(rivals)
    begin = perf_counter()
    for number in range(rounds):
        with collector_paused():
            for name in order:
                samples[name].append(_time(rivals[name], calls[name]))
        order = order[1:] + order[:1]
        if after_round is not None:
            after_round()
        if number >= 2 and perf_counter() - begin > budget:
            break
    return {name: Timing(tuple(seconds)) for name, seconds in samples.items()}


def ratio(one: Timing, other: Timing) -> Ratio:
    """The ratio of the times of `one` and `other` in the same race."""
    pairs = [a / b for a, b in zip(one.seconds, other.seconds, strict=True)]
    low, high = median_interval(pairs)
    return Ratio(statistics.median(pairs), low, high)


def median_interval(samples: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """The narrowest pair of order statistics that holds the median with this probability, or the whole range."""
    ordered = sorted(samples)
    count = len(ordered)
    # Without the k smallest and the k largest, the range misses the median when at most k of `count` tosses show heads,
    # or at most k show tails.
    misses = (2 * heads for heads in accumulate(math.comb(count, k) / 2**count for k in range(count)))
    dropped = max(0, sum(1 for miss in misses if miss <= 1 - confidence) - 1)
    return ordered[dropped], ordered[count - 1 - dropped]


@contextmanager
def collector_paused() -> Iterator[None]:
    """Collect garbage now, and not again within the block: a collection would slow down one of the rivals."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def collector_watched() -> Iterator[list[float]]:
    """The CPU seconds of each garbage collection while the block runs; the last one, at its end, is a full one.

    A collection holds the interpreter's lock, so all threads wait that long. Waiting for a busy processor, or for other
    threads before and after the collection, is not the collector's doing and does not count.
    """
    pauses: list[float] = []
    begin = 0.0

    def watch(phase: str, _: dict[str, int]) -> None:
        nonlocal begin
        if phase == "start":
            begin = thread_time()
        else:
            pauses.append(thread_time() - begin)

    gc.callbacks.append(watch)
    try:
        yield pauses
        gc.collect()
    finally:
        gc.callbacks.remove(watch)


def _time(rival: Rival, calls: int) -> float:
    begin = perf_counter()
    for _ in range(calls):
        rival()
    return (perf_counter() - begin) / calls


def _calls_for(rival: Rival, at_least: float) -> int:
    """The number of calls that fill a sample. The first call warms caches and compiles kernels, and does not count."""
    rival()
    calls = 1
    while (seconds := _time(rival, calls) * calls) < at_least:
        calls = max(calls * 2, math.ceil(calls * at_least / seconds)) if seconds > 0 else calls * 2
    return calls
