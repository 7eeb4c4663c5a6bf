"""Metrics: what the broker did, how long it took, and what it holds, in Prometheus's text format.

    request ──▶ wait ──▶ match ──▶ append ──▶ answered                  publish: all of them
                                     durable ──▶ written to a reader    deliver

    webhook request ──▶ delivered, throttled, gone, failed ──▶ again, or a dead letter

No metric has a label per subscription, feed or tenant, so the number of series does not grow with use. The sequencer
notes times per batch; what is a level (memory, connections, lag) is looked up when somebody asks for the metrics.
"""

import time
from collections.abc import Callable
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from pathcast.log import SqliteLog

from ..broker import Broker
from ..sequencing.batch_processing import Processed
from .durability_timestamps import DurableTimes
from .duration_histogram import Durations, DurationsCollector
from .subscription_lag import QUANTILES, lags, quantiles

_DOCUMENTS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
WAYS: Final = ("events", "pull", "webhook")
# Counters that `reading` returns.
_READ: Final = (
    "pathcast_documents_total",
    "pathcast_deliveries_total",
    "pathcast_problems_total",
    "pathcast_webhook_requests_total",
    "pathcast_webhook_dead_letters_total",
)
ANSWERS: Final = ("delivered", "throttled", "gone", "failed")


class Metrics:
    """The metrics of one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        registry = self._registry = CollectorRegistry()
        self._publish, self._wait, self._match, self._append = (Durations() for _ in range(4))
        self._webhook = Durations()
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
                    "pathcast_webhook_seconds": ("From the start of a webhook request to its end.", self._webhook),
                }
            )
        )
        self._batch = self._histogram("pathcast_batch_documents", "Documents per matched batch.")
        self._matches = self._counter("pathcast_pattern_matches", "Pairs of a document and a pattern that matches it.")
        self._unmatched = self._counter(
            "pathcast_unmatched_documents", "Readable documents that exceeded a limit of matching."
        )
        documents = self._counter("pathcast_documents", "Published documents, by outcome.", "outcome")
        self._outcomes = [documents.labels(each) for each in ("accepted", "duplicate", "rejected", "dead_letter")]
        delivered = self._counter("pathcast_deliveries", "Documents delivered to subscribers.", "way")
        self._delivered = {way: delivered.labels(way) for way in WAYS}
        self._problems = self._counter(
            "pathcast_problems", "Requests answered with an error, by HTTP status.", "status"
        )
        webhooks = self._counter("pathcast_webhook_requests", "Webhook requests, by outcome.", "outcome")
        self._webhooks = {each: webhooks.labels(each) for each in ANSWERS}
        self._webhook_letters = self._counter(
            "pathcast_webhook_dead_letters",
            "Webhook deliveries that became dead letters after the last attempt failed.",
        )
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
        self.gauge("pathcast_log_first", "The oldest sequence in the log.", lambda: log.first)
        if isinstance(log, SqliteLog):
            self.gauge("pathcast_log_segments", "Segments of the log.", lambda: log.segments)
        self.gauge("pathcast_log_leases", "Read leases that hold back trimming.", lambda: len(broker.leases))
        self.gauge("pathcast_subscriptions", "Subscriptions of all tenants.", lambda: len(broker.state.subscriptions))
        self.gauge(
            "pathcast_patterns", "Patterns, summed over feeds.", lambda: sum(map(len, list(broker.indexes.values())))
        )
        self.gauge("pathcast_requests_waiting", "Requests that wait for a batch.", lambda: broker.requests_waiting)
        self.gauge("pathcast_recent_bytes", "Bytes of documents in memory.", lambda: broker.recent.bytes)
        self.gauge(
            "pathcast_recent_limit_bytes",
            "Largest allowed value of pathcast_recent_bytes.",
            lambda: broker.recent.capacity,
        )
        self.gauge("pathcast_up", "1 while the broker accepts publications.", lambda: broker.failure is None)

    def gauge(self, name: str, meaning: str, value: Callable[[], float]) -> None:
        """Show a level, which is looked up for each answer."""
        Gauge(name, meaning, registry=self._registry).set_function(value)

    def watch_connections(self, connections: "set[Any]", limit: int) -> None:
        """Show a server's connections, and what their clients have not read yet."""
        self.gauge("pathcast_connections", "Open connections.", lambda: len(connections))
        self.gauge("pathcast_connections_limit", "Largest allowed number of connections.", lambda: limit)
        self.gauge(
            "pathcast_unread_bytes",
            "Bytes in buffers that clients have not read yet.",
            lambda: sum(each.transport.get_write_buffer_size() for each in list(connections)),
        )

    def watch_webhooks(self, queued: Callable[[], int], sinks: Callable[[], int]) -> None:
        """Show the deliveries that webhook workers hold, and how many workers there are."""
        self.gauge("pathcast_webhook_queue", "Deliveries leased by webhook workers and not acknowledged yet.", queued)
        self.gauge("pathcast_webhook_sinks", "Sinks of at least one active webhook subscription.", sinks)

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
            self._batch.observe(sum(len(batch.sequences) for _, batch in done.matches))
            self._matches.inc(sum(int(batch.counts.sum()) for _, batch in done.matches))
        self._unmatched.inc(done.unmatched)

    def published(self, begin: float) -> None:
        """Measure a publication that began at this reading of the clock."""
        self._publish.observe((time.perf_counter() - begin,))

    def delivered(self, way: str, sequences: list[int]) -> None:
        """Count documents that were just written to a reader."""
        self._delivered[way].inc(len(sequences))
        self._deliver[way].observe(self._durable.ages(sequences, time.perf_counter()))

    def webhook(self, outcome: str, seconds: float) -> None:
        """Count a webhook request, by what became of it."""
        self._webhooks[outcome].inc()
        self._webhook.observe((seconds,))

    def webhook_dead_letters(self, count: int) -> None:
        """Count webhook deliveries that failed for the last time."""
        self._webhook_letters.inc(count)

    def problem(self, status: int) -> None:
        """Count a request that is answered with an error."""
        self._problems.labels(str(status)).inc()

    # What somebody asks.

    def lags(self) -> list[int]:
        """The lag of each cursor; takes long for many subscriptions, and may run in any thread."""
        return lags(self._broker.state, self._broker.matched_to)

    def reading(self) -> tuple[dict[str, float], dict[str, list[tuple[float, float]]]]:
        """Counters, and cumulative buckets of `publish` and `deliver`, as of now; any thread may ask."""
        counters = {"subscriptions": float(len(self._broker.state.subscriptions)), "documents": 0.0, "deliveries": 0.0}
        found = self._registry.restricted_registry(_READ)
        for family in found.collect():
            for sample in family.samples:
                if sample.name.endswith("_total"):
                    name = sample.name.removeprefix("pathcast_").removesuffix("_total")
                    counters[" ".join((name, *sample.labels.values()))] = sample.value
        counters["documents"] = counters["documents accepted"] + counters["documents dead_letter"]
        counters["deliveries"] = sum(counters[f"deliveries {way}"] for way in WAYS)
        deliver = [each.buckets()[0] for each in self._deliver.values()]
        summed = [(text, sum(each[at][1] for each in deliver)) for at, (text, _) in enumerate(deliver[0])]
        buckets = {"publish": self._publish.buckets()[0], "deliver": summed}
        return counters, {name: [(float(text), count) for text, count in each] for name, each in buckets.items()}

    def text(self, lags: list[int]) -> bytes:
        """All metrics in Prometheus's format. Belongs to the thread of the connections."""
        for quantile, value in zip(QUANTILES, quantiles(lags), strict=True):
            self._lag.labels(str(quantile)).set(value)
        self._cursors.set(len(lags))
        return generate_latest(self._registry)
