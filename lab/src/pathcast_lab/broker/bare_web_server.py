"""The least that a Starlette application on uvicorn does: read a body and answer; pass bytes to open event streams.

    POST /documents      reads the body, answers 202 with a constant
    POST /fan-out        passes the events of the body, each by itself, to every open stream
    GET  /events         a stream of server-sent events

`python -m pathcast_lab.broker.bare_web_server PORT`
"""

import asyncio
import sys
from collections.abc import AsyncIterator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

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


application = Starlette(
    routes=[
        Route("/documents", take, methods=["POST"]),
        Route("/fan-out", fan_out, methods=["POST"]),
        Route("/events", events, methods=["GET"]),
    ]
)

if __name__ == "__main__":
    uvicorn.run(application, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
