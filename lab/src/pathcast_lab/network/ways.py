"""Messages whose ways are worked out once, carried packet by packet in several networks with and without payloads.

Where copies of a message go is decided by zones and the extents of filters, whatever nodes remember of payloads. So one
walk along the zones serves all networks that are compared; each CN* then carries the message with forwarders, soft
state, packets and a clock of its own; a plain CN sends it whole along every leg. Who gets a message is looked up in one
table of all filters, and delivered where the subscription's point lies, if the copy that comes there is for it.

Invariant: whoever matches a message stands in exactly one leg of its way. Runs hold all that is counted against a
network in which filters are registered.
Cost: a step a zone on the way; then some 20 µs a copy and network.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pathcast.joins import JoinServer
from pathcast.kernels import Int64s
from pathcast.messages import Message
from pathcast.network import ContentNetwork, PayloadLimits
from pathcast.network.can.filter_points import Probe
from pathcast.network.can.zones import Box, boxes_size
from pathcast.network.packet_transit import Distances, Transit
from pathcast.network.packets import Fetch, Letter, Publication, unit_size, units_of
from pathcast.network.payload_cache import PayloadCounts
from pathcast.network.payload_forwarder import Forwarder, Units
from pathcast.network.payload_homes import Homes
from pathcast.network.tree.content_node import Step
from pathcast_lab.workloads.join_workloads import JoinWorkload

from .overlay import Packets, filled
from .zones import points_of, space_of, turned


class Leg(tuple[Box, ...]):  # noqa: SLOT001 (a tuple's subclass can't have slots)
    """The clips of one copy, as its header, with what the node that it is for makes of them."""

    step: Step
    size: int


def _size(header: tuple[Box, ...]) -> int:
    assert isinstance(header, Leg)
    return header.size


@dataclass
class Way:
    """A message on its way: its first leg, and how many it is for."""

    letter: Letter
    units: Units
    first: Leg
    recipients: int


class Ways:
    """The ways of one scheme's messages through the zones of a network in which no filters stand."""

    def __init__(self, zones: ContentNetwork, server: JoinServer, workload: JoinWorkload) -> None:
        self.addresses = turned(zones, space_of(server))
        self.root = zones.topology.number(zones.topology.root)
        self.points = np.concatenate([points_of(batch, self.addresses.space) for batch in workload.batches])
        self._table = filled(server, workload)
        self._owners = self.addresses.telling.expect(self.points)
        self._units: Units = {}
        self._published = 0
        self.nodes = [
            OnTheWay(number in self._owners, set(node.neighbours)) for number, node in enumerate(self.addresses.nodes)
        ]

    def of(self, message: Message) -> Way:
        """The way of the next message."""
        units = {id: self._units.setdefault(id, unit) for id, unit in units_of(message).items()}
        letter = Letter.of(self._published, self.root, message, units)
        self._published += 1
        matching = np.unique(self._table.match(letter.probe)[0])
        first = self._leg(self.addresses.header(self.root, letter.probe))
        way, served = Way(letter, units, first, len(matching)), 0
        here = self._by_owner(matching)
        waiting = [(self.root, first)]
        while waiting:
            node, leg = waiting.pop()
            local = [one for one in here.get(node, ()) if any(tuple(self.points[one].tolist()) in box for box in leg)]
            served += len(local)
            further = self.addresses.nodes[node].step(letter.probe, leg, None).forwards
            legs = [(target, self._leg(clips)) for target, clips in further]
            leg.step = Step(local, list(legs))
            waiting += legs
        if served != len(matching):
            raise AssertionError(f"of {len(matching)} subscriptions that match a message its ways reach {served}")
        return way

    def _leg(self, clips: tuple[Box, ...]) -> Leg:
        leg = Leg(clips)
        leg.size = boxes_size(clips)
        return leg

    def _by_owner(self, matching: Int64s) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for one, owner in zip(matching.tolist(), self._owners[matching].tolist(), strict=True):
            found.setdefault(owner, []).append(one)
        return found


@dataclass
class OnTheWay:
    """A node's routing, which reads where a copy goes from its leg."""

    serves: bool
    outgoing: set[int]

    def step(self, probe: Probe, header: tuple[Box, ...], came: int | None) -> Step:
        """What was worked out."""
        assert isinstance(header, Leg)
        return header.step

    def reaches(self, target: int) -> bool:
        """Whether a node is a neighbour."""
        return target in self.outgoing


@dataclass
class Sums:
    """Bytes of all nodes, or of one: attributes that filters read and clips, payloads that were sent along, references
    to payloads, acknowledgements, and what was fetched with the asking.
    """

    bare: int = 0
    payload: int = 0
    references: int = 0
    acknowledged: int = 0
    fetched: int = 0

    @property
    def all(self) -> int:
        """All bytes."""
        return self.bare + self.payload + self.headers + self.fetched

    @property
    def headers(self) -> int:
        """What a network without payloads would not have to send, were nothing ever fetched."""
        return self.references + self.acknowledged


