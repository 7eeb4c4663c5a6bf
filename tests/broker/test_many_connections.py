"""Thousands of connections at a time: each gets an answer, memory stays bounded, and others are unharmed."""

import json
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest

from .broker_process import BrokerProcess

# Seconds that only a broken broker takes.
PATIENCE = 120
# Bytes of memory that one idle reader may cost; ten thousand of them cost less than a gigabyte.
PER_READER = 90_000
FIXED = 50_000_000


@pytest.fixture
def many_files() -> Iterator[None]:
    """The test itself may open as many files as the system allows."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def connect(broker: BrokerProcess, request: str = "") -> socket.socket:
    """A connection that has sent the request, and waits."""
    connection = socket.create_connection(("127.0.0.1", broker.port), timeout=PATIENCE)
    connection.sendall(f"{request} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode() if request else b"")
    return connection


def status_of(connection: socket.socket) -> int:
    return int(connection.recv(1 << 16).split()[1])


def rejection(connection: socket.socket) -> dict[str, object]:
    """The whole answer to a connection beyond the limit."""
    answer = b""
    while chunk := connection.recv(1 << 16):
        answer += chunk
    found: dict[str, object] = json.loads(answer.partition(b"\r\n\r\n")[2])
    return found


def subscribe(broker: BrokerProcess) -> None:
    with httpx.Client(base_url=broker.address, timeout=PATIENCE) as http:
        for id, xpath in ("idle", "//nothing"), ("busy", "//a"):
            http.put(f"/v1/subscriptions/{id}", json={"xpath": xpath}).raise_for_status()


def readers_of(broker: BrokerProcess, count: int, stack: ExitStack) -> list[socket.socket]:
    """Readers of events; the first one has a subscription that matches."""
    requests = ["GET /v1/subscriptions/busy/events", *["GET /v1/subscriptions/idle/events"] * (count - 1)]
    found = [stack.enter_context(closing(connect(broker, each))) for each in requests]
    assert {status_of(each) for each in found} == {200}
    return found


def check_that_others_are_unharmed(broker: BrokerProcess, readers: list[socket.socket]) -> None:
    """A place that becomes free is taken; documents are published, delivered and pulled."""
    readers.pop().close()
    deadline = time.monotonic() + PATIENCE
    with httpx.Client(base_url=broker.address, timeout=PATIENCE) as http:
        while http.get("/healthz").status_code == 503:
            assert time.monotonic() < deadline, "the place of a reader that left does not become free"
            time.sleep(0.02)
        for _ in range(20):
            assert http.post("/v1/feeds/news/documents", content="<a/>").status_code == 202
        received = b""
        while received.count(b"event: document") < 20:
            received += readers[0].recv(1 << 16)
        assert len(http.post("/v1/subscriptions/busy:pull?limit=100").json()["deliveries"]) == 20


@pytest.mark.slow
@pytest.mark.usefixtures("many_files")
def test_idle_readers_cost_little_and_those_beyond_the_limit_get_503(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    count, beyond = (10_000, 2_000) if request.config.getoption("--long") else (400, 200)
    settings = tmp_path / "broker.toml"
    settings.write_text(f"[connections]\ncount = {count}\n", encoding="utf-8")
    with BrokerProcess(tmp_path / "data", settings=settings) as broker, ExitStack() as stack:
        subscribe(broker)
        before = broker.memory()
        readers = readers_of(broker, count, stack)
        late = [stack.enter_context(closing(connect(broker))) for _ in range(beyond)]
        assert [rejection(each)["status"] for each in late] == [503] * beyond
        used = broker.memory() - before
        assert used < FIXED + count * PER_READER, f"{used / count:,.0f} bytes per reader"
        check_that_others_are_unharmed(broker, readers)


@pytest.mark.slow
def test_a_broker_with_few_file_descriptors_warns_and_answers_503_instead_of_running_out(tmp_path: Path) -> None:
    files = 200
    with BrokerProcess(tmp_path / "data", files=files) as broker, ExitStack() as stack:
        limit = files // 2
        assert f"allows {files} open files per process, so the broker accepts {limit} connections" in broker.errors()
        assert "LimitNOFILE" in broker.errors()
        subscribe(broker)
        readers = readers_of(broker, limit, stack)
        for _ in range(2 * files):
            with closing(connect(broker)) as late:
                assert "too many connections" in str(rejection(late)["detail"])
        # There are descriptors left for the log.
        check_that_others_are_unharmed(broker, readers)
        assert "Too many open files" not in broker.errors()
