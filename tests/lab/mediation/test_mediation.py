"""The mediation paper's evaluation: a tiny run of each experiment compares answers, and its claims can be judged."""

import pytest

import pathcast
from pathcast_lab.harness import Rows, find, number_in, perform
from pathcast_lab.mediation import mediation_claims as claims
from pathcast_lab.mediation.mediation_figure_experiments import topology_of
from pathcast_lab.mediation.mediation_workloads import SDR, Sent, Way

TINY = ["subscriptions=40", "catalogues=2", "rounds=1"]
FIGURES = ["mediation-fig5a", "mediation-fig5b", "mediation-fig5c", "mediation-subscriptions"]


@pytest.mark.parametrize("name", FIGURES)
def test_querying_and_transmission_make_the_response_time(name: str) -> None:
    (found,) = find([name])
    settings = {"mediation-fig5b": ["sizes=2000,4000"], "mediation-subscriptions": ["subscriptions=20,40"]}
    result = perform(found, changes=[*TINY, *settings.get(name, [])])
    assert result.checks["every way matches what the rewritten document matches"] > 0
    for row in result.rows:
        assert row["ms"] == pytest.approx(number_in(row, "query_ms") + number_in(row, "transmission_ms"))
        assert number_in(row, "query_ms") > 0
        assert number_in(row, "transmission_ms") > 0
    if name == "mediation-fig5c":
        times = {row["topology"]: number_in(row, "transmission_ms") for row in result.rows.where(way="NDDR, automaton")}
        assert times["leaf-only"] > times["chain"], "leaves are further away"
    sent = {str(row["way"]).split(",")[0]: number_in(row, "link_bytes") for row in result.rows if row["bytes"] != 4_000}
    assert sent[SDR] > 1.5 * sent["NDDR"]


def test_a_topology_that_there_is_not_is_named() -> None:
    with pytest.raises(
        pathcast.PathcastError, match="unknown topology 'ring'; the topologies are chain, leaf-only, tree"
    ):
        topology_of("ring")


def test_processes_pass_documents_on() -> None:
    (found,) = find(["mediation-sockets"])
    result = perform(found, changes=[*TINY, "routers=2", "catalogues=1"])
    assert [row["way"] for row in result.rows][:2] == ["SDR, automaton", "NDDR, automaton"]
    assert result.checks["every router matches the same by every way"] == len(result.rows) - 1
    assert all(0 < number_in(row, "query_ms") < number_in(row, "ms") for row in result.rows)


def test_costs_are_set_beside_the_publisher_s_own_schema() -> None:
    (found,) = find(["mediation-cost"])
    rows = perform(found, changes=[*TINY, "group=2", "bytes=3000"]).rows
    assert [row["kind"] for row in rows] == ["nested paths"] * 2 + ["plain paths"] * 2
    assert [row["by_paths"] for row in rows] == [False, False, True, True]


def test_each_schema_costs_query_rewriting_an_index() -> None:
    (found,) = find(["mediation-schemas"])
    rows = perform(found, changes=["schemas=1,3", "subscriptions=60", "rounds=1", "bytes=3000"]).rows
    held = {(row["way"], row["schemas"]): number_in(row, "index_bytes") for row in rows}
    assert held["query rewriting", 3] > held["query rewriting", 1]
    assert 0.9 < number_in(rows.where(way="data rewriting")[-1], "recovered") <= 1


def test_what_is_sent_depends_on_the_way() -> None:
    sent = Sent("x", b"abc", b"defg", b"h" * 9)
    assert (sent.size(SDR), sent.size("NDDR")) == (7, 9)
    assert Way.read(str(Way("NDDR", "xtrie"))) == Way("NDDR", "xtrie")


def test_an_exchange_repeats_authors_in_the_rewritten_document() -> None:
    (found,) = find(["mediation-exchange"])
    changes = ["repeats=1,3", "authors=3", "documents=1", "subscriptions=60", "rounds=1"]
    rows = perform(found, changes=changes).rows
    sizes = {row["repeats"]: (number_in(row, "elements"), number_in(row, "rewritten")) for row in rows}
    assert sizes[1][0] == sizes[1][1]
    assert sizes[3][1] > 2 * sizes[3][0]


def rows_of(**ways: list[float]) -> Rows:
    return Rows(
        {"way": way, "subscriptions": 10**place, "ms": value, "query_ms": value}
        for way, values in ways.items()
        for place, value in enumerate(values, 1)
    )


def test_claims_are_judged_at_every_value_of_a_column() -> None:
    rows = rows_of(one=[8, 9, 5], other=[10, 10, 10])
    assert claims.grows("subscriptions", "one", "other")(rows).verdict == "not held", "20 %, 10 %, 50 %"
    assert claims.grows("subscriptions", "one", "other")(rows_of(one=[9, 8, 5], other=[10] * 3)).verdict == "held"
    assert claims.grows("subscriptions", "one", "other")(rows_of(one=[9, 9, 5], other=[10] * 3)).verdict == (
        "not measurable"
    )
    assert claims.queries_like("one", "other", 0.3, "subscriptions")(rows).verdict == "not held", "half at one of them"
    assert claims.slower("other", "one", "subscriptions")(rows).verdict == "held"
    assert claims.slower("other", "one", "subscriptions")(rows_of(one=[8, 12], other=[10, 10])).verdict == "not held"
    assert claims.same_increase("one", "other", 0.15)(rows_of(one=[1, 3, 2], other=[1, 2, 2])).verdict == "not held"
    assert claims.same_increase("one", "other", 0.15)(rows_of(one=[1, 2, 2], other=[1, 2, 2])).verdict == "held"
