"""Recent activity: what the broker did in the last minutes, as series for charts.

Every `STEP` seconds the counters are read. A point is the difference of two readings: documents and deliveries per
second, and quantiles of latency from the histograms' buckets, each interpolated within its bucket.

Cost: some 0.5 ms per reading; the lag of cursors is read less often where there are many, since a million take 0.3 s.
Memory: `POINTS` readings of some 200 numbers.
"""

import asyncio
import time
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from .metrics import Metrics
from .subscription_lag import quantiles

STEP: Final = 2.0
POINTS: Final = 300
# Cursors up to which the lag is part of every reading; beyond, of every `_RARELY`-th.
_FEW: Final = 20_000
_RARELY: Final = 15


class Reading(NamedTuple):
    """The counters at one time (seconds since 1970), and the lag of cursors: median, 99 % and largest."""

    time: float
    counters: Mapping[str, float]
    buckets: Mapping[str, Sequence[tuple[float, float]]]
    lag: tuple[float, float, float]


class Point(NamedTuple):
    """What happened between two readings; latency in seconds, None where nothing was measured."""

    time: float
    documents: float
    deliveries: float
    publish_p50: float | None
    publish_p99: float | None
    deliver_p99: float | None
    lag_p99: float
    lag_max: float


class RecentActivity:
    """The last readings of a broker's metrics."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._readings: deque[Reading] = deque(maxlen=POINTS + 1)
        self._count = 0

    async def sample_forever(self) -> None:
        """Read the counters every `STEP` seconds."""
        while True:
            await asyncio.to_thread(self.sample)
            await asyncio.sleep(STEP)

    def sample(self, now: float | None = None) -> None:
        """Read the counters once."""
        counters, buckets = self._metrics.reading()
        lag = self._readings[-1].lag if self._readings else (0.0, 0.0, 0.0)
        if counters["subscriptions"] <= _FEW or self._count % _RARELY == 0:
            median, _, high, largest = quantiles(self._metrics.lags())
            lag = median, high, largest
        self._count += 1
        self._readings.append(Reading(time.time() if now is None else now, counters, buckets, lag))

    @property
    def latest(self) -> Reading | None:
        """The last reading."""
        return self._readings[-1] if self._readings else None

    def points(self) -> list[Point]:
        """The series, oldest first."""
        readings = list(self._readings)
        return [_point(before, after) for before, after in pairwise(readings)]

    def since(self, name: str) -> float:
        """How much a counter has grown within the readings that are kept."""
        readings = list(self._readings)
        return readings[-1].counters.get(name, 0.0) - readings[0].counters.get(name, 0.0) if readings else 0.0


def _point(before: Reading, after: Reading) -> Point:
    seconds = max(after.time - before.time, 1e-3)

    def rate(name: str) -> float:
        return max(0.0, after.counters[name] - before.counters[name]) / seconds

    def latency(name: str, part: float) -> float | None:
        return quantile(before.buckets[name], after.buckets[name], part)

    return Point(
        after.time,
        rate("documents"),
        rate("deliveries"),
        latency("publish", 0.5),
        latency("publish", 0.99),
        latency("deliver", 0.99),
        *after.lag[1:],
    )


def quantile(before: Sequence[tuple[float, float]], after: Sequence[tuple[float, float]], part: float) -> float | None:
    """The quantile of what was counted between two readings of cumulative buckets; None if that is nothing."""
    counts = [later - earlier for (_, earlier), (_, later) in zip(before, after, strict=True)]
    if counts[-1] <= 0:
        return None
    wanted, low, below = part * counts[-1], 0.0, 0.0
    for (bound, _), count in zip(after, counts, strict=True):
        if count >= wanted and count > below:
            if bound == float("inf"):
                return low
            return low + (bound - low) * (wanted - below) / (count - below)
        low, below = bound, count
    return low