@dataclass
class Tally(Packets):
    """Sums over messages. `first`: payloads that a plain server's node sent over a link for the first time; `sent`:
    bytes by node.
    """

    everywhere: Sums = field(default_factory=Sums)
    server: Sums = field(default_factory=Sums)
    sent: list[int] = field(default_factory=list)
    first: int = 0

    @classmethod
    def of(cls, nodes: int) -> "Tally":
        """Of nothing."""
        return cls(sent=[0] * nodes)

    def busiest(self, root: int) -> int:
        """What the node that sends the most sends, if it is not the server's."""
        return max(size for node, size in enumerate(self.sent) if node != root)


class _Counting(Transit):
    """Packets in transit, told apart in a tally."""

    def __init__(self, distances: Distances, receive: Any, root: int) -> None:
        super().__init__(distances, receive)
        self.tally = Tally.of(len(distances.topology.nodes))
        self._root = root

    def send(self, source: int, target: int, packet: Any, size: int, kind: str) -> None:
        """Count and send."""
        if source != target:
            self._count(self.tally.everywhere, packet, size, kind)
            if source == self._root:
                self._count(self.tally.server, packet, size, kind)
            self.tally.hops += kind == "message"
            self.tally.sent[source] += size
        super().send(source, target, packet, size, kind)

    def _count(self, sums: Sums, packet: Any, size: int, kind: str) -> None:
        if kind == "message":
            carried = packet.carried_size
            references = packet.reference_size(self.distances.topology.nodes)
            sums.payload += carried
            sums.references += references
            sums.bare += size - carried - references
        elif kind == "control":
            sums.acknowledged += size
        else:
            sums.fetched += size


class PlainCarrier:
    """The network whose nodes know nothing of payloads: every leg has the whole message, which is added up."""

    def __init__(self, ways: Ways) -> None:
        self._root, self._nodes = ways.root, len(ways.nodes)
        self._over: set[tuple[int, bytes]] = set()
        self.counts: list[PayloadCounts] = []
        self.begin()

    def begin(self) -> None:
        """Count from now on."""
        self.tally = Tally.of(self._nodes)

    def carry(self, way: Way) -> None:
        """Add up a message's legs."""
        tally, units = self.tally, way.units
        size = sum(map(unit_size, units.values()))
        waiting = [(way.first, self._root, 0)]
        while waiting:
            leg, node, depth = waiting.pop()
            tally.arrived(len(leg.step.local), depth * len(leg.step.local))
            tally.hops += len(leg.step.forwards)
            for target, further in leg.step.forwards:
                assert isinstance(further, Leg)
                for sums in (tally.everywhere, tally.server) if node == self._root else (tally.everywhere,):
                    sums.bare += way.letter.bare_size + further.size
                    sums.payload += size
                tally.sent[node] += way.letter.bare_size + further.size + size
                if node == self._root:
                    tally.first += sum(unit_size(units[id]) for id in units if (target, id) not in self._over)
                    self._over.update((target, id) for id in units)
                waiting.append((further, target, depth + 1))


class Carrier:
    """One of the networks: its nodes keep payloads as limits say."""

    def __init__(self, ways: Ways, distances: Distances, limits: PayloadLimits) -> None:
        self._root = ways.root
        self._transit = _Counting(distances, self._receive, ways.root)
        self._units: Mapping[bytes, Message] = {}
        self._got = 0
        self.forwarders = [
            Forwarder(
                number,
                routing,
                self._transit,
                self._deliver,
                lambda letter: None,
                limits,
                starred_network=True,
                header_size=_size,
            )
            for number, routing in enumerate(ways.nodes)
        ]
        self._homes = Homes(range(len(ways.nodes)), limits)

    @property
    def tally(self) -> Tally:
        """What has been counted since the last `begin`."""
        return self._transit.tally

    def begin(self) -> None:
        """Count from now on."""
        self._transit.tally = Tally.of(len(self.forwarders))

    @property
    def counts(self) -> list[PayloadCounts]:
        """What became of payloads at the nodes that know of them."""
        return [one.payloads.counts for one in self.forwarders if one.payloads is not None]

    def carry(self, way: Way) -> None:
        """Carry a message until nothing is under way; all whom it is for have got it then."""
        self._units, self._got = way.units, 0
        first = Publication(way.letter, way.units, None, way.first, 0, (-1, 0, way.letter.number))
        self.forwarders[self._root].receive(None, first)
        self._transit.run()
        if self._got != way.recipients:
            raise AssertionError(f"{self._got} of {way.recipients} subscribers have got a message")

    def _receive(self, target: int, source: int, packet: object) -> None:
        if isinstance(packet, Fetch) and packet.server:
            whom, answer = self._homes.answer(packet, source, self._units.get(packet.payload), 0)
            self._transit.send(target, whom, answer, answer.size, "payload")
        else:
            self.forwarders[target].receive(source, packet)

    def _deliver(self, node: int, subscriptions: list[int], packet: Publication, units: Units) -> None:
        if units != self._units:
            raise AssertionError("a subscriber got another payload than was published")
        self._got += len(subscriptions)
        self.tally.arrived(len(subscriptions), len(subscriptions) * packet.hops)
