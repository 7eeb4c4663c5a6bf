"""A topology: named nodes, links between them, and the speed of each link. Stored as arrays, for 20,000 nodes and more.

A link joins two different nodes and is full-duplex: each direction has its full bandwidth. One direction of a link is a
*lane*: lane 2 i leads from the first end of link i to the second, lane 2 i + 1 back. Ledgers count per lane.

Invariant: a topology never changes; two nodes have at most one link; the root is one of the nodes.
Cost: 24 bytes per link and 8 for its entry at each end; `lane` searches the links of the node that has fewer.
"""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pathcast.errors import TopologyError
from pathcast.kernels import Floats, Int32s, Int64s

from . import topology_shapes as shapes
from .bandwidth_units import bandwidth as read_bandwidth
from .bandwidth_units import latency as read_latency
from .bandwidth_units import shown_bandwidth, shown_seconds
from .rooted_tree import RootedTree

if TYPE_CHECKING:
    from .shortest_paths import ShortestPaths

Node = str | int
Speed = str | float


@dataclass(frozen=True, slots=True)
class Link:
    """One link: its number, the names of its ends, bytes per second and seconds."""

    number: int
    ends: tuple[str, str]
    bandwidth: float
    latency: float

    def time(self, size: float) -> float:
        """Seconds that `size` bytes take to the other end, without queueing."""
        return self.latency + size / self.bandwidth

    def __str__(self) -> str:
        speed = f"{shown_bandwidth(self.bandwidth)}, {shown_seconds(self.latency)}"
        return f"{self.ends[0]} – {self.ends[1]} ({speed})"


