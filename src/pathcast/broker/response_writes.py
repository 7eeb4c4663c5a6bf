"""The head of a response leaves together with what follows it at once: one system call instead of two.

uvicorn writes the head of a response and its body separately, and each write is a system call that wakes the client.
Here the head waits for the next write, at most until the event loop has run what is ready, so the head of an event
stream leaves at once, too.

Cost: a callback per response, a tenth of the system call that it saves.
"""

import asyncio


class ResponseWrites:
    """What a response writes to, in place of its connection's transport."""

    __slots__ = ("_held", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop: asyncio.AbstractEventLoop | None = loop  # None once the response has begun
        self._held: bytes | None = None

    def write(self, data: bytes) -> None:
        """Write, or hold what is the first."""
        if self._loop is not None:
            self._held = data
            self._loop.call_soon(self.release)
            self._loop = None
        elif self._held is not None:
            held, self._held = self._held, None
            self._transport.writelines((held, data))
        else:
            self._transport.write(data)

    def release(self) -> None:
        """Write what is held."""
        if self._held is not None:
            held, self._held = self._held, None
            if not self._transport.is_closing():
                self._transport.write(held)

    def close(self) -> None:
        """Close the connection once everything is written."""
        self.release()
        self._transport.close()

    def is_closing(self) -> bool:
        """Whether the connection is closing."""
        return self._transport.is_closing()
