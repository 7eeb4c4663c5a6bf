"""Counted traffic compared with simulated traffic: the same messages in networks that carry every packet.

`ContentNetwork` gets the filters of a few subscriptions and sends the messages of a few changes;
`analytic_traffic_counters.py` counts the same messages.

Invariant: the networks of the groups are as before afterwards, without filters.
Cost: some milliseconds per subscription that is registered, and per message.
"""

from pathcast.joins import JoinServer
from pathcast.joins.schemes.reserved_message_attributes import FORM, TO
from pathcast.messages import Filter, In
from pathcast.network import ContentNetwork
from pathcast_lab.harness import Run
from pathcast_lab.workloads import JoinWorkload

from .analytic_traffic_counters import TrafficCount, TreeCounter
from .filter_group_coordinate_spaces import Group, group_of
from .join_overlay import changes_of, filters_of, single
from .traffic_claims import NETWORKS

Figures = dict[str, dict[str, list[int]]]


def check_counts(
    run: Run,
    workload: JoinWorkload,
    server: JoinServer,
    groups: list[Group],
    tree: TreeCounter,
    insertions: int,
    per_change: int | None = None,
) -> None:
    """Record that counted traffic is simulated traffic, or end the run."""
    for kind, figures in compare(workload, server, groups, tree, insertions, per_change).items():
        run.check_equal(
            f"counted hops, bytes, stress and deliveries are those of the simulated network ({kind})", figures
        )


def compare(
    workload: JoinWorkload,
    server: JoinServer,
    groups: list[Group],
    tree: TreeCounter,
    insertions: int,
    per_change: int | None = None,
) -> Figures:
    """Hops, bytes, the server's bytes, deliveries and, on the tree, hops to subscribers, of the same messages counted
    and simulated.

    `per_change` bounds the messages of a change.
    """
    for group in groups:
        group.expect(filters=True)
    changed = [message for _, messages in changes_of(server, workload, insertions) for message in messages[:per_change]]
    published = [(group_of(groups, message), message) for message in changed if TO not in message]
    zones, links = TrafficCount(), TrafficCount()
    for group, message in published:
        group.counter.count(message, zones, tree.count(message, links))
    for group in groups:
        group.expect(filters=False)
    found: Figures = {
        "can": {"counted": [zones.hops, zones.bytes, zones.stress, links.deliveries], "simulated": [0, 0, 0, 0]},
        "cbn": {
            "counted": [links.hops, links.bytes, links.stress, links.deliveries, links.delivery_hops],
            "simulated": [0, 0, 0, 0, 0],
        },
    }
    network = ContentNetwork.build(tree.topology)
    root = tree.topology.root
    registered = []
    for id in range(1, len(workload) + 1):
        mine = filters_of(server, id)
        network.register_many((int(tree.nodes[id - 1]), one, id) for one in mine)
        for group in groups:
            ours = [one for one in mine if _number(one) in group.numbers]
            if ours:
                registered += [(group.network, one) for one in group.network.register_together(root, ours, id)]
    for group, message in published:
        for kind, simulation in zip(NETWORKS, (group.network, network), strict=True):
            trace = simulation.publish(message)
            hops = sum(one.hops for one in trace.deliveries)
            stress = int(trace.traffic.sent()[tree.topology.number(root)])
            figures = trace.hops, trace.bytes, stress, len(trace.deliveries), hops
            sums = found[kind]["simulated"]
            sums[:] = [one + other for one, other in zip(sums, figures, strict=False)]
    for simulation, one in registered:
        simulation.unregister(one)
    return found


def _number(one: Filter) -> object:
    """The number of the form or signature that a filter asks for."""
    return next((t.interval.low for t in one.terms if isinstance(t, In) and t.attribute == FORM and single(t)), None)
