"""Load from a process of its own: requests made beforehand, over raw sockets on one event loop.

    the experiment ──requests──▶ generator ══connections══▶ server
                   ◀──seconds, CPU time, answers──

The clock starts when all connections are open, so what is measured is the server's work. The generator reports its own
CPU time: while it is well below the elapsed time, the generator was waiting for the server and not the other way round.
"""

import asyncio
import multiprocessing
import resource
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, Final

import uvloop

from .http_requests import request

_SECONDS: Final = 900.0
# Requests of a publisher at a fixed rate that wait for their answers; brokers bound what a connection may send ahead.
_UNANSWERED: Final = 8


@dataclass(frozen=True)
class Answers:
    """The answers to the requests of a load, and their cost; `cpu` is the generator's own."""

    seconds: float
    cpu: float
    statuses: dict[int, int]
    duplicates: int = 0
    latencies: list[float] = field(default_factory=list)


class _Client(asyncio.Protocol):
    """A connection that sends the next request as soon as the last one is answered."""

    def __init__(self, requests: deque[bytes], finished: Callable[[], None]) -> None:
        self._requests = requests
        self._finished = finished
        self._buffer = b""
        self._wanted: int | None = None
        self.statuses: Counter[int] = Counter()
        self.duplicates = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def send(self) -> None:
        """Send the next request, if there is one."""
        if self._requests:
            self._transport.write(self._requests.popleft())
        else:
            self._transport.close()
            self._finished()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while self._buffer:
            if self._wanted is None:
                head, end, rest = self._buffer.partition(b"\r\n\r\n")
                if not end:
                    return
                self.statuses[int(head[9:12])] += 1
                self._wanted, self._buffer = _length(head), rest
            if len(self._buffer) < self._wanted:
                return
            self.duplicates += self._buffer.count(b'"duplicate":true', 0, self._wanted)
            self._buffer, self._wanted = self._buffer[self._wanted :], None
            self.send()

    def connection_lost(self, error: Exception | None) -> None:
        self._finished()


def _itself(client: _Client) -> _Client:
    return client


def _length(head: bytes) -> int:
    at = head.lower().find(b"content-length:")
    return int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0


async def _post(port: int, requests: list[bytes], connections: int) -> Answers:
    """All requests, over some connections, one at a time on each."""
    loop = asyncio.get_running_loop()
    waiting = deque(requests)
    left, done = connections, loop.create_future()
    ended: set[int] = set()

    def finished(number: int) -> Callable[[], None]:
        def end() -> None:
            nonlocal left
            if number not in ended:
                ended.add(number)
                left -= 1
                if not left and not done.done():
                    done.set_result(None)

        return end

    clients = [_Client(waiting, finished(number)) for number in range(connections)]
    for client in clients:
        await loop.create_connection(partial(_itself, client), "127.0.0.1", port)
    begin, cpu = time.perf_counter(), time.process_time()
    for client in clients:
        client.send()
    await asyncio.wait_for(done, _SECONDS)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    statuses = sum((client.statuses for client in clients), Counter[int]())
    return Answers(seconds, cpu, dict(statuses), sum(client.duplicates for client in clients))


async def _fan_out(port: int, path: str, readers: int, requests: list[bytes], events: int) -> Answers:
    """Post to a server while `readers` streams are open; ends when each of them has read `events` events."""
    streams = [await asyncio.open_connection("127.0.0.1", port, limit=1 << 22) for _ in range(readers)]
    for reader, writer in streams:
        writer.write(request("GET", path))
        await reader.readuntil(b"\r\n\r\n")
        await reader.readuntil(b"\n\n")

    async def read(reader: asyncio.StreamReader) -> None:
        found, tail = 0, b""
        while found < events:
            data = await reader.read(1 << 20)
            if not data:
                raise ConnectionError("the server ended a stream")
            joined = tail + data
            found += joined.count(b"\ndata: ")
            tail = joined[-6:]

    begin, cpu = time.perf_counter(), time.process_time()
    reading = asyncio.gather(*(read(reader) for reader, _ in streams))
    answers = await _post(port, requests, 1)
    await asyncio.wait_for(reading, _SECONDS)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    for _, writer in streams:
        writer.close()
    return Answers(seconds, cpu, answers.statuses, answers.duplicates)


