"""An event stream as bytes to read: the frames of server-sent events become deliveries and gaps."""

from collections.abc import Iterator
from typing import TypeVar

from msgspec import DecodeError, ValidationError, json

from .broker_errors import BrokerError
from .calls import Answer, path_of
from .delivery_calls import WireDelivery, WireGap
from .results import Delivery, Gap

W = TypeVar("W")


class EventReader:
    """Reads the frames of an event stream, through any number of connections.

    Invariant: `position` is the last event that was returned, or a later place up to which there is none. A frame
    counts when it is complete, so a connection that breaks within a frame loses nothing.
    Lines end at LF or CR LF only: documents may hold other characters that Unicode calls line ends.
    """

    def __init__(self, id: str, after: int | None, *, bodies: bool) -> None:
        self.path = path_of(id, "/events")
        self.query = {} if bodies else {"bodies": "links"}
        self.position = after
        self.ended = False
        self.is_open = False  # whether a connection has ever shown that the subscription exists
        self._buffer = bytearray()
        self._searched = 0
        self._fields: dict[bytes, bytes] = {}

    def headers(self) -> dict[str, str]:
        """Headers of the next connection, which begins after the position."""
        self._buffer, self._searched, self._fields = bytearray(), 0, {}
        found = {"accept": "text/event-stream", "cache-control": "no-store"}
        return found if self.position is None else {**found, "last-event-id": str(self.position)}

    def read(self, chunk: bytes) -> Iterator[Delivery | Gap]:
        """The events that a chunk of bytes completes."""
        self._buffer += chunk
        begin = 0
        while (end := self._buffer.find(b"\n", max(begin, self._searched))) >= 0:
            line = bytes(self._buffer[begin:end]).removesuffix(b"\r")
            begin = end + 1
            if line:
                name, _, value = line.partition(b":")
                self._fields[name] = value.removeprefix(b" ")
            elif (event := self._event()) is not None:
                yield event
        del self._buffer[:begin]
        self._searched = len(self._buffer)

    def _event(self) -> Delivery | Gap | None:
        """The event of a complete frame; None for a heartbeat, or an event that was returned before."""
        fields, self._fields = self._fields, {}
        self.is_open = True
        kind, data = fields.get(b"event", b""), fields.get(b"data", b"{}")
        if kind == b"document":
            delivery = _of_frame(data, WireDelivery).result()
            if self.position is not None and delivery.sequence <= self.position:
                return None
            self.position = delivery.sequence
            return delivery
        if kind == b"gap":
            gap = _of_frame(data, WireGap).result()
            # What the broker does not know is behind its head; the stream continues from there.
            if gap.reason != "expired":  # other feeds may have documents in the gap
                self.position = gap.begin - 1 if gap.reason == "unknown" else gap.end
            return gap
        if kind == b"end":
            self.ended = True
        elif (place := fields.get(b"id", b"")).isdigit():
            self.position = max(int(place), self.position or 0)
        return None

    def rejected(self, answer: Answer) -> None:
        """The broker rejected a connection: raises the error, unless the subscription has ended meanwhile."""
        if answer.status == 404 and self.is_open:
            self.ended = True
        elif not answer.is_temporary:
            raise answer.error()


def _of_frame(data: bytes, kind: type[W]) -> W:
    try:
        return json.decode(data, type=kind)
    except (DecodeError, ValidationError) as error:
        raise BrokerError(f"the event is not from a Pathcast broker: {error}; check the address") from None
