import pytest

from pathcast_lab.harness import Rows, Run, find, number_in
from pathcast_lab.network.payload_traffic import measure
from pathcast_lab.network.payload_traffic_experiments import ALONE, PLAIN, STARRED, Payloads


def test_payloads_are_measured_with_and_without_repositories() -> None:
    run = Run(scale="small", seed=3)
    few = Payloads(
        subscriptions=40, base_rows=5, joined_rows=40, repositories=(0, 400), compared=("rel-sel",), insertions=24,
        warm=12, hosts=8, physical=40,
    )  # fmt: skip
    rows = list(measure(run, few))
    assert [row["repository"] for row in rows] == [*2 * [None, 0, 0, 400, 400, None], None]
    assert (rows[-1]["scheme"], rows[-1]["network"], rows[-1]["purging"]) == ("rel-sel", "CN", None)
    assert run.checks == {"bytes, hops and deliveries are those of a network in which filters are registered": 6}
    for plain, _, none, alone, many, unbounded in (rows[:6], rows[6:12]):
        assert (alone["network"], many["network"]) == ("CN* without homes", "CN*")
        assert plain["headers"] == plain["fetched_bytes"] == unbounded["fetched_bytes"] == 0
        assert none["purging"] == pytest.approx(number_in(none, "bytes") - number_in(unbounded, "bytes"))
        assert number_in(none, "purging") >= number_in(many, "purging") >= 0
        assert all(number_in(row, "less_stress") <= number_in(row, "most") for row in (none, many, unbounded))
    for claim in (claim for one in find(["network-fig11", "network-fig12"]) for claim in one.claims):
        assert claim.judge_rows(Rows(rows)).measured


def test_claims_are_judged_without_homes_and_with_them() -> None:
    def row(scheme: str, network: str, repository: int | None, latency: float) -> dict[str, object]:
        return {
            "scheme": scheme, "network": network, "repository": repository, "hop_latency": latency,
            "less": 0.5 if network == ALONE else 2, "less_stress": latency,
        }  # fmt: skip

    rows = Rows(
        row(scheme, network, repository, latency)
        for scheme in ("ref-sj-clu+", "ref-j+")
        for network, repository, latency in ((PLAIN, None, 10), (ALONE, 0, 10), (STARRED, 0, 10), (ALONE, 400, 13),
                                             (STARRED, 400, 11))
    )  # fmt: skip
    (figure,) = find(["network-fig11"])
    verdicts = {claim.statement: claim.judge_rows(rows).verdict for claim in figure.claims[:-1]}
    assert {statement: verdict == "held" for statement, verdict in verdicts.items() if "stress" not in statement} == {
        "a directory alone already has less traffic, without homes": False,
        "a directory alone already has less traffic, with homes": True,
        "hop latency grows by at most a fifth with 400 entries, without homes": False,
        "hop latency grows by at most a fifth with 400 entries, with homes": True,
    }
