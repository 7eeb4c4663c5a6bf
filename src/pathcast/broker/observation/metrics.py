"""Metrics: what the broker did, how long it took, and what it holds, in Prometheus's text format.

    request ──▶ wait ──▶ match ──▶ append ──▶ answered                  publish: all of them
                                     durable ──▶ written to a reader    deliver

No metric has a label per subscription, feed or tenant, so the number of series does not grow with use. The sequencer
notes times per batch; what is a level (memory, connections, lag) is looked up when somebody asks for the metrics.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from pathcast.log import SqliteLog

from ..broker import Broker
from ..sequencer import Processed
from .durable_times import DurableTimes
from .durations import Durations, DurationsCollector
from .subscription_lag import QUANTILES, lags, quantiles

_DOCUMENTS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
WAYS: Final = ("events", "pull")


class Metrics:
    """The metrics of one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        registry = self._registry = CollectorRegistry()
        self._publish, self._wait, self._match, self._append = (Durations() for _ in range(4))
        self._deliver = {way: Durations() for way in WAYS}
        self._durable = DurableTimes(broker.matched_to)
        registry.register(
            DurationsCollector(
                {
                    "pathcast_publish_seconds": (
                        "From the end of a request's body until its documents are durable and matched.",
                        self._publish,
                    ),
                    "pathcast_wait_seconds": ("From a publication's arrival until its batch begins.", self._wait),
                    "pathcast_match_seconds": ("Reading and matching the documents of a batch.", self._match),
                    "pathcast_append_seconds": ("Appending a batch to the log, until it is durable.", self._append),
                    "pathcast_deliver_seconds": (
                        "From durable until written to a reader; recent documents only.",
                        self._deliver,
                    ),
                }
            )
        )
        self._batch = self._histogram("pathcast_batch_documents", "Documents per batch that was matched.")
        self._matches = self._counter("pathcast_pattern_matches", "Matches of documents and patterns.")
        self._unmatched = self._counter(
            "pathcast_unmatched_documents", "Documents that could be read, but exceeded a limit of matching."
        )
        documents = self._counter("pathcast_documents", "Published documents, by what became of them.", "outcome")
        self._outcomes = [documents.labels(each) for each in ("accepted", "duplicate", "rejected", "dead_letter")]
        delivered = self._counter("pathcast_deliveries", "Documents handed to subscribers.", "way")
        self._delivered = {way: delivered.labels(way) for way in WAYS}
        self._problems = self._counter("pathcast_problems", "Requests answered with an error, by status.", "status")
        self._lag = Gauge(
            "pathcast_subscription_lag",
            "Records between a cursor and the head of the log: quantiles over all subscriptions with a cursor.",
            ["quantile"],
            registry=registry,
        )
        self._cursors = Gauge("pathcast_cursors", "Subscriptions with a cursor.", registry=registry)
        self._levels()

    def _levels(self) -> None:
        broker, log = self._broker, self._broker.log
        self.gauge("pathcast_log_head", "The last sequence of the log.", lambda: broker.matched_to)
        self.gauge("pathcast_log_first", "The oldest sequence that can be read.", lambda: log.first)
        if isinstance(log, SqliteLog):
            self.gauge("pathcast_log_segments", "Segments of the log.", lambda: log.segments)
        self.gauge("pathcast_log_leases", "Read leases that hold back trimming.", lambda: len(broker.leases))
        self.gauge("pathcast_subscriptions", "Subscriptions of all tenants.", lambda: len(broker.state.subscriptions))
        self.gauge(
            "pathcast_patterns", "Patterns, summed over feeds.", lambda: sum(map(len, list(broker.indexes.values())))
        )
        self.gauge("pathcast_requests_waiting", "Requests that wait for a batch.", lambda: broker.requests_waiting)
        self.gauge("pathcast_recent_bytes", "Bytes of documents in memory.", lambda: broker.recent.bytes)
        self.gauge("pathcast_recent_limit_bytes", "Their bound.", lambda: broker.recent.capacity)
        self.gauge("pathcast_up", "1 while the broker accepts publications.", lambda: broker.failure is None)

    def gauge(self, name: str, meaning: str, value: Callable[[], float]) -> None:
        """Show a level, which is looked up for each answer."""
        Gauge(name, meaning, registry=self._registry).set_function(value)

    def watch_connections(self, connections: "set[Any]", limit: int) -> None:
        """Show a server's connections, and what their clients have not read yet."""
        self.gauge("pathcast_connections", "Open connections.", lambda: len(connections))
        self.gauge("pathcast_connections_limit", "Their bound.", lambda: limit)
        self.gauge(
            "pathcast_unread_bytes",
            "Bytes in buffers that clients have not read yet.",
            lambda: sum(each.transport.get_write_buffer_size() for each in list(connections)),
        )

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(name, meaning, labels, registry=self._registry)

    def _histogram(self, name: str, meaning: str) -> Histogram:
        return Histogram(name, meaning, buckets=_DOCUMENTS, registry=self._registry)

    # What happens.

    def processed(self, done: Processed) -> None:
        """Count a batch; called in the sequencer's thread."""
        if done.times is None:
            return
        times = done.times
        self._durable.add(done.head, times.durable)
        self._wait.observe(times.waits)
        if times.records:
            self._append.observe((times.durable - times.appending,))
        if times.waits:
            self._match.observe((times.matched - times.matching,))
            for counter, count in zip(self._outcomes, done.outcomes, strict=True):
                if count:
                    counter.inc(count)
        if done.matches:
            self._batch.observe(sum(len(batch.sequences) for batch in done.matches.values()))
            self._matches.inc(sum(len(batch.patterns) for batch in done.matches.values()))
        self._unmatched.inc(done.unmatched)

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """Measure a publication."""
        begin = time.perf_counter()
        yield
        self._publish.observe((time.perf_counter() - begin,))

    def delivered(self, way: str, sequences: list[int]) -> None:
        """Count documents that were just written to a reader."""
        self._delivered[way].inc(len(sequences))
        self._deliver[way].observe(self._durable.ages(sequences, time.perf_counter()))

    def problem(self, status: int) -> None:
        """Count a request that is answered with an error."""
        self._problems.labels(str(status)).inc()

    # What somebody asks.

    def lags(self) -> list[int]:
        """The lag of each cursor; takes long for many subscriptions, and may run in any thread."""
        return lags(self._broker.state, self._broker.matched_to)

    def text(self, lags: list[int]) -> bytes:
        """All metrics in Prometheus's format. Belongs to the thread of the connections."""
        for quantile, value in zip(QUANTILES, quantiles(lags), strict=True):
            self._lag.labels(str(quantile)).set(value)
        self._cursors.set(len(lags))
        return generate_latest(self._registry)
