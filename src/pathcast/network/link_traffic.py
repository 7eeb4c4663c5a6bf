"""Traffic: bytes and messages between pairs of nodes of the overlay, by kind.

The nodes of a pair need not be neighbours in the topology: zones of a CAN change, and any node that has a payload may
send it. Kinds: `message` (publications, with the payloads that they carry), `payload` (fetched payloads, and the
requests), `control` (acknowledgements, zones, extents), `subscription` (filters in transit).

Cost: an entry takes two additions.
"""

from collections.abc import Iterator

import numpy as np

from pathcast.kernels import Int64s
from pathcast.transmission import Ledger, Topology, Underlay

Pair = tuple[int, int]


class Traffic:
    """Counts for the nodes of one topology; node numbers are those of the topology."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self._kinds: dict[str, dict[Pair, list[int]]] = {}

    def carry(self, source: int, target: int, size: int, kind: str, messages: int = 1) -> None:
        """Count a message from one node to another."""
        pairs = self._kinds.get(kind)
        if pairs is None:
            pairs = self._kinds[kind] = {}
        entry = pairs.get((source, target))
        if entry is None:
            pairs[source, target] = [size, messages]
        else:
            entry[0] += size
            entry[1] += messages

    def bytes(self, *kinds: str) -> int:
        """Bytes on all links, of some kinds or of all."""
        return sum(entry[0] for _, entry in self._entries(kinds))

    def messages(self, *kinds: str) -> int:
        """Messages on all links: overlay hops."""
        return sum(entry[1] for _, entry in self._entries(kinds))

    def links(self, *kinds: str) -> dict[tuple[str, str], int]:
        """Bytes from a node to another, by their names."""
        found: dict[tuple[str, str], int] = {}
        names = self.topology.nodes
        for (source, target), entry in self._entries(kinds):
            pair = names[source], names[target]
            found[pair] = found.get(pair, 0) + entry[0]
        return found

    def sent(self, *kinds: str) -> Int64s:
        """Bytes that each node has sent: its load."""
        found = np.zeros(len(self.topology.nodes), np.int64)
        for (source, _), entry in self._entries(kinds):
            found[source] += entry[0]
        return found

    def add(self, other: "Traffic") -> None:
        """Add the counts of another `Traffic`."""
        for kind, pairs in other._kinds.items():
            for (source, target), (size, count) in pairs.items():
                self.carry(source, target, size, kind, count)

    def ledger(self) -> Ledger:
        """The traffic per lane of the topology; packets between nodes without a link took the shortest path."""
        found = Ledger(self.topology)
        paths = self.topology.shortest_paths()
        for kind, pairs in self._kinds.items():
            sums, counts = found._columns(kind)
            for (source, target), (size, count) in pairs.items():
                lanes = paths.lanes(source, target)
                sums[lanes] += size
                counts[lanes] += count
        return found

    def below(self, underlay: Underlay) -> Ledger:
        """The traffic on the links of a physical network whose hosts are the nodes."""
        found = Ledger(underlay.physical)
        names = self.topology.nodes
        for kind, pairs in self._kinds.items():
            sums, counts = found._columns(kind)
            for (source, target), (size, count) in pairs.items():
                lanes = underlay.lanes(names[source], names[target])
                sums[lanes] += size
                counts[lanes] += count
        return found

    def _entries(self, kinds: tuple[str, ...]) -> Iterator[tuple[Pair, list[int]]]:
        for kind in kinds or tuple(self._kinds):
            yield from self._kinds.get(kind, {}).items()

    def __repr__(self) -> str:
        return f"Traffic({self.messages():,} messages, {self.bytes():,} bytes; {', '.join(self._kinds)})"
