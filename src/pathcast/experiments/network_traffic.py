"""Overlay traffic of the schemes for standing joins, as in the select-join paper's §6.1 and appendix J."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
import numpy.typing as npt

from ..network import ContentNetwork
from ..transmission import Topology
from ..workloads.joins import ALIKE, JoinWorkload, binary_joins, stock_joins
from .claim import Claim
from .network_claims import OURS, STRAWMEN, TARGET, TEN, below, falls, least, saves, selections, usually
from .network_groups import GroupZones, carried, measured_in_groups
from .network_overlay import Cost, Counter, events, filled, filters_of, overlay, placed, subscriptions_of
from .network_zones import ZoneCounter, points_of, space_of, turned, zoned
from .plot import Plot
from .registry import experiment
from .rows import Row
from .run import Run

SEMIJOINS = ("enum-sj", "ref-sj-sub", "ref-sj-tup", "ref-sj-clu", OURS)
UNICAST = ("enum-j", "enum-sj")
# Rows of a selection have zones of their own table: in zones of both tables' ranges they would meet more of them.
SELECTIONS = "rel-sel"
NETWORKS = ("can", "cbn")
Costs = dict[tuple[str, str], Cost]


@dataclass(frozen=True)
class Setting:
    """What varies has several values; of a hundred insertions each has a join value of its own.

    `checked`: subscriptions of the network that is simulated packet by packet.
    `unicast_events` bounds the events of schemes that send to each subscriber alone, whose cost an event is the same.
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
    unicast_events: int = 20
    physical: int = 10_000
    hosts: int = 500
    checked: int = 100


SMALL = Setting()
FEWER = ("enum-j", "rel-sel", "ref-j", "ref-j+", "enum-sj", "ref-sj-tup", OURS)
PAPER = Setting(
    subscriptions=(100_000,), insertions=300, unicast_events=20, physical=20_000, hosts=1_000, checked=1_000
)
_SHOW = {
    "subscriptions": "subscriptions",
    "base_rows": "R",
    "joined_rows": "S",
    "payload": "payload",
    "narrower": "narrower",
    "alike": "c of a join value",
    "network": "network",
    "scheme": "scheme",
    "bytes": "bytes an insertion",
    "hops": "hops",
    "server": "server's bytes",
    "last_hop": "with the last hop",
    "hop_latency": "hop latency",
    "deletion_bytes": "bytes a deletion",
    "times": f"times {OURS}",
}


def _plot(x: str, label: str, y: str = "bytes", y_label: str = "bytes an insertion") -> Plot:
    return Plot(y, f"{y_label} between nodes", y=y, y_label=y_label, series="scheme", x=x, x_label=label, ours=(OURS,),
                panel="network", log="xy")  # fmt: skip


@dataclass
class World:
    """An overlay twice: as a tree with subscribers at random nodes, and as zones, of both tables or of one each."""

    topology: Topology
    nodes: npt.NDArray[np.int64]
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
        return measured_in_groups(server, workload, groups, counter, _events(parameters, scheme))
    zones = ZoneCounter(turned(world.zones, space_of(server)), world.root)
    zones.expect(points_of(workload.batches[0], zones.addresses.space))
    costs = {(kind, change): Cost() for kind in NETWORKS for change in ("insert", "delete")}
    for change, messages in events(server, workload, _events(parameters, scheme)):
        for message in messages:
            zones.count(message, costs["can", change], counter.count(message, costs["cbn", change]))
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


def _events(parameters: Setting, scheme: str) -> int:
    return parameters.unicast_events if scheme in UNICAST else parameters.insertions


_VARIED = ("subscriptions", "base_rows", "joined_rows", "payload", "narrower", "alike")


def points(parameters: Setting) -> Iterator[dict[str, int]]:
    """Every combination of what varies."""
    for values in product(*(getattr(parameters, name) for name in _VARIED)):
        yield dict(zip(_VARIED, values, strict=True))


def traffic(
    run: Run, parameters: Setting, make: Callable[[dict[str, int]], JoinWorkload] | None = None
) -> Iterator[Row]:
    """Rows of a figure: a point, network and scheme each."""
    topology, _ = overlay(parameters.physical, parameters.hosts, run.seed)
    run.note("Unicast schemes are counted: a message is one hop, from the server to the subscriber's node.")
    worlds = Worlds(topology, 4 * parameters.hosts, run.seed)
    held: set[tuple[object, ...]] = set()
    for point in points(parameters):
        workload = (make or (lambda at: _binary(at, parameters.insertions, run.seed)))(point)
        world = worlds.of(workload)
        found = {}
        for scheme in run.steps(f"{point}", parameters.schemes):
            # More subscriptions have the same ones first, which are all that is simulated.
            same = scheme, *(value for name, value in point.items() if name != "subscriptions"), id(world.zones)
            if scheme not in UNICAST and same not in held:
                checked(run, workload, parameters, scheme, world)
                held.add(same)
            found[scheme] = measured(workload, parameters, scheme, world)
        for kind in NETWORKS:
            ours = found[OURS][kind, "insert"].bytes / parameters.insertions
            for scheme, costs in found.items():
                count = _events(parameters, scheme)
                yield {**point, "network": kind, "scheme": scheme, **_row(costs, kind, count, ours)}


