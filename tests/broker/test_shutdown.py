"""SIGTERM with clients at work: streams and waiting pulls end at once and in good order; what was accepted is there."""

import socket
import threading
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from pathcast.broker import BrokerSettings
from pathcast.broker.settings.broker_sections import ConnectionLimits, ServerSection
from pathcast.broker.webhooks.webhook_settings import WebhooksSection

from .broker_process import BrokerProcess
from .served_broker import served


def test_streams_and_waiting_pulls_end_when_the_server_stops(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ended: list[object] = []

    def read(address: str, path: str) -> None:
        with httpx.Client(base_url=address, timeout=120) as http, http.stream("GET", path) as stream:
            for _ in stream.iter_lines():
                pass
        ended.append("complete")  # a connection that is cut raises an error instead

    def pull(address: str) -> None:
        answer = httpx.post(f"{address}/v1/subscriptions/s:pull?wait=60", timeout=120)
        ended.append((answer.status_code, answer.json()))

    with served(tmp_path) as broker:
        broker.http.put("/v1/subscriptions/s", json={"xpath": "//a"}).raise_for_status()
        paths = ["/v1/subscriptions/s/events", "/v1/subscribers/local/events"]
        clients = [threading.Thread(target=read, args=(broker.address, path)) for path in paths]
        clients.append(threading.Thread(target=pull, args=(broker.address,)))
        for each in clients:
            each.start()
        while "pathcast_connections 4" not in broker.http.get("/metrics").text:
            pass  # those three, and the one that asks
    for each in clients:
        each.join()
    assert sorted(ended, key=str) == [(200, {"deliveries": []}), "complete", "complete"]
    assert "Traceback" not in caplog.text
    assert "graceful shutdown exceeded" not in caplog.text


def test_a_request_that_does_not_end_is_cut_when_the_server_stops(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its client would otherwise decide when the broker stops: a body has half a minute."""
    settings = BrokerSettings(server=ServerSection(stop_time=0.5), connections=ConnectionLimits(body_time=1e9))
    with ExitStack() as stack:
        with served(tmp_path, settings) as broker:
            slow = stack.enter_context(socket.create_connection(("127.0.0.1", broker.port), timeout=60))
            slow.sendall(b"POST /v1/feeds/news/documents HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99\r\n\r\n<a>")
            while "pathcast_body_bytes 3" not in broker.http.get("/metrics").text:
                pass
            published = broker.http.post("/v1/feeds/news/documents", content="<b/>").json()["sequence"]
        answer = slow.recv(1 << 16)
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 5" in answer
    assert "Traceback" not in caplog.text
    assert "graceful shutdown exceeded" in caplog.text
    with served(tmp_path) as broker:
        assert broker.http.get(f"/v1/documents/{published}").text == "<b/>"
        assert broker.broker.log.head == published


@pytest.mark.parametrize("fails", [False, True])
def test_webhook_workers_end_when_the_server_stops(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fails: bool
) -> None:
    """While one waits for an answer, and while one waits after a failure."""
    webhooks = WebhooksSection(allow_private=True, timeout=600.0, first_delay=1e9, longest_delay=1e9)
    settings = BrokerSettings(webhooks=webhooks)
    with socket.create_server(("127.0.0.1", 0)) as listener, served(tmp_path, settings) as broker:
        sink = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        broker.http.put("/v1/subscriptions/s", json={"xpath": "//a", "sink": sink}).raise_for_status()
        broker.http.post("/v1/feeds/news/documents", content="<a/>").raise_for_status()
        connection, _ = listener.accept()
        assert connection.recv(1 << 16)
        if fails:
            connection.close()
            while not broker.http.get("/v1/subscriptions/s/status").json()["sink"]["failures"]:
                pass
    connection.close()
    assert "a webhook worker" not in caplog.text


@pytest.mark.slow
def test_a_broker_that_stops_with_publishers_at_work_has_what_it_accepted(tmp_path: Path) -> None:
    accepted: list[int] = []
    enough = threading.Event()

    def publish(address: str) -> None:
        with httpx.Client(base_url=address, timeout=60) as http:
            try:
                while True:
                    answer = http.post("/v1/feeds/news/documents", content="<a/>")
                    if answer.status_code != 202:
                        assert answer.status_code == 503
                        return
                    accepted.append(answer.json()["sequence"])
                    if len(accepted) > 100:
                        enough.set()
            except httpx.TransportError:
                return

    with BrokerProcess(tmp_path / "data") as broker:
        threads = [threading.Thread(target=publish, args=(broker.address,)) for _ in range(4)]
        for each in threads:
            each.start()
        assert enough.wait(60)
        assert broker.stop() == 0
        for each in threads:
            each.join()
        assert "Traceback" not in broker.errors()
        broker.start()
        with httpx.Client(base_url=broker.address, timeout=60) as http:
            http.put("/v1/subscriptions/s", json={"xpath": "//a", "config": {"from": 1, "in_flight": 65_536}})
            found: list[int] = []
            while some := http.post("/v1/subscriptions/s:pull?limit=1000").json()["deliveries"]:
                found += [each["sequence"] for each in some]
    assert set(accepted) <= set(found)
