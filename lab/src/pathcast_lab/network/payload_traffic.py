"""Traffic of payloads in a network of zones, simulated packet by packet: a row per scheme, network and repository size.

All networks of a scheme take the same routes (`recorded_routes.py`), after networks in which the filters of some
subscriptions are registered have given the same figures.

Invariant: every recipient gets each message once, with the payload that was published.
Cost: a message costs its route once, and some 20 µs per copy and network.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from pathcast.messages import Message
from pathcast.network import ContentNetwork, PayloadLimits, Traffic
from pathcast.network.content_addressable.zone_boxes import boxes_size
from pathcast.network.packets import unit_size, units_of
from pathcast.network.payload_cache_and_directory import PayloadCounts
from pathcast.transmission import Topology, Underlay
from pathcast_lab.harness import Row, Run
from pathcast_lab.workloads import ALIKE, JoinBatch, JoinWorkload, binary_joins

from .join_overlay import changes_of, filters_of, overlay, space_of, turned, zoned
from .payload_traffic_experiments import ALONE, PLAIN, STARRED, UNBOUNDED, Payloads
from .recorded_routes import RecordedRoutes, Route

Networks = dict[tuple[str, int | None], "PublishedTraffic"]


def measure(run: Run, parameters: Payloads) -> Iterator[Row]:
    """Rows: a scheme without and with a repository of some size each."""
    topology, underlay = overlay(parameters.physical, parameters.hosts, run.seed)
    workload = binary_joins(
        parameters.subscriptions,
        parameters.insertions,
        seed=run.seed,
        base_rows=parameters.base_rows,
        joined_rows=parameters.joined_rows,
        payload=parameters.payload,
        setting=ALIKE,
    )
    world = _World(topology, underlay, workload.batches[0], run.seed)
    zones = world.network(False)
    for scheme in (*parameters.schemes, *parameters.compared):
        for figures in compare(world, workload.first(parameters.checked), scheme):
            run.check_equal(
                "bytes, hops and deliveries are those of a network in which filters are registered", figures
            )
        server = workload.server(scheme)
        routes = RecordedRoutes(zones, server, workload)
        networks: Networks = {(PLAIN, None): PublishedTraffic(routes.network(None, underlay))}
        if scheme not in parameters.compared:
            networks |= _starred(routes, underlay, parameters.repositories)
        bare = BareBytes(routes.root)
        run.begin(scheme, 2 * parameters.insertions)
        for number, (_, messages) in enumerate(changes_of(server, workload, parameters.insertions)):
            if number == 2 * parameters.warm:
                bare.begin()
                for network in networks.values():
                    network.begin()
            for message in messages:
                route = routes.record(message)
                bare.add(message, route)
                for network in networks.values():
                    reached = network.publish(message)
                    if reached != route.recipients:
                        raise AssertionError(f"a message reached {reached} recipients, expected {route.recipients}")
            run.advance()
        yield from _rows(scheme, networks, bare, parameters.insertions - parameters.warm)


@dataclass
class PublishedTraffic:
    """The traffic of messages in one network since `begin`: bytes by pair of nodes, deliveries, hops to subscribers."""

    network: ContentNetwork
    traffic: Traffic = field(init=False)
    deliveries: int = field(init=False)
    delivery_hops: int = field(init=False)
    _sent_before: int = field(init=False)

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Count from now on."""
        self.traffic = Traffic(self.network.topology)
        self.deliveries = self.delivery_hops = 0
        self._sent_before = self._sent()

    def publish(self, message: Message) -> int:
        """Publish a message; return how many subscribers have got it."""
        trace = self.network.publish(message)
        self.traffic.add(trace.traffic)
        self.deliveries += len(trace.deliveries)
        self.delivery_hops += sum(one.hops for one in trace.deliveries)
        if any(one.message != message for one in trace.deliveries[-1:]):
            raise AssertionError("a subscriber received a message that differs from the published message")
        return len(trace.deliveries)

    @property
    def counts(self) -> list[PayloadCounts]:
        """The payload counts of all nodes since the network was built."""
        return [one.payloads.counts for one in self.network.forwarders if one.payloads is not None]

    def _sent(self) -> int:
        return sum(one.sent_bytes for one in self.counts)

    def carried(self, bare: int) -> int:
        """Bytes of payloads within messages, where messages without payloads have `bare` bytes."""
        return self._sent() - self._sent_before if self.counts else self.traffic.bytes("message") - bare

    def headers(self, bare: int) -> int:
        """Bytes that a network without references to payloads would not send, apart from fetched payloads."""
        return self.traffic.bytes("message") - bare - self.carried(bare) + self.traffic.bytes("control")

    @property
    def hop_latency(self) -> float:
        """Hops to a subscriber, on average."""
        return self.delivery_hops / self.deliveries if self.deliveries else 0.0

    def figures(self) -> list[int]:
        """All figures that do not depend on how routes are found."""
        sent, root = self.traffic, self.network.topology.number(self.network.topology.root)
        return [
            sent.bytes(),
            sent.bytes("payload"),
            sent.bytes("control"),
            int(sent.sent()[root]),
            sent.messages("message"),
            self.deliveries,
            self.delivery_hops,
        ]