def _row(costs: Costs, kind: str, count: int, ours: float) -> Row:
    cost, gone = costs[kind, "insert"], costs[kind, "delete"]
    # Who gets a message does not depend on the network.
    last_hop = cost.bytes + costs["cbn", "insert"].last_hop
    return {
        "messages": cost.messages / count,
        "bytes": cost.bytes / count,
        "hops": cost.hops / count,
        "server": cost.server / count,
        "last_hop": last_hop / count,
        "hop_latency": cost.hop_latency if kind == "cbn" else None,
        "deletion_bytes": gone.bytes / count,
        "times": cost.bytes / count / ours if ours else None,
    }


def _binary(point: dict[str, int], insertions: int, seed: int) -> JoinWorkload:
    assert ALIKE.alike is not None
    return binary_joins(
        point["subscriptions"],
        insertions,
        seed=seed,
        base_rows=point["base_rows"],
        joined_rows=point["joined_rows"],
        payload=point["payload"],
        narrower=float(point["narrower"]),
        setting=replace(ALIKE, alike=(ALIKE.alike[0], float(point["alike"]))),
    )


@experiment(
    "network-fig6",
    title="Select-joins, Figures 6, 17 and 20 and Table 3: traffic, hops and stress by the number of subscriptions",
    small=replace(SMALL, subscriptions=(5_000, 20_000)),
    paper=replace(PAPER, subscriptions=(100_000, 300_000, 1_000_000)),
    claims=(
        TEN,
        TARGET,
        Claim("Ref-SJ-Clu+ has the least traffic of all", "select-join paper, §6.1", least("bytes")),
        Claim(
            "semijoins take at least 10 times fewer hops than every strawman",
            "select-join paper, appendix J",
            below(10, "hops", STRAWMEN),
        ),
        Claim("Ref-SJ-Clu+ has the least stress at the server", "select-join paper, Table 3", least("server")),
        Claim(
            "with the last hop, Ref-SJ-Clu+ is still below every strawman",
            "select-join paper, appendix J",
            below(1, "last_hop", STRAWMEN),
        ),
    ),
    plots=(
        _plot("subscriptions", "subscriptions"),
        _plot("subscriptions", "subscriptions", "hops", "hops an insertion"),
        _plot("subscriptions", "subscriptions", "last_hop", "bytes with the last hop"),
    ),
    show=_SHOW,
)
def network_fig6(run: Run, parameters: Setting) -> Iterator[Row]:
    """The workload of §6.1 on a tree over hosts of an internet-like graph. Hops and bytes are counted from who matches,
    after a network that carries every packet has given the same figures for some of the subscriptions. All schemes have
    zones of both tables' ranges but Rel-Sel, whose rows have zones of their own table, where they meet fewer. Nodes of
    zones know the extents of the filters of all subscriptions, whichever the scheme.
    """
    yield from traffic(run, parameters)


@experiment(
    "network-fig7",
    title="Select-joins, Figure 7: traffic by the size of R",
    small=replace(SMALL, schemes=FEWER, subscriptions=(5_000,), base_rows=(200, 16_000)),
    paper=replace(PAPER, base_rows=(200, 500, 1_000, 4_000, 16_000, 64_000)),
    claims=(
        Claim("a smaller table costs Ref-SJ-Clu+ more", "select-join paper, §6.1", falls(OURS, "bytes")),
        Claim("… and still less than every strawman", "select-join paper, §6.1", below(1, "bytes", STRAWMEN)),
    ),
    plots=(_plot("base_rows", "rows of R"),),
    show=_SHOW,
)
def network_fig7(run: Run, parameters: Setting) -> Iterator[Row]:
    """As Figure 6, with R of several sizes: the smaller, the more S rows does an insertion expose."""
    yield from traffic(run, parameters)


