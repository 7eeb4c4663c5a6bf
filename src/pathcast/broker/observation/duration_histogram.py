"""A histogram of seconds that costs some 0.1 µs per observation, and one lock per batch of them.

prometheus_client's histogram takes a lock per bucket and observation, several times as long.
"""

import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Final

from prometheus_client.metrics_core import HistogramMetricFamily

# From 100 µs, a small batch, over an fsync and a network, to a minute, which is a slow reader.
BOUNDS: Final = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)


class Durations:
    """How many observations were at most as long as each bound. Any thread observes."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS) + 1)
        self._sum = 0.0
        self._lock = threading.Lock()

    def observe(self, seconds: Iterable[float]) -> None:
        """Count some observations."""
        with self._lock:
            for each in seconds:
                self._counts[bisect_left(BOUNDS, each)] += 1
                self._sum += each

    def buckets(self) -> tuple[list[tuple[str, float]], float]:
        """Cumulative counts by bound, as Prometheus writes them, and the sum of all observations."""
        with self._lock:
            counts, total = list(accumulate(self._counts)), self._sum
        bounds = [*map(str, BOUNDS), "+Inf"]
        return list(zip(bounds, map(float, counts), strict=True)), total


class DurationsCollector:
    """Shows histograms to a registry: by name, its meaning and the histogram, or one per value of the label `way`."""

    def __init__(self, histograms: dict[str, tuple[str, Durations | dict[str, Durations]]]) -> None:
        self._histograms = histograms

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """The histograms as Prometheus's client shows them."""
        for name, (meaning, found) in self._histograms.items():
            family = HistogramMetricFamily(name, meaning, labels=["way"] if isinstance(found, dict) else [])
            for labels, each in [([], found)] if isinstance(found, Durations) else [([k], v) for k, v in found.items()]:
                family.add_metric(labels, *each.buckets())
            yield family
