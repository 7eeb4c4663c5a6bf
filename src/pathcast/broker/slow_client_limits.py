"""Connections that no client can hold by being slow: bounds on headers, bodies, reading and number.

    connected ──headers──▶ request ──body──▶ answer ──read by the client──▶ next request, or closed
        header_time            body_time + bytes / rate     stall_time

A sweep looks at every connection, each second unless a limit is shorter than four of them. So a connection has no timer
of its own, and ten thousand idle readers cost milliseconds per second. A client that breaks a bound gets 408 or 431 if
no answer has begun, and is disconnected. It may resume: event streams by their last event id, pulled deliveries when
their leases run out.

uvicorn bounds neither the headers nor the time for them, nor how long an answer may wait for its reader.
"""

import asyncio
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final

from msgspec import json
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from .response_writes import ResponseWrites
from .settings.broker_sections import ConnectionLimits

_SWEEP_SECONDS: Final = 1.0
_SHORTEST_SWEEP_SECONDS: Final = 0.05
_TIMEOUT: Final = (408, "the client sends too slowly; send the request again over a faster connection")
# Requests of a connection without an answer: those sent before the answer to the first wait in memory.
PIPELINED: Final = 16
# What a header costs beside its text.
_HEADER_BYTES: Final = 32
_FULL: Final = (503, "the server has too many connections; try again later")


class GuardedConnection(HttpToolsProtocol):
    """uvicorn's connection with bounds; `guarded_by` makes a class with given limits."""

    limits: ConnectionLimits

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected."""
        super().connection_made(transport)
        self._since = self.loop.time()  # the begin of what the client has to do now
        self._header_bytes = 0
        self._body_bytes = 0
        self._in_headers = True  # waits for the headers of a request, or reads them
        self._in_body = False
        self._answered_since: float | None = None
        self._stalled_since: float | None = None
        self._unread = 0
        self._unanswered: list[RequestResponseCycle] = []
        if len(self.connections) > self.limits.count:
            self._refuse(*_FULL)

    def data_received(self, data: bytes) -> None:
        """Bytes from the client."""
        if self.transport.is_closing():
            return
        if self._in_headers:
            self._header_bytes += len(data)
        super().data_received(data)
        if not (self._in_headers or self._in_body) and (self._request is None or self._request.response_complete):
            # Line ends between two requests: they must not keep an idle connection open.
            self._in_headers, self._since = True, self.loop.time()
        if self._in_headers and self._header_bytes > self.limits.headers:
            self._refuse(
                431, f"the headers have more than {self.limits.headers:,} bytes; send fewer or shorter headers"
            )

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        super().on_message_begin()
        if not self._in_headers:
            self._since = self.loop.time()
        self._in_headers, self._in_body = True, False

    def on_headers_complete(self) -> None:
        """The headers of a request are complete."""
        if self.transport.is_closing():
            return
        size = sum(len(name) + len(value) + _HEADER_BYTES for name, value in self.headers) + len(self.url)
        if size > self.limits.headers:
            self._refuse(
                431, f"the headers have more than {self.limits.headers:,} bytes; send fewer or shorter headers"
            )
            return
        self._in_headers, self._in_body = False, True
        self._header_bytes = self._body_bytes = 0
        self._since = self.loop.time()
        self._answered_since = None
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before:  # its task has not begun yet
            self.cycle.transport = ResponseWrites(self.transport, self.loop)  # type: ignore[assignment]
            self._unanswered = [each for each in self._unanswered if not each.response_complete]
            self._unanswered.append(self.cycle)
            if len(self._unanswered) > PIPELINED:
                self.transport.abort()

    def on_body(self, body: bytes) -> None:
        """A part of a body."""
        if not self.transport.is_closing():
            self._body_bytes += len(body)
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The last byte of a request."""
        self._in_body = False
        if not self.transport.is_closing():
            super().on_message_complete()

    def pause_writing(self) -> None:
        """The client reads more slowly than the server writes."""
        self._stalled_since = self.loop.time()
        self._unread = self.transport.get_write_buffer_size()
        super().pause_writing()

    def resume_writing(self) -> None:
        """The client has read most of what was written."""
        self._stalled_since = None
        super().resume_writing()

    def sweep(self, now: float) -> None:
        """End the connection if its client is too slow."""
        limits = self.limits
        if self._stalled_since is not None:
            unread = self.transport.get_write_buffer_size()
            if self._unread - unread >= limits.rate * (now - self._stalled_since):
                self._stalled_since, self._unread = now, unread
            elif now - self._stalled_since > limits.stall_time:
                self.transport.abort()
        elif self.transport.is_closing():
            return
        elif self._in_headers:
            if now - self._since > limits.header_time:
                self._refuse(*_TIMEOUT)
        elif self._in_body:
            self._sweep_body(now)

    @property
    def _request(self) -> RequestResponseCycle | None:
        """The last request whose headers are complete."""
        return self.cycle

    def _sweep_body(self, now: float) -> None:
        if self.cycle.response_complete:
            # Nobody reads the rest of this body; a client that ends it soon may send another request.
            self._answered_since = self._answered_since or now
            if now - self._answered_since > self.limits.header_time:
                self._refuse(*_TIMEOUT)
        elif self.flow.read_paused:
            self._since = now  # the server does not read; that is not the client's fault
        elif now - self._since > self.limits.body_time + self._body_bytes / self.limits.rate:
            self._refuse(*_TIMEOUT)

    def send_400_response(self, msg: str) -> None:
        """What the client sent is not HTTP; called by uvicorn."""
        self._refuse(400, "the request is not valid HTTP/1.1; check its first line, headers and chunks")

    def _refuse(self, status: int, reason: str) -> None:
        """Answer if no other answer has begun, and disconnect."""
        if self.transport.is_closing():
            return
        cycle = self._request
        if cycle is not None and isinstance(cycle.transport, ResponseWrites):
            cycle.transport.release()
        if cycle is None or not cycle.response_started or (self._in_headers and cycle.response_complete):
            phrase = HTTPStatus(status).phrase
            body = json.encode({"title": phrase, "status": status, "detail": reason})
            head = f"HTTP/1.1 {status} {phrase}\r\ncontent-type: application/problem+json\r\n"
            self.transport.write(f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body)
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.close()


def guarded_by(limits: ConnectionLimits) -> type[GuardedConnection]:
    """The class of connections with these limits."""
    return type("GuardedConnection", (GuardedConnection,), {"limits": limits})


async def sweep_forever(connections: "set[Any]", limits: ConnectionLimits) -> None:
    """End slow connections, until cancelled."""
    loop = asyncio.get_running_loop()
    shortest = min(limits.header_time, limits.body_time, limits.stall_time)
    seconds = max(_SHORTEST_SWEEP_SECONDS, min(_SWEEP_SECONDS, shortest / 4))
    while True:
        await asyncio.sleep(seconds)
        now = loop.time()
        for connection in list(connections):
            if isinstance(connection, GuardedConnection):
                with suppress(OSError, RuntimeError):  # the connection ends at this moment
                    connection.sweep(now)
