"""Overlay traffic of joins of up to four tables: a row per network, and per scheme or decomposition.

Traffic is counted for all subscriptions (`analytic_traffic_counters.py`), after simulated networks have given the same
figures for some of them (`traffic_count_simulation_checks.py`).
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import permutations
from typing import Any

from pathcast.joins import JoinServer
from pathcast.kernels import Int64s
from pathcast.transmission import Topology
from pathcast_lab.harness import Row, Run
from pathcast_lab.workloads import ALIKE, STAR, JoinWorkload, mixed_joins, star_joins

from .analytic_traffic_counters import TrafficCount, TreeCounter
from .filter_group_coordinate_spaces import GroupZones, TrafficCounts, count_traffic
from .join_overlay import filter_table, overlay, placed
from .star_join_traffic_experiments import RELAXED, Mix, Star
from .traffic_claims import NETWORKS, OURS, TREE
from .traffic_count_simulation_checks import check_counts
from .traffic_ratio_interval import times_interval

SCHEMES = (RELAXED, "ref-j", "enum-j", OURS)


def measure_star(run: Run, parameters: Star) -> Iterator[Row]:
    """A fact table and three dimensions, under all schemes."""
    topology, _ = overlay(parameters.physical, parameters.hosts, run.seed)
    first = parameters.widths[0]
    for width in parameters.widths:
        zones: GroupZones | None = None
        for fact_payload in parameters.fact_payloads if width == first else parameters.fact_payloads[:1]:
            setting = replace(STAR, width_c=(float(width), 0.15 * width))
            workload = star_joins(
                parameters.subscriptions,
                parameters.insertions,
                seed=run.seed,
                facts=parameters.facts,
                dimension=parameters.dimension,
                payload=parameters.payload,
                fact_payload=fact_payload,
                setting=setting,
            )
            nodes = placed(len(workload), topology, run.seed)
            # Subscriptions and zones do not depend on the payload.
            zones = zones or GroupZones(topology, workload, 4 * parameters.hosts, run.seed)
            found = {
                scheme: _counts(run, workload, scheme, zones, nodes, parameters, {})
                for scheme in run.steps(f"ranges of {width:,}, payload of facts {fact_payload}", SCHEMES)
            }
            for kind in NETWORKS:
                for scheme, counts in found.items():
                    row: Row = {"width": width, "fact_payload": fact_payload, "network": kind, "scheme": scheme}
                    yield {**row, **_row(counts, kind, parameters.insertions, found[OURS][kind, "insert"])}


def measure_mix(run: Run, parameters: Mix) -> Iterator[Row]:
    """Four tables, under all orders of S's neighbours."""
    topology, _ = overlay(parameters.physical, parameters.hosts, run.seed)
    for alike in parameters.alike:
        assert ALIKE.alike is not None
        setting = replace(ALIKE, alike=(ALIKE.alike[0], float(alike)) if alike else None)
        workload = mixed_joins(
            parameters.subscriptions,
            parameters.insertions,
            seed=run.seed,
            join_values=parameters.join_values,
            payload=parameters.payload,
            setting=setting,
        )
        yield from _decompositions(run, workload, topology, parameters, alike)


def _decompositions(run: Run, workload: JoinWorkload, topology: Topology, parameters: Mix, alike: int) -> Iterator[Row]:
    nodes = placed(len(workload), topology, run.seed)
    zones = GroupZones(topology, workload, 4 * parameters.hosts, run.seed)
    greedy = _greedy_order(workload)
    found = {}
    for order in run.steps(f"decompositions, rows {alike:,} apart", [None, *permutations("RTU")]):
        scheme = OURS if order else RELAXED
        options = {"filtered_by": {"S": order}} if order else {}
        found[order] = _counts(run, workload, scheme, zones, nodes, parameters, options)
    for kind in NETWORKS:
        least = found[greedy][kind, "insert"]
        for order, counts in found.items():
            name, scheme = (" ".join(order), OURS) if order else (RELAXED, RELAXED)
            row: Row = {"alike": alike, "order": name, "greedy": order == greedy, "network": kind, "scheme": scheme}
            yield {**row, **_row(counts, kind, parameters.insertions, least)}


def _greedy_order(workload: JoinWorkload) -> tuple[str, ...]:
    """S's neighbours by the model's cost of a semijoin of S with them."""
    server = JoinServer(workload.schema())
    server.apply(workload.rows)
    server.statistics.events = Counter(table for _, table, _ in workload.changes)
    costs = {edge.other("S"): server.statistics.cost("S", edge) for edge in server.schema.edges_of("S")}
    return tuple(sorted(costs, key=lambda name: costs[name]))


def _counts(
    run: Run,
    workload: JoinWorkload,
    scheme: str,
    zones: GroupZones,
    nodes: Int64s,
    parameters: Star | Mix,
    options: Mapping[str, Any],
) -> TrafficCounts:
    """Count a scheme's messages, after simulated networks have given the same for some subscriptions."""
    few = workload.first(parameters.checked)
    server = few.server(scheme, **options)
    tree = TreeCounter(zones.topology, nodes, filter_table(server, few))
    check_counts(run, few, server, zones.of(server, few), tree, min(10, parameters.insertions))
    server = workload.server(scheme, **options)
    tree = TreeCounter(zones.topology, nodes, filter_table(server, workload))
    return count_traffic(server, workload, zones.of(server, workload), tree, parameters.insertions)


def _row(counts: TrafficCounts, network: str, events: int, ours: TrafficCount) -> Row:
    inserted = counts[network, "insert"]
    low, high = times_interval(inserted.each, ours.each) or (None, None)
    return {
        "bytes": inserted.bytes / events,
        "hops": inserted.hops / events,
        "served": inserted.served / events if network != TREE else None,
        "messages": inserted.messages / events,
        "stress": inserted.stress / events,
        "server": inserted.server / events,
        "deletion_bytes": counts[network, "delete"].bytes / events,
        "times": inserted.bytes / ours.bytes if ours.bytes else None,
        "times_low": low,
        "times_high": high,
    }
