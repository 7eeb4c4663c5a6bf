"""Overlay traffic of standing joins between two tables: a row per point, network and scheme.

Traffic is counted for all subscriptions (`analytic_traffic_counters.py`), after simulated networks have given the same
figures for some of them (`traffic_count_simulation_checks.py`).

Invariant: all schemes have the same subscriptions, changes, nodes and zones.
Cost: zones are made once for all workloads whose first subscriptions are the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product

from pathcast.kernels import Int64s
from pathcast.transmission import Topology
from pathcast_lab.harness import Row, Run
from pathcast_lab.workloads import ALIKE, JoinWorkload, binary_joins, stock_joins

from .analytic_traffic_counters import TreeCounter
from .filter_group_coordinate_spaces import GroupZones, TrafficCounts, count_traffic
from .join_overlay import filter_table, overlay, placed
from .join_traffic_experiments import Setting
from .traffic_claims import NETWORKS, OURS
from .traffic_count_simulation_checks import check_counts
from .traffic_ratio_interval import times_interval

UNICAST = ("enum-j", "enum-sj")
RESULTS = ("ref-j", "ref-j+")
# Simulated messages of a change, at most: a scheme that sends each result has far more.
SIMULATED = 20
_VARIED = ("subscriptions", "base_rows", "joined_rows", "payload", "narrower", "alike")


def measure(run: Run, parameters: Setting, kind: str = "binary joins") -> Iterator[Row]:
    """Rows of a figure: a point, network and scheme each."""
    topology, _ = overlay(parameters.physical, parameters.hosts, run.seed)
    zones = _Zones(topology, 4 * parameters.hosts, run.seed)
    held: set[tuple[object, ...]] = set()
    for point in _points(parameters):
        workload = _workload(kind, point, parameters.insertions, run.seed)
        groups, nodes = zones.of(workload), placed(len(workload), topology, run.seed)
        found = {}
        for scheme in run.steps(f"{point}", parameters.schemes):
            # A larger workload begins with the same subscriptions, and only the first are simulated.
            same = scheme, *(value for name, value in point.items() if name != "subscriptions"), id(groups)
            if scheme not in UNICAST and same not in held:
                _check(run, workload, parameters, scheme, groups, nodes)
                held.add(same)
            server = workload.server(scheme)
            tree = TreeCounter(topology, nodes, filter_table(server, workload))
            insertions = _insertions(parameters, scheme)
            found[scheme] = count_traffic(server, workload, groups.of(server, workload), tree, insertions)
        for network in NETWORKS:
            for scheme, counts in found.items():
                yield {**point, "network": network, "scheme": scheme, **_row(counts, network, found[OURS])}


@dataclass
class _Zones:
    """Zones for several workloads, made once for those whose first subscriptions are the same."""

    topology: Topology
    sample: int
    seed: int
    _made: dict[bytes, GroupZones] = field(default_factory=dict)

    def of(self, workload: JoinWorkload) -> GroupZones:
        """The zones for a workload."""
        batch = workload.batches[0]
        key = b"".join(end[: self.sample].tobytes() for ends in batch.ranges.values() for end in ends)
        if key not in self._made:
            self._made[key] = GroupZones(self.topology, workload, self.sample, self.seed)
        return self._made[key]


def _points(parameters: Setting) -> Iterator[dict[str, int]]:
    """Every combination of the varied settings."""
    for values in product(*(getattr(parameters, name) for name in _VARIED)):
        yield dict(zip(_VARIED, values, strict=True))


def _workload(kind: str, point: dict[str, int], insertions: int, seed: int) -> JoinWorkload:
    if kind == "stock joins":
        return stock_joins(point["subscriptions"], insertions, seed=seed, setting=ALIKE)
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


def _check(
    run: Run, workload: JoinWorkload, parameters: Setting, scheme: str, zones: GroupZones, nodes: Int64s
) -> None:
    few = workload.first(parameters.checked)
    server = few.server(scheme)
    tree = TreeCounter(zones.topology, nodes, filter_table(server, few))
    check_counts(run, few, server, zones.of(server, few), tree, min(12, parameters.insertions), SIMULATED)


def _insertions(parameters: Setting, scheme: str) -> int:
    """The number of insertions that a scheme is measured with."""
    bounds = {**dict.fromkeys(UNICAST, parameters.unicast_events), **dict.fromkeys(RESULTS, parameters.result_events)}
    return min(bounds.get(scheme, parameters.insertions), parameters.insertions)


def _row(counts: TrafficCounts, network: str, ours: TrafficCounts) -> Row:
    inserted, deleted, of_ours = counts[network, "insert"], counts[network, "delete"], ours[network, "insert"]
    events, mean = len(inserted.each), of_ours.bytes / len(of_ours.each)
    low, high = times_interval(inserted.each, of_ours.each) or (None, None)
    last_hop, our_last_hop = _with_last_hop(counts, network, events), _with_last_hop(ours, network, events)
    return {
        "messages": inserted.messages / events,
        "bytes": inserted.bytes / events,
        "hops": inserted.hops / events,
        "stress": inserted.stress / events,
        "server": inserted.server / events,
        "last_hop": last_hop / events,
        "last_hop_times": last_hop / our_last_hop if our_last_hop else None,
        "hop_latency": inserted.hop_latency if network == "cbn" else None,
        "deletion_bytes": deleted.bytes / events,
        "events": events,
        "most": max(inserted.each),
        "times": inserted.bytes / events / mean if mean else None,
        "times_low": low,
        "times_high": high,
    }


def _with_last_hop(counts: TrafficCounts, network: str, events: int) -> int:
    """The bytes of the first insertions between nodes, and from nodes to subscribers.

    Who gets a message does not depend on the network, so the tree's counter alone counts last hops.
    """
    return sum(counts[network, "insert"].each[:events]) + sum(counts["cbn", "insert"].each_last_hop[:events])
