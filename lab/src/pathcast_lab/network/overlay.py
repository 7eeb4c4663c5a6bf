"""An overlay with subscribers, and what messages cost on it, counted: the network side of the select-join paper's §6.

A content-based network passes a message over a link if and only if somebody behind it wants it. So for a message that
is published at the root of a tree, the links are those between the root and the nodes with a subscriber who matches:
hops and bytes follow from who matches, without a packet being sent. Who matches is asked of one table of all filters
(`network.table`), filled from arrays. Runs check both against a network that is simulated packet by packet.

What is sent to one subscriber alone (`enum-j`, `enum-sj`) goes straight from the server to its node: one hop.
Cost: a message takes what its table takes, and a row of bits a node that has a match.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from pathcast.joins import JoinServer
from pathcast.joins.schemes.message_attributes import ARRIVE, DEPART, EXPOSE, KIND, TO, WITHDRAW
from pathcast.kernels import Bools, Floats, Int32s, Int64s
from pathcast.messages import Filter, In, Interval, Message
from pathcast.network.can.filter_points import Probe, Shaped, shape
from pathcast.network.tree.filter_table import FilterTable
from pathcast.transmission import Topology, Underlay
from pathcast_lab.workloads.join_workloads import JoinBatch, JoinWorkload

# What an insertion into a table, and a deletion from it, can be told as.
KINDS = frozenset({ARRIVE, DEPART, EXPOSE, WITHDRAW})


def overlay(physical: int, hosts: int, seed: int) -> tuple[Topology, Underlay]:
    """A tree of shortest paths over hosts of an internet-like graph, each linked to the four nearest; and below."""
    graph = Topology.internet(physical, seed=seed)
    underlay = Underlay(graph, graph.sample(hosts, seed=seed))
    return underlay.mesh(4).spanning_tree(), underlay


@dataclass
class Packets:
    """How many copies of messages went from node to node, and how far they had gone where subscribers got them."""

    hops: int = 0
    deliveries: int = 0
    delivery_hops: int = 0

    def arrived(self, subscribers: int, hops: int) -> None:
        """So many have got a message, with so many hops in all."""
        self.deliveries += subscribers
        self.delivery_hops += hops

    @property
    def hop_latency(self) -> float:
        """Hops to a subscriber, on average."""
        return self.delivery_hops / self.deliveries if self.deliveries else 0.0


@dataclass
class Cost(Packets):
    """Sums over messages. `server` is what the server hands out; `last_hop` what subscribers get from their nodes;
    `served` how many nodes of zones had subscribers that got one; `each` has the bytes of one event after the other.
    """

    messages: int = 0
    served: int = 0
    bytes: int = 0
    server: int = 0
    last_hop: int = 0
    each: list[int] = field(default_factory=list)
    _before: int = 0

    def event_ends(self) -> None:
        """All that was added since the last event is one more."""
        self.each.append(self.bytes - self._before)
        self._before = self.bytes


@dataclass
class Counter:
    """Counts what messages cost on a tree, given where each subscription's subscriber is."""

    topology: Topology
    nodes: Int64s
    table: FilterTable
    _above: Bools = field(init=False, repr=False)
    _depth: Int32s = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rooted = self.topology.rooted()
        count = len(self.topology.nodes)
        self._depth = rooted.depth
        self._above = np.zeros((count, count), bool)
        for node in rooted.order.tolist()[1:]:
            self._above[node] = self._above[rooted.parent[node]]
            self._above[node, node] = True

    def matching(self, message: Message) -> Int64s:
        """The subscriptions that a message is for."""
        wanted = np.zeros(len(self.nodes), bool)
        wanted[self.table.match(Probe(message.bare() if message.payload else message))[0]] = True
        return np.flatnonzero(wanted)

    def count(self, message: Message, cost: Cost) -> Int64s:
        """Add what one message costs; the subscriptions that it is for, but for one to one alone."""
        size = message.size
        cost.messages += 1
        if TO in message:
            cost.server += size
            cost.bytes += size
            cost.last_hop += size
            cost.hops += 1
            cost.arrived(1, 1)
            return np.empty(0, np.int64)
        found = self.matching(message)
        there = np.bincount(self.nodes[found], minlength=len(self._depth))
        links = int(self._above[there > 0].any(axis=0).sum())
        cost.server += size
        cost.hops += links
        cost.bytes += links * size
        cost.last_hop += len(found) * size
        cost.arrived(len(found), int(there @ self._depth))
        return found


def placed(count: int, topology: Topology, seed: int) -> Int64s:
    """The node of each subscription's subscriber, drawn evenly."""
    return np.random.default_rng((seed, 11)).integers(0, len(topology.nodes), count)


def filters_of(server: JoinServer, id: int, kinds: frozenset[str] = KINDS) -> list[Filter]:
    """What a subscription registers for messages that are for many, of some kinds."""
    found = []
    for one in server.subscriptions[id].filters:
        equal = {term.attribute: term.interval.low for term in one.terms if isinstance(term, In) and single(term)}
        if TO not in equal and equal.get(KIND, ARRIVE) in kinds:
            found.append(one)
    return found


def filled(server: JoinServer, workload: JoinWorkload) -> FilterTable:
    """One table with the filters of all subscriptions; entries are their numbers from 0."""
    table = FilterTable()
    first = 0
    for batch in workload.batches:
        member = _telling(batch)
        for one in filters_of(server, first + 1 + member):
            shaped = shape(one)
            table.add_rows(np.arange(first, first + len(batch)), shaped.signature, _columns(shaped, batch, member))
        first += len(batch)
    return table


def _telling(batch: JoinBatch) -> int:
    """A member whose ends all differ, so that each tells where it comes from."""
    for member, row in enumerate(zip(*(end for pair in batch.ranges.values() for end in pair), strict=True)):
        if len(set(row)) == len(row) and all(row):
            return member
    raise ValueError("no subscription of the batch has ends that all differ")


def _columns(shaped: Shaped, batch: JoinBatch, member: int) -> Floats:
    """The points of a batch's filters, from the filter of one member: its coordinates tell which end stands where."""
    ends: dict[float, Floats] = {}
    for low, high in batch.ranges.values():
        ends |= {float(low[member]): low, float(high[member]): high}
    found = []
    for at in shaped.point:
        array = ends[abs(at)]
        found.append(array if at >= 0 else -array)
    return np.stack(found, axis=1) if found else np.zeros((len(batch), 0))


def single(term: In) -> bool:
    """Whether a range holds one value alone."""
    return term.interval == Interval.only(term.interval.low)


def events(server: JoinServer, workload: JoinWorkload, count: int) -> Iterator[tuple[str, list[Message]]]:
    """Changes one by one, with their messages."""
    for change in workload.changes[: 2 * count]:
        yield change[0], server.apply([change])


def let_go(messages: list[Message]) -> Iterator[Message]:
    """One message after the other, each taken off the list: with large payloads their wire forms together are too
    much.
    """
    messages.reverse()
    while messages:
        yield messages.pop()


def subscriptions_of(workload: JoinWorkload, count: int) -> JoinWorkload:
    """The same with the first subscriptions of each batch alone."""
    batches = tuple(
        JoinBatch(batch.query, {name: (low[:count], high[:count]) for name, (low, high) in batch.ranges.items()})
        for batch in workload.batches
    )
    return JoinWorkload(workload.tables, workload.joins, batches, workload.rows, workload.changes)
