"""Traces of publications, batches and deliveries; and that nothing is imported without them."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pathcast.broker import BrokerSettings, read_settings
from pathcast.broker.observation.tracing import Tracing
from pathcast.broker.settings.broker_sections import TelemetrySection
from pathcast.broker.webhooks.webhook_settings import WebhooksSection

from .served_broker import Events, Served, served
from .webhook_receiver import Answer, receiving

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
HEADER = f"00-{TRACE}-{SPAN}-01"


class Traced(NamedTuple):
    """A broker and the spans that it has recorded."""

    broker: Served
    exporter: InMemorySpanExporter

    def spans(self, name: str) -> list[ReadableSpan]:
        return [each for each in self.exporter.get_finished_spans() if each.name == name]

    def publish(self, document: str, feed: str, **headers: str) -> int:
        answer = self.broker.http.post(f"/v1/feeds/{feed}/documents", content=document, headers=headers)
        return int(answer.json().get("sequence", 0))


@pytest.fixture(scope="module")
def traced_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with served(tmp_path_factory.mktemp("tracing"), tracing=Tracing(provider)) as broker:
        yield Traced(broker, exporter)


@pytest.fixture
def traced(traced_broker: Traced) -> Traced:
    traced_broker.exporter.clear()
    return traced_broker


def linked(span: ReadableSpan) -> list[tuple[str, str]]:
    """The trace and span of each link."""
    return [(f"{link.context.trace_id:032x}", f"{link.context.span_id:016x}") for link in span.links]


def own(span: ReadableSpan) -> tuple[str, str]:
    context = span.get_span_context()
    assert context is not None
    return f"{context.trace_id:032x}", f"{context.span_id:016x}"


def test_a_publication_links_to_its_batch_and_continues_the_trace_of_its_request(traced: Traced) -> None:
    sequence = traced.publish("<a/>", "news", traceparent=HEADER)
    (publish,), (batch,), (match,), (append,) = map(traced.spans, ("publish", "batch", "match", "append"))
    assert own(publish)[0] == TRACE
    assert publish.parent is not None
    assert f"{publish.parent.span_id:016x}" == SPAN
    assert linked(publish) == [own(batch)]
    assert (batch.parent, own(batch)[0] == TRACE) == (None, False)
    for inner in (match, append):
        assert inner.parent is not None
        assert (inner.parent.span_id, own(inner)[0]) == (int(own(batch)[1], 16), own(batch)[0])
        assert (batch.start_time or 0) <= (inner.start_time or 0) <= (inner.end_time or 0) <= (batch.end_time or 0)
    assert (match.end_time or 0) <= (append.start_time or 0)
    assert dict(publish.attributes or {})["pathcast.sequences"] == (sequence,)


def test_each_publication_links_to_the_batch_of_its_own(traced: Traced) -> None:
    for _ in range(3):
        traced.publish("<a/>", "news")
    assert [linked(each) for each in traced.spans("publish")] == [[own(each)] for each in traced.spans("batch")]


def test_deliveries_link_to_the_trace_that_their_document_names(traced: Traced) -> None:
    http = traced.broker.http
    http.put("/v1/subscriptions/links", json={"xpath": "//a", "feeds": ["links"]}).raise_for_status()
    events = Events(traced.broker, "/v1/subscriptions/links/events")
    events.next()
    sequences = [
        traced.publish("<a/>", "links", traceparent=HEADER),
        traced.publish("<a/>", "links"),
        traced.publish("<a/>", "links", traceparent="nonsense"),
    ]
    for _ in sequences:
        events.next_of_kind("document")
    events.close()
    deliveries = http.post("/v1/subscriptions/links:pull").json()["deliveries"]
    assert [each.get("attributes", {}) for each in deliveries] == [{"traceparent": HEADER}, {}, {}]
    # The stream records a delivery once it is written, which a fast reader may see before.
    deadline = time.monotonic() + 60
    while len(traced.spans("deliver")) < 6:
        assert time.monotonic() < deadline
    for way in ("events", "pull"):
        spans = [dict(each.attributes or {}) | {"links": linked(each)} for each in traced.spans("deliver")]
        found = [(each["pathcast.sequence"], each["links"]) for each in spans if each["pathcast.way"] == way]
        assert found == list(zip(sequences, [[(TRACE, SPAN)], [], []], strict=True))


def test_a_webhook_request_continues_the_trace_of_its_document(tmp_path: Path) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    settings = BrokerSettings(data=str(tmp_path), webhooks=WebhooksSection(allow_private=True, first_delay=0.01))
    with receiving() as receiver, served(tmp_path / "log", settings, tracing=Tracing(provider)) as broker:
        statuses = iter([500, 200])
        receiver.answer = lambda _: Answer(next(statuses))
        broker.http.put("/v1/subscriptions/s", json={"xpath": "//a", "sink": receiver.url}).raise_for_status()
        headers = {"traceparent": HEADER}
        broker.http.post("/v1/feeds/news/documents", content="<a/>", headers=headers).raise_for_status()
        receiver.wait(lambda: len(receiver.received) == 2)
    spans = [each for each in exporter.get_finished_spans() if each.name == "webhook"]
    assert [own(each)[0] for each in spans] == [TRACE, TRACE]
    assert all(each.parent is not None for each in spans)
    # What the receiver does is part of the request's span.
    assert [each.headers["traceparent"].split("-")[1:3] for each in receiver.received] == [[*own(e)] for e in spans]
    attributes = [dict(each.attributes or {}) for each in spans]
    shown = [(each["http.response.status_code"], each["pathcast.attempt"]) for each in attributes]
    assert shown == [(500, 1), (200, 2)]
    assert [each.status.is_ok for each in spans] == [False, True]
    assert not any(receiver.url in str(value) for each in attributes for value in each.values())


def test_an_event_keeps_its_own_trace(traced: Traced) -> None:
    http = traced.broker.http
    http.put("/v1/subscriptions/own", json={"xpath": "//a", "feeds": ["own"]}).raise_for_status()
    other = HEADER.replace(SPAN, SPAN[::-1])
    event = {"id": "1", "source": "s", "data": "<a/>", "traceparent": other}
    headers = {"content-type": "application/cloudevents+json", "traceparent": HEADER}
    http.post("/v1/feeds/own/documents", json=event, headers=headers).raise_for_status()
    (delivery,) = http.post("/v1/subscriptions/own:pull").json()["deliveries"]
    assert delivery["attributes"]["traceparent"] == other


def test_a_section_in_the_file_sends_spans_to_its_collector(tmp_path: Path) -> None:
    received: list[bytes] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.path.encode() + self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with HTTPServer(("127.0.0.1", 0), Collector) as collector:
        thread = threading.Thread(target=collector.serve_forever)
        thread.start()
        endpoint = f"http://127.0.0.1:{collector.server_port}/v1/traces"
        section = TelemetrySection(endpoint=endpoint, service="press")
        with served(tmp_path, BrokerSettings(telemetry=section)) as broker:
            broker.http.post("/v1/feeds/news/documents", content="<a/>").raise_for_status()
        # What is left is sent when the server stops.
        collector.shutdown()
        thread.join()
    sent = b"".join(received)
    assert all(each in sent for each in (b"/v1/traces", b"press", b"publish", b"batch", b"append"))


def test_traces_are_off_unless_the_file_has_the_section(tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    file.write_text("", encoding="utf-8")
    assert read_settings(file).telemetry is None
    file.write_text("[telemetry]\n", encoding="utf-8")
    assert read_settings(file).telemetry == TelemetrySection()


_PROGRAM = """
import sys
{before}
from pathcast.broker import Broker, BrokerSettings
from pathcast.broker.api.application import application
from pathcast.broker.settings.broker_sections import TelemetrySection
from pathcast.log import SqliteLog
broker = Broker(SqliteLog({folder!r}))
application(broker)
print(any(name.startswith("opentelemetry") for name in sys.modules if sys.modules[name]))
try:
    application(broker, BrokerSettings(telemetry=TelemetrySection()))
except ImportError as error:
    print(error)
broker.close()
"""


@pytest.mark.slow
def test_nothing_is_imported_without_the_section_and_a_missing_extra_is_named(tmp_path: Path) -> None:
    before = "sys.modules['opentelemetry'] = None"
    program = _PROGRAM.format(before=before, folder=str(tmp_path))
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert run.stdout.splitlines() == [
        "False",
        'opentelemetry is not installed; run: pip install "pathcast[telemetry]"',
    ]
