"""Clients that are slow, silent or greedy: each gets an answer or is disconnected, and others are unharmed."""

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from pathcast.broker import BrokerSettings
from pathcast.broker.settings.broker_sections import ConnectionLimits
from pathcast.broker.slow_client_limits import PIPELINED

from .served_broker import Served, served

QUICK = ConnectionLimits(header_time=1.0, body_time=1.0, rate=1_000, stall_time=2.0, headers=4_096, count=20)
# Seconds that only a broken server takes.
PATIENCE = 60
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


class Slow(threading.Thread):
    """A client that sends something small again and again until the server has ended its connection."""

    def __init__(self, server: Served, begin: bytes, again: bytes, first_answer: int | None = None) -> None:
        super().__init__(daemon=True)
        self.connection = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
        self.again = again
        self.stop = threading.Event()
        self.connection.sendall(begin)
        if first_answer is not None:
            assert status_of(self.connection.recv(1 << 16)) == first_answer
        self.start()

    def run(self) -> None:
        with suppress(OSError):
            while not self.stop.wait(0.05):
                self.connection.sendall(self.again)

    def has_ended(self) -> bool:
        """Whether the server has ended the connection, as of now."""
        with suppress(ConnectionError):
            while True:
                try:
                    received = self.connection.recv(1 << 16, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    return False
                if not received:
                    return True
        return True

    def close(self) -> None:
        self.stop.set()
        self.join(PATIENCE)
        self.connection.close()


def outlast_silent_clients(server: Served, count: int = 3) -> None:
    """Wait until the server has lost patience with a silent client, and then with the next.

    A client that was slow before the first of them came is disconnected by the same sweep as the second, at the latest.
    So once the third one is disconnected, all slow clients are, however slow this machine is.
    """
    for _ in range(count):
        with connected(server) as silent:
            assert status_of(answer_to(silent)) == 408


HEAD = b"GET /v1/feeds HTTP/1.1\r\nhost: localhost\r\n"
SILENT = {"nothing": b"", "a letter": b"G", "headers without an end": HEAD, "a line end": b"\r\n"}
SLOW: dict[str, tuple[bytes, bytes, int | None]] = {
    "a header byte by byte": (HEAD + b"x: ", b"a", None),
    "a body byte by byte": (POST + b"content-length: 9999\r\n\r\n", b"a", None),
    "line ends between two requests": (b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n", b"\r\n", 200),
    # The answer does not depend on the body, so nobody reads it.
    "a body that continues after its answer": (
        b"POST /no/such HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n",
        b"400\r\n" + b"a" * 0x400 + b"\r\n",
        404,
    ),
}


class Outlasted(NamedTuple):
    """What became of clients, all at once, while the server lost patience several times."""

    silent: dict[str, bytes]  # the answers
    ended: dict[str, bool]
    polled: httpx.Response
    event_after: str


@pytest.fixture(scope="module")
def outlasted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outlasted]:
    with served(tmp_path_factory.mktemp("log"), BrokerSettings(connections=QUICK)) as server, ExitStack() as stack:
        server.http.put("/v1/subscriptions/s", json={"xpath": "//a"}).raise_for_status()
        stream = stack.enter_context(server.http.stream("GET", "/v1/subscriptions/s/events"))
        lines = stream.iter_lines()
        next(lines)
        poll = stack.enter_context(ThreadPoolExecutor(1)).submit(
            httpx.post, f"{server.address}/v1/subscriptions/s:pull?wait=4", timeout=PATIENCE
        )
        silent = {name: stack.enter_context(connected(server)) for name in SILENT}
        for name, connection in silent.items():
            connection.sendall(SILENT[name])
        slow = {name: Slow(server, *each) for name, each in SLOW.items()}
        for each in slow.values():
            stack.callback(each.close)
        outlast_silent_clients(server)
        ended = {name: each.has_ended() for name, each in slow.items()}
        answers = {name: answer_to(connection) for name, connection in silent.items()}
        polled = poll.result(PATIENCE)
        is_well(server)
        event = next(line for line in lines if line.startswith("data:"))
        yield Outlasted(answers, ended, polled, event)


@pytest.mark.parametrize("sent", SILENT)
def test_a_client_that_never_ends_its_headers_is_disconnected(outlasted: Outlasted, sent: str) -> None:
    assert status_of(outlasted.silent[sent]) == 408


@pytest.mark.parametrize("sent", SLOW)
def test_a_client_that_sends_a_little_again_and_again_is_disconnected(outlasted: Outlasted, sent: str) -> None:
    assert outlasted.ended[sent]


def test_an_idle_reader_of_events_stays_connected(outlasted: Outlasted) -> None:
    assert '"body":"<a/>"' in outlasted.event_after


def test_a_slow_long_poll_stays_connected(outlasted: Outlasted) -> None:
    assert outlasted.polled.json() == {"deliveries": []}


def test_a_slow_body_gets_408_and_no_traceback(server: Served, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), connected(server) as connection:
        connection.sendall(POST + b"content-length: 99\r\n\r\n<a>")
        assert status_of(answer_to(connection)) == 408
    is_well(server)
    assert "Traceback" not in caplog.text


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


def test_many_small_headers_are_as_large_as_what_they_cost(server: Served) -> None:
    for count, status in ((50, 200), (200, 431)):
        with connected(server) as connection:
            connection.sendall(HEAD + b"a:\r\n" * count + b"connection: close\r\n\r\n")
            assert status_of(answer_to(connection)) == status
    is_well(server)


def test_requests_that_wait_behind_an_endless_answer_are_bounded(server: Served) -> None:
    """A stream of events has no end, so what is sent after its request would wait in memory forever."""
    server.http.put("/v1/subscriptions/s", json={"xpath": "//a"}).raise_for_status()
    stream = b"GET /v1/subscriptions/s/events HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with connected(server) as connection:
        connection.sendall(stream + (HEAD + b"\r\n") * 2_000)
        while connection.recv(1 << 16):
            pass
    is_well(server)


def test_requests_sent_together_are_answered_in_their_order(server: Served) -> None:
    paths = ["/v1/feeds", "/healthz", "/v1/nothing"] * 5
    with connected(server) as connection:
        for path in paths:
            connection.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        connection.sendall(HEAD + b"connection: close\r\n\r\n")
        answer = answer_to(connection)
    statuses = [int(each.split()[0]) for each in answer.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [200, 200, 404] * 5 + [200]
    assert len(paths) + 1 <= PIPELINED


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
        wait_until(server, "pathcast_connections", lambda count: count <= 1)  # that of the client that publishes
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


def test_bodies_beyond_the_memory_for_them_get_503_and_give_it_back(tmp_path: Path) -> None:
    limits = ConnectionLimits(bodies=1_000_000, body_time=600.0)
    with served(tmp_path, BrokerSettings(connections=limits)) as server, connected(server) as slow:
        slow.sendall(POST + b"content-length: 900000\r\n\r\n" + b"<a>" + b" " * 700_000)
        body = b"<a>" + b" " * 500_000 + b"</a>"
        # Before the server has read all that was sent, this body might come first, and the slow one be rejected.
        wait_until(server, "pathcast_body_bytes", lambda held: held >= 700_000)
        answer = server.http.post("/v1/feeds/news/documents", content=body)
        assert answer.status_code == 503, answer.text
        assert answer.headers["retry-after"] == "1"
        is_well(server)
        slow.close()
        wait_until(server, "pathcast_body_bytes", lambda held: held == 0)
        assert server.http.post("/v1/feeds/news/documents", content=body).status_code == 202


def wait_until(server: Served, metric: str, condition: Callable[[float], bool]) -> None:
    """Wait until a metric has a value, within a time that only a broken server takes."""
    deadline = time.monotonic() + PATIENCE
    while not condition(value := metric_of(server, metric)):
        assert time.monotonic() < deadline, f"{metric} is {value:g} after {PATIENCE} seconds"
        time.sleep(0.02)


def metric_of(server: Served, name: str) -> float:
    lines = server.http.get("/metrics").raise_for_status().text.splitlines()
    return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} "))
