"""Counted traffic is simulated traffic, on small networks."""

from dataclasses import replace

import pytest

from pathcast_lab.network.analytic_traffic_counters import TrafficCount, TreeCounter
from pathcast_lab.network.filter_group_coordinate_spaces import GroupZones
from pathcast_lab.network.join_overlay import changes_of, filter_table, overlay, placed
from pathcast_lab.network.traffic_count_simulation_checks import compare
from pathcast_lab.workloads import ALIKE, STAR, JoinWorkload, binary_joins, mixed_joins, star_joins

APART = replace(ALIKE, alike=(9_000.0, 4_000.0))
BINARY = binary_joins(120, 8, seed=5, base_rows=60, joined_rows=150, payload=300, setting=APART)
STARS = star_joins(68, 6, seed=5, facts=60, dimension=12, setting=STAR)
MIX = mixed_joins(68, 6, seed=5, join_values=3, setting=ALIKE)


@pytest.mark.parametrize(
    ("workload", "scheme"),
    [
        (BINARY, "ref-sj-clu+"),
        (BINARY, "ref-sj-tup"),
        (BINARY, "ref-j+"),
        (BINARY, "rel-sel"),
        (STARS, "ref-sj-clu+"),
        (STARS, "ref-j"),
        (MIX, "rel-sel"),
    ],
    ids=["binary-clu+", "binary-tup", "binary-ref-j+", "binary-rel-sel", "star-clu+", "star-ref-j", "mix-rel-sel"],
)
def test_counted_hops_bytes_stress_and_deliveries_are_those_of_the_simulated_networks(
    workload: JoinWorkload, scheme: str
) -> None:
    topology, _ = overlay(120, 30, seed=5)
    zones = GroupZones(topology, workload, 48, seed=5)
    server = workload.server(scheme)
    tree = TreeCounter(topology, placed(len(workload), topology, seed=5), filter_table(server, workload))
    found = compare(workload, server, zones.of(server, workload), tree, insertions=8, per_change=20)
    several = workload is not BINARY or scheme == "rel-sel"
    assert found.keys() == {"can", "cbn"} | ({"can by template"} if several and scheme != "ref-j" else set())
    for network in found:
        counted, simulated = found[network]["counted"], found[network]["simulated"]
        assert counted == simulated
        assert all(figure > 0 for figure in counted)


def test_the_bytes_of_each_event_are_kept() -> None:
    total = TrafficCount()
    for size in (5, 0, 7):
        total.bytes += size
        total.end_event()
    assert (total.each, total.bytes) == ([5, 0, 7], 12)


def test_a_message_to_one_subscriber_is_counted_once_and_has_no_last_hop() -> None:
    topology, _ = overlay(400, 60, seed=5)
    nodes = placed(len(BINARY), topology, seed=5)
    for scheme, to_one in (("enum-sj", True), ("ref-sj-clu+", False)):
        server = BINARY.server(scheme)
        tree = TreeCounter(topology, nodes, filter_table(server, BINARY))
        total, sent = TrafficCount(), 0
        for _, messages in changes_of(server, BINARY, 8):
            for message in messages:
                tree.count(message, total)
                sent += message.size
            total.end_event()
        assert sum(total.each) == total.bytes > 0 and sum(total.each_last_hop) == total.last_hop
        if to_one:
            assert (total.bytes, total.stress, total.last_hop) == (sent, sent, 0)
        else:
            assert total.last_hop > 0 and total.stress < total.bytes
