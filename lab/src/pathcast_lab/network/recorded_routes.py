"""Routes through zones that are computed once and replayed in several networks, with and without payloads.

Where copies of a message go depends on zones and on the extents of filters, not on what nodes remember of payloads. So
networks that differ in their payload limits share one route per message: `RecordedRoutes` is a substrate of
`ContentNetwork`, which simulates forwarding, soft state, packets and time in each of them. A message's recipients come
from one table of all filters; a recipient's registration has the subscription's number.

Invariant: each recipient of a message belongs to exactly one copy of its route.
Cost: a step per zone on the route, once; then a dictionary look-up per copy and network.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pathcast.joins import JoinServer
from pathcast.kernels import Int64s
from pathcast.messages import Filter, Message
from pathcast.network import ContentNetwork, PayloadLimits, Traffic
from pathcast.network.content_addressable.filter_point_transformation import Probe, Shaped
from pathcast.network.tree.forwarding_table_node import Step
from pathcast.transmission import Underlay
from pathcast_lab.workloads import JoinWorkload

from .analytic_traffic_counters import Clips, ZoneCounter, matching, probe_of
from .join_overlay import filter_table, points_of, space_of, turned


@dataclass
class Route:
    """A message's copies: what a node does with the copy of some clips. `header` has the clips of the first copy."""

    header: Clips = ()
    steps: dict[tuple[int, Clips], Step] = field(default_factory=dict)
    recipients: int = 0

    def copies(self) -> Iterator[tuple[int, int, Clips]]:
        """The sender, the receiver and the clips of each copy between nodes."""
        for (node, _), step in self.steps.items():
            for target, clips in step.forwards:
                yield node, target, clips


@dataclass
class RecordedNode:
    """One node's routing, as recorded."""

    number: int
    serves: bool
    outgoing: set[int]
    routes: "RecordedRoutes"

    def step(self, probe: Probe, header: Clips, came: int | None) -> Step:
        """The recorded step of a copy."""
        return self.routes.route.steps[self.number, header]

    def reaches(self, target: int) -> bool:
        """Whether a node is a neighbour."""
        return target in self.outgoing


class RecordedRoutes:
    """The routes of one scheme's messages through the zones of a network without filters."""

    def __init__(self, zones: ContentNetwork, server: JoinServer, workload: JoinWorkload) -> None:
        self.topology = zones.topology
        self.root = zones.topology.number(zones.topology.root)
        self._counter = ZoneCounter(turned(zones, space_of(server)), self.root)
        [batch] = workload.batches
        self._points = points_of(batch, self._counter.addresses.space)
        self._counter.expect(self._points)
        self._table = filter_table(server, workload)
        serving = set(self._counter.owners.tolist())
        self.route = Route()
        self.nodes = [
            RecordedNode(number, number in serving, set(node.neighbours), self)
            for number, node in enumerate(self._counter.addresses.nodes)
        ]

    def network(self, limits: PayloadLimits | None, underlay: Underlay) -> ContentNetwork:
        """A network in which messages take the recorded routes; `limits` make it a CN*."""
        found = ContentNetwork(self.topology, self, Traffic(self.topology), limits=limits, plain=(), underlay=underlay)
        found.register_many((self.root, Filter(()), number) for number in range(len(self._points)))
        return found

    def record(self, message: Message) -> Route:
        """Compute the route of a message; networks use it until the next one is recorded."""
        probe = probe_of(message)
        found = matching(self._table, probe, len(self._points))
        by_owner = self._by_owner(found)
        self.route = route = Route(recipients=len(found))
        served = 0
        for node, clips, further in self._counter.route(probe):
            local = [one for one, point in by_owner.get(node, ()) if any(point in box for box in clips)]
            served += len(local)
            route.header = route.header or clips
            route.steps[node, clips] = Step(local, further)
        if served != len(found):
            raise AssertionError(
                f"the route of a message reaches {served} of the {len(found)} subscriptions that match it"
            )
        return route

    def _by_owner(self, numbers: Int64s) -> dict[int, list[tuple[int, tuple[int, ...]]]]:
        found: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
        owners, points = self._counter.owners[numbers].tolist(), self._points[numbers].tolist()
        for number, owner, point in zip(numbers.tolist(), owners, points, strict=True):
            found.setdefault(owner, []).append((number, tuple(point)))
        return found

    # As a substrate.

    def require(self, node: int) -> None:
        """Every node is a member."""

    def header(self, node: int, probe: Probe) -> Clips:
        """The clips of the first copy."""
        return self.route.header

    def register(self, node: int, rows: Sequence[tuple[int, Shaped, int]], *, together: bool = False) -> None:
        """Do nothing: the routes have the recipients."""

    def unregister(self, node: int, wanted: int, shaped: Shaped, registration: int) -> None:
        """Do nothing."""
