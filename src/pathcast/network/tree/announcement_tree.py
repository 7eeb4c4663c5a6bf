"""The tree of a content-based network: carries announcements from node to node until none are left.

A graph with cycles is reduced to the tree of shortest paths from its root. A node that publishes messages is a
*publisher*; filters are announced towards it (`forwarding_table_node.py`). A publisher can be added at any time.

Invariant: between calls no announcement is in transit.
Cost: each announced filter once per node on the way.
"""

from collections import deque
from collections.abc import Iterable, Sequence

from pathcast.transmission import Topology

from ..content_addressable.filter_point_transformation import Probe, Shaped
from ..content_addressable.zone_boxes import Box
from ..link_traffic import Traffic
from .forwarding_table_node import Announcement, ContentNode

_WITHDRAWAL = 8


class ContentTree:
    """All nodes of a content-based network, and their announcements."""

    def __init__(self, topology: Topology, traffic: Traffic) -> None:
        self.topology = topology if topology.is_tree else topology.spanning_tree()
        self.nodes: list[ContentNode] = [ContentNode(number) for number in range(len(topology.nodes))]
        self.traffic = traffic
        self.publishers: set[int] = set()
        self._sizes: dict[int, int] = {}

    def publish_from(self, node: int) -> tuple[Box, ...]:
        """Make a node a publisher, unless it is one; content-based messages need no header."""
        if node not in self.publishers:
            self.publishers.add(node)
            rooted = self.topology.rooted(node)
            for number in reversed(rooted.order.tolist()):
                if number != node:
                    self._spread(number, self.nodes[number].open(int(rooted.parent[number])))
        return ()

    def require(self, node: int) -> None:
        """Accept any node: every node is part of the tree."""

    def header(self, node: int, probe: Probe) -> tuple[Box, ...]:
        """The header of a message at its publisher."""
        return self.publish_from(node)

    def register(self, node: int, rows: Sequence[tuple[int, Shaped, int]], *, together: bool = False) -> None:
        """Add filters at a node: (filter, its shape, registration) each."""
        self._spread(node, self.nodes[node].register_many(rows))

    def unregister(self, node: int, wanted: int, shaped: Shaped, registration: int) -> None:
        """Remove a filter from a node."""
        self._spread(node, self.nodes[node].unregister(wanted, registration))
        self._sizes.pop(wanted, None)

    def _size(self, wanted: int, shaped: Shaped) -> int:
        """Bytes of a filter in an announcement, computed once."""
        if wanted not in self._sizes:
            self._sizes[wanted] = len(shaped.filter.encode())
        return self._sizes[wanted]

    def _spread(self, node: int, said: Iterable[Announcement]) -> None:
        waiting = deque((node, one) for one in said)
        while waiting:
            source, one = waiting.popleft()
            size = sum(self._size(*pair) for pair in one.added.items()) + _WITHDRAWAL * len(one.dropped)
            self.traffic.carry(source, one.target, size, "subscription")
            further = self.nodes[one.target].hear(source, one.added, one.dropped)
            waiting.extend((one.target, each) for each in further)