@experiment(
    "network-fig9",
    title="Select-joins, Figure 9: traffic by the number of joining rows",
    small=replace(SMALL, schemes=FEWER, subscriptions=(5_000,), joined_rows=(500, 5_100)),
    paper=replace(PAPER, joined_rows=(500, 1_000, 2_500, 5_100, 10_000, 20_000), insertions=200),
    claims=(
        Claim("Ref-SJ-Clu+ is usually 10 times below the strawmen (we take: in more than half of the cases)",
              "select-join paper, §6.1", usually(10, "bytes", STRAWMEN)),
        Claim("Ref-J degrades with more joining rows", "select-join paper, §6.1",
              falls("ref-j", "bytes", rising=True)),
    ),
    plots=(_plot("joined_rows", "rows of S"),),
    show=_SHOW,
)  # fmt: skip
def network_fig9(run: Run, parameters: Setting) -> Iterator[Row]:
    """As Figure 6, with S of several sizes: a hundredth of it is the number of results an insertion (RJOR)."""
    yield from traffic(run, parameters)


@experiment(
    "network-fig10",
    title="Select-joins, Figure 10: traffic with stocks and ratings",
    small=replace(SMALL, subscriptions=(5_000,), base_rows=(10_000,), joined_rows=(2_300,)),
    paper=replace(PAPER, subscriptions=(100_000, 300_000, 1_000_000), base_rows=(10_000,), joined_rows=(2_300,)),
    claims=(TEN,),
    plots=(_plot("subscriptions", "subscriptions"),),
    show=_SHOW,
)
def network_fig10(run: Run, parameters: Setting) -> Iterator[Row]:
    """As Figure 6, with price-earnings ratios that walk from day to day and 2,300 ratings."""
    yield from traffic(
        run,
        parameters,
        lambda at: stock_joins(at["subscriptions"], parameters.insertions, seed=run.seed, setting=ALIKE),
    )


@experiment(
    "network-fig18",
    title="Select-joins, Figure 18: traffic by the size of payloads",
    small=replace(SMALL, schemes=FEWER, subscriptions=(5_000,), payload=(1, 10_000)),
    paper=replace(PAPER, payload=(1, 10, 100, 1_000, 10_000, 100_000), insertions=100),
    claims=(
        Claim(
            "Ref-SJ-Clu+ saves more traffic of every strawman with larger payloads",
            "select-join paper, appendix J",
            saves("bytes", STRAWMEN),
        ),
        Claim("… and has at least 10 times less with any", "ours", below(10, "bytes", STRAWMEN)),
    ),
    plots=(_plot("payload", "bytes of payload"),),
    show=_SHOW,
)
def network_fig18(run: Run, parameters: Setting) -> Iterator[Row]:
    """As Figure 6, with payloads of R and S rows from a byte up."""
    yield from traffic(run, parameters)


@experiment(
    "network-fig19",
    title="Select-joins, Figure 19: traffic by the overlap of subscriptions",
    small=replace(SMALL, schemes=FEWER, subscriptions=(5_000,), narrower=(0, 6_000)),
    paper=replace(PAPER, narrower=(0, 1_000, 2_000, 3_000, 4_000, 5_000, 6_000)),
    claims=(
        Claim("Rel-Sel has more traffic the more subscriptions overlap", "select-join paper, appendix J",
              falls("rel-sel", "bytes", rising=True)),
        Claim("… and Ref-SJ-Clu+ less", "select-join paper, appendix J", falls(OURS, "bytes")),
        Claim("Ref-SJ-Clu+ has at least 10 times less than every strawman with any", "ours",
              below(10, "bytes", STRAWMEN)),
    ),
    plots=(_plot("narrower", "taken off the deviations of centres"),),
    show=_SHOW,
)  # fmt: skip
def network_fig19(run: Run, parameters: Setting) -> Iterator[Row]:
    """As Figure 6, with centres of ranges drawn closer and closer."""
    yield from traffic(run, parameters)


@experiment(
    "network-selectivity",
    title="Standing joins: traffic by how much the join lets through",
    small=replace(
        SMALL, schemes=("rel-sel", "ref-j+", OURS), subscriptions=(5_000,), alike=(1_000, 3_000, 10_000, 30_000)
    ),
    paper=replace(PAPER, schemes=("rel-sel", "ref-j+", OURS), alike=(300, 1_000, 3_000, 10_000, 30_000)),
    claims=(
        Claim("the less the join lets through, the further selections fall behind, on a tree", "ours", selections),
        Claim("… and in zones", "ours", lambda rows: selections(rows, "can")),
    ),
    plots=(_plot("alike", "deviation of c among rows of a join value"),),
    show=_SHOW,
)
def network_selectivity(run: Run, parameters: Setting) -> Iterator[Row]:
    """As Figure 6, with rows of a join value that are more or less alike: what the paper's lost table decides.

    Selections (Rel-Sel) send an R row to all who select it, semijoins to those who also have a joining S row in their
    range. With some 50 S rows to a join value that lie anywhere, ranges hold one nearly always; then semijoins send
    what selections send, and a skyline. How far selections fall behind follows from that more than from the network.
    """
    yield from traffic(run, parameters)
