"""Soft state of a CN* node: which payloads have been sent over which links, and some of the payloads (§5). And the
server's payloads, which are not soft, but needed only while a publication is under way (`UnderWay`).

The *directory* has a bit a link for each payload; the bit is set once the next hop has acknowledged the payload, so
that a node which knows nothing of payloads never gets a reference (appendix H). The *repository* has payloads. Both are
capped and forget what was least recently used. A payload whose bits are all set is not needed for any link; it is
purged where nobody has subscribed.

The repository forgets in two classes: payloads that came once, and those that were needed again: for a subscriber
here, for a link that lacked them, or by a node that asked. A reference that only passes is no need. Rows that are
inserted pass once and are many; if they drove out rows that come again, those would be fetched. So payloads of the
first class go first, down to an eighth of all, and then those whose last need is the oldest. Up to a quarter of all are
*held* for other nodes (`payload_homes.py`); they go last, and among themselves the one whose last need is the oldest.
Where a quarter is too little, most stay as they are: were each to take the place of another, none would stay until it
comes again.

Invariant: whatever is lost here costs bytes, never a delivery: no bit means that the payload is sent, no payload that
it is fetched.
Cost: a dictionary look-up; a directory entry counts its id and a bit a link, and is a whole number of these bits.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pathcast.errors import TopologyError
from pathcast.messages import PAYLOAD_ID, Message

# The part of a repository that is for other nodes, and how seldom one that is full takes another payload.
_SHARE, _SELDOM = 4, 16


@dataclass(frozen=True, slots=True)
class PayloadLimits:
    """Caps on a node's soft state; None is no cap. The directory's is in bytes, as in the paper: 512 kB.

    `homes`: nodes keep payloads for each other.
    """

    directory_bytes: int | None = 512 * 1024
    repository_entries: int | None = 3_100
    repository_bytes: int | None = 64 << 20
    homes: bool = True

    def __post_init__(self) -> None:
        for name in ("directory_bytes", "repository_entries", "repository_bytes"):
            most = getattr(self, name)
            if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 0):
                raise TopologyError(f"{name} is 0 or more, a whole number, or None for no limit, not {most!r}")

    @property
    def keeps(self) -> bool:
        """Whether a repository holds anything at all."""
        return self.repository_entries != 0 and self.repository_bytes != 0


@dataclass
class PayloadCounts:
    """What became of payloads at a node; `sent_bytes` is the size of those that messages carried from there."""

    references: int = 0
    sent: int = 0
    sent_bytes: int = 0
    fetched: int = 0
    purged: int = 0
    evicted: int = 0
    forgotten: int = 0


class UnderWay:
    """The server's payloads: those of publications that are not everywhere yet, and no others.

    A reference is sent only in a publication with that payload, and whoever publishes hands the payload to the server;
    so a node can ask for a payload only while a publication with it is under way. A question that comes later is about
    a copy of one that everybody has, and needs no answer.
    """

    def __init__(self) -> None:
        self._payloads: dict[bytes, Message] = {}
        self._publications: dict[bytes, int] = {}

    def begin(self, payloads: Mapping[bytes, Message]) -> None:
        """A publication with these payloads sets out."""
        for id, payload in payloads.items():
            self._payloads[id] = payload
            self._publications[id] = self._publications.get(id, 0) + 1

    def end(self, ids: Iterable[bytes]) -> None:
        """A publication with these payloads is everywhere."""
        for id in ids:
            self._publications[id] -= 1
            if not self._publications[id]:
                del self._payloads[id], self._publications[id]

    def get(self, id: bytes) -> Message | None:
        """The payload, if a publication that has it is under way."""
        return self._payloads.get(id)

    def __len__(self) -> int:
        return len(self._payloads)


class PayloadState:
    """Directory and repository of one node with some links."""

    def __init__(self, limits: PayloadLimits) -> None:
        self.limits = limits
        self.counts = PayloadCounts()
        # The bits of payloads, and the bit of a link.
        self._directory: OrderedDict[bytes, int] = OrderedDict()
        self._bits: dict[int, int] = {}
        # Payloads that came once, and those that were used again; each with the least recently used first.
        self._once: OrderedDict[bytes, Message] = OrderedDict()
        self._again: OrderedDict[bytes, Message] = OrderedDict()
        # Payloads that are kept for others.
        self._held: OrderedDict[bytes, Message] = OrderedDict()
        self._bytes = self._held_bytes = 0
        self._asked = 0

    def clear(self) -> None:
        """Lose everything, as in a crash."""
        self._directory.clear()
        self._once.clear()
        self._again.clear()
        self._held.clear()
        self._bytes = self._held_bytes = 0

    def sent(self, id: bytes, link: int) -> bool:
        """Whether the next hop of a link has acknowledged this payload."""
        return self._directory.get(id, 0) & self._bits.get(link, 0) != 0

    def touch(self, id: bytes) -> bool:
        """A message with this payload passes: its entry is the latest, or made; whether it was made."""
        if id in self._directory:
            self._directory.move_to_end(id)
            return False
        self._directory[id] = 0
        return True

    def trim(self, links: int) -> None:
        """Forget the oldest entries beyond the limit; `links`: how many there are."""
        if self.limits.directory_bytes is not None:
            most = self.limits.directory_bytes // (PAYLOAD_ID + (links + 7) // 8)
            while len(self._directory) > most:
                self._directory.popitem(last=False)
                self.counts.forgotten += 1

    def acknowledged(self, id: bytes, link: int, links: set[int], *, serves: bool) -> None:
        """The next hop of a link has the payload; when all have, and nobody here needs it, it is purged."""
        bits = self._directory.get(id)
        if bits is None:
            return
        if link not in self._bits:
            self._bits[link] = 1 << len(self._bits)
        bits = self._directory[id] = bits | self._bits[link]
        own = id in self and id not in self._held
        if own and not serves and all(bits & self._bits.get(one, 0) for one in links):
            self._drop(id)
            self.counts.purged += 1

    def keep(self, id: bytes, payload: Message) -> None:
        """Put a payload into the repository; one that is there has come again."""
        if self.need(id):
            return
        if self._over(1, payload.size):
            self.counts.evicted += 1  # it would drive out all others, and not stay either
            return
        self._once[id] = payload
        self._bytes += payload.size
        while self._over(len(self), self._bytes):
            # The newest stays, if it is not alone: it can be needed again, and become old.
            new = len(self._once) > max(1, (len(self) - len(self._held)) // 8) or not self._again
            kept = self._once if new and self._once else self._again or self._held
            self._drop(next(iter(kept)))
            self.counts.evicted += 1

    def hold(self, id: bytes, payload: Message) -> None:
        """Keep a payload for others, in up to a quarter of the repository: it is the last that is forgotten."""
        if self._over(_SHARE, _SHARE * payload.size):
            self.keep(id, payload)
            return
        if id in self:
            self._drop(id)
        self.keep(id, payload)
        if self._once.pop(id, None) is None:
            return
        self._held[id] = payload
        self._held_bytes += payload.size
        while self._over(_SHARE * len(self._held), _SHARE * self._held_bytes):
            self._drop(next(iter(self._held)))
            self.counts.evicted += 1

    def wants(self) -> bool:
        """Whether to hold one more: where there is room, and now and then where there is none."""
        self._asked += 1
        count, size = len(self._held) + 1, self._held_bytes + self._held_bytes // max(1, len(self._held))
        return self._asked % _SELDOM == 0 or not self._over(_SHARE * count, _SHARE * size)

    def _over(self, count: int, size: int) -> bool:
        """Whether so many payloads and bytes are too much."""
        entries, most = self.limits.repository_entries, self.limits.repository_bytes
        return (entries is not None and count > entries) or (most is not None and size > most)

    def payload(self, id: bytes) -> Message | None:
        """The payload, if it is here."""
        for kept in (self._once, self._again, self._held):
            if (found := kept.get(id)) is not None:
                return found
        return None

    def need(self, id: bytes) -> bool:
        """A payload is needed again: it is the last of its class to be forgotten; whether it is here."""
        found = self._once.pop(id, None)
        if found is not None:
            self._again[id] = found
            return True
        for kept in (self._again, self._held):
            if id in kept:
                kept.move_to_end(id)
                return True
        return False

    def _drop(self, id: bytes) -> None:
        if (held := self._held.pop(id, None)) is not None:
            self._held_bytes -= held.size
            self._bytes -= held.size
            return
        self._bytes -= (self._once if id in self._once else self._again).pop(id).size

    def __len__(self) -> int:
        return len(self._once) + len(self._again) + len(self._held)

    def __contains__(self, id: bytes) -> bool:
        return id in self._once or id in self._again or id in self._held
