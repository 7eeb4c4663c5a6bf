"""GET /metrics: what the broker did and holds, in Prometheus's text format; for administrators.

No metric has a label per subscription, feed or tenant, so the number of series does not grow with use.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.requests import Request
from starlette.responses import Response

from ..broker import Broker
from ..sequencer import Processed
from .request_context import access_of

# From half a millisecond, an fsync, to ten seconds.
_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_DOCUMENTS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 1024)


class Metrics:
    """The metrics of one broker."""

    def __init__(self, broker: Broker) -> None:
        registry = self._registry = CollectorRegistry()
        self._matched = Histogram(
            "pathcast_batch_documents", "Documents per batch that was matched.", buckets=_DOCUMENTS, registry=registry
        )
        self._matches = Counter("pathcast_pattern_matches", "Matches of documents and patterns.", registry=registry)
        self._unmatched = Counter(
            "pathcast_unmatched_documents",
            "Documents that could be read, but exceeded a limit of matching.",
            registry=registry,
        )
        self._publish = Histogram(
            "pathcast_publish_seconds",
            "From the end of a request's body until its documents are durable and matched.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.delivered = Counter("pathcast_deliveries", "Documents handed to subscribers.", ["way"], registry=registry)
        self._gauge("pathcast_log_head", "The last sequence of the log.", lambda: broker.matched_to)
        self._gauge("pathcast_log_first", "The oldest sequence that can be read.", lambda: broker.log.first)
        self._gauge("pathcast_log_leases", "Read leases that hold back trimming.", lambda: len(broker.leases))
        self._gauge("pathcast_subscriptions", "Subscriptions of all tenants.", lambda: len(broker.state.subscriptions))
        self._gauge("pathcast_recent_bytes", "Bytes of documents in memory.", lambda: broker.recent.bytes)
        self._gauge("pathcast_up", "1 while the broker accepts publications.", lambda: broker.failure is None)
        self._gauge(
            "pathcast_patterns",
            "Patterns, summed over feeds.",
            lambda: sum(map(len, list(broker.indexes.values()))),
        )

    def _gauge(self, name: str, meaning: str, value: Callable[[], float]) -> None:
        Gauge(name, meaning, registry=self._registry).set_function(value)

    def processed(self, done: Processed) -> None:
        """Count a batch; called in the sequencer's thread."""
        if done.matches:
            self._matched.observe(sum(len(batch.sequences) for batch in done.matches.values()))
            self._matches.inc(sum(len(batch.patterns) for batch in done.matches.values()))
        self._unmatched.inc(done.unmatched)

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """Measure a publication."""
        begin = time.perf_counter()
        yield
        self._publish.observe(time.perf_counter() - begin)

    def text(self) -> bytes:
        """All metrics in Prometheus's format."""
        return generate_latest(self._registry)


def metrics_of(request: Request) -> Metrics:
    """The metrics of the broker that the application serves."""
    metrics: Metrics = request.app.state.metrics
    return metrics


async def show_metrics(request: Request) -> Response:
    """GET /metrics."""
    access_of(request).check_administer()
    return Response(metrics_of(request).text(), media_type=CONTENT_TYPE_LATEST)
