from dataclasses import replace

import pytest

from pathcast_lab.harness import Rows, Run, find, number_in
from pathcast_lab.network.join_traffic import UNICAST, measure
from pathcast_lab.network.join_traffic_experiments import SMALL
from pathcast_lab.network.traffic_claims import OURS, STRAWMEN

TINY = replace(
    SMALL, subscriptions=(300,), base_rows=(300,), joined_rows=(200,), insertions=4, unicast_events=2, result_events=3,
    hosts=12, physical=60, checked=40,
)  # fmt: skip


def test_rows_come_after_counts_were_checked_on_both_networks() -> None:
    run = Run(scale="small", seed=2)
    rows = list(measure(run, TINY))
    assert {(row["network"], row["scheme"]) for row in rows} == {
        (network, scheme) for network in ("can", "can by template", "cbn") for scheme in TINY.schemes
    }
    assert len(run.checks) == 3
    ours = next(row for row in rows if row["network"] == "cbn" and row["scheme"] == OURS)
    assert ours["times"] == ours["times_low"] == ours["times_high"] == pytest.approx(1.0)
    assert number_in(ours, "last_hop") > number_in(ours, "bytes") and ours["last_hop_times"] == 1
    assert 0 < number_in(ours, "stress") <= number_in(ours, "bytes")
    for row in rows:
        assert row["events"] == (2 if row["scheme"] in UNICAST else 3 if row["scheme"] in ("ref-j", "ref-j+") else 4)
        events, size, most = (number_in(row, column) for column in ("events", "bytes", "most"))
        if row["scheme"] in UNICAST:
            assert row["last_hop"] == row["bytes"] == row["stress"]
        assert size <= most <= events * size
    for each in find(["network-fig6", "network-fig9", "network-fig18", "network-fig19"]):
        for claim in each.claims:
            assert claim.judge_rows(Rows(rows)).measured


def test_traffic_by_the_size_of_r_is_judged_for_small_and_for_large_r() -> None:
    (figure,) = find(["network-fig7"])
    rows = Rows(
        {"scheme": scheme, "network": "can", "base_rows": size, "bytes": figure}
        for scheme in (*STRAWMEN, OURS)
        for size, figure in ((200, 5 if scheme == OURS else 4), (1_000, 2), (1_001, 1 if scheme == OURS else 2))
    )
    large, small = (claim.judge_rows(rows) for claim in figure.claims[1:3])
    assert (large.verdict, small.verdict) == ("held", "not held")
    assert "at 200 rows of R" in small.measured and "1,001" not in small.measured
