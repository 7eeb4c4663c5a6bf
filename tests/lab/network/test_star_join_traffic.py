from pathcast_lab.harness import Rows, Run, find, number_in
from pathcast_lab.network.star_join_traffic_experiments import Mix, Star, network_fig13, network_fig14
from pathcast_lab.network.traffic_claims import OURS


def test_joins_of_several_tables_are_counted_in_zones_of_their_groups_as_networks_carry_them() -> None:
    run = Run(scale="small", seed=3)
    star = Star(170, 200, 20, fact_payloads=(0,), insertions=8, hosts=8, physical=40, checked=6)
    rows = list(network_fig14(run, star))
    assert {row["scheme"] for row in rows} == {"rel-sel", "ref-j", "enum-j", OURS} and len(rows) == 3 * 8
    assert [row["width"] for row in rows] == [10_000] * 12 + [3_500] * 12
    for row in rows:
        if row["served"] is not None and row["scheme"] != "enum-j":
            # The server's node serves a message without a hop, in the space of each template.
            spaces = 4 if row["network"] == "can by template" else 1
            assert 0 < number_in(row, "served") <= number_in(row, "hops") + spaces * number_in(row, "messages")
    claim = find(["network-fig14"])[0].claims[0]
    measured = claim.judge_rows(Rows(rows)).measured
    assert "width 10,000: " in measured and "width 3,500: " in measured
    mix = Mix(136, 3, alike=(1_000, 0), insertions=6, hosts=8, physical=40, checked=2)
    rows = list(network_fig13(run, mix))
    assert len(rows) == 2 * 21 and sum(bool(row["greedy"]) for row in rows) == 6
    for claim in find(["network-fig13"])[0].claims:
        assert claim.judge_rows(Rows(rows)).measured
    assert len(run.checks) == 3
