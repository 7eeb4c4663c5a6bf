"""Messages: attribute–value pairs, some of which are payload.

A server publishes messages to a content network (§2.1 of the select-join paper). Filters read the attributes of a
message; attributes named in `payload` are large and no node reads them on the way, so a network may omit them on a link
that has carried the same payload before, and restore them by `payload_id`.

Invariant: a message never changes; equal messages have equal bytes, regardless of the order of the given attributes.
"""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b

from pathcast.errors import MessageError

from .attribute_values import Value, check_scalar, check_value, shown

PAYLOAD_ID = 16


class Message(Mapping[str, Value]):
    """Attributes and their values; `payload` names the attributes that only the final receiver reads.

    >>> message = pathcast.messages.Message({"symbol": "GOOG", "per": 52.1})
    >>> pathcast.messages.decode(pathcast.messages.encode(message)) == message
    True
    """

    __slots__ = ("_attributes", "_bytes", "payload")

    def __init__(self, attributes: Mapping[str, Value], payload: Iterable[str] = ()) -> None:
        for name, value in attributes.items():
            if type(name) is not str or not name:
                raise MessageError(f"an attribute name must be a non-empty string, got {name!r}")
            check_scalar(name)
            check_value(value)
        self._attributes = dict(attributes)
        self.payload = frozenset(payload)
        self._bytes: bytes | None = None
        if not self.payload <= self._attributes.keys():
            missing = ", ".join(sorted(self.payload - self._attributes.keys()))
            raise MessageError(
                f"`payload` names attributes that are not in the message: {missing}; add the attributes to the "
                "message, or remove them from `payload`"
            )

    @classmethod
    def trusted(cls, attributes: dict[str, Value], payload: frozenset[str]) -> "Message":
        """A message from attributes that the caller has checked and will not change.

        For servers that make many messages from rows that were checked on arrival: checking is most of the work.
        """
        message = cls.__new__(cls)
        message._attributes, message.payload, message._bytes = attributes, payload, None
        return message

    def __getitem__(self, name: str) -> Value:
        return self._attributes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._attributes)

    def __len__(self) -> int:
        return len(self._attributes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and self.encode() == other.encode()

    def __hash__(self) -> int:
        return hash(self.encode())

    def encode(self) -> bytes:
        """The bytes of the message (`wire_format.py`)."""
        from .wire_format import encode

        if self._bytes is None:
            self._bytes = encode(self)
        return self._bytes

    @property
    def size(self) -> int:
        """Bytes on the wire."""
        return len(self.encode() if self._bytes is None else self._bytes)

    def bare(self) -> "Message":
        """The message without its payload."""
        return Message({name: value for name, value in self.items() if name not in self.payload})

    def payload_message(self) -> "Message":
        """The payload alone, as a message."""
        return Message({name: self[name] for name in sorted(self.payload)}, self.payload)

    def with_payload(self, payload: "Message") -> "Message":
        """The message with its payload restored."""
        return Message({**self, **payload}, self.payload | payload.payload)

    def payload_id(self) -> bytes | None:
        """A hash of the payload, which equal payloads share; None without payload."""
        if not self.payload:
            return None
        return blake2b(self.payload_message().encode(), digest_size=PAYLOAD_ID).digest()

    def __str__(self) -> str:
        return f"({', '.join(f'{name}: {shown(value)}' for name, value in self.items())})"

    def __repr__(self) -> str:
        return f"Message{self}"
