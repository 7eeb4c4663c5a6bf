"""Zones for the messages of standing joins: a content-addressable network for each group of filters, or query template.

The paper leaves open which nodes have which filters. Two placements are measured:

- By group (`can`). The select-join paper's cost model (appendix D) has a space per group of semijoins: its dimensions
  are the ranges on the base and the filtering table, and its zones are divided evenly among the group's subscriptions.
  So each kind of message has a space: semijoins between R and S that of the ranges on R and S, rows of a selection that
  of their own table, results of a join that of all its tables.
- By template (`can by template`). A node is responsible for a subset of the subscriptions (section 2.1): all filters of
  a subscription are at one node, the zone of its ranges on all tables of its query. So all schemes have the same zones.
  A message goes through the space of each template that has filters of its kind.

All spaces have the same nodes.

Invariant: the spaces in which a message is routed have all filters that can match it, each subscription's in one.
Cost: zones are made once for each placement and set of tables, and used by all schemes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from pathcast.joins import JoinServer
from pathcast.joins.schemes.reserved_message_attributes import FORM, TO
from pathcast.joins.schemes.semijoin_templates import Form
from pathcast.kernels import Int64s
from pathcast.messages import Message
from pathcast.network import ContentNetwork, Space, join_space, result_space
from pathcast.transmission import Topology
from pathcast_lab.workloads import DOMAIN, SELECTED, JoinBatch, JoinWorkload

from .analytic_traffic_counters import TrafficCount, TreeCounter, ZoneCounter
from .join_overlay import changes_of, points_of, turned, zoned
from .traffic_claims import BY_GROUP, BY_TEMPLATE, NETWORKS

TrafficCounts = dict[tuple[str, str], TrafficCount]
Tables = tuple[str, ...]
# The space of some tables' ranges, and the numbers of the messages that go there.
Spaces = dict[Tables, tuple[Space, frozenset[int]]]


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

    def own(self, subscriptions: Int64s) -> Int64s:
        """Of some subscriptions, by number from 0, those that have filters here."""
        here = np.zeros(len(subscriptions), np.bool_)
        for first, batch in self.batches:
            here |= (subscriptions >= first) & (subscriptions < first + len(batch))
        return subscriptions[here]

    def expect(self, *, filters: bool) -> None:
        """Tell the network's nodes the extents of all these filters, or that there are none."""
        space = self.counter.addresses.space
        points, numbers = [np.empty((0, space.dimensions), np.int64)], [np.empty(0, np.int64)]
        for first, batch in self.batches if filters else ():
            points.append(points_of(batch, space, self.columns))
            numbers.append(np.arange(first, first + len(batch)))
        self.counter.expect(np.concatenate(points), np.concatenate(numbers))


# The groups of each placement.
Placements = dict[str, list[Group]]


@dataclass
class GroupZones:
    """Networks over the same nodes, one for each placement and set of tables."""

    topology: Topology
    workload: JoinWorkload
    sample: int
    seed: int
    _made: dict[tuple[str, Tables], ContentNetwork] = field(default_factory=dict)

    def of(self, server: JoinServer, workload: JoinWorkload) -> Placements:
        """The groups of a server's subscriptions in each placement, ready to count its messages.

        Where both placements have the same spaces for the same subscriptions, they share their networks, too.
        """
        by_group, by_template = _spaces(server, workload), _template_spaces(server, workload)
        same = {tables: numbers for tables, (_, numbers) in by_group.items()} == {
            tables: numbers for tables, (_, numbers) in by_template.items()
        }
        found = {BY_GROUP: self._groups(BY_GROUP, by_group, server, workload)}
        found[BY_TEMPLATE] = found[BY_GROUP] if same else self._groups(BY_TEMPLATE, by_template, server, workload)
        return found

    def _groups(self, placement: str, spaces: Spaces, server: JoinServer, workload: JoinWorkload) -> list[Group]:
        root = self.topology.number(self.topology.root)
        found = []
        for tables, (space, numbers) in spaces.items():
            network = self._network(placement, tables)
            counter = ZoneCounter(turned(network, space), root)
            batches = tuple(
                (first, batch)
                for first, batch, mine in _numbered(server, workload)
                if (_tables(batch) == tables if placement == BY_TEMPLATE else mine & numbers)
            )
            found.append(Group(network, numbers, counter, _columns(tables), batches))
        return found

    def _network(self, placement: str, tables: Tables) -> ContentNetwork:
        if (placement, tables) not in self._made:
            columns = _columns(tables)
            batch = _together(self.workload, columns, self.sample, whole=placement == BY_TEMPLATE)
            self._made[placement, tables] = zoned(self.topology, None, batch, self.sample, self.seed, columns=columns)
        return self._made[placement, tables]


def _together(workload: JoinWorkload, columns: Tables, count: int, *, whole: bool) -> JoinBatch:
    """Ranges on some columns, of as many subscriptions of each batch that has them (`whole`: and no others)."""
    having = [
        batch
        for batch in workload.batches
        if (set(columns) == set(batch.ranges) if whole else set(columns) <= set(batch.ranges))
    ]
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


def _spaces(server: JoinServer, workload: JoinWorkload) -> Spaces:
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
        found[tables] = _result_space(tables, signature), frozenset({signature})
    return found


def _template_spaces(server: JoinServer, workload: JoinWorkload) -> Spaces:
    """For the tables of each query template: its readings of messages, and the numbers of these messages."""
    found: Spaces = {}
    first = 1
    for batch in workload.batches:
        subscription, tables = server.subscriptions[first], _tables(batch)
        if subscription.signature is not None:
            found[tables] = _result_space(tables, subscription.signature), frozenset({subscription.signature})
        else:
            found[tables] = join_space(subscription.forms, _bounds(tables)), frozenset(subscription.forms)
        first += len(batch)
    return found


def _result_space(tables: Tables, signature: int) -> Space:
    bounds = {f"{table}.{column}": ends for (table, column), ends in _bounds(tables).items()}
    return result_space(signature, bounds)


def _tables(batch: JoinBatch) -> Tables:
    """The tables of a batch's query template."""
    return tuple(sorted(batch.query.tables))


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


def groups_of(groups: list[Group], message: Message) -> list[Group]:
    """The groups whose zones a message passes; any group for a message to one subscriber, which is sent directly."""
    if TO in message:
        return groups[:1]
    return [group for group in groups if message[FORM] in group.numbers]


def count_traffic(
    server: JoinServer, workload: JoinWorkload, placements: Placements, tree: TreeCounter, insertions: int
) -> TrafficCounts:
    """Count the messages of a server's changes, by kind of network and of change."""
    found = {(kind, change): TrafficCount() for kind in NETWORKS for change in ("insert", "delete")}
    same = placements[BY_GROUP] is placements[BY_TEMPLATE]
    routed = {BY_GROUP: placements[BY_GROUP]} if same else placements
    for groups in routed.values():
        for group in groups:
            group.expect(filters=True)
    for change, messages in changes_of(server, workload, insertions):
        # With large payloads the wire forms of all messages together take too much memory: release each once counted.
        messages.reverse()
        while messages:
            message = messages.pop()
            recipients = tree.count(message, found["cbn", change])
            for kind, groups in routed.items():
                found[kind, change].messages += 1
                found[kind, change].server += message.size
                for group in groups_of(groups, message):
                    group.counter.count(message, found[kind, change], group.own(recipients))
        for kind in NETWORKS:
            found[kind, change].end_event()
    if same:
        found |= {(BY_TEMPLATE, change): found[BY_GROUP, change] for change in ("insert", "delete")}
    return found
