"""The network side of the select-join paper's evaluation: counting is checked against networks that carry packets."""

from dataclasses import replace

import pytest

from pathcast_lab.harness import Rows, Run, find
from pathcast_lab.network.join_traffic_experiments import OURS, SMALL, traffic
from pathcast_lab.network.measure import UNICAST
from pathcast_lab.network.overlay import Cost
from pathcast_lab.network.payload_experiments import Payloads, payloads
from pathcast_lab.network.ratio_spread import times_interval
from pathcast_lab.network.star_join_experiments import Mix, Star, network_fig13, network_fig14

TINY = replace(
    SMALL, subscriptions=(300,), base_rows=(300,), joined_rows=(200,), insertions=4, unicast_events=2, result_events=3,
    hosts=12, physical=60, checked=40,
)  # fmt: skip


def test_rows_come_after_counts_were_checked_on_both_networks():
    run = Run(scale="small", seed=2)
    rows = list(traffic(run, TINY))
    assert {(row["network"], row["scheme"]) for row in rows} == {
        (network, scheme) for network in ("can", "cbn") for scheme in TINY.schemes
    }
    assert len(run.checks) == 2
    ours = next(row for row in rows if row["network"] == "cbn" and row["scheme"] == OURS)
    assert ours["times"] == ours["times_low"] == ours["times_high"] == pytest.approx(1.0)
    assert ours["last_hop"] >= ours["bytes"]
    for row in rows:
        assert row["events"] == (2 if row["scheme"] in UNICAST else 3 if row["scheme"] in ("ref-j", "ref-j+") else 4)
        assert row["bytes"] <= row["most"] <= row["events"] * row["bytes"]
    for each in find(["network-fig6", "network-fig9", "network-fig18", "network-fig19"]):
        for claim in each.claims:
            assert claim.judge_rows(Rows(rows)).measured


def test_a_ratio_of_means_is_told_with_how_far_rare_events_move_it():
    cost = Cost()
    for size in (5, 0, 7):
        cost.bytes += size
        cost.event_ends()
    assert (cost.each, cost.bytes) == ([5, 0, 7], 12)
    rare = [10] * 99 + [1_000]
    low, high = times_interval([100] * 100, rare)
    assert low < 100 / 19.9 < high == pytest.approx(10)
    assert times_interval([3 * size for size in rare], rare) == pytest.approx((3, 3))  # drawn together
    low, high = times_interval([3 * size for size in rare[:99]], rare)
    assert low < high == pytest.approx(3)
    assert times_interval([1, 2], [0, 0]) is None


def test_payloads_are_measured_with_and_without_repositories():
    run = Run(scale="small", seed=3)
    few = Payloads(
        subscriptions=40, base_rows=5, joined_rows=40, repositories=(0, 400), compared=("rel-sel",), insertions=24,
        warm=12, hosts=8, physical=40,
    )  # fmt: skip
    rows = list(payloads(run, few))
    assert [row["repository"] for row in rows] == [*2 * [None, 0, 400, 400, None], None]
    assert (rows[-1]["scheme"], rows[-1]["network"], rows[-1]["purging"]) == ("rel-sel", "CN", None)
    assert run.checks == {"bytes, hops and deliveries are those of a network in which filters are registered": 6}
    for plain, none, alone, many, unbounded in (rows[:5], rows[5:10]):
        assert (alone["network"], many["network"]) == ("CN* without homes", "CN*")
        assert plain["headers"] == plain["fetched_bytes"] == unbounded["fetched_bytes"] == 0
        assert none["purging"] == pytest.approx(none["bytes"] - unbounded["bytes"])
        assert none["purging"] >= many["purging"] >= 0
        assert all(row["less_stress"] <= row["most"] for row in (none, many, unbounded))
    for claim in (claim for one in find(["network-fig11", "network-fig12"]) for claim in one.claims):
        assert claim.judge_rows(Rows(rows)).measured


def test_joins_of_several_tables_are_counted_in_zones_of_their_groups_as_networks_carry_them():
    run = Run(scale="small", seed=3)
    star = Star(170, 200, 20, fact_payloads=(0,), insertions=8, hosts=8, physical=40, checked=6)
    rows = list(network_fig14(run, star))
    assert {row["scheme"] for row in rows} == {"rel-sel", "ref-j", "enum-j", OURS} and len(rows) == 2 * 8
    assert [row["width"] for row in rows] == [10_000] * 8 + [3_500] * 8
    for row in rows:
        assert row["served"] is None or row["scheme"] == "enum-j" or 0 < row["served"] <= row["hops"] + row["messages"]
    claim = find(["network-fig14"])[0].claims[0]
    assert claim.judge_rows(Rows(rows)).measured == claim.judge_rows(Rows(rows[:8])).measured
    mix = Mix(136, 3, alike=(1_000, 0), insertions=6, hosts=8, physical=40, checked=2)
    rows = list(network_fig13(run, mix))
    assert len(rows) == 2 * 14 and sum(bool(row["greedy"]) for row in rows) == 4
    for claim in find(["network-fig13"])[0].claims:
        assert claim.judge_rows(Rows(rows)).measured
    assert len(run.checks) == 2
