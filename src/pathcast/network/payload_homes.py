"""Homes: where payloads are kept for all, so that what nodes have forgotten is seldom asked of the server.

A repository that is small against what its node's subscribers need forgets payloads before they come again, whatever is
chosen to go; each is then fetched anew, in the select-join paper (§5) from the server where no node on the way has it.
All repositories together would hold them many times. So every payload has a *home*, a node that its hash gives. The
server, which CN* nodes tell of themselves, passes a question on to the home, and the home answers who asked. A home
that lacks the payload says so; whoever asked gets it from the server then, and leaves a copy at the home, if wanted.
A hop needs no more than before: the packet, and its node's own state.

Invariant: soft, as all that nodes keep: a home that has lost a payload, or is gone, costs bytes, never a delivery. The
server passes a question on once; asked again, it answers itself.
Cost: the home of a hash is found in a sorted ring. When nodes come and go, few payloads change theirs.
"""

from bisect import bisect
from collections.abc import Iterable
from hashlib import blake2b

from pathcast.messages import Message

from .packets import Fetch, Supply
from .payload_cache import PayloadLimits

# Places of a node on the ring: with more, nodes are homes of more equal numbers of payloads.
_PLACES = 16


class Homes:
    """The server's knowledge of which nodes keep payloads for others: none, where they don't or can keep nothing."""

    def __init__(self, nodes: Iterable[int], limits: PayloadLimits | None) -> None:
        self._used = limits is not None and limits.homes and limits.keeps
        self._nodes: set[int] = set()
        self._ring: list[tuple[int, int]] = []
        self.add(*nodes)

    def add(self, *nodes: int) -> None:
        """Nodes are there."""
        if self._used:
            new = set(nodes) - self._nodes
            self._nodes |= new
            self._ring = sorted([*self._ring, *((_place(node, turn), node) for node in new for turn in range(_PLACES))])

    def discard(self, node: int) -> None:
        """A node is gone."""
        self._nodes.discard(node)
        self._ring = [(place, one) for place, one in self._ring if one != node]

    def of_payload(self, id: bytes, origin: int) -> int | None:
        """The home of a payload, which is not the node that the server stands at; None if there is none."""
        if len(self._nodes) - (origin in self._nodes) < 1:
            return None
        at = bisect(self._ring, (int.from_bytes(id[:8], "big"), -1))
        while True:
            node = self._ring[at % len(self._ring)][1]
            if node != origin:
                return node
            at += 1

    def answer(self, fetch: Fetch, asker: int, content: Message | None, everywhere: int) -> tuple[int, Fetch | Supply]:
        """What the server does with a question: whom it sends what."""
        home = self.of_payload(fetch.payload, fetch.origin)
        if content is not None and home is not None and home != asker and not fetch.again:
            return home, Fetch(fetch.payload, False, fetch.origin, asker=asker)
        return asker, Supply(
            fetch.payload, content, fetch.origin, server=True, everywhere=everywhere, home=home == asker
        )


def _place(node: int, turn: int) -> int:
    return int.from_bytes(blake2b(f"{node} {turn}".encode(), digest_size=8).digest(), "big")
