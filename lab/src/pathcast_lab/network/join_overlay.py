"""The overlay of the select-join paper's evaluation (§6): hosts, subscribers at them, and networks of zones over them.

The overlay is a tree of shortest paths over hosts of an internet-like graph. All schemes use the same zones,
halved by the load of a sample of the subscriptions.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from pathcast.joins import JoinServer
from pathcast.joins.schemes.reserved_message_attributes import ARRIVE, DEPART, EXPOSE, KIND, TO, WITHDRAW
from pathcast.kernels import Floats, Int64s
from pathcast.messages import Filter, In, Interval, Message
from pathcast.network import Axis, ContentNetwork, PayloadLimits, Space, join_space, result_space
from pathcast.network.content_addressable.can_membership import AddressSpace
from pathcast.network.content_addressable.filter_point_transformation import Shaped, shape
from pathcast.network.tree.filter_covering_index import FilterTable
from pathcast.transmission import Topology, Underlay
from pathcast_lab.workloads import DOMAIN, JoinBatch, JoinWorkload

# The kinds of messages that an insertion into a table, and a deletion from it, can cause.
KINDS = frozenset({ARRIVE, DEPART, EXPOSE, WITHDRAW})
BOUNDS = {("R", "a"): (0.0, DOMAIN), ("S", "c"): (0.0, DOMAIN)}


def overlay(physical: int, hosts: int, seed: int) -> tuple[Topology, Underlay]:
    """A tree of shortest paths over hosts of an internet-like graph, each linked to the four nearest; and below."""
    graph = Topology.internet(physical, seed=seed)
    underlay = Underlay(graph, graph.sample(hosts, seed=seed))
    return underlay.mesh(4).spanning_tree(), underlay


def placed(count: int, topology: Topology, seed: int) -> Int64s:
    """The node of each subscription's subscriber, drawn evenly."""
    return np.random.default_rng((seed, 11)).integers(0, len(topology.nodes), count)


def changes_of(server: JoinServer, workload: JoinWorkload, insertions: int) -> Iterator[tuple[str, list[Message]]]:
    """Apply changes one by one: "insert" or "delete", and the messages of each."""
    for change in workload.changes[: 2 * insertions]:
        yield change[0], server.apply([change])


# Networks of zones.


def zoned(
    topology: Topology,
    underlay: Underlay | None,
    batch: JoinBatch,
    sample: int,
    seed: int,
    payloads: bool | PayloadLimits = False,
    columns: tuple[str, ...] = ("a", "c"),
) -> ContentNetwork:
    """A network whose zones are halved by the ranges of some subscriptions. `underlay` gives the time of hops."""
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
    """The space in which the filters of a scheme for R ⋈ S are the points of the subscriptions' ranges."""
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


# Filters of subscriptions.


def filters_of(server: JoinServer, id: int) -> list[Filter]:
    """The filters that a subscription registers for messages to many."""
    found = []
    for one in server.subscriptions[id].filters:
        equal = {term.attribute: term.interval.low for term in one.terms if isinstance(term, In) and single(term)}
        if TO not in equal and equal.get(KIND, ARRIVE) in KINDS:
            found.append(one)
    return found


def single(term: In) -> bool:
    """Whether a range holds a single value."""
    return term.interval == Interval.only(term.interval.low)


def filter_table(server: JoinServer, workload: JoinWorkload) -> FilterTable:
    """One table with the filters of all subscriptions; entries are their numbers from 0."""
    table = FilterTable()
    first = 0
    for batch in workload.batches:
        member = _distinct_member(batch)
        for one in filters_of(server, first + 1 + member):
            shaped = shape(one)
            table.add_rows(np.arange(first, first + len(batch)), shaped.signature, _columns(shaped, batch, member))
        first += len(batch)
    return table


def _distinct_member(batch: JoinBatch) -> int:
    """A member whose ends all differ: the coordinates of its filters show which end each comes from."""
    for member, row in enumerate(zip(*(end for pair in batch.ranges.values() for end in pair), strict=True)):
        if len(set(row)) == len(row) and all(row):
            return member
    raise ValueError("no subscription of the batch has range ends that are distinct and nonzero; add one")


def _columns(shaped: Shaped, batch: JoinBatch, member: int) -> Floats:
    """The points of a batch's filters, from the filter of one member."""
    ends: dict[float, Floats] = {}
    for low, high in batch.ranges.values():
        ends |= {float(low[member]): low, float(high[member]): high}
    found = []
    for at in shaped.point:
        array = ends[abs(at)]
        found.append(array if at >= 0 else -array)
    return np.stack(found, axis=1) if found else np.zeros((len(batch), 0))
