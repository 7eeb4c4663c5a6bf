"""Bodies of many lines or many bytes: they take bounded memory, and each line has a result of its own."""

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.types import Message

from pathcast.broker import BrokerSettings
from pathcast.broker.api.body_lines import GROUP_LINES, line_groups
from pathcast.broker.settings.broker_sections import ConnectionLimits, Quotas

from .served_broker import Served, served
from .test_full_disk import full_beyond

LONGEST = 10


def lines_of(chunks: list[bytes], limit: int = 1 << 30) -> list[tuple[int, bytes | None]]:
    """The lines of a body that arrives in chunks."""
    messages: list[Message] = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    messages.append({"type": "http.request", "body": b"", "more_body": False})

    async def receive() -> Message:
        return messages.pop(0)

    async def read() -> list[tuple[int, bytes | None]]:
        request = Request({"type": "http", "method": "POST", "headers": []}, receive)
        return [(line.number, line.content) async for group in line_groups(request, limit, LONGEST) for line in group]

    return asyncio.run(read())


@given(chunks=st.lists(st.text("ab\n", max_size=15).map(str.encode), max_size=12))
def test_lines_do_not_depend_on_the_chunks_of_the_body(chunks: list[bytes]) -> None:
    lines = b"".join(chunks).split(b"\n")
    if not lines[-1]:
        lines.pop()
    expected = [(number, None if len(line) > LONGEST else line) for number, line in enumerate(lines, 1)]
    assert lines_of(chunks) == expected


def test_subscriptions_by_the_thousand_take_little_memory(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The bodies of all requests may take far less memory than this one has bytes."""
    count = 1_000_000 if request.config.getoption("--long") else 20_000
    faulty = {7: b"{", 5_000: b'{"id": "x"}', count: b'{"id": "%s", "xpath": "//a"}' % (b"x" * (2 << 20))}

    def body() -> Iterator[bytes]:
        for number in range(1, count + 1):
            good = b'{"id": "s%d", "xpath": "//a[@k = \'%d\']"}' % (number, number % 1_000)
            yield faulty.get(number, good).ljust(1_000) + b"\n"

    limits = ConnectionLimits(bodies=4 << 20)
    with served(tmp_path, BrokerSettings(connections=limits)) as server:
        answer = server.http.post("/v1/subscriptions", content=body(), timeout=None)
        assert answer.status_code == 200, answer.text
        result = answer.json()
        assert (result["accepted"], result["rejected"]) == (count - 3, 3)
        assert [(each["line"], each["status"]) for each in result["errors"]] == [(7, 400), (5_000, 422), (count, 413)]
        assert "1,048,576 bytes" in result["errors"][2]["detail"]
        server.http.post("/v1/feeds/news/documents", content="<a k='999'/>").raise_for_status()
        for id, found in (("s1", 0), (f"s{count - 1}", 1)):
            assert len(server.http.post(f"/v1/subscriptions/{id}:pull").json()["deliveries"]) == found


def test_errors_are_counted_and_the_first_are_listed(tmp_path: Path) -> None:
    with served(tmp_path, BrokerSettings(quotas=Quotas(subscriptions=5_000))) as server:
        lines = (b'{"id": "s%d", "xpath": "//a"}\r\n\n' % number for number in range(6_500))
        result = server.http.post("/v1/subscriptions", content=lines).json()
    assert (result["accepted"], result["rejected"], len(result["errors"])) == (5_000, 1_500, 1_000)
    assert [(each["line"], each["status"]) for each in result["errors"][:2]] == [(10_001, 429), (10_003, 429)]


def test_a_body_that_never_ends_is_cut_at_the_limit(tmp_path: Path) -> None:
    """Its length is not declared, and would be a gigabyte."""
    chunk = b"100000\r\n" + b" " * (1 << 20) + b"\r\n"
    with served(tmp_path) as server:
        limit = server.broker.state.limits_of("news").size
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
            head = b"POST /v1/feeds/news/documents HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
            connection.sendall(head)
            sent, answer = 0, b""
            connection.setblocking(False)
            while sent < 1 << 30 and not answer:
                answer, sent = step(connection, chunk, sent)
        assert answer.startswith(b"HTTP/1.1 413 "), answer
        assert f"{limit:,} bytes".encode() in answer
        assert sent < limit + (64 << 20)
        assert held_bytes(server) == 0


def step(connection: socket.socket, chunk: bytes, sent: int) -> tuple[bytes, int]:
    """Send what the connection takes now, and read an answer if there is one."""
    with suppress(BlockingIOError):
        sent += connection.send(chunk[sent % len(chunk) :])
    try:
        return connection.recv(1 << 16), sent
    except BlockingIOError:
        return b"", sent


def held_bytes(server: Served) -> int:
    """The bytes of bodies that the server holds in memory, by its own account."""
    text = server.http.get("/metrics").text
    (line,) = (each for each in text.splitlines() if each.startswith("pathcast_body_bytes "))
    return int(float(line.split()[1]))


def test_a_bulk_request_that_fails_reports_how_many_lines_were_accepted(tmp_path: Path) -> None:
    """The disk is full once the first group of lines is in the log."""
    lines = [b'{"id": "s%d", "xpath": "//a"}\n' % number for number in range(10_000)]
    with served(tmp_path) as server, ExitStack() as disk:

        def body() -> Iterator[bytes]:
            yield b"".join(lines[:5_000])
            while len(server.broker.state.subscriptions) < GROUP_LINES:
                time.sleep(0.01)
            disk.enter_context(full_beyond(1))
            yield b"".join(lines[5_000:])

        answer = server.http.post("/v1/subscriptions", content=body())
        disk.close()
        assert answer.status_code == 507
        assert GROUP_LINES <= answer.json()["accepted"] <= 5_000
        assert answer.json()["accepted"] == server.http.get("/v1/subscriptions?limit=1").json()["total"]
