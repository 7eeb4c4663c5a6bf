"""The select-join experiments: rivals and schemes agree, what differs ends a run, and claims are judged by rows."""

from collections import Counter
from dataclasses import replace

import pytest

from pathcast_lab.harness import CheckError, Rows, Run, find, number_in, perform
from pathcast_lab.joins import join_server_claims as claims
from pathcast_lab.joins.join_rivals import Oracle, rivals_of
from pathcast_lab.joins.join_scheme_timing import Entrant, check_clients, check_results, mean_interval, race_changes
from pathcast_lab.workloads import JoinWorkload, binary_joins

TINY = ["seeds=1", "changes=6", "clients=1", "base_rows=320"]


def tiny() -> JoinWorkload:
    return binary_joins(200, 20, base_rows=300, joined_rows=400, seed=1)


def run() -> Run:
    return Run(scale="small", seed=0)


def test_rivals_find_the_results_that_enum_j_sends() -> None:
    workload, checked = tiny(), run()
    rivals = rivals_of(workload, queries=50, looped=100)
    check_results(checked, Entrant("enum-j", workload.server("enum-j")), rivals, workload.changes, 20)
    assert sum(checked.checks.values()) == 30
    # Of the first join value there are the most S tuples.
    whole, *samples = (rival.answer({"b": 0, "a": 25_000.0}) for rival in rivals)
    assert whole and sum(whole.values()) > len(whole)
    assert [sample.items() <= whole.items() for sample in samples] == [True, True]


def test_a_server_that_lacks_a_subscription_ends_the_run() -> None:
    workload = tiny()
    server = workload.server("enum-j")
    for id in range(1, 200, 2):
        server.unsubscribe(id)
    rivals = rivals_of(workload, queries=10, looped=10)
    with pytest.raises(CheckError, match="every rival finds"):
        check_results(run(), Entrant("enum-j", server), rivals, workload.changes, 20)


def test_a_client_with_other_rows_than_duckdb_ends_the_run() -> None:
    workload = tiny()
    entrants = [Entrant(scheme, workload.server(scheme)) for scheme in ("ref-sj-clu+", "enum-sj")]
    check_clients(run(), workload, entrants, changes=6, clients=2)
    # Servers at different places of the stream are checked, too.
    entrants[0].step(workload.changes)
    check_clients(run(), workload, entrants, changes=2, clients=2)
    other = replace(workload, rows=workload.rows[50:])
    with pytest.raises(CheckError, match="the rows that DuckDB gives"):
        check_clients(run(), other, entrants[:1], changes=2, clients=2)


def test_the_oracle_has_the_tables_after_some_changes() -> None:
    workload = tiny()
    server = workload.server("rel-sel")
    for change in workload.changes[:7]:
        server.apply([change])
    oracle = Oracle(workload, 7)
    everything = replace(workload.batches[0], query=replace(workload.batches[0].query, tables=("R",)), ranges={})
    everything = replace(everything, ranges={"a": workload.batches[0].ranges["a"]})
    everything.ranges["a"][0][0], everything.ranges["a"][1][0] = 0, 100_000
    assert oracle.rows(everything, 0, ("b", "a", "r")) == Counter(server.bags["R"].rows.values())
    oracle.close()


def test_a_slow_server_stops_at_its_seconds_and_pairs_stay_whole() -> None:
    workload = tiny()
    entrants = [Entrant(scheme, workload.server(scheme)) for scheme in ("ref-sj-clu+", "ref-j")]
    tallies = race_changes(entrants, workload.changes, 40, 0.0)
    assert [tally.changes for tally in tallies.values()] == [Counter(insert=3, delete=3)] * 2
    tallies = race_changes(entrants, workload.changes, 9, float("inf"))
    assert all(tally.changes.total() == 9 and (tally.us("insert") or 0) > 0 for tally in tallies.values())
    clu = tallies["ref-sj-clu+"]
    assert 0 < clu.skylines <= 5 and clu.points >= clu.skylines and 0 < clu.description < clu.bytes
    assert tallies["ref-j"].skylines == 0 and tallies["ref-j"].messages > clu.messages


def test_a_mean_has_an_interval_by_student() -> None:
    assert mean_interval([5.0]) == (5.0, 5.0, 5.0)
    mean, low, high = mean_interval([1.0, 2.0, 3.0])
    assert mean == 2 and high - mean == mean - low == pytest.approx(4.303 / 3**0.5)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("joins-fig5", [*TINY, "subscriptions=100,400", "rjor=5", "queries=20", "looped=50", "memory=false"]),
        ("joins-fig8", [*TINY, "subscriptions=200", "rjor=1,5", "queries=20", "looped=50"]),
        ("joins-table4", [*TINY, "subscriptions=100,300", "rjor=10"]),
    ],
)
def test_a_figure_checks_answers_and_judges_every_setting(name: str, changes: list[str]) -> None:
    (experiment,) = find([name])
    result = perform(experiment, changes=changes)
    assert any("the rows that DuckDB gives" in check for check in result.checks)
    schemes = {row["series"] for row in result.rows}
    if name == "joins-table4":
        assert schemes == set(claims.SKYLINES)
        for size in (100, 300):
            points = {row["series"]: number_in(row, "points") for row in result.rows if row["subscriptions"] == size}
            assert points[claims.MIN] <= points[claims.CLU_PLUS] <= points[claims.CLU] <= points[claims.TUP]
    else:
        assert schemes == {*experiment.parameters["small"].schemes, "DuckDB", "DuckDB, one by one", "a plain loop"}
        assert any("every rival finds" in check for check in result.checks)
    assert len(result.rows) == 2 * len(schemes) and all(number_in(row, "us") > 0 for row in result.rows)
    judged = [claim for claim in result.claims if "1 million" not in claim.statement and claim.statement[0] != "…"]
    assert judged and not any("row has" in claim.measured or "rows have" in claim.measured for claim in judged)


