"""What messages cost in a content-addressable network, counted by routing alone.

The nodes of a network decide where a message goes, hop by hop; no filters stand there and nothing is timed: of filters,
the way depends on their extents alone, which nodes are given from the ranges of all subscriptions. Runs check that
against a network that filters are registered with, whose nodes tell each other, and that carries the packets.

All schemes use the same zones: those that halving by load gives for the ranges of a sample of the subscriptions.
Cost: a step a zone that meets the region.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from pathcast.joins import JoinServer
from pathcast.joins.schemes.message_attributes import TO
from pathcast.kernels import Int64s
from pathcast.messages import Filter, In, Interval, Message
from pathcast.network import Axis, ContentNetwork, PayloadLimits, Space, join_space, result_space
from pathcast.network.can.address_space import AddressSpace
from pathcast.network.can.filter_points import Probe
from pathcast.network.can.zones import boxes_size
from pathcast.transmission import Topology, Underlay
from pathcast_lab.workloads.join_workloads import DOMAIN, JoinBatch

from .overlay import Cost

BOUNDS = {("R", "a"): (0.0, DOMAIN), ("S", "c"): (0.0, DOMAIN)}


def zoned(
    topology: Topology,
    underlay: Underlay | None,
    batch: JoinBatch,
    sample: int,
    seed: int,
    payloads: bool | PayloadLimits = False,
    columns: tuple[str, ...] = ("a", "c"),
) -> ContentNetwork:
    """A network whose zones are halved by the ranges of some subscriptions. `underlay` tells how long hops take."""
    space = Space.of(*(Axis(column, 0.0, DOMAIN, required=True) for column in columns))
    ends = [(column, batch.ranges[column]) for column in columns]
    filters = [
        Filter(tuple(In(column, Interval(float(low[at]), float(high[at]))) for column, (low, high) in ends))
        for at in range(min(sample, len(batch)))
    ]
    return ContentNetwork.build(
        topology, "can", space=space, sample=filters, seed=seed, underlay=underlay, payloads=payloads
    )


def space_of(server: JoinServer) -> Space:
    """The space in which a scheme's filters are the points of the subscriptions' ranges."""
    subscription = server.subscriptions[1]
    if subscription.signature is not None:
        return result_space(
            subscription.signature, {f"{table}.{column}": ends for (table, column), ends in BOUNDS.items()}
        )
    return join_space(subscription.forms, BOUNDS)


def turned(network: ContentNetwork, space: Space) -> AddressSpace:
    """Let the nodes of a network read messages by another space of the same axes."""
    addresses = network.substrate
    assert isinstance(addresses, AddressSpace)
    addresses.space = space
    for node in addresses.nodes:
        node.space = space
    return addresses


def points_of(batch: JoinBatch, space: Space, columns: Iterable[str] | None = None) -> Int64s:
    """The points of subscriptions whose ranges on some columns, or on all, are the space's axes in their order."""
    ranges = [batch.ranges[name] for name in columns or batch.ranges]
    return np.stack([axis.places(end) for axis, ends in zip(space.axes, ranges, strict=True) for end in ends], axis=1)


@dataclass
class ZoneCounter:
    """Counts by letting the nodes route, without subscriptions and without a clock."""

    addresses: AddressSpace
    root: int
    _owners: Int64s = field(init=False, repr=False)

    def expect(self, points: Int64s, numbers: Int64s | None = None) -> None:
        """Let the nodes know the extents of filters at some points, those of the subscriptions with these numbers."""
        owners = self.addresses.telling.expect(points)
        places = np.arange(len(points)) if numbers is None else numbers
        self._owners = np.full(places.max(initial=-1) + 1, -1, np.int64)
        self._owners[places] = owners

    def count(self, message: Message, cost: Cost, recipients: Int64s) -> None:
        """Add what one message costs, which has to come to its recipients' zones; one to one alone goes straight."""
        size = message.size
        cost.messages += 1
        cost.server += size
        if TO in message:
            cost.hops += 1
            cost.bytes += size
            return
        probe = Probe(message.bare() if message.payload else message)
        waiting = [(self.root, self.addresses.header(self.root, probe))]
        reached = np.zeros(len(self.addresses.nodes), bool)
        while waiting:
            node, clips = waiting.pop()
            reached[node] = True
            further = self.addresses.nodes[node].step(probe, clips, None).forwards
            waiting += further
            cost.hops += len(further)
            cost.bytes += sum(size + boxes_size(parts) for _, parts in further)
        owners = self._owners[recipients]
        cost.served += len(np.unique(owners))
        if (owners < 0).any() or not reached[owners].all():
            raise AssertionError("a message does not come to all zones in which it has recipients")
