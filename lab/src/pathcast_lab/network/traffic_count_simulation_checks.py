"""Counted traffic compared with simulated traffic: the same messages in networks that carry every packet.

`ContentNetwork` gets the filters of a few subscriptions and sends the messages of a few changes;
`analytic_traffic_counters.py` counts the same messages.

Invariant: the networks of the groups are as before afterwards, without filters.
Cost: some milliseconds per subscription that is registered, and per message.
"""

import numpy as np

from pathcast.joins import JoinServer
from pathcast.joins.schemes.reserved_message_attributes import FORM, TO
from pathcast.messages import Filter, In, Message
from pathcast.network import ContentNetwork
from pathcast_lab.harness import Run
from pathcast_lab.workloads import JoinWorkload

from .analytic_traffic_counters import TrafficCount, TreeCounter
from .filter_group_coordinate_spaces import Group, Placements, groups_of
from .join_overlay import changes_of, filters_of, single
from .traffic_claims import BY_GROUP, TREE

Figures = dict[str, dict[str, list[int]]]


def check_counts(
    run: Run,
    workload: JoinWorkload,
    server: JoinServer,
    placements: Placements,
    tree: TreeCounter,
    insertions: int,
    per_change: int | None = None,
) -> None:
    """Record that counted traffic is simulated traffic, or end the run."""
    for kind, figures in compare(workload, server, placements, tree, insertions, per_change).items():
        run.check_equal(
            f"counted hops, bytes, stress and deliveries are those of the simulated network ({kind})", figures
        )


def compare(
    workload: JoinWorkload,
    server: JoinServer,
    placements: Placements,
    tree: TreeCounter,
    insertions: int,
    per_change: int | None = None,
) -> Figures:
    """Hops, bytes, the server's bytes, deliveries and, on the tree, hops to subscribers, of the same messages counted
    and simulated.

    `per_change` bounds the messages of a change.
    """
    changed = [message for _, messages in changes_of(server, workload, insertions) for message in messages[:per_change]]
    published = [message for message in changed if TO not in message]
    found = {TREE: _on_tree(server, workload, tree, published)}
    for kind, groups in placements.items():
        if kind == BY_GROUP or groups is not placements[BY_GROUP]:
            found[kind] = _in_zones(server, workload, groups, tree, published)
    return found


def _on_tree(
    server: JoinServer, workload: JoinWorkload, tree: TreeCounter, published: list[Message]
) -> dict[str, list[int]]:
    links = TrafficCount()
    for message in published:
        tree.count(message, links)
    network = ContentNetwork.build(tree.topology)
    for id in range(1, len(workload) + 1):
        network.register_many((int(tree.nodes[id - 1]), one, id) for one in filters_of(server, id))
    return {
        "counted": [links.hops, links.bytes, links.stress, links.deliveries, links.delivery_hops],
        "simulated": _simulated([(network, message) for message in published]),
    }


def _in_zones(
    server: JoinServer, workload: JoinWorkload, groups: list[Group], tree: TreeCounter, published: list[Message]
) -> dict[str, list[int]]:
    for group in groups:
        group.expect(filters=True)
    zones, links = TrafficCount(), TrafficCount()
    routed = []
    for message in published:
        recipients = tree.count(message, links)
        for group in groups_of(groups, message):
            group.counter.count(message, zones, group.own(recipients))
            routed.append((group.network, message))
    registered = []
    for group in groups:
        group.expect(filters=False)
        for number in group.own(np.arange(len(workload))).tolist():
            mine = [one for one in filters_of(server, number + 1) if _number(one) in group.numbers]
            if mine:
                root = tree.topology.root
                registered += [(group.network, one) for one in group.network.register_together(root, mine, number + 1)]
    simulated = _simulated(routed)[:-1]
    for network, registration in registered:
        network.unregister(registration)
    return {"counted": [zones.hops, zones.bytes, zones.stress, links.deliveries], "simulated": simulated}


def _simulated(published: list[tuple[ContentNetwork, Message]]) -> list[int]:
    """Hops, bytes, the server's bytes, deliveries and hops to subscribers of messages, each in a network."""
    found = [0, 0, 0, 0, 0]
    for network, message in published:
        trace = network.publish(message)
        topology = network.topology
        stress = int(trace.traffic.sent()[topology.number(topology.root)])
        hops = sum(one.hops for one in trace.deliveries)
        figures = trace.hops, trace.bytes, stress, len(trace.deliveries), hops
        found = [one + other for one, other in zip(found, figures, strict=True)]
    return found


def _number(one: Filter) -> object:
    """The number of the form or signature that a filter asks for."""
    return next((t.interval.low for t in one.terms if isinstance(t, In) and t.attribute == FORM and single(t)), None)
