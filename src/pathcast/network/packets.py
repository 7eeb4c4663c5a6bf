"""Packets: what nodes send each other, and how many bytes that is.

A publication has the attributes of a message. In a CN* it has two more where the message has a payload (§5 of the
select-join paper): `*i`, the payload's hash, and `*o`, the last node on the way that may have it; which attributes are
payload stands in the wire form of a message itself. A copy without payload has the rest. A CAN adds the part of the
region that a copy is for. All other packets are a tag, a hash or a number.

Invariant: a node learns a message's payload from a packet that carries it, and from nothing else.
Cost: sizes are added up, and equal those of the encoded message (tested).
"""

from dataclasses import dataclass, replace
from functools import lru_cache

from ..messages import Message
from ..messages.message import PAYLOAD_ID
from .shapes import Probe
from .zones import Box, boxes_size

ID, SOURCE = "*i", "*o"
Uid = tuple[int, int, int]
ACKNOWLEDGEMENT = 9
REQUEST = 1 + PAYLOAD_ID


@lru_cache(maxsize=1 << 16)
def _source_size(name: str) -> int:
    return Message({SOURCE: name}).size - Message({}).size


_ID_SIZE = Message({ID: bytes(PAYLOAD_ID)}).size - Message({}).size


@dataclass(frozen=True, slots=True, eq=False)
class Letter:
    """What all copies of a publication have in common: the message without its payload, and who published it."""

    number: int
    origin: int
    probe: Probe
    payload: bytes | None
    bare_size: int
    payload_size: int

    @classmethod
    def of(cls, number: int, origin: int, message: Message) -> "Letter":
        """The letter for a message; the payload itself stays with the server."""
        bare = message.bare() if message.payload else message
        size = message.size - bare.size
        return cls(number, origin, Probe(bare), message.payload_id(), bare.size, size)


@dataclass(frozen=True, slots=True, eq=False)
class Publication:
    """A copy on its way. `payload` is None where it is left out; `source` None stands for the server."""

    letter: Letter
    payload: Message | None
    source: int | None
    header: tuple[Box, ...]
    hops: int
    uid: Uid

    def size(self, names: tuple[str, ...], *, starred: bool) -> int:
        """Bytes on the wire; `starred`: with the attributes of CN*."""
        letter = self.letter
        size = letter.bare_size + (letter.payload_size if self.payload is not None else 0) + boxes_size(self.header)
        if starred and letter.payload is not None:
            size += _ID_SIZE + _source_size(names[letter.origin if self.source is None else self.source])
        return size

    def copy(self, payload: Message | None, source: int | None, header: tuple[Box, ...], uid: Uid) -> "Publication":
        """The same for the next hop."""
        return replace(self, payload=payload, source=source, header=header, hops=self.hops + 1, uid=uid)


@dataclass(frozen=True, slots=True)
class Done:
    """All that lies behind the sender has the publication."""

    uid: Uid


@dataclass(frozen=True, slots=True)
class Stored:
    """The sender knows of payloads and has got this one."""

    payload: bytes


@dataclass(frozen=True, slots=True)
class Fetch:
    """Please send this payload; `server`: asked of the server that stands at the node."""

    payload: bytes
    server: bool
    origin: int


@dataclass(frozen=True, slots=True)
class Supply:
    """A payload that was asked for; None: it is not here any more."""

    payload: bytes
    content: Message | None
    origin: int
    server: bool

    @property
    def size(self) -> int:
        """Bytes on the wire."""
        return REQUEST + (self.content.size if self.content is not None else 0)
