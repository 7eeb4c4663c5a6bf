"""Shortest paths in a topology, computed per source on demand, and cached up to a limit.

The paths of a source form a tree: for every node the last lane of its path, and the cost. The cache is bounded in
bytes; an evicted tree is computed again with the same result.

Cost: 5 ms per source at 20,000 nodes and 40,000 links; 16 bytes per node in the cache.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pathcast.errors import TopologyError
from pathcast.kernels import Floats, Int32s

from .shortest_paths_kernels import shortest_from

if TYPE_CHECKING:
    from .topology import Node, Topology


@dataclass(frozen=True)
class _Tree:
    lanes: Int32s
    cost: Floats
    hops: Int32s


class ShortestPaths:
    """Shortest `by` "latency" (then hops) or "hops" (then numbers of lanes). `kept` bounds the bytes of the cache."""

    def __init__(self, topology: "Topology", by: str = "latency", *, kept: int = 1 << 26) -> None:
        if by not in {"latency", "hops"}:
            raise TopologyError(f"by must be 'latency' or 'hops', got {by!r}")
        self.topology = topology
        self.by = by
        self._weights = topology.latency if by == "latency" else np.zeros(len(topology.ends))
        self._trees: OrderedDict[int, _Tree] = OrderedDict()
        self._most = max(1, kept // (16 * len(topology.nodes)))

    def lanes_from(self, source: "Node") -> Int32s:
        """For every node the last lane of the path from the source; -1 at the source and at unreachable nodes."""
        return self._tree(source).lanes

    def latencies_from(self, source: "Node") -> Floats:
        """The latency in seconds from the source to every node; infinite for unreachable nodes."""
        if self.by == "latency":
            return self._tree(source).cost
        tree = self._tree(source)
        found = np.full(len(tree.lanes), np.inf)
        found[self.topology.number(source)] = 0.0
        for node in np.argsort(tree.hops, kind="stable"):
            if (lane := tree.lanes[node]) >= 0:
                above = self.topology.ends[lane >> 1, lane & 1]
                found[node] = found[above] + self.topology.latency[lane >> 1]
        return found

    def hops_from(self, source: "Node") -> Int32s:
        """The number of links from the source to every node; -1 for unreachable nodes."""
        return self._tree(source).hops

    def lanes(self, source: "Node", target: "Node") -> list[int]:
        """The lanes of the path, in order; empty from a node to itself."""
        tree, ends = self._tree(source), self.topology.ends
        at, found = self.topology.number(target), []
        if tree.hops[at] < 0:
            raise TopologyError(
                f"no path from '{self.topology.name(source)}' to '{self.topology.nodes[at]}'; add links that "
                "connect them"
            )
        while (lane := int(tree.lanes[at])) >= 0:
            found.append(lane)
            at = int(ends[lane >> 1, lane & 1])
        return found[::-1]

    def path(self, source: "Node", target: "Node") -> list[str]:
        """The names of the nodes on the path, both ends included."""
        lanes = self.lanes(source, target)
        return [self.topology.name(source), *(self.topology.lane_ends(lane)[1] for lane in lanes)]

    def hops(self, source: "Node", target: "Node") -> int:
        """The number of links of the path."""
        return len(self.lanes(source, target))

    def time(self, source: "Node", target: "Node", size: float) -> float:
        """Seconds for `size` bytes with store-and-forward: each node receives all bytes before it sends them on."""
        links = np.array(self.lanes(source, target), np.int64) >> 1
        return float((self.topology.latency[links] + size / self.topology.bandwidth[links]).sum())

    def _tree(self, source: "Node") -> _Tree:
        number = self.topology.number(source)
        tree = self._trees.get(number)
        if tree is None:
            tree = self._trees[number] = self._worked_out(number)
            while len(self._trees) > self._most:
                self._trees.popitem(last=False)
        self._trees.move_to_end(number)
        return tree

    def _worked_out(self, source: int) -> _Tree:
        count = len(self.topology.nodes)
        offsets, others, lanes = self.topology.adjacency
        cost, hops, came = np.full(count, np.inf), np.full(count, -1, np.int32), np.full(count, -1, np.int32)
        heap, place = np.zeros(count, np.int32), np.full(count, -1, np.int32)
        shortest_from(offsets, others, lanes, self._weights, source, cost, hops, came, heap, place)
        for array in (cost, hops, came):
            array.setflags(write=False)
        return _Tree(came, cost, hops)
