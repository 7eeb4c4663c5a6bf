"""Clients that are slow, silent or greedy: each gets an answer or is disconnected, and others are unharmed."""

import logging
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from pathcast.broker import BrokerSettings
from pathcast.broker.settings.broker_sections import ConnectionLimits

from .served_broker import Served, served

QUICK = ConnectionLimits(header_time=1.0, body_time=1.0, rate=1_000, stall_time=2.0, headers=4_096, count=20)
POST = b"POST /v1/feeds/news/documents HTTP/1.1\r\nhost: localhost\r\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    """A broker that has little patience."""
    with served(tmp_path, BrokerSettings(connections=QUICK)) as found:
        yield found


@contextmanager
def connected(server: Served) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        yield connection


def answer_to(connection: socket.socket) -> bytes:
    """All that the server sends until it disconnects."""
    found = b""
    try:
        while chunk := connection.recv(1 << 16):
            found += chunk
    except ConnectionResetError:
        pass
    return found


def status_of(answer: bytes) -> int:
    return int(answer.split()[1])


def is_well(server: Served) -> None:
    assert server.http.post("/v1/feeds/news/documents", content="<a/>").status_code == 202


@pytest.mark.parametrize("sent", [b"", b"G", b"GET /v1/feeds HTTP/1.1\r\nhost: localhost\r\n", b"\r\n"])
def test_a_client_that_never_ends_its_headers_is_disconnected(server: Served, sent: bytes) -> None:
    with connected(server) as connection:
        connection.sendall(sent)
        assert status_of(answer_to(connection)) == 408
    is_well(server)


@pytest.mark.parametrize(
    "begin", [b"GET /v1/feeds HTTP/1.1\r\nhost: localhost\r\nx: ", POST + b"content-length: 99\r\n\r\n"]
)
def test_a_client_that_sends_a_byte_at_a_time_is_disconnected(server: Served, begin: bytes) -> None:
    with connected(server) as connection:
        connection.sendall(begin)
        began = time.monotonic()
        try:
            while time.monotonic() - began < 15:
                connection.sendall(b"a")
                time.sleep(0.2)
        except OSError:
            pass
        assert time.monotonic() - began < 10
    is_well(server)


def test_a_slow_body_gets_408_and_no_traceback(server: Served, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), connected(server) as connection:
        connection.sendall(POST + b"content-length: 99\r\n\r\n<a>")
        assert status_of(answer_to(connection)) == 408
    is_well(server)
    assert "Traceback" not in caplog.text


def test_line_ends_between_requests_do_not_keep_a_connection_open(server: Served) -> None:
    with connected(server) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert status_of(connection.recv(1 << 16)) == 200
        began = time.monotonic()
        try:
            while time.monotonic() - began < 15:
                connection.sendall(b"\r\n")
                time.sleep(0.2)
        except OSError:
            pass
        assert time.monotonic() - began < 10


def test_a_body_that_goes_on_after_its_answer_ends(server: Served) -> None:
    """The answer does not depend on the body, so nobody reads it."""
    with connected(server) as connection:
        connection.sendall(b"POST /no/such HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n")
        assert status_of(connection.recv(1 << 16)) == 404
        began = time.monotonic()
        try:
            while time.monotonic() - began < 15:
                connection.sendall(b"400\r\n" + b"a" * 0x400 + b"\r\n")
                time.sleep(0.01)
        except OSError:
            pass
        assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    "head",
    [
        b"GET /v1/feeds HTTP/1.1\r\nhost: localhost\r\n" + b"x: y\r\n" * 10_000,
        b"GET /" + b"a" * 50_000 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"GET /v1/feeds HTTP/1.1\r\nhost: localhost\r\nx: " + b"y" * 5_000 + b"\r\n\r\n",
    ],
)
def test_headers_beyond_their_limit_get_431(server: Served, head: bytes) -> None:
    with connected(server) as connection:
        connection.sendall(head)
        assert status_of(answer_to(connection)) == 431
    is_well(server)


def test_a_long_chunk_after_short_headers_is_no_header(server: Served) -> None:
    body = b"<a>" + b"x" * 100_000 + b"</a>"
    with connected(server) as connection:
        connection.sendall(POST + b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        assert status_of(answer_to(connection)) == 202


def test_connections_beyond_the_limit_get_503_and_the_others_go_on(server: Served) -> None:
    with connected(server) as kept:
        kept.sendall(b"GET /v1/feeds HTTP/1.1\r\nhost: localhost\r\n")
        crowd = [socket.create_connection(("127.0.0.1", server.port), timeout=20) for _ in range(30)]
        try:
            refused = answer_to(crowd[-1])
            assert status_of(refused) == 503
            kept.sendall(b"connection: close\r\n\r\n")
            assert status_of(answer_to(kept)) == 200
        finally:
            for each in crowd:
                each.close()
    is_well(server)


def test_a_client_that_never_reads_is_disconnected_and_holds_a_bounded_buffer(server: Served) -> None:
    client = server.http
    client.put("/v1/subscriptions/s", json={"xpath": "//a"}).raise_for_status()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.settimeout(20)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(b"GET /v1/subscriptions/s/events HTTP/1.1\r\nhost: localhost\r\n\r\n")
        connection.recv(100)
        document = f"<a>{'x' * 200_000}</a>"
        sent = [client.post("/v1/feeds/news/documents", content=document).json()["sequence"] for _ in range(60)]
        time.sleep(6)
        received = answer_to(connection)
    assert len(received) < 60 * len(document), "the server kept everything for a client that does not read"
    # A client that reads gets everything.
    found = 0
    with client.stream("GET", "/v1/subscriptions/s/events", headers={"last-event-id": str(sent[0] - 1)}) as stream:
        for line in stream.iter_lines():
            found += line.startswith("data:")
            if found == len(sent):
                break


def test_a_client_that_reads_slowly_but_steadily_gets_its_answer(server: Served) -> None:
    body = b"<a>" + b"x" * 3_000_000 + b"</a>"
    sequence = server.http.post("/v1/feeds/news/documents", content=body).json()["sequence"]
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        connection.settimeout(20)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(b"GET /v1/documents/%d HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n" % sequence)
        found = 0
        while chunk := connection.recv(65_536):
            found += len(chunk)
            time.sleep(0.1)
    assert found > len(body)


def test_an_idle_reader_of_events_stays_connected(server: Served) -> None:
    server.http.put("/v1/subscriptions/s", json={"xpath": "//a"}).raise_for_status()
    with server.http.stream("GET", "/v1/subscriptions/s/events") as stream:
        lines = stream.iter_lines()
        next(lines)
        time.sleep(4)
        is_well(server)
        assert any(line.startswith("data:") for line in lines if line)


def test_a_slow_long_poll_stays_connected(server: Served) -> None:
    server.http.put("/v1/subscriptions/s", json={"xpath": "//a"}).raise_for_status()
    assert server.http.post("/v1/subscriptions/s:pull?wait=4").json() == {"deliveries": []}


def test_bodies_beyond_the_memory_for_them_get_503_and_give_it_back(tmp_path: Path) -> None:
    limits = ConnectionLimits(bodies=1_000_000, body_time=600.0)
    with served(tmp_path, BrokerSettings(connections=limits)) as server, connected(server) as slow:
        slow.sendall(POST + b"content-length: 900000\r\n\r\n" + b"<a>" + b" " * 700_000)
        body = b"<a>" + b" " * 500_000 + b"</a>"
        # How long the server takes to read what was sent, or to notice that the client has gone, decides nothing.
        answer = answered(server, body, 503)
        assert answer.headers["retry-after"] == "1"
        is_well(server)
        slow.close()
        answered(server, body, 202)


def answered(server: Served, body: bytes, status: int) -> httpx.Response:
    """The first answer with a status, within a time that only a broken server takes."""
    deadline = time.monotonic() + 120
    while (answer := server.http.post("/v1/feeds/news/documents", content=body)).status_code != status:
        assert time.monotonic() < deadline, answer.text
        time.sleep(0.02)
    return answer
