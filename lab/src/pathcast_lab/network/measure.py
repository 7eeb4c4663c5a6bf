"""What a scheme's messages cost on an overlay: as a tree, and as zones, of both tables' ranges or of one table's each.

Costs are counted from who matches and how nodes route (`overlay.py`, `zones.py`), for all
subscriptions; `checked` holds counts for some of them against networks that carry every packet.

Invariant: all schemes have the same subscriptions, changes, nodes and zones.
Cost: zones are made once for all workloads whose first subscriptions are the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from pathcast.kernels import Int64s
from pathcast.network import ContentNetwork
from pathcast.transmission import Topology
from pathcast_lab.harness.run import Run
from pathcast_lab.workloads.join_workloads import JoinWorkload

from .claims import OURS, STRAWMEN
from .filter_groups import GroupZones, carried, measured_in_groups
from .overlay import Cost, Counter, events, filled, filters_of, let_go, placed, subscriptions_of
from .zones import ZoneCounter, points_of, space_of, turned, zoned

SEMIJOINS = ("enum-sj", "ref-sj-sub", "ref-sj-tup", "ref-sj-clu", OURS)
UNICAST = ("enum-j", "enum-sj")
RESULTS = ("ref-j", "ref-j+")
# Rows of a selection have zones of their own table: in zones of both tables' ranges they would meet more of them.
SELECTIONS = "rel-sel"
NETWORKS = ("can", "cbn")
Costs = dict[tuple[str, str], Cost]


@dataclass(frozen=True)
class Setting:
    """What varies has several values; of a hundred insertions each has a join value of its own.

    `checked`: subscriptions of the network that is simulated packet by packet.
    `unicast_events` and `result_events` bound the insertions of schemes that send to each subscriber alone, and of
    those that send each result: that is far more, and far from what decides.
    `alike`: the deviation of c among rows of one join value (`workloads.joins.ALIKE`).
    """

    subscriptions: tuple[int, ...] = (20_000,)
    base_rows: tuple[int, ...] = (16_000,)
    joined_rows: tuple[int, ...] = (5_100,)
    payload: tuple[int, ...] = (100,)
    narrower: tuple[int, ...] = (0,)
    alike: tuple[int, ...] = (1_000,)
    schemes: tuple[str, ...] = (*STRAWMEN, *SEMIJOINS)
    insertions: int = 50
    unicast_events: int = 50
    result_events: int = 50
    physical: int = 10_000
    hosts: int = 500
    checked: int = 100


@dataclass
class World:
    """An overlay twice: as a tree with subscribers at random nodes, and as zones, of both tables or of one each."""

    topology: Topology
    nodes: Int64s
    zones: ContentNetwork
    own: GroupZones
    root: int


@dataclass
class Worlds:
    """Overlays for several workloads; zones are made once for those of which the first subscriptions are the same."""

    topology: Topology
    sample: int
    seed: int
    _made: dict[bytes, tuple[ContentNetwork, GroupZones]] = field(default_factory=dict)

    def of(self, workload: JoinWorkload) -> World:
        """A workload's own."""
        batch = workload.batches[0]
        key = b"".join(end[: self.sample].tobytes() for ends in batch.ranges.values() for end in ends)
        if key not in self._made:
            zones = zoned(self.topology, None, batch, self.sample, self.seed)
            self._made[key] = zones, GroupZones(self.topology, workload, self.sample, self.seed)
        nodes = placed(len(workload), self.topology, self.seed)
        return World(self.topology, nodes, *self._made[key], self.topology.number(self.topology.root))


def measured(workload: JoinWorkload, parameters: Setting, scheme: str, world: World) -> Costs:
    """What a scheme's messages cost, by kind of network and of change."""
    server = workload.server(scheme)
    counter = Counter(world.topology, world.nodes, filled(server, workload))
    if scheme == SELECTIONS:
        groups = world.own.of(server, workload)
        return measured_in_groups(server, workload, groups, counter, events_of(parameters, scheme))
    zones = ZoneCounter(turned(world.zones, space_of(server)), world.root)
    zones.expect(points_of(workload.batches[0], zones.addresses.space))
    costs = {(kind, change): Cost() for kind in NETWORKS for change in ("insert", "delete")}
    for change, messages in events(server, workload, events_of(parameters, scheme)):
        for message in let_go(messages):
            zones.count(message, costs["can", change], counter.count(message, costs["cbn", change]))
        for kind in NETWORKS:
            costs[kind, change].event_ends()
    return costs


def checked(run: Run, workload: JoinWorkload, parameters: Setting, scheme: str, world: World) -> None:
    """Hold the counted figures against networks that carry the messages."""
    few = subscriptions_of(workload, parameters.checked)
    server = few.server(scheme)
    counter = Counter(world.topology, world.nodes, filled(server, few))
    count, tree = min(12, parameters.insertions), ContentNetwork.build(world.topology)
    if scheme == SELECTIONS:
        _held(run, carried(few, server, world.own.of(server, few), tree, counter, count))
        return
    zones = ZoneCounter(turned(world.zones, space_of(server)), world.root)
    counted, sent = {kind: Cost() for kind in NETWORKS}, {kind: Cost() for kind in NETWORKS}
    zones.expect(points_of(few.batches[0], zones.addresses.space))
    published = [message for _, messages in events(server, few, count) for message in messages[:20]]
    for message in published:
        zones.count(message, counted["can"], counter.count(message, counted["cbn"]))
    counted["can"].deliveries = counted["cbn"].deliveries
    zones.expect(np.empty((0, zones.addresses.space.dimensions), np.int64))
    registered = []
    for id in range(1, len(few) + 1):
        node, mine = int(world.nodes[id - 1]), filters_of(server, id)
        tree.register_many((node, one, id) for one in mine)
        registered += world.zones.register_together(world.root, mine, id)
    for message in published:
        for kind, network in (("cbn", tree), ("can", world.zones)):
            trace = network.publish(message, world.root)
            sent[kind].hops += trace.hops
            sent[kind].bytes += trace.bytes
            sent[kind].deliveries += len(trace.deliveries)
    for one in registered:
        world.zones.unregister(one)
    both = {"counted": counted, "sent": sent}
    _held(run, {kind: {how: _sums(costs[kind]) for how, costs in both.items()} for kind in NETWORKS})


def _sums(cost: Cost) -> list[int]:
    return [cost.hops, cost.bytes, cost.deliveries]


def _held(run: Run, figures: Mapping[str, Mapping[str, list[int]]]) -> None:
    for kind, found in figures.items():
        run.check_equal(f"counted hops, bytes and deliveries are those of the simulated network ({kind})", found)


def events_of(parameters: Setting, scheme: str) -> int:
    """How many insertions a scheme is measured with."""
    bounds = {**dict.fromkeys(UNICAST, parameters.unicast_events), **dict.fromkeys(RESULTS, parameters.result_events)}
    return min(bounds.get(scheme, parameters.insertions), parameters.insertions)