async def _latency(port: int, path: str, requests: list[bytes], interval: float) -> Answers:
    """Post at a fixed rate, and time each document from the moment at which its request is due to its event.

    The documents say at which place they are: `<…>place=N;`.
    """
    loop = asyncio.get_running_loop()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    writer.write(request("GET", path))
    await reader.readuntil(b"\r\n\r\n")
    await reader.readuntil(b"\n\n")
    sent: list[float] = []
    found: dict[int, float] = {}

    async def read() -> None:
        while len(found) < len(requests):
            event = await reader.readuntil(b"\n\n")
            _, marked, rest = event.partition(b"place=")
            if marked:
                found[int(rest.split(b";", 1)[0])] = time.perf_counter()

    publisher_reader, publisher = await asyncio.open_connection("127.0.0.1", port)
    free = asyncio.Semaphore(_UNANSWERED)
    begin, cpu, origin = time.perf_counter(), time.process_time(), loop.time()
    async with asyncio.timeout(_SECONDS), asyncio.TaskGroup() as tasks:
        reading, answered = tasks.create_task(read()), tasks.create_task(_release(publisher_reader, free))
        for place, data in enumerate(requests):
            await asyncio.sleep(max(0.0, origin + place * interval - loop.time()))
            # What a late generator adds is part of the latency, and so is the wait for earlier answers.
            sent.append(begin + place * interval)
            await free.acquire()
            publisher.write(data)
        await reading
        answered.cancel()
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    writer.close()
    publisher.close()
    return Answers(seconds, cpu, {202: len(found)}, latencies=[found[place] - at for place, at in enumerate(sent)])


async def _release(reader: asyncio.StreamReader, free: asyncio.Semaphore) -> None:
    """Release one place per answer: only status lines contain the name of the protocol."""
    while True:
        line = await reader.readline()
        if not line:
            raise ConnectionError("the server closed the connection of the publisher")
        if b"HTTP/1.1 " in line:
            free.release()


_held: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []


async def _hold(port: int, path: str, count: int) -> Answers:
    """Open further streams, and leave them open and idle."""
    begin, cpu = time.perf_counter(), time.process_time()
    for _ in range(count):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request("GET", path.format(len(_held))))
        await reader.readuntil(b"\r\n\r\n")
        await reader.readuntil(b"\n\n")
        _held.append((reader, writer))
    return Answers(time.perf_counter() - begin, time.process_time() - cpu, {200: count})


class LoadGenerator:
    """The process; `loads` makes one for a block."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def post(self, port: int, requests: Sequence[bytes], connections: int) -> Answers:
        """Send all requests, over some connections, each with one at a time; the answers are counted by status."""
        return self._do("post", port, list(requests), connections)

    def fan_out(self, port: int, path: str, readers: int, requests: Sequence[bytes], events: int) -> Answers:
        """Send requests until each of `readers` streams has read `events` events."""
        return self._do("fan_out", port, path, readers, list(requests), events)

    def latency(self, port: int, path: str, requests: Sequence[bytes], interval: float) -> Answers:
        """Send requests at a fixed rate; their latencies are the seconds until an event stream has each document."""
        return self._do("latency", port, path, list(requests), interval)

    def hold(self, port: int, path: str, count: int) -> Answers:
        """Open `count` more idle streams; `{}` in the path becomes the number of the stream."""
        return self._do("hold", port, path, count)

    def _do(self, *command: Any) -> Answers:
        self._pipe.send(command)
        found = self._pipe.recv()
        if isinstance(found, BaseException):
            raise found
        assert isinstance(found, Answers)
        return found


@contextmanager
def loads() -> Iterator[LoadGenerator]:
    """A load generator, until the end of the block."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    try:
        yield LoadGenerator(ours)
    finally:
        ours.close()
        process.terminate()
        process.join()


_LOADS: Final[dict[str, Callable[..., Coroutine[Any, Any, Answers]]]] = {
    "post": _post,
    "fan_out": _fan_out,
    "latency": _latency,
    "hold": _hold,
}


def _serve(pipe: Connection) -> None:
    """Carry out commands until the pipe closes."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        while True:
            try:
                name, *arguments = pipe.recv()
            except EOFError:
                return
            try:
                pipe.send(runner.run(_LOADS[name](*arguments)))
            except Exception as error:  # noqa: BLE001 (it is raised again where the caller waits)
                pipe.send(error)
