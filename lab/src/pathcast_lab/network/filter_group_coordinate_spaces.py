"""Zones for the messages of standing joins: a content-addressable network for each group of filters.

The select-join paper's cost model (appendix D) has a space per group of semijoins: its dimensions are the ranges on the
base and the filtering table, and its zones are divided evenly among the group's subscriptions. Here, too, each kind of
message has a space: semijoins between R and S that of the ranges on R and S, rows of a selection that of their own
table, results of a join that of all its tables. All spaces have the same nodes.

Invariant: a message is routed in one space, whose filters are all that can match it.
Cost: zones are made once for each set of tables, and used by all schemes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from pathcast.joins import JoinServer
from pathcast.joins.schemes.reserved_message_attributes import FORM, TO
from pathcast.joins.schemes.semijoin_templates import Form
from pathcast.messages import Message
from pathcast.network import ContentNetwork, Space, join_space, result_space
from pathcast.transmission import Topology
from pathcast_lab.workloads import DOMAIN, SELECTED, JoinBatch, JoinWorkload

from .analytic_traffic_counters import TrafficCount, TreeCounter, ZoneCounter
from .join_overlay import changes_of, points_of, turned, zoned
from .traffic_claims import NETWORKS

TrafficCounts = dict[tuple[str, str], TrafficCount]
Tables = tuple[str, ...]


@dataclass
class Group:
    """The network of some tables' ranges, the numbers of the forms or signatures whose messages go there, and the
    subscriptions that have filters there: the first of each batch, and the batch.
    """

    network: ContentNetwork
    numbers: frozenset[int]
    counter: ZoneCounter
    columns: Tables
    batches: tuple[tuple[int, JoinBatch], ...]

    def expect(self, *, filters: bool) -> None:
        """Tell the network's nodes the extents of all these filters, or that there are none."""
        space = self.counter.addresses.space
        points, numbers = [np.empty((0, space.dimensions), np.int64)], [np.empty(0, np.int64)]
        for first, batch in self.batches if filters else ():
            points.append(points_of(batch, space, self.columns))
            numbers.append(np.arange(first, first + len(batch)))
        self.counter.expect(np.concatenate(points), np.concatenate(numbers))


@dataclass
class GroupZones:
    """Networks over the same nodes, one for each set of tables that messages are about."""

    topology: Topology
    workload: JoinWorkload
    sample: int
    seed: int
    _made: dict[Tables, ContentNetwork] = field(default_factory=dict)

    def of(self, server: JoinServer, workload: JoinWorkload) -> list[Group]:
        """The groups of a server's subscriptions, ready to count its messages."""
        root = self.topology.number(self.topology.root)
        found = []
        for tables, (space, numbers) in _spaces(server, workload).items():
            network = self._network(tables)
            counter = ZoneCounter(turned(network, space), root)
            batches = tuple((first, batch) for first, batch, mine in _numbered(server, workload) if mine & numbers)
            found.append(Group(network, numbers, counter, _columns(tables), batches))
        return found

    def _network(self, tables: Tables) -> ContentNetwork:
        if tables not in self._made:
            columns = _columns(tables)
            batch = _together(self.workload, columns, self.sample)
            self._made[tables] = zoned(self.topology, None, batch, self.sample, self.seed, columns=columns)
        return self._made[tables]


def _together(workload: JoinWorkload, columns: Tables, count: int) -> JoinBatch:
    """Ranges on some columns, of as many subscriptions of each batch that has them."""
    having = [batch for batch in workload.batches if set(columns) <= set(batch.ranges)]
    parts = [batch.part(0, -(-count // len(having))) for batch in having]
    return JoinBatch(
        having[0].query,
        {
            name: (
                np.concatenate([part.ranges[name][0] for part in parts]),
                np.concatenate([part.ranges[name][1] for part in parts]),
            )
            for name in columns
        },
    )


def _spaces(server: JoinServer, workload: JoinWorkload) -> dict[Tables, tuple[Space, frozenset[int]]]:
    """For each set of tables that messages concern: their readings, and their numbers."""
    forms: dict[Tables, dict[int, Form]] = {}
    results: dict[Tables, int] = {}
    first = 1
    for batch in workload.batches:
        subscription = server.subscriptions[first]
        if subscription.signature is not None:
            results[tuple(sorted(subscription.query.tables))] = subscription.signature
        for number, form in subscription.forms.items():
            about = tuple(sorted({form.base, form.filtering or form.base}))
            forms.setdefault(about, {})[number] = form
        first += len(batch)
    found = {tables: (join_space(those, _bounds(tables)), frozenset(those)) for tables, those in forms.items()}
    for tables, signature in results.items():
        bounds = {f"{table}.{column}": ends for (table, column), ends in _bounds(tables).items()}
        found[tables] = result_space(signature, bounds), frozenset({signature})
    return found


def _numbered(server: JoinServer, workload: JoinWorkload) -> Iterator[tuple[int, JoinBatch, set[int]]]:
    """The batches of subscriptions, where they begin, and the numbers of their forms or of their signature."""
    first = 0
    for batch in workload.batches:
        one = server.subscriptions[first + 1]
        yield first, batch, {*one.forms} if one.signature is None else {*one.forms, one.signature}
        first += len(batch)


def _columns(tables: Tables) -> Tables:
    return tuple(SELECTED[table] for table in tables)


def _bounds(tables: Tables) -> dict[tuple[str, str], tuple[float, float]]:
    return {(table, SELECTED[table]): (0.0, DOMAIN) for table in tables}


def group_of(groups: list[Group], message: Message) -> Group:
    """The group whose zones a message passes; any group for a message to one subscriber, which is sent directly."""
    if TO in message:
        return groups[0]
    return next(group for group in groups if message[FORM] in group.numbers)


def count_traffic(
    server: JoinServer, workload: JoinWorkload, groups: list[Group], tree: TreeCounter, insertions: int
) -> TrafficCounts:
    """Count the messages of a server's changes, by kind of network and of change."""
    found = {(kind, change): TrafficCount() for kind in NETWORKS for change in ("insert", "delete")}
    for group in groups:
        group.expect(filters=True)
    for change, messages in changes_of(server, workload, insertions):
        # With large payloads the wire forms of all messages together take too much memory: release each once counted.
        messages.reverse()
        while messages:
            message = messages.pop()
            recipients = tree.count(message, found["cbn", change])
            group_of(groups, message).counter.count(message, found["can", change], recipients)
        for kind in NETWORKS:
            found[kind, change].end_event()
    return found
