"""Packets that nodes send to each other, and their sizes.

A publication has the attributes of a message. In a CN* it has two more if the message has a payload (§5 of the
select-join paper): `*i`, a hash per omitted payload attribute (the receiver can compute the hash of an attribute that
is not omitted), and `*o`, the last node on the way that may have the payload. `*o` is omitted if it is the node that
sends the copy, or the server at that node. The wire format of a message marks the payload attributes. Each of them is a
separate *unit*, so that a row of a join shares the parts that came with other rows. A copy carries the units that the
next hop may lack. A CAN adds the part of the region that a copy is for. Other packets are a tag, hashes or a number.

Invariant: a node learns a message's payload only from a packet that carries it.
Cost: sizes are added up, and equal those of the encoded message (tested).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from pathcast.messages import PAYLOAD_ID, Message

from .content_addressable.filter_point_transformation import Probe
from .content_addressable.zone_boxes import Box

ID, SOURCE = "*i", "*o"
Uid = tuple[int, int, int]
ACKNOWLEDGEMENT = 9
REQUEST = 1 + PAYLOAD_ID
# The address of a node in the underlying network.
ADDRESS = 6


@lru_cache(maxsize=1 << 16)
def _source_size(name: str) -> int:
    return Message({SOURCE: name}).size - Message({}).size


_NOTHING = Message({}).size


@lru_cache(maxsize=256)
def _ids_size(count: int) -> int:
    return Message({ID: bytes(count * PAYLOAD_ID)}).size - _NOTHING if count else 0


def units_of(message: Message) -> dict[bytes, Message]:
    """The payload, one unit per attribute, by hash."""
    found = {}
    for name in sorted(message.payload):
        unit = Message({name: message[name]}, [name])
        id = unit.payload_id()
        assert id is not None
        found[id] = unit
    return found


def unit_size(unit: Message) -> int:
    """Bytes that a unit adds to a packet that carries it."""
    return unit.size - _NOTHING


def joined(units: Mapping[bytes, Message]) -> Message | None:
    """Units as one payload; None if there are none."""
    if not units:
        return None
    values = {name: value for unit in units.values() for name, value in unit.items()}
    return Message(values, values)


@dataclass(frozen=True, slots=True, eq=False)
class Letter:
    """The common part of all copies of a publication: the message without its payload, and its publisher."""

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
    """A copy in transit. `carried` are the units that are not omitted; `source` None stands for the server.

    `header` is for routing only; `uid` begins with the node that sends the copy.
    """

    letter: Letter
    carried: dict[bytes, Message]
    source: int | None
    header: tuple[Box, ...]
    hops: int
    uid: Uid

    def size(self, names: tuple[str, ...], *, starred: bool) -> int:
        """Bytes on the wire without the header; `starred`: with the attributes of CN*."""
        return self.letter.bare_size + self.carried_size + (self.reference_size(names) if starred else 0)

    @property
    def carried_size(self) -> int:
        """Bytes of the carried units."""
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
        """The same copy with `hops` more hops."""
        return self._replace(hops=self.hops + hops)


@dataclass(frozen=True, slots=True)
class Done:
    """Acknowledges that all nodes behind the sender have the publication."""

    uid: Uid


@dataclass(frozen=True, slots=True)
class Stored:
    """Acknowledges that the sender supports CN* and has these units."""

    units: tuple[bytes, ...]

    @property
    def size(self) -> int:
        """Bytes on the wire."""
        return 1 + PAYLOAD_ID * len(self.units)


@dataclass(frozen=True, slots=True)
class Fetch:
    """Requests a payload; `server`: from the server at the node.

    `asker`: the server forwards the request of this node, which gets the answer. `again`: the server must answer
    itself, because no other node did.
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
    """Answers a request with the payload; None: the sender no longer has it.

    If the server answers None, publications with this payload and numbers below `everywhere` have reached all nodes.
    `passed`: the server forwarded the request. `home`: the home lacks the payload and wants a copy, or the server sends
    it to the home. `hops`: the hops of the request and this answer.
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
    """Asks the receiver, the home of this payload, to keep it for other nodes."""

    payload: bytes
    content: Message

    @property
    def size(self) -> int:
        """Bytes on the wire."""
        return REQUEST + self.content.size
