import pytest

from pathcast_lab.harness import Rows, Run, find, number_in
from pathcast_lab.network.payload_traffic import measure
from pathcast_lab.network.payload_traffic_experiments import Payloads


def test_payloads_are_measured_with_and_without_repositories() -> None:
    run = Run(scale="small", seed=3)
    few = Payloads(
        subscriptions=40, base_rows=5, joined_rows=40, repositories=(0, 400), compared=("rel-sel",), insertions=24,
        warm=12, hosts=8, physical=40,
    )  # fmt: skip
    rows = list(measure(run, few))
    assert [row["repository"] for row in rows] == [*2 * [None, 0, 400, 400, None], None]
    assert (rows[-1]["scheme"], rows[-1]["network"], rows[-1]["purging"]) == ("rel-sel", "CN", None)
    assert run.checks == {"bytes, hops and deliveries are those of a network in which filters are registered": 6}
    for plain, none, alone, many, unbounded in (rows[:5], rows[5:10]):
        assert (alone["network"], many["network"]) == ("CN* without homes", "CN*")
        assert plain["headers"] == plain["fetched_bytes"] == unbounded["fetched_bytes"] == 0
        assert none["purging"] == pytest.approx(number_in(none, "bytes") - number_in(unbounded, "bytes"))
        assert number_in(none, "purging") >= number_in(many, "purging") >= 0
        assert all(number_in(row, "less_stress") <= number_in(row, "most") for row in (none, many, unbounded))
    for claim in (claim for one in find(["network-fig11", "network-fig12"]) for claim in one.claims):
        assert claim.judge_rows(Rows(rows)).measured