def test_messages_are_counted_on_every_workload() -> None:
    (experiment,) = find(["joins-messages"])
    result = perform(experiment, changes=[*TINY, "subscriptions=60", "part=0.02"])
    by_workload = {name: [row["series"] for row in result.rows if row["workload"] == name] for name in
                   ("R ⋈ S", "stocks and ratings", "general mix", "star", "star, facts with payload")}  # fmt: skip
    assert [len(found) for found in by_workload.values()] == [10, 10, 7, 10, 10]
    binary = {row["series"]: row for row in result.rows if row["workload"] == "R ⋈ S"}
    assert binary["rel-sel"]["messages"] == 1
    assert number_in(binary["ref-j"], "bytes") >= number_in(binary["ref-j+"], "bytes")
    assert [claim.verdict == "not measurable" for claim in result.claims] == [False, True, False]


def test_six_decompositions_are_told_apart_and_the_greedy_one_is_marked() -> None:
    (experiment,) = find(["joins-decomposition"])
    result = perform(experiment, changes=["subscriptions=170", "join_values=2", "changes=40", "seeds=1"])
    rows = {row["order"]: row for row in result.rows}
    assert len(rows) == 6 and [order for order, row in rows.items() if row["greedy"]] == ["T U R"]
    # Nobody has R and U, but not T: whether R or U comes after T makes no difference.
    assert rows["T U R"]["told"] == rows["T R U"]["told"] != rows["R T U"]["told"]
    assert min(number_in(row, "model") for row in result.rows) == rows["T U R"]["model"]
    assert result.claims[0].verdict == "held"


def rows_of(column: str = "us", **values: float) -> Rows:
    return Rows({"series": name.replace("_", "-"), "subscriptions": 5, "rjor": 2, column: value}
                for name, value in values.items())  # fmt: skip


def test_claims_are_judged_by_times() -> None:
    rows = rows_of(enum_j=100.0, ref_j=50.0, rel_sel=95.0)
    assert claims.slower("enum-j", ["ref-j"])(rows).verdict == "held"
    assert claims.slower("ref-j", ["enum-j"])(rows).verdict == "not held"
    assert claims.slower("enum-j", ["ref-j", "rel-sel"])(rows).verdict == "not measurable"
    assert claims.within("enum-j", "ref-j", 2)(rows).verdict == "held"
    assert claims.within("enum-j", "ref-j", 1.9)(rows).verdict == "not held"
    assert claims.fastest_at_fewest("rel-sel", ["ref-j", "enum-j"], 2)(rows).verdict == "held"
    assert claims.fastest_at_fewest("enum-j", ["ref-j"], 1.5)(rows).verdict == "not held"
    assert claims.at_most("us", 50, "µs", 5, "ref-j")(rows).verdict == "held"
    assert claims.at_most("us", 49, "µs", 5, "ref-j")(rows).verdict == "not held"
    assert claims.grows_less("ref-j", "enum-j", "rjor")(rows).verdict == "not measurable"
    more = Rows(
        [
            *rows,
            *({**row, "rjor": 4, "us": number_in(row, "us") * (3 if row["series"] == "ref-j" else 2)} for row in rows),
        ]
    )
    assert claims.grows_less("ref-j", "enum-j", "rjor")(more).verdict == "not held"
    assert claims.grows_less("enum-j", "ref-j", "rjor")(more).verdict == "held"
    assert claims.smallest("us", "ref-j", ["enum-j", "rel-sel"], 1.8)(rows).verdict == "held"
    assert claims.smallest("us", "ref-j", ["enum-j", "rel-sel"], 2)(rows).verdict == "not held"


def test_claims_are_judged_at_every_number_of_subscriptions() -> None:
    few, many = rows_of(enum_j=40.0, ref_j=50.0), rows_of(enum_j=100.0, ref_j=50.0)
    both = Rows([*few, *({**row, "subscriptions": 9} for row in many)])
    assert claims.slower("enum-j", ["ref-j"])(many).verdict == "held"
    judged = claims.slower("enum-j", ["ref-j"])(both)
    assert judged.verdict == "not held"
    assert judged.measured == (
        "worst enum-j takes 0.8 times as long as ref-j at 5 subscriptions; "
        "best enum-j takes 2 times as long as ref-j at 9 subscriptions"
    )
    assert claims.within("ref-j", "enum-j", 1)(both).verdict == "not held"
    results = Rows([*few, *({**row, "rjor": 9} for row in many)])
    assert claims.slower("enum-j", ["ref-j"], "most")(results).verdict == "held", "the claim names the most results"


def test_memory_is_what_a_process_of_its_own_grows_by() -> None:
    from pathcast_lab.joins.server_experiments import memory_of

    # 64 bytes of ends are kept at least. There are enough that pages which the system reclaims meanwhile hardly matter.
    assert 30 < memory_of(200_000, 0) < 5_000