@dataclass
class BareBytes:
    """Bytes of copies without payloads: all, and those of the server's node; and how many bytes of payloads the
    server's node would send over its links if each passed a link once.
    """

    root: int
    all: int = 0
    server: int = 0
    once: int = 0
    _passed: set[tuple[int, bytes]] = field(default_factory=set)

    def begin(self) -> None:
        """Count from now on."""
        self.all = self.server = self.once = 0

    def add(self, message: Message, route: Route) -> None:
        """Add a message's copies."""
        size = message.bare().size if message.payload else message.size
        units = {id: unit_size(unit) for id, unit in units_of(message).items()}
        for source, target, clips in route.copies():
            copy = size + boxes_size(clips)
            self.all += copy
            if source == self.root:
                self.server += copy
                self.once += sum(units[id] for id in units if (target, id) not in self._passed)
                self._passed.update((target, id) for id in units)


def _starred(routes: RecordedRoutes, underlay: Underlay, repositories: tuple[int, ...]) -> Networks:
    """The networks with payloads that are compared, by their names and the size of repositories."""
    found: dict[tuple[str, int | None], PayloadLimits] = {}
    for entries in repositories:
        for name in (ALONE, STARRED):
            limits = PayloadLimits(repository_entries=entries, repository_bytes=None, homes=name == STARRED)
            found[name, entries] = limits
    found[UNBOUNDED, None] = PayloadLimits(None, None, None)
    return {key: PublishedTraffic(routes.network(limits, underlay)) for key, limits in found.items()}


def _rows(scheme: str, networks: Networks, bare: BareBytes, pairs: int) -> Iterator[Row]:
    plain, unbounded = networks[PLAIN, None].traffic, networks.get((UNBOUNDED, None))
    for (name, repository), network in networks.items():
        sent, counts = network.traffic, network.counts
        by_node = sent.sent()
        yield {
            "scheme": scheme,
            "network": name,
            "repository": repository,
            "bytes": sent.bytes() / pairs,
            "payload": network.carried(bare.all) / pairs,
            "headers": network.headers(bare.all) / pairs,
            "fetched_bytes": sent.bytes("payload") / pairs,
            "server": int(by_node[bare.root]) / pairs,
            "busiest": max(size for node, size in enumerate(by_node.tolist()) if node != bare.root) / pairs,
            "hop_latency": network.hop_latency,
            "fetched": sum(one.fetched for one in counts),
            "evicted": sum(one.evicted for one in counts),
            "purging": (sent.bytes() - unbounded.traffic.bytes()) / pairs
            if unbounded is not None and name in (STARRED, ALONE)
            else None,
            "less": plain.bytes() / sent.bytes(),
            "less_stress": int(plain.sent()[bare.root]) / int(by_node[bare.root]),
            # The server's node sends at least each payload once over a link, and references that cost nothing.
            "most": int(plain.sent()[bare.root]) / (bare.server + bare.once),
        }


@dataclass(frozen=True)
class _World:
    """Builds networks with the same zones, which are halved by the ranges of a batch."""

    topology: Topology
    underlay: Underlay
    batch: JoinBatch
    seed: int

    def network(self, limits: bool | PayloadLimits) -> ContentNetwork:
        """A network without filters."""
        return zoned(self.topology, self.underlay, self.batch, 4 * len(self.topology.nodes), self.seed, limits)


def compare(world: _World, workload: JoinWorkload, scheme: str, insertions: int = 12) -> Iterator[dict[str, list[int]]]:
    """The figures of the same messages on recorded routes, and in networks in which filters are registered: without
    payload limits, and with few payloads per node.
    """
    server = workload.server(scheme)
    routes = RecordedRoutes(world.network(False), server, workload)
    pairs = []
    for limits in (None, PayloadLimits(repository_entries=5)):
        network = world.network(limits or False)
        turned(network, space_of(server))
        for id in range(1, len(workload) + 1):
            network.register_together(routes.root, filters_of(server, id), id)
        pairs.append((PublishedTraffic(routes.network(limits, world.underlay)), PublishedTraffic(network)))
    for _, messages in changes_of(server, workload, insertions):
        for message in messages[:20]:
            routes.record(message)
            for pair in pairs:
                for one in pair:
                    one.publish(message)
    for recorded, registered in pairs:
        yield {"recorded routes": recorded.figures(), "registered filters": registered.figures()}
