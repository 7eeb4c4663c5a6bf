from pathcast_lab.harness import Rows, Run, find
from pathcast_lab.network.star_join_experiments import OURS, Mix, Star, network_fig13, network_fig14


def test_joins_of_several_tables_are_counted_in_zones_of_their_groups_as_networks_carry_them() -> None:
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
