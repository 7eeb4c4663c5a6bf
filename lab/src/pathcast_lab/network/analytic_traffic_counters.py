"""Traffic of messages, counted from their recipients without simulation, on a tree and in zones.

`ContentNetwork` registers every filter and sends every packet, which takes too long for a million subscriptions. Two
facts give the same figures sooner:

- A content-based tree sends a message over a link if and only if a subscriber beyond the link matches it. For a message
  published at the root these are the links between the root and the nodes with a subscriber who matches.
- A message's route through zones depends on the extents of filters alone. The network's own nodes route it, hop by hop,
  given the extents of all subscriptions' ranges; no filter is registered.

A message to one subscriber (`enum-j`, `enum-sj`) goes directly from the server to the subscriber: one hop, which no
last hop from a node follows.

Invariant: hops, bytes and deliveries are those of `ContentNetwork` (compared in `traffic_count_simulation_checks.py`).
Cost: a look-up in one table of all filters; then a row of bits per node with a match, or a step per zone on the route.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from pathcast.joins.schemes.reserved_message_attributes import TO
from pathcast.kernels import Bools, Int32s, Int64s
from pathcast.messages import Message
from pathcast.network.content_addressable.can_membership import AddressSpace
from pathcast.network.content_addressable.filter_point_transformation import Probe
from pathcast.network.content_addressable.zone_boxes import Box, boxes_size
from pathcast.network.tree.filter_covering_index import FilterTable
from pathcast.transmission import Topology

Clips = tuple[Box, ...]


@dataclass
class TrafficCount:
    """Sums over messages.

    `server` counts the bytes of the messages that the server makes, `stress` the bytes that it sends over its links to
    other nodes and to single subscribers, `last_hop` the bytes from nodes to their subscribers, `served`
    the nodes of zones with subscribers who got a message; `each` has the bytes of every event, `each_last_hop` those of
    its last hops. A message to one subscriber goes past the nodes: it has no last hop of its own.
    """

    messages: int = 0
    hops: int = 0
    bytes: int = 0
    server: int = 0
    stress: int = 0
    last_hop: int = 0
    served: int = 0
    deliveries: int = 0
    delivery_hops: int = 0
    each: list[int] = field(default_factory=list)
    each_last_hop: list[int] = field(default_factory=list)

    @property
    def hop_latency(self) -> float:
        """Hops to a subscriber, on average."""
        return self.delivery_hops / self.deliveries if self.deliveries else 0.0

    def end_event(self) -> None:
        """End an event: everything since the last one belongs to it."""
        self.each.append(self.bytes - sum(self.each))
        self.each_last_hop.append(self.last_hop - sum(self.each_last_hop))


@dataclass
class TreeCounter:
    """Counts messages on a tree, given the node of each subscription's subscriber."""

    topology: Topology
    nodes: Int64s
    table: FilterTable
    _above: Bools = field(init=False, repr=False)
    _depth: Int32s = field(init=False, repr=False)
    _of_root: Bools = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rooted = self.topology.rooted()
        count = len(self.topology.nodes)
        self._depth, self._of_root = rooted.depth, rooted.depth == 1
        self._above = np.zeros((count, count), bool)
        for node in rooted.order.tolist()[1:]:
            self._above[node] = self._above[rooted.parent[node]]
            self._above[node, node] = True

    def count(self, message: Message, total: TrafficCount) -> Int64s:
        """Add one message; return the subscriptions that match, or none for a message to one subscriber."""
        size = message.size
        total.messages += 1
        total.server += size
        if TO in message:
            total.bytes += size
            total.stress += size
            total.hops += 1
            total.deliveries += 1
            total.delivery_hops += 1
            return np.empty(0, np.int64)
        found = matching(self.table, probe_of(message), len(self.nodes))
        there = np.bincount(self.nodes[found], minlength=len(self._depth))
        used = self._above[there > 0].any(axis=0)
        links = int(used.sum())
        total.hops += links
        total.stress += int((used & self._of_root).sum()) * size
        total.bytes += links * size
        total.last_hop += len(found) * size
        total.deliveries += len(found)
        total.delivery_hops += int(there @ self._depth)
        return found


@dataclass
class ZoneCounter:
    """Counts messages in the zones of a network, whose nodes route them."""

    addresses: AddressSpace
    root: int
    owners: Int64s = field(init=False, repr=False)

    def expect(self, points: Int64s, numbers: Int64s | None = None) -> None:
        """Let the nodes know the extents of filters at some points: those of the subscriptions with these numbers."""
        owners = self.addresses.telling.expect(points)
        places = np.arange(len(points)) if numbers is None else numbers
        self.owners = np.full(places.max(initial=-1) + 1, -1, np.int64)
        self.owners[places] = owners

    def route(self, probe: Probe) -> Iterator[tuple[int, Clips, list[tuple[int, Clips]]]]:
        """Follow a message: each node that gets a copy, the copy's clips, and the copies that the node sends on."""
        waiting = [(self.root, self.addresses.header(self.root, probe))]
        while waiting:
            node, clips = waiting.pop()
            further = self.addresses.nodes[node].step(probe, clips, None).forwards
            yield node, clips, further
            waiting += further

    def count(self, message: Message, total: TrafficCount, recipients: Int64s) -> None:
        """Add one message's way through these zones, in which it has to reach those of its recipients."""
        size = message.size
        if TO in message:
            total.hops += 1
            total.bytes += size
            total.stress += size
            return
        reached = np.zeros(len(self.addresses.nodes), bool)
        for node, _, further in self.route(probe_of(message)):
            reached[node] = True
            sent = sum(size + boxes_size(clips) for _, clips in further)
            total.hops += len(further)
            total.bytes += sent
            total.stress += sent if node == self.root else 0
        owners = self.owners[recipients]
        total.served += len(np.unique(owners))
        if (owners < 0).any() or not reached[owners].all():
            raise AssertionError(f"a message does not reach all zones of its {len(owners)} recipients")


def probe_of(message: Message) -> Probe:
    """The part of a message that filters test."""
    return Probe(message.bare() if message.payload else message)


def matching(table: FilterTable, probe: Probe, subscriptions: int) -> Int64s:
    """The numbers of the subscriptions one of whose filters matches, ascending."""
    found = np.zeros(subscriptions, bool)
    found[table.match(probe)[0]] = True
    return np.flatnonzero(found)
