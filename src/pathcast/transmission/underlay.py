"""An overlay on a physical network: hosts are some of its nodes, and an overlay link is a path in the physical network.

The path is the shortest by latency, the same in both directions. An overlay link has the latency of its path and the
bandwidth of its slowest link: nodes on the way forward bytes as they arrive (cut-through).

Cost: a shortest-path tree per queried host (5 ms at 20,000 nodes). The path between two hosts is computed on first use
and cached: some tens of bytes.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from pathcast.errors import TopologyError
from pathcast.kernels import Floats, Int32s

from .shortest_paths import ShortestPaths
from .topology import Node, Topology
from .traffic_ledger import Ledger


class Underlay:
    """A physical topology and the nodes that are hosts of an overlay."""

    def __init__(self, physical: Topology, hosts: Sequence[Node]) -> None:
        self.physical = physical
        self.hosts = [physical.name(host) for host in hosts]
        if not self.hosts:
            raise TopologyError("hosts is empty; give at least one node of the physical topology")
        if len(set(self.hosts)) != len(self.hosts):
            twice = next(host for at, host in enumerate(self.hosts) if host in self.hosts[:at])
            raise TopologyError(f"hosts contains '{twice}' twice; give each host once")
        self.paths = ShortestPaths(physical, "latency")
        self._kept: dict[tuple[str, str], Int32s] = {}

    def lanes(self, source: str, target: str) -> Int32s:
        """The physical lanes on the path from one host to another."""
        if (back := self._kept.get((target, source))) is not None:
            return back[::-1] ^ 1
        if (source, target) not in self._kept:
            self._kept[source, target] = np.array(self.paths.lanes(source, target), np.int32)
        return self._kept[source, target]

    def latencies(self) -> Floats:
        """Seconds between hosts, one row per host."""
        numbers = np.array([self.physical.number(host) for host in self.hosts], np.int64)
        found = np.empty((len(numbers), len(numbers)))
        for row, number in enumerate(numbers.tolist()):
            found[row] = self.paths.latencies_from(number)[numbers]
        return found

    def _distances(self) -> Floats:
        """Seconds between hosts; `TopologyError` if a host cannot reach another."""
        apart = self.latencies()
        unreachable = np.argwhere(np.isinf(apart))
        if len(unreachable):
            one, other = (self.hosts[number] for number in unreachable[0])
            raise TopologyError(f"no path between the hosts '{one}' and '{other}'; add links, or choose other hosts")
        return apart

    def topology(self, pairs: Iterable[tuple[Node, Node]], *, root: Node | None = None) -> Topology:
        """The overlay with links between these pairs of hosts (names, or numbers among the hosts)."""
        numbers = {host: number for number, host in enumerate(self.hosts)}
        pairs = list(pairs)
        for end in (*(end for pair in pairs for end in pair), *([] if root is None else [root])):
            if end not in (numbers if isinstance(end, str) else range(len(self.hosts))):
                some = ", ".join(self.hosts[:5]) + ", …" * (len(self.hosts) > 5)
                raise TopologyError(
                    f"{end!r} is not a host; use the name of a host ({some}) or a number from 0 to {len(numbers) - 1}"
                )
        ends = [tuple(numbers[end] if isinstance(end, str) else int(end) for end in pair) for pair in pairs]
        bandwidth, latency = [], []
        for one, other in ends:
            links = self.lanes(self.hosts[one], self.hosts[other]) >> 1
            bandwidth.append(float(self.physical.bandwidth[links].min(initial=np.inf)))
            latency.append(float(self.physical.latency[links].sum()))
        top = None if root is None else numbers[root] if isinstance(root, str) else root
        return Topology(
            self.hosts, np.array(ends, np.int32), bandwidth=np.array(bandwidth), latency=np.array(latency), root=top
        )

    def mesh(self, degree: int = 4, *, root: Node | None = None) -> Topology:
        """An overlay with links from every host to its `degree` nearest hosts, and a minimal tree that connects all."""
        apart = self._distances()
        count = len(self.hosts)
        pairs = {(min(a, b), max(a, b)) for a, b in _minimal_tree(apart)}
        near = np.argsort(apart + np.diag(np.full(count, np.inf)), axis=1, kind="stable")[:, : min(degree, count - 1)]
        pairs |= {(min(a, b), max(a, b)) for a, row in enumerate(near.tolist()) for b in row}
        return self.topology(sorted(pairs), root=root)

    def tree(self, *, root: Node | None = None) -> Topology:
        """A minimal spanning tree of the hosts."""
        return self.topology(sorted(_minimal_tree(self._distances())), root=root)

    def below(self, ledger: Ledger) -> Ledger:
        """The traffic on the physical links, given the ledger of the overlay's links."""
        found = Ledger(self.physical)
        overlay = ledger.topology
        for kind in ledger.kinds:
            sums, counts = found._columns(kind)
            size, messages = ledger.bytes_of(kind), ledger.messages_of(kind)
            for lane in np.flatnonzero(size + messages).tolist():
                path = self.lanes(*overlay.lane_ends(lane))
                sums[path] += size[lane]
                counts[path] += messages[lane]
        return found


def _minimal_tree(apart: Floats) -> list[tuple[int, int]]:
    """Prim's algorithm on a matrix of finite distances; ties go to the smaller number."""
    count = len(apart)
    best, comes, left = apart[0].copy(), np.zeros(count, np.int64), np.ones(count, bool)
    left[0] = False
    found = []
    for _ in range(count - 1):
        new = int(np.argmin(np.where(left, best, np.inf)))
        found.append((int(comes[new]), new))
        left[new] = False
        nearer = apart[new] < best
        best[nearer], comes[nearer] = apart[new][nearer], new
    return found
