"""Packets: what nodes send each other, and how many bytes that is.

A publication has the attributes of a message. In a CN* it has two more where the message has a payload (§5 of the
select-join paper): `*i`, a hash for each attribute that is payload and left out (of one that is not, the receiver has
the content, and so the hash), and `*o`, the last node on the way that may have it. The latter is left out where it is
the node that sends the copy, or the server that stands there. Which attributes are payload stands in the wire form of
a message itself. Each such attribute is a *unit* of its own, so that a row of a
join finds the parts again that came with other rows. A copy has the units that the next hop may lack. A CAN adds the
part of the region that a copy is for. All other packets are a tag, hashes or a number.

Invariant: a node learns a message's payload from a packet that carries it, and from nothing else.
Cost: sizes are added up, and equal those of the encoded message (tested).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from pathcast.messages import PAYLOAD_ID, Message

from .can.filter_points import Probe
from .can.zones import Box

ID, SOURCE = "*i", "*o"
Uid = tuple[int, int, int]
ACKNOWLEDGEMENT = 9
REQUEST = 1 + PAYLOAD_ID
# Of a node, as the network below it knows it.
ADDRESS = 6


@lru_cache(maxsize=1 << 16)
def _source_size(name: str) -> int:
    return Message({SOURCE: name}).size - Message({}).size


_NOTHING = Message({}).size


@lru_cache(maxsize=256)
def _ids_size(count: int) -> int:
    return Message({ID: bytes(count * PAYLOAD_ID)}).size - _NOTHING if count else 0


def units_of(message: Message) -> dict[bytes, Message]:
    """The payload, an attribute each, by its hash."""
    found = {}
    for name in sorted(message.payload):
        unit = Message({name: message[name]}, [name])
        id = unit.payload_id()
        assert id is not None
        found[id] = unit
    return found


def unit_size(unit: Message) -> int:
    """Bytes that a unit adds to a packet which carries it."""
    return unit.size - _NOTHING


def joined(units: Mapping[bytes, Message]) -> Message | None:
    """Units as one payload; None when there are none."""
    if not units:
        return None
    values = {name: value for unit in units.values() for name, value in unit.items()}
    return Message(values, values)


@dataclass(frozen=True, slots=True, eq=False)
class Letter:
    """What all copies of a publication have in common: the message without its payload, and who published it."""

    number: int
    origin: int
    probe: Probe
    units: tuple[bytes, ...]
    bare_size: int

    @classmethod
    def of(cls, number: int, origin: int, message: Message, units: Iterable[bytes]) -> "Letter":
        """The letter for a message; the payload itself stays with the server."""
        bare = message.bare() if message.payload else message
        return cls(number, origin, Probe(bare), tuple(units), bare.size)


class Publication(NamedTuple):
    """A copy on its way. `carried` are the units that are not left out; `source` None stands for the server.

    `header` is for the routing alone; `uid` begins with the node that sends the copy.
    """

    letter: Letter
    carried: dict[bytes, Message]
    source: int | None
    header: tuple[Box, ...]
    hops: int
    uid: Uid

    def size(self, names: tuple[str, ...], *, starred: bool) -> int:
        """Bytes on the wire but for the header; `starred`: with the attributes of CN*."""
        return self.letter.bare_size + self.carried_size + (self.reference_size(names) if starred else 0)

    @property
    def carried_size(self) -> int:
        """Bytes of the units that it carries."""
        return sum(map(unit_size, self.carried.values())) if self.carried else 0

    def reference_size(self, names: tuple[str, ...]) -> int:
        """Bytes of the attributes of CN*."""
        letter = self.letter
        if not letter.units:
            return 0
        source = letter.origin if self.source is None else self.source
        size = _ids_size(len(letter.units) - len(self.carried))
        return size if source == self.uid[0] else size + _source_size(names[source])

    def delayed(self, hops: int) -> "Publication":
        """The same, so many hops later."""
        return self._replace(hops=self.hops + hops)


@dataclass(frozen=True, slots=True)
class Done:
    """All that lies behind the sender has the publication."""

    uid: Uid


@dataclass(frozen=True, slots=True)
class Stored:
    """The sender knows of payloads and has got these units."""

    units: tuple[bytes, ...]

    @property
    def size(self) -> int:
        """Bytes on the wire."""
        return 1 + PAYLOAD_ID * len(self.units)


@dataclass(frozen=True, slots=True)
class Fetch:
    """Please send this payload; `server`: asked of the server that stands at the node.

    `asker`: the server passes on what this node asked, which is to get the answer. `again`: the server is to answer
    itself, since nobody else did.
    """

    payload: bytes
    server: bool
    origin: int
    asker: int | None = None
    again: bool = False

    @property
    def size(self) -> int:
        """Bytes on the wire."""
        return REQUEST if self.asker is None else REQUEST + ADDRESS


@dataclass(frozen=True, slots=True)
class Supply:
    """A payload that was asked for; None: it is not here any more.

    If the server says None, publications with this payload and numbers below `everywhere` are everywhere. `passed`:
    the question came by way of the server. `home`: the home lacks it and wants a copy, or the server sends it to the
    home. `hops`: how many the question and this answer took.
    """

    payload: bytes
    content: Message | None
    origin: int
    server: bool
    everywhere: int = 0
    passed: bool = False
    home: bool = False
    hops: int = 2

    @property
    def size(self) -> int:
        """Bytes on the wire."""
        return REQUEST + (self.content.size if self.content is not None else 8 * self.server)


@dataclass(frozen=True, slots=True)
class Deposit:
    """Please keep this payload for others: its home is where you are."""

    payload: bytes
    content: Message

    @property
    def size(self) -> int:
        """Bytes on the wire."""
        return REQUEST + self.content.size
