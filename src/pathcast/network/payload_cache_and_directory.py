"""Soft state of a CN* node: a directory of payloads sent per link, and a repository of payloads (§5). Also the server's
payloads, which are not soft, but needed only while a publication is in transit (`UnderWay`).

The *directory* has a bit per payload and link; the bit is set once the next hop has acknowledged the payload, so that a
node without CN* never gets a reference (appendix H). The *repository* has payloads. Both are capped and evict the least
recently used entries. A payload whose bits are all set is not needed for any link; it is purged at nodes without
subscribers.

The repository evicts in two classes: payloads that were used once, and payloads that were needed again: for a local
subscriber, for a link that lacked them, or by a requesting node. A reference that only passes is not a use. Inserted
rows pass once and are many; if they evicted rows that recur, those would have to be fetched. So payloads of the first
class are evicted first, down to an eighth of all, and then the least recently needed. Up to a quarter of all are *held*
for other nodes (`payload_home_nodes.py`); they are evicted last, the least recently needed first. If a quarter is too
little, most held payloads stay: if each new payload replaced another, none would stay until it recurs.

Invariant: a loss of soft state costs bytes, never a delivery: without the bit the payload is sent, and without the
payload it is fetched.
Cost: a dictionary look-up; a directory entry counts as its id and a bit per link, and is stored as an integer.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pathcast.errors import TopologyError
from pathcast.messages import PAYLOAD_ID, Message

# The part of a repository that is for other nodes, and how rarely a full one accepts another payload.
_SHARE, _SELDOM = 4, 16


@dataclass(frozen=True, slots=True)
class PayloadLimits:
    """Caps on a node's soft state; None means no cap. The cap of the directory is in bytes, as in the paper: 512 kB.

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
                raise TopologyError(f"{name} must be a whole number of at least 0, or None for no limit, got {most!r}")

    @property
    def keeps(self) -> bool:
        """Whether a repository can hold any payload."""
        return self.repository_entries != 0 and self.repository_bytes != 0


@dataclass
class PayloadCounts:
    """Counts of payload events at a node; `sent_bytes` is the size of payloads in messages that the node sent."""

    references: int = 0
    sent: int = 0
    sent_bytes: int = 0
    fetched: int = 0
    purged: int = 0
    evicted: int = 0
    forgotten: int = 0


class UnderWay:
    """The server's payloads: those of publications that have not yet reached all nodes.

    A reference is sent only in a publication with that payload, and the publisher gives the payload to the server; so a
    node can request a payload only while a publication with it is in transit. A later request is about a copy of a
    publication that has reached all nodes, and needs no answer.
    """

    def __init__(self) -> None:
        self._payloads: dict[bytes, Message] = {}
        self._publications: dict[bytes, int] = {}

    def begin(self, payloads: Mapping[bytes, Message]) -> None:
        """Start a publication with these payloads."""
        for id, payload in payloads.items():
            self._payloads[id] = payload
            self._publications[id] = self._publications.get(id, 0) + 1

    def end(self, ids: Iterable[bytes]) -> None:
        """End a publication with these payloads, which has reached all nodes."""
        for id in ids:
            self._publications[id] -= 1
            if not self._publications[id]:
                del self._payloads[id], self._publications[id]

    def get(self, id: bytes) -> Message | None:
        """The payload, if a publication with it is in transit."""
        return self._payloads.get(id)

    def __len__(self) -> int:
        return len(self._payloads)


class PayloadState:
    """Directory and repository of one node."""

    def __init__(self, limits: PayloadLimits) -> None:
        self.limits = limits
        self.counts = PayloadCounts()
        # The bits of payloads, and the bit of a link.
        self._directory: OrderedDict[bytes, int] = OrderedDict()
        self._bits: dict[int, int] = {}
        # Payloads that were used once, and payloads that were needed again; each with the least recently used first.
        self._once: OrderedDict[bytes, Message] = OrderedDict()
        self._again: OrderedDict[bytes, Message] = OrderedDict()
        # Payloads that are held for other nodes.
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
        """Move the entry of a payload to the end, or create it; return whether it was created."""
        if id in self._directory:
            self._directory.move_to_end(id)
            return False
        self._directory[id] = 0
        return True

    def trim(self, links: int) -> None:
        """Evict the oldest entries beyond the limit; `links` is the number of links."""
        if self.limits.directory_bytes is not None:
            most = self.limits.directory_bytes // (PAYLOAD_ID + (links + 7) // 8)
            while len(self._directory) > most:
                self._directory.popitem(last=False)
                self.counts.forgotten += 1

    def acknowledged(self, id: bytes, link: int, links: set[int], *, serves: bool) -> None:
        """Record that the next hop of a link has the payload; purge it if all have it and no subscriber is here."""
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
        """Put a payload into the repository; a payload that is already there counts as needed again."""
        if self.need(id):
            return
        if self._over(1, payload.size):
            self.counts.evicted += 1  # it would evict all others, and not stay either
            return
        self._once[id] = payload
        self._bytes += payload.size
        while self._over(len(self), self._bytes):
            # Keep the newest unless it is alone: it may be needed again.
            new = len(self._once) > max(1, (len(self) - len(self._held)) // 8) or not self._again
            kept = self._once if new and self._once else self._again or self._held
            self._drop(next(iter(kept)))
            self.counts.evicted += 1

    def hold(self, id: bytes, payload: Message) -> None:
        """Hold a payload for other nodes, in up to a quarter of the repository; it is evicted last."""
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
        """Whether to hold one more payload: always if there is space, occasionally if there is none."""
        self._asked += 1
        count, size = len(self._held) + 1, self._held_bytes + self._held_bytes // max(1, len(self._held))
        return self._asked % _SELDOM == 0 or not self._over(_SHARE * count, _SHARE * size)

    def _over(self, count: int, size: int) -> bool:
        """Whether this number of payloads and bytes exceeds the caps."""
        entries, most = self.limits.repository_entries, self.limits.repository_bytes
        return (entries is not None and count > entries) or (most is not None and size > most)

    def payload(self, id: bytes) -> Message | None:
        """The payload, if the repository has it."""
        for kept in (self._once, self._again, self._held):
            if (found := kept.get(id)) is not None:
                return found
        return None

    def need(self, id: bytes) -> bool:
        """Record that a payload is needed again, so that it is evicted last of its class; return whether it is here."""
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
