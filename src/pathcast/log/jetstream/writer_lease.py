"""The lease on a JetStream log: which of several brokers is the active one, and when another may follow it.

    LOG-active   one message: who holds the lease, at which address, for how many seconds; its sequence counts renewals

The holder replaces the message several times per lease. A process that waits takes the lease if the message stays the
same for the whole lease, or says that it was released. Each replacement names the sequence of the message that it
replaces, so of several that try, one succeeds.

No two clocks are compared: the holder counts from before it sent a renewal, the others from after they first saw it. So
the holder's `is_valid` ends before anybody else's wait does, as far as the clocks of two machines run equally fast.

What keeps the log right is its fence (`JetStreamLog`), not the lease: the lease only says who should open it, and when
an earlier holder must stop answering reads.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from msgspec import DecodeError, Struct, ValidationError, json

from ..log_contract import FencedError, LogError
from .nats_connection import NatsConnection
from .nats_stream import REQUIRED, ConflictError, Message, Stream

_REQUIRED_OF_LEASE = {**REQUIRED, "discard": "old", "max_msgs": 1}


class _Holder(Struct):
    """The holder of the lease."""

    id: str
    address: str
    seconds: float
    released: bool = False


class LogLease:
    """The lease on a log, as one process sees it. One thread at a time calls methods; any thread reads properties."""

    def __init__(
        self, connection: NatsConnection, name: str, address: str, seconds: float, clock: Callable[[], float]
    ) -> None:
        self.seconds = seconds
        self.holder = ""  # the address of the active broker, as far as known
        self._name = name
        self._connection = connection
        self._clock = clock
        self._own = _Holder(uuid4().hex, address, seconds)
        self._stream = Stream(connection, f"{name}-active", _REQUIRED_OF_LEASE)
        self._subject = f"{name}-active.holder"
        self._seen: tuple[int, float] | None = None  # a message, and since when it has been the last one
        self._last = 0  # own message that holds the lease
        self._valid_until = float("-inf")

    @classmethod
    def open(
        cls,
        servers: Sequence[str],
        name: str,
        address: str,
        *,
        seconds: float,
        replicas: int = 1,
        timeout: float = 30.0,
        options: Mapping[str, Any] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> "LogLease":
        """The lease on the log with this name. `address` is where clients reach this process if it is active."""
        connection = NatsConnection(servers, options or {}, timeout)
        lease = cls(connection, name, address, seconds, clock)
        try:
            lease._stream.create(replicas)
        except BaseException:
            connection.close()
            raise
        connection.timeout = seconds  # a renewal that takes longer comes too late
        return lease

    @property
    def is_valid(self) -> bool:
        """Whether this process holds the lease, and nobody else can."""
        return self._clock() < self._valid_until

    def take(self) -> bool:
        """Take the lease if it is free, or was not renewed in time; whether this process holds it now."""
        try:
            message = self._stream.last(self._subject)
        except LogError:
            self._seen = None  # while there are no answers, the holder cannot renew either
            raise
        if message is None:
            return self._replace(0)
        holder = self._holder_in(message)
        self.holder = holder.address
        if self._seen is None or self._seen[0] != message.sequence:
            self._seen = message.sequence, self._clock()
        waited = self._clock() - self._seen[1]
        if holder.released or holder.id == self._own.id or waited >= max(holder.seconds, self.seconds):
            return self._replace(message.sequence)
        return False

    def renew(self) -> None:
        """Hold the lease for its whole time again; `FencedError` if another process has taken it."""
        while not self._replace(self._last):
            message = self._stream.last(self._subject)
            holder = None if message is None else self._holder_in(message)
            if message is None or holder is None or holder.id != self._own.id:
                self._valid_until = float("-inf")
                self.holder = "" if holder is None else holder.address
                by = "another broker" if holder is None else f"the broker at {holder.address}"
                raise FencedError(f"{by} has taken over the log {self._name!r}; start this broker again as a standby")
            self._last = message.sequence  # an earlier renewal, whose answer was lost

    def _replace(self, sequence: int) -> bool:
        begin = self._clock()
        try:
            self._last = self._stream.publish(self._subject, json.encode(self._own), sequence)
        except ConflictError:
            return False
        self._valid_until = begin + self.seconds
        self.holder = self._own.address
        return True

    def release(self) -> None:
        """Let another process take the lease at once, if this one holds it."""
        if self._last:
            self._valid_until = float("-inf")
            self._own.released = True
            self._replace(self._last)
            self._valid_until, self._last = float("-inf"), 0

    def _holder_in(self, message: Message) -> _Holder:
        try:
            return json.decode(message.data, type=_Holder)
        except (DecodeError, ValidationError) as error:
            raise LogError(
                f"something other than Pathcast wrote to the stream {self._name}-active: {error}; purge this stream"
            ) from None

    def close(self) -> None:
        """Disconnect, without releasing the lease."""
        self._connection.close()
