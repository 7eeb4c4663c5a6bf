"""Homes: each payload has a node that keeps it for all others, so that few requests reach the server.

A repository that is small compared with the needs of its node's subscribers evicts payloads before they recur, whatever
the eviction policy; each is then fetched again, in the select-join paper (§5) from the server if no node on the way has
it. All repositories together could hold the payloads many times. So every payload has a *home*, a node that its hash
determines. CN* nodes register with the server; the server forwards a request to the home, and the home answers the
requesting node. If the home lacks the payload, the node gets it from the server, and sends a copy to the home if the
home wants one. A hop needs no more than before: the packet, and its node's own state.

Invariant: homes are soft state: a home that has lost a payload, or has failed, costs bytes, never a delivery. The
server forwards a request once; if asked again, it answers itself.
Cost: the home of a hash is found in a sorted ring (consistent hashing). When nodes join or leave, few homes change.
"""

from bisect import bisect
from collections.abc import Iterable
from hashlib import blake2b

from pathcast.messages import Message

from .packets import Fetch, Supply
from .payload_cache_and_directory import PayloadLimits

# Places of a node on the ring: more places distribute payloads more evenly.
_PLACES = 16


class Homes:
    """The server's list of nodes that keep payloads for others; empty if homes are off or repositories are empty."""

    def __init__(self, nodes: Iterable[int], limits: PayloadLimits | None) -> None:
        self._used = limits is not None and limits.homes and limits.keeps
        self._nodes: set[int] = set()
        self._ring: list[tuple[int, int]] = []
        self.add(*nodes)

    def add(self, *nodes: int) -> None:
        """Add nodes."""
        if self._used:
            new = set(nodes) - self._nodes
            self._nodes |= new
            self._ring = sorted([*self._ring, *((_place(node, turn), node) for node in new for turn in range(_PLACES))])

    def discard(self, node: int) -> None:
        """Remove a node."""
        self._nodes.discard(node)
        self._ring = [(place, one) for place, one in self._ring if one != node]

    def of_payload(self, id: bytes, origin: int) -> int | None:
        """The home of a payload, which is never the server's own node; None if there is none."""
        if len(self._nodes) - (origin in self._nodes) < 1:
            return None
        at = bisect(self._ring, (int.from_bytes(id[:8], "big"), -1))
        while True:
            node = self._ring[at % len(self._ring)][1]
            if node != origin:
                return node
            at += 1

    def answer(self, fetch: Fetch, asker: int, content: Message | None, everywhere: int) -> tuple[int, Fetch | Supply]:
        """The server's answer to a request: the receiver and the packet."""
        home = self.of_payload(fetch.payload, fetch.origin)
        if content is not None and home is not None and home != asker and not fetch.again:
            return home, Fetch(fetch.payload, False, fetch.origin, asker=asker)
        return asker, Supply(
            fetch.payload, content, fetch.origin, server=True, everywhere=everywhere, home=home == asker
        )


def _place(node: int, turn: int) -> int:
    return int.from_bytes(blake2b(f"{node} {turn}".encode(), digest_size=8).digest(), "big")
