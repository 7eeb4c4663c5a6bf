"""Traces with OpenTelemetry: imported only if the broker's settings have `[telemetry]`.

    publish ──link──▶ batch ─┬─ match
       ▲                     └─ append
       ├──link── deliver
       └── webhook

A publication continues the trace of its request, if there is one. A batch serves many publications, so it is a trace of
its own, and each of them links to it. A delivery links to the trace that its document names; a webhook request
continues it, since its receiver gets one document.

Spans of a batch are made after it, from the times that the sequencer noted: tracing costs the sequencer one call per
batch.
"""

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from pathcast.broker_log import DocumentRecord
from pathcast.extras import extra
from pathcast.log import LogEntry

with extra("telemetry"):
    from opentelemetry.context import Context
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.trace import Link, SpanContext, SpanKind, StatusCode, get_current_span, set_span_in_context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
    from opentelemetry.util.types import AnyValue

from ..sequencing.batch_processing import Processed
from ..sequencing.sequencer_requests import Accepted, Publication, Rejected
from ..settings.broker_sections import TelemetrySection
from .document_trace_attribute import NAME, trace_of

_BATCHES: Final = 1_024

Results = Sequence[Accepted | Rejected]


class Tracing:
    """Records spans of one broker with a provider, which `close` shuts down."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("pathcast.broker")
        self._propagator = TraceContextTextMapPropagator()
        self._heads: list[int] = []
        self._batches: list[SpanContext] = []
        self._lock = threading.Lock()

    @classmethod
    def to(cls, section: TelemetrySection) -> "Tracing":
        """Spans are sent to the collector that the settings name."""
        provider = TracerProvider(resource=Resource.create({"service.name": section.service}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=section.endpoint)))
        return cls(provider)

    def close(self) -> None:
        """Send what is left."""
        self._provider.shutdown()

    def processed(self, done: Processed) -> None:
        """Record a batch; called in the sequencer's thread."""
        times = done.times
        if times is None or not times.waits:
            return
        offset = time.time_ns() - time.perf_counter_ns()

        def at(reading: float) -> int:
            return int(reading * 1e9) + offset

        attributes = {"pathcast.head": done.head, "pathcast.records": times.records, "pathcast.wait": max(times.waits)}
        batch = self._tracer.start_span("batch", Context(), start_time=at(times.begun), attributes=attributes)
        inside = set_span_in_context(batch, Context())
        for name, begin, end in (
            ("match", times.matching, times.matched),
            ("append", times.appending, times.durable),
        ):
            self._tracer.start_span(name, inside, start_time=at(begin)).end(at(end))
        batch.end(at(times.durable))
        with self._lock:
            self._heads.append(done.head)
            self._batches.append(batch.get_span_context())
            if len(self._heads) > 2 * _BATCHES:
                del self._heads[:_BATCHES], self._batches[:_BATCHES]

    @contextmanager
    def publishing(
        self, feed: str, documents: Sequence[Publication], header: str | None
    ) -> Iterator[Callable[[Results], None]]:
        """Record a publication; call what this yields with its results."""
        span = self._tracer.start_span(
            "publish",
            self._context(header),
            SpanKind.PRODUCER,
            {"messaging.destination.name": feed, "messaging.batch.message_count": len(documents)},
        )

        def published(results: Results) -> None:
            new = [each.sequence for each in results if isinstance(each, Accepted) and not each.duplicate]
            batch = self._batch_of(new[0]) if new else None
            if batch is not None:
                span.add_link(batch)
            span.set_attribute("pathcast.sequences", new[:128])

        try:
            yield published
        except BaseException as error:
            span.set_status(StatusCode.ERROR, type(error).__name__)
            raise
        finally:
            span.end()

    def delivered(self, way: str, entry: LogEntry, document: DocumentRecord) -> None:
        """Record that a document was written to a reader."""
        origin = get_current_span(self._context(document.attributes.get(NAME))).get_span_context()
        attributes: dict[str, AnyValue] = {
            "messaging.destination.name": document.feed,
            "pathcast.sequence": entry.sequence,
            "pathcast.way": way,
        }
        self._tracer.start_span(
            "deliver", Context(), SpanKind.CONSUMER, attributes, [Link(origin)] if origin.is_valid else []
        ).end()

    @contextmanager
    def webhook(
        self, entry: LogEntry, document: DocumentRecord, attempt: int
    ) -> Iterator[tuple[str | None, Callable[[int | None, str | None], None]]]:
        """Record a webhook request: yields its `traceparent`, and what to call with the status and error of the answer.

        No attribute names the sink, whose URL may hold a secret.
        """
        attributes: dict[str, AnyValue] = {
            "messaging.destination.name": document.feed,
            "pathcast.sequence": entry.sequence,
            "pathcast.attempt": attempt,
        }
        span = self._tracer.start_span("webhook", self._context(trace_of(document)), SpanKind.CLIENT, attributes)
        headers: dict[str, str] = {}
        self._propagator.inject(headers, set_span_in_context(span, Context()))

        def answered(status: int | None, error: str | None) -> None:
            if status is not None:
                span.set_attribute("http.response.status_code", status)
            if error is not None:
                span.set_status(StatusCode.ERROR, error)

        try:
            yield headers.get(NAME), answered
        except BaseException as error:
            span.set_status(StatusCode.ERROR, type(error).__name__)
            raise
        finally:
            span.end()

    def _context(self, header: str | None) -> Context:
        """The trace that a header names, if any."""
        return self._propagator.extract({} if header is None else {NAME: header}, Context())

    def _batch_of(self, sequence: int) -> SpanContext | None:
        with self._lock:
            place = bisect_left(self._heads, sequence)
            return self._batches[place] if place < len(self._batches) else None
