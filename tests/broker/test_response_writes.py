"""Writes of a response: its head leaves with its body, and is not kept back by a body that comes later."""

import asyncio
from pathlib import Path

from pathcast.broker.response_writes import ResponseWrites

from .served_broker import served


class Recorded(asyncio.Transport):
    """A transport that notes what it would send, one item per system call."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.closed
        self.sent.append(bytes(data))

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


def test_the_head_leaves_with_the_body() -> None:
    async def run() -> list[bytes]:
        transport = Recorded()
        writes = ResponseWrites(transport, asyncio.get_running_loop())
        writes.write(b"head")
        writes.write(b"body")
        assert transport.sent == [b"headbody"]
        await asyncio.sleep(0)
        writes.write(b"more")
        return transport.sent

    assert asyncio.run(run()) == [b"headbody", b"more"]


def test_a_head_that_nothing_follows_leaves_by_itself() -> None:
    async def run() -> list[bytes]:
        transport = Recorded()
        writes = ResponseWrites(transport, asyncio.get_running_loop())
        writes.write(b"head")
        await asyncio.sleep(0)
        assert transport.sent == [b"head"]
        writes.write(b"event")
        return transport.sent

    assert asyncio.run(run()) == [b"head", b"event"]


def test_closing_sends_what_is_held() -> None:
    async def run() -> None:
        transport = Recorded()
        writes = ResponseWrites(transport, asyncio.get_running_loop())
        writes.write(b"head")
        writes.close()
        assert (transport.sent, writes.is_closing()) == ([b"head"], True)
        ended = Recorded()
        late = ResponseWrites(ended, asyncio.get_running_loop())
        late.write(b"head")
        ended.close()
        await asyncio.sleep(0)
        assert ended.sent == []

    asyncio.run(run())


def test_a_response_without_a_body_arrives(tmp_path: Path) -> None:
    with served(tmp_path) as broker:
        for _ in range(2):  # over one connection
            answer = broker.http.head("/v1/feeds")
            assert (answer.status_code, answer.content) == (200, b"")