class Topology:
    """Nodes and links. `ends` has a row of two node numbers per link; `bandwidth` and `latency` a number per link.

    >>> topology = pathcast.transmission.Topology.tree(levels=3, fanout=2, latency="10ms")
    >>> len(topology), topology.name(topology.root)
    (7, 'r1')
    """

    def __init__(
        self,
        nodes: Iterable[str],
        ends: npt.ArrayLike,
        *,
        bandwidth: Any = "10MB/s",
        latency: Any = "0ms",
        root: Node | None = None,
        places: Floats | None = None,
    ) -> None:
        self.nodes: tuple[str, ...] = tuple(nodes)
        if not self.nodes:
            raise TopologyError("the topology has no nodes; give at least one")
        self._numbers = {name: number for number, name in enumerate(self.nodes)}
        if len(self._numbers) != len(self.nodes):
            twice = next(name for number, name in enumerate(self.nodes) if self._numbers[name] != number)
            raise TopologyError(f"two nodes are named '{twice}'; rename one of them")
        self.ends = np.asarray(ends, np.int32).reshape(-1, 2)
        self.bandwidth = _speeds(bandwidth, len(self.ends), read_bandwidth)
        self.latency = _speeds(latency, len(self.ends), read_latency)
        self._check_links()
        self.root = self.nodes[self.number(root) if root is not None else 0]
        self.places = places
        for array in (self.ends, self.bandwidth, self.latency):
            array.setflags(write=False)

    @classmethod
    def tree(cls, levels: int, fanout: int = 2, *, bandwidth: Speed = "10MB/s", latency: Speed = "0ms") -> "Topology":
        """A complete tree, numbered level by level: r1 is the root; with fanout 2 the children of r3 are r6 and r7."""
        return cls(*shapes.tree(levels, fanout), bandwidth=bandwidth, latency=latency)

    @classmethod
    def chain(cls, nodes: int, *, bandwidth: Speed = "10MB/s", latency: Speed = "0ms") -> "Topology":
        """r1 – r2 – r3 …, the root first."""
        return cls(*shapes.chain(nodes), bandwidth=bandwidth, latency=latency)

    @classmethod
    def star(cls, nodes: int, *, bandwidth: Speed = "10MB/s", latency: Speed = "0ms") -> "Topology":
        """r1 in the middle, the others around it."""
        return cls(*shapes.star(nodes), bandwidth=bandwidth, latency=latency)

    @classmethod
    def random(
        cls, nodes: int, *, degree: float = 3.0, seed: int = 0, bandwidth: Speed = "10MB/s", latency: Speed = "0ms"
    ) -> "Topology":
        """A connected random graph in which a node has `degree` links on average; the seed determines it."""
        return cls(*shapes.random(nodes, degree, seed), bandwidth=bandwidth, latency=latency)

    @classmethod
    def internet(
        cls, nodes: int, *, seed: int = 0, bandwidth: Speed = "10MB/s", latency: Speed | None = None
    ) -> "Topology":
        """A connected graph on a plane, with few nodes of many links and many of few: see `topology_shapes.internet`.

        The default latency of a link depends on the distance of its ends: 1 ms and up to 40 ms across the plane.
        """
        names, ends, places = shapes.internet(nodes, seed)
        far = shapes.distances(places, ends) * 0.04 + 0.001
        return cls(names, ends, bandwidth=bandwidth, latency=far if latency is None else latency, places=places)

    @classmethod
    def from_graph(
        cls, graph: Any, *, bandwidth: Speed = "10MB/s", latency: Speed = "0ms", root: Any = None
    ) -> "Topology":
        """A networkx graph. A node's name is its `str`; edges may have attributes `bandwidth` and `latency`."""
        from .networkx_graphs import from_graph

        return from_graph(graph, bandwidth, latency, root)

    @classmethod
    def from_file(cls, file: str | PathLike[str]) -> "Topology":
        """A TOML file: see topology_file.py."""
        from .topology_file import read_topology

        return read_topology(file)

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        return f"Topology({len(self.nodes):,} nodes, {len(self.ends):,} links, root {self.root!r})"

    # Nodes and links by name or number.

    def number(self, node: Node) -> int:
        """The number of a node, from its name or its number."""
        if isinstance(node, str):
            found = self._numbers.get(node)
            if found is None:
                near = difflib.get_close_matches(node, self.nodes, n=1) if len(self.nodes) <= 10_000 else []
                advice = (
                    f"; did you mean '{near[0]}'?"
                    if near
                    else f"; the nodes are {', '.join(self.nodes[:5])}{', …' * (len(self.nodes) > 5)}"
                )
                raise TopologyError(f"unknown node '{node}'{advice}")
            return found
        if isinstance(node, bool) or not 0 <= node < len(self.nodes):
            raise TopologyError(f"node number must be from 0 to {len(self.nodes) - 1}, got {node}")
        return int(node)

    def name(self, node: Node) -> str:
        """The name of a node, from its name or its number."""
        return self.nodes[self.number(node)]

    def lane(self, source: Node, target: Node) -> int:
        """The lane from a node to its neighbour."""
        a, b = self.number(source), self.number(target)
        found = self._lane(a, b)
        if found < 0:
            near = self.neighbours(a)
            linked = f"only to {', '.join(near[:5])}{', …' * (len(near) > 5)}" if near else "to no other node"
            raise TopologyError(
                f"no link between '{self.nodes[a]}' and '{self.nodes[b]}'; '{self.nodes[a]}' is linked {linked}"
            )
        return found

    def linked(self, one: Node, other: Node) -> bool:
        """Whether a link joins two nodes."""
        return self._lane(self.number(one), self.number(other)) >= 0

    def link(self, one: Node, other: Node) -> Link:
        """The link between two neighbours."""
        return self.link_at(self.lane(one, other) >> 1)

    def link_at(self, number: int) -> Link:
        """A link by its number."""
        a, b = self.ends[number]
        ends = self.nodes[a], self.nodes[b]
        return Link(number, ends, float(self.bandwidth[number]), float(self.latency[number]))

    def lane_ends(self, lane: int) -> tuple[str, str]:
        """The names of the nodes that a lane leads from and to."""
        a, b = self.ends[lane >> 1]
        return (self.nodes[b], self.nodes[a]) if lane & 1 else (self.nodes[a], self.nodes[b])

    def neighbours(self, node: Node) -> list[str]:
        """The names of the neighbours of a node, in order of their numbers."""
        return [self.nodes[other] for other in self.lanes_of(self.number(node))[0]]

    def lanes_of(self, number: int) -> tuple[Int32s, Int32s]:
        """The neighbours of a node and the lanes that lead there, both as numbers, sorted by neighbour."""
        offsets, others, lanes = self.adjacency
        part = slice(offsets[number], offsets[number + 1])
        return others[part], lanes[part]

    def degree(self, node: Node) -> int:
        """The number of links of a node."""
        number = self.number(node)
        offsets = self.adjacency[0]
        return int(offsets[number + 1] - offsets[number])

    def time(self, source: Node, target: Node, size: float) -> float:
        """Seconds that `size` bytes take to a neighbour, without queueing: latency + size / bandwidth."""
        link = self.lane(source, target) >> 1
        return float(self.latency[link] + size / self.bandwidth[link])

    # Shape.

    @cached_property
    def adjacency(self) -> tuple[Int64s, Int32s, Int32s]:
        """Offsets by node into neighbours and lanes, which are sorted by neighbour for each node."""
        count = len(self.ends)
        sources = self.ends.reshape(-1)
        targets = self.ends[:, ::-1].reshape(-1)
        order = np.lexsort((targets, sources))
        offsets = np.zeros(len(self.nodes) + 1, np.int64)
        np.cumsum(np.bincount(sources, minlength=len(self.nodes)), out=offsets[1:])
        lanes = np.arange(2 * count, dtype=np.int32)
        return offsets, targets[order], lanes[order]

    @cached_property
    def components(self) -> Int32s:
        """For each node the smallest number of a node that is reachable from it."""
        found = np.full(len(self.nodes), -1, np.int32)
        offsets, others, _ = self.adjacency
        for start in range(len(self.nodes)):
            waiting = [start] if found[start] < 0 else []
            found[waiting] = start
            while waiting:
                number = waiting.pop()
                near = others[offsets[number] : offsets[number + 1]]
                fresh = near[found[near] < 0]
                found[fresh] = start
                waiting.extend(fresh.tolist())
        return found

    @property
    def is_connected(self) -> bool:
        """Whether every node is reachable from every other."""
        return not self.components.any()

    @property
    def is_tree(self) -> bool:
        """Whether the topology is connected and has no cycle."""
        return len(self.ends) == len(self.nodes) - 1 and self.is_connected

    def require_connected(self) -> None:
        """Raise `TopologyError` with the name of an unreachable node, if there is one."""
        apart = np.flatnonzero(self.components != self.components[self.number(self.root)])
        if len(apart):
            more = f" and {len(apart) - 1:,} more nodes" if len(apart) > 1 else ""
            raise TopologyError(
                f"'{self.nodes[apart[0]]}'{more} cannot be reached from '{self.root}'; add links that connect them"
            )

    def rooted(self, root: Node | None = None) -> RootedTree:
        """The tree with parents and children; `TopologyError` for a graph with a cycle, which the error names."""
        self.require_connected()
        return RootedTree.of(self, self.number(self.root if root is None else root))

    def spanning_tree(self, root: Node | None = None, *, by: str = "latency") -> "Topology":
        """The same nodes with only the links on shortest paths from the root (`by` latency or hops)."""
        self.require_connected()
        source = self.number(self.root if root is None else root)
        used = self.shortest_paths(by).lanes_from(source)
        links = np.sort(np.delete(used, source) >> 1)
        return Topology(
            self.nodes,
            self.ends[links],
            bandwidth=self.bandwidth[links],
            latency=self.latency[links],
            root=source,
            places=self.places,
        )

    def shortest_paths(self, by: str = "latency") -> "ShortestPaths":
        """Shortest paths from any node, computed on demand."""
        from .shortest_paths import ShortestPaths

        return ShortestPaths(self, by)

    def with_speed(self, *, bandwidth: Any = None, latency: Any = None) -> "Topology":
        """The same shape with other link speeds."""
        return Topology(
            self.nodes,
            self.ends,
            bandwidth=self.bandwidth if bandwidth is None else bandwidth,
            latency=self.latency if latency is None else latency,
            root=self.root,
            places=self.places,
        )

    def sample(self, count: int, *, seed: int = 0) -> list[str]:
        """A random sample of the nodes, in order of their numbers; the seed determines it."""
        if not 0 < count <= len(self.nodes):
            raise TopologyError(f"count must be from 1 to the number of nodes, {len(self.nodes):,}, got {count:,}")
        chosen = np.random.default_rng(seed).choice(len(self.nodes), count, replace=False)
        return [self.nodes[number] for number in np.sort(chosen)]

    def _lane(self, a: int, b: int) -> int:
        offsets, others, lanes = self.adjacency
        begin, end = int(offsets[a]), int(offsets[a + 1])
        at = begin + int(np.searchsorted(others[begin:end], b))
        return int(lanes[at]) if at < end and others[at] == b else -1

    def _check_links(self) -> None:
        ends, count = self.ends, len(self.nodes)
        outside = ends[(ends < 0) | (ends >= count)]
        if len(outside):
            raise TopologyError(f"a link ends at unknown node number {outside[0]}; give a number from 0 to {count - 1}")
        loops = np.flatnonzero(ends[:, 0] == ends[:, 1])
        if len(loops):
            raise TopologyError(f"'{self.nodes[ends[loops[0], 0]]}' has a link to itself; remove the link")
        keys = np.sort(ends.min(axis=1).astype(np.int64) * count + ends.max(axis=1)) if len(ends) else ends[:, 0]
        twice = np.flatnonzero(keys[1:] == keys[:-1])
        if len(twice):
            a, b = divmod(int(keys[twice[0]]), count)
            raise TopologyError(f"'{self.nodes[a]}' and '{self.nodes[b]}' are linked twice; remove one of the links")


def _speeds(value: Any, count: int, read: Any) -> Floats:
    """One speed for all links, or one per link."""
    if isinstance(value, np.ndarray) or (isinstance(value, Sequence) and not isinstance(value, str)):
        if len(value) != count:
            raise TopologyError(
                f"{read.__name__} has {len(value):,} values for {count:,} links; give one value per link, or one "
                "value for all links"
            )
        return np.array([read(one) for one in value], np.float64)
    return np.full(count, read(value), np.float64)
