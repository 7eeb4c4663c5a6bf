"""What a sink's worker takes and gives back, seen from the sink: how much of an answer it reads, and when it ends."""

import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pathcast.broker import BrokerSettings
from pathcast.broker.webhooks.sink_worker import QUEUE
from pathcast.broker.webhooks.webhook_settings import WebhooksSection

from .served_broker import Served, served
from .webhook_receiver import PATIENCE


class Sink:
    """The connections that arrive at a port, one request at a time."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}/"

    @contextmanager
    def connection(self) -> Iterator[socket.socket]:
        """The next connection."""
        accepted, _ = self._listener.accept()
        with accepted:
            accepted.settimeout(PATIENCE)
            yield accepted


def subscription_of(connection: socket.socket) -> str:
    """Read a request; returns the subscription that it is for."""
    found = b""
    while b"\r\n\r\n" not in found:
        found += received(connection)
    head, _, body = found.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head.lower())
    assert length is not None
    while len(body) < int(length[1]):
        body += received(connection)
    return str(json.loads(body)["data"]["subscription"])


def received(connection: socket.socket) -> bytes:
    chunk = connection.recv(1 << 16)
    assert chunk, "the broker has disconnected"
    return chunk


def accept(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")


def send_a_gigabyte(connection: socket.socket) -> None:
    """Much more than a broker reads of an answer."""
    for _ in range(1 << 14):
        connection.sendall(b"a" * (1 << 16))


@pytest.fixture
def sink() -> Iterator[Sink]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE)
        yield Sink(listener)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Served]:
    """A broker whose time for an answer is longer than that of the tests."""
    webhooks = WebhooksSection(allow_private=True, timeout=10.0 * PATIENCE)
    with served(tmp_path, BrokerSettings(webhooks=webhooks)) as broker:
        yield broker


def hook(broker: Served, id: str, sink: Sink) -> None:
    broker.http.put(f"/v1/subscriptions/{id}", json={"xpath": "//a", "sink": sink.url}).raise_for_status()


def publish(broker: Served) -> None:
    broker.http.post("/v1/feeds/news/documents", content="<a/>").raise_for_status()


def test_an_answer_without_an_end_is_cut_and_its_status_counts(broker: Served, sink: Sink) -> None:
    hook(broker, "s", sink)
    publish(broker)
    publish(broker)
    with sink.connection() as connection:
        assert subscription_of(connection) == "s"
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        with pytest.raises(ConnectionError):
            send_a_gigabyte(connection)
    with sink.connection() as connection:
        assert subscription_of(connection) == "s"
        status = broker.http.get("/v1/subscriptions/s/status").json()
        assert status["sink"]["failures"] == 0
        accept(connection)


def test_a_worker_ends_with_its_last_subscription_and_another_begins_with_the_next(broker: Served, sink: Sink) -> None:
    hook(broker, "s", sink)
    hook(broker, "t", sink)
    publish(broker)
    with sink.connection() as connection:
        came = set[str]()
        for _ in range(2):
            came.add(subscription_of(connection))
            accept(connection)
        assert came == {"s", "t"}
        broker.http.delete("/v1/subscriptions/s").raise_for_status()
        publish(broker)
        assert subscription_of(connection) == "t"
        accept(connection)
        broker.http.delete("/v1/subscriptions/t").raise_for_status()
        assert connection.recv(1) == b""
    hook(broker, "u", sink)
    publish(broker)
    with sink.connection() as connection:
        assert subscription_of(connection) == "u"
        accept(connection)


def test_a_subscription_that_ends_while_its_delivery_is_sent_does_not_delay_the_others(
    broker: Served, sink: Sink, caplog: pytest.LogCaptureFixture
) -> None:
    hook(broker, "s", sink)
    hook(broker, "t", sink)
    publish(broker)
    with sink.connection() as connection:
        assert subscription_of(connection) == "s"
        broker.http.delete("/v1/subscriptions/s").raise_for_status()
        accept(connection)
        assert subscription_of(connection) == "t"
        accept(connection)
    assert "a webhook worker" not in caplog.text


def test_no_proxy_of_the_environment_gets_what_is_sent_to_a_sink(
    tmp_path: Path, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy would resolve the name again, so the address that was checked would count for nothing."""
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.getsockname()[1]}")
        webhooks = WebhooksSection(allow_private=True)
        with served(tmp_path, BrokerSettings(webhooks=webhooks)) as broker:
            hook(broker, "s", sink)
            publish(broker)
            with sink.connection() as connection:
                assert subscription_of(connection) == "s"
                accept(connection)


def test_an_answer_that_comes_byte_by_byte_ends_with_the_time_for_a_request(tmp_path: Path, sink: Sink) -> None:
    with served(tmp_path, BrokerSettings(webhooks=WebhooksSection(allow_private=True, timeout=0.5))) as broker:
        hook(broker, "s", sink)
        publish(broker)
        with sink.connection() as connection:
            assert subscription_of(connection) == "s"
            connection.sendall(b"HTTP/1.1 200 OK\r\nx: ")
            connection.settimeout(0.05)  # much less than the time for a request
            for _ in range(20 * PATIENCE):
                try:
                    connection.sendall(b"a")
                    if not connection.recv(1):
                        break
                except TimeoutError:
                    continue
                except ConnectionError:
                    break
            else:
                pytest.fail("the broker waits for the rest of the answer")


def test_a_sink_gets_no_cookies_back_and_few_deliveries_are_leased_for_it(broker: Served, sink: Sink) -> None:
    hook(broker, "s", sink)
    for _ in range(3 * QUEUE):
        publish(broker)
    with sink.connection() as connection:
        assert subscription_of(connection) == "s"
        assert broker.http.get("/v1/subscriptions/s/status").json()["out"] <= QUEUE == 16
        connection.sendall(b"HTTP/1.1 200 OK\r\nset-cookie: a=b; path=/\r\ncontent-length: 0\r\n\r\n")
        head = b""
        while b"\r\n\r\n" not in head:
            head += received(connection)
        assert b"cookie" not in head.partition(b"\r\n\r\n")[0].lower()
