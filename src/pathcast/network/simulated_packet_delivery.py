"""Delivery: packets between nodes, in the order of their arrival; faults on the way.

A packet takes latency + size / bandwidth; links carry any number of packets at once (`transmission.Simulation` models
queues, but knows only neighbours of a topology, and takes ten times as long per packet). Between nodes without an
overlay link, a packet takes the physical path of an `Underlay` or, without one, the shortest path of the topology.

Invariant: simultaneous events occur in the order in which they were caused, and random numbers are drawn in that order:
the same input gives the same run, including faults. Without faults, packets from a node to another arrive in the order
in which they were sent, as in a connection: a small packet waits for a large one before it.
Cost: a push and a pop on a heap per packet.
"""

import heapq
from collections.abc import Callable
from typing import Any

from pathcast.transmission import Topology, Underlay

from .fault_injection import Faults
from .link_traffic import Traffic

Receiver = Callable[[int, int, Any], None]


class Distances:
    """Latency and bandwidth between any two nodes; computed on demand and cached."""

    def __init__(self, topology: Topology, underlay: Underlay | None = None) -> None:
        self.topology = topology
        self.underlay = underlay
        self._paths = topology.shortest_paths()
        self._kept: dict[tuple[int, int], tuple[float, float]] = {}

    def between(self, source: int, target: int) -> tuple[float, float]:
        """Seconds, and bytes per second of the slowest link."""
        found = self._kept.get((source, target))
        if found is None:
            found = self._kept[source, target] = self._worked_out(source, target)
        return found

    def _worked_out(self, source: int, target: int) -> tuple[float, float]:
        topology = self.topology
        if topology.linked(source, target):
            links = [topology.lane(source, target) >> 1]
        elif self.underlay is not None:
            topology = self.underlay.physical
            links = (self.underlay.lanes(self.topology.nodes[source], self.topology.nodes[target]) >> 1).tolist()
        else:
            links = [lane >> 1 for lane in self._paths.lanes(source, target)]
        if not links:
            return 0.0, float("inf")
        return float(topology.latency[links].sum()), float(topology.bandwidth[links].min())


class Transit:
    """The packets in transit, and the current time."""

    def __init__(self, distances: Distances, receive: Receiver) -> None:
        self.distances = distances
        self.receive = receive
        self.now = 0.0
        self.faults: Faults | None = None
        self.traffic = Traffic(distances.topology)
        # Time, number, then an action, or None and a packet: its target, its source and the packet itself.
        self._events: list[tuple[float, int, Callable[[], None] | None, int, int, Any]] = []
        self._caused = 0
        # The arrival time of the last packet from a node to another: without faults no packet overtakes it.
        self._last: dict[tuple[int, int], float] = {}

    def send(self, source: int, target: int, packet: Any, size: int, kind: str) -> None:
        """Send a packet; a packet to the sender itself costs nothing and is never lost."""
        if source == target:
            self._arrive(self.now, target, source, packet)
            return
        self.traffic.carry(source, target, size, kind)
        latency, bandwidth = self.distances.between(source, target)
        wait = latency + size / bandwidth
        if self.faults is None:
            arrival, pair = self.now + wait, (source, target)
            if (last := self._last.get(pair, 0.0)) > arrival:
                arrival = last
            self._last[pair] = arrival
            self._arrive(arrival, target, source, packet)
            return
        for extra in self.faults.delays():
            self._arrive(self.now + wait + extra, target, source, packet)

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Schedule an action."""
        self._caused += 1
        heapq.heappush(self._events, (self.now + seconds, self._caused, action, 0, 0, None))

    def _arrive(self, time: float, target: int, source: int, packet: Any) -> None:
        self._caused += 1
        heapq.heappush(self._events, (time, self._caused, None, target, source, packet))

    def clear(self) -> None:
        """Discard all packets and actions."""
        self._events.clear()
        self._last.clear()

    def run(self) -> None:
        """Run until no packet is in transit and no action is pending."""
        events, receive = self._events, self.receive
        while events:
            self.now, _, action, target, source, packet = heapq.heappop(events)
            if action is None:
                receive(target, source, packet)
            else:
                action()
