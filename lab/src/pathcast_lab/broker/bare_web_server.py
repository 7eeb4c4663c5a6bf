"""The least that a Starlette application on uvicorn does: read a body and answer; pass bytes to open event streams.

    POST /documents      reads the body, answers 202 with a constant
    POST /fan-out        passes the events of the body, each by itself, to every open stream
    GET  /events         a stream of server-sent events

And with what no durable broker can leave out (grouped_file_writes.py):

    POST /read           decodes the body, and reads the XML
    POST /durable        the same, and writes the documents to disk before it answers
    POST /durable/fan-out   the same, and passes an event per document to every open stream

`python -m pathcast_lab.broker.bare_web_server PORT FILE`
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import uvicorn
from msgspec import json
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from .grouped_file_writes import GroupedWrites, documents_of

_queues: set[asyncio.Queue[bytes]] = set()


async def take(request: Request) -> Response:
    """Read a body and answer."""
    await request.body()
    return Response(b'{"sequence":1,"duplicate":false}', 202, media_type="application/json")


async def fan_out(request: Request) -> Response:
    """Pass the events of a body to every open stream."""
    for event in (await request.body()).split(b"\n\n")[:-1]:
        for queue in _queues:
            queue.put_nowait(event + b"\n\n")
    return Response(b"{}", 202, media_type="application/json")


async def events(_: Request) -> Response:
    """An event stream."""
    return StreamingResponse(_stream(), media_type="text/event-stream")


async def _stream() -> AsyncIterator[bytes]:
    queue: asyncio.Queue[bytes] = asyncio.Queue()
    _queues.add(queue)
    try:
        yield b": open\n\n"
        while True:
            yield await queue.get()
    finally:
        _queues.discard(queue)


def taking(writes: GroupedWrites) -> Callable[[Request], Awaitable[Response]]:
    """What reads a body, hands its documents over, and answers."""

    async def take_documents(request: Request) -> Response:
        documents = documents_of(request.headers.get("content-type", ""), await request.body())
        await writes.write(documents)
        return Response(b'{"sequence":1,"duplicate":false}', 202, media_type="application/json")

    return take_documents


def fanning_out(writes: GroupedWrites) -> Callable[[Request], Awaitable[Response]]:
    """What hands documents over, then passes an event for each to every open stream."""

    async def fan_out_documents(request: Request) -> Response:
        documents = documents_of(request.headers.get("content-type", ""), await request.body())
        await writes.write(documents)
        for document in documents:
            shown = json.encode({"sequence": 4711, "feed": "news", "time": 1.0, "body": document.decode()})
            for each in _queues:
                each.put_nowait(b"id: 4711\nevent: document\ndata: %s\n\n" % shown)
        return Response(b"{}", 202, media_type="application/json")

    return fan_out_documents


def application(file: Path) -> Starlette:
    """The application; what is durable is in the file."""
    durable = GroupedWrites(file)
    routes = [
        Route("/documents", take, methods=["POST"]),
        Route("/fan-out", fan_out, methods=["POST"]),
        Route("/events", events, methods=["GET"]),
        Route("/read", taking(GroupedWrites(None)), methods=["POST"]),
        Route("/durable", taking(durable), methods=["POST"]),
        Route("/durable/fan-out", fanning_out(durable), methods=["POST"]),
    ]
    return Starlette(routes=routes)


if __name__ == "__main__":
    uvicorn.run(
        application(Path(sys.argv[2])), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False
    )
