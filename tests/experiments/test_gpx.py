"""The GPX paper's figures as experiments: they run, check answers before times, and judge what the paper claims."""

from pathlib import Path

import numpy as np
import pytest

from pathcast.experiments import (
    CheckError,
    Experiment,
    Rows,
    Run,
    Verdict,
    experiments,
    find,
    gpx_claims,
    gpx_workloads,
    perform,
)
from pathcast.experiments.gpx_kernels import collect_bits
from pathcast.experiments.gpx_workloads import Workload
from pathcast.experiments.parameters import ParameterError
from pathcast.matching.yfilter import YFilterEngine

TINY = ["documents=4", "rounds=1", "engines=automaton,yfilter,bpa"]


@pytest.fixture(autouse=True)
def no_outside_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATHCAST_DATA", str(tmp_path))


def figure(name: str) -> Experiment:
    return find([name])[0]


def test_every_figure_of_the_evaluation_is_an_experiment() -> None:
    figures = [f"gpx-fig{number}{letter}" for number, letters in
               ((2, "abc"), (3, "abc"), (4, "abcdef"), (5, "ab"), (6, "abcd")) for letter in letters]  # fmt: skip
    assert {"gpx-clustering", *figures} <= {one.name for one in experiments()}


def test_a_figure_gives_a_row_for_each_place_and_engine() -> None:
    result = perform(figure("gpx-fig2b"), changes=[*TINY, "points=30,60"])
    assert [(row["x"], row["engine"]) for row in result.rows] == [
        (x, engine) for x in (30, 60) for engine in ("automaton", "yfilter", "bpa")
    ]
    assert result.rows.distinct("distinct") == [30, 60]
    for row in result.rows:
        assert row["us"] > 0 and row["match_us"] > 0 and row["reading_us"] > 0 and row["memory_mb"] > 0
        assert row["delegated_patterns"] == row["delegated_documents"] == 0
    assert "active states visited" in str(result.rows.one(engine="yfilter", x=60)["work"])
    assert all(row["ns_each"] > 0 for row in result.rows)  # type: ignore[operator]
    assert result.checks["all engines find the same matches"] == 4
    verdicts = {claim.statement: claim.verdict for claim in result.claims}
    assert verdicts["no engine hands patterns or documents to another"] is Verdict.HELD
    assert verdicts["the last predicate as access predicate beats the first"] is Verdict.NOT_MEASURABLE


def test_cases_are_measured_one_by_one_and_hold_their_match_rate() -> None:
    result = perform(
        figure("gpx-fig2a"), changes=["documents=10", "rounds=1", "engines=automaton,yfilter", "points=300"]
    )
    assert result.rows.distinct("case") == ["0.06 % match", "1 % match", "3 % match"]
    assert [round(row["matched"], 1) for row in result.rows.where(engine="yfilter")] == [  # type: ignore[arg-type]
        pytest.approx(rate, abs=0.15) for rate in (0.06, 1, 3)
    ]
    assert any("our news schema" in note for note in result.notes)


def test_a_case_can_be_measured_alone() -> None:
    tiny = ["documents=3", "rounds=1", "engines=automaton,yfilter", "points=6", "queries=50"]
    assert perform(figure("gpx-fig5a"), changes=[*tiny, "cases=as generated"]).rows.distinct("case") == ["as generated"]
    with pytest.raises(ParameterError, match="gpx-fig5a has no case 'both'; there are: 0.06 % match, as generated"):
        perform(figure("gpx-fig5a"), changes=[*tiny, "cases=both"])


def test_many_queries_at_a_match_rate_repeat_a_pool_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpx_workloads, "POOL", 50)
    _, queries = Workload("protein", 10, 300, match_rate=0.2).generate(Run(scale="small", seed=0))
    assert len(queries) == 300 and set(queries) == set(queries[:50])


def test_an_engine_that_is_not_there_is_left_out_and_named() -> None:
    changes = ["documents=2", "rounds=1", "engines=automaton,xfilter,bpa", "points=0.5", "queries=40"]
    result = perform(figure("gpx-fig4b"), changes=changes)
    assert result.rows.distinct("engine") == ["automaton", "bpa"]
    assert any("xfilter" in note for note in result.notes)


def test_no_time_is_taken_when_an_engine_errs(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = YFilterEngine.match_batch

    def forgetful(self: YFilterEngine, batch: object) -> object:
        offsets, entries = honest(self, batch)  # type: ignore[arg-type]
        return np.minimum(offsets, len(entries) - 1), entries[:-1]

    monkeypatch.setattr(YFilterEngine, "match_batch", forgetful)
    with pytest.raises(CheckError, match="all engines find the same matches"):
        perform(figure("gpx-fig2b"), changes=[*TINY, "points=30"])


def test_a_mix_has_documents_and_queries_of_all_schemas() -> None:
    documents, queries = Workload("mix", 7, 20).generate(Run(scale="small", seed=0))
    assert len(documents) == 7 and len(queries) == 20
    assert {root for root in (b"<news", b"<record", b"<dataset") if any(root in one for one in documents)} == {
        b"<news", b"<record", b"<dataset",
    }  # fmt: skip


def test_filters_look_at_attributes() -> None:
    _, queries = Workload("protein", 2, 50, filters=1).generate(Run(scale="small", seed=0))
    filtered = [query for query in queries if "[" in query]
    assert len(filtered) > 25 and all("[@" in query for query in filtered)


def test_bits_are_set_for_every_copy_of_a_query() -> None:
    bits = np.zeros(2, dtype=np.uint64)
    begin, ids = np.array([0, 2, 3], dtype=np.int64), np.array([1, 65, 3], dtype=np.int32)
    offsets, entries = np.array([0, 1, 3], dtype=np.int64), np.array([1, 0, 1], dtype=np.int32)
    assert collect_bits(offsets, entries, begin, ids, bits) == 4
    assert bits.tolist() == [0b101, 1], "those of the last document"


def rows(**times: list[float]) -> Rows:
    return Rows(
        {"case": "", "x": x, "engine": engine.replace("_", "-"), "us": us, "match_us": us - 1, "reading_us": 1.0}
        for engine, series in times.items()
        for x, us in enumerate(series, 1)
    )


@pytest.mark.parametrize(
    ("judge", "times", "verdict"),
    [
        (gpx_claims.faster("gpx", "gpx-ap", 5), {"gpx": [1, 50], "gpx_ap": [1, 10]}, Verdict.HELD),
        (gpx_claims.faster("gpx", "gpx-ap", 5), {"gpx": [50, 49], "gpx_ap": [1, 10]}, Verdict.NOT_HELD),
        (gpx_claims.faster("gpx", "gpx-ap", 5, at="smallest"), {"gpx": [50, 4], "gpx_ap": [1, 10]}, Verdict.HELD),
        (gpx_claims.faster("gpx", "gpx-ap", 5), {"gpx": [1, 50]}, Verdict.NOT_MEASURABLE),
        (gpx_claims.steady("gpx-ap", 1.5), {"gpx_ap": [10, 99, 14]}, Verdict.HELD),
        (gpx_claims.steady("gpx-ap", 1.5), {"gpx_ap": [10, 16]}, Verdict.NOT_HELD),
        (gpx_claims.reading_negligible("gpx-ap", 0.1), {"gpx_ap": [2, 11]}, Verdict.HELD),
        (gpx_claims.reading_negligible("gpx-ap", 0.1), {"gpx_ap": [11, 2]}, Verdict.NOT_HELD),
        (gpx_claims.ahead_in_matching(10), {"automaton": [2], "gpx": [99], "yfilter": [11]}, Verdict.HELD),
        (gpx_claims.ahead_in_matching(10), {"automaton": [2], "gpx": [99], "yfilter": [10]}, Verdict.NOT_HELD),
    ],
)
def test_claims_are_judged_at_the_end_of_the_axis(
    judge: object, times: dict[str, list[float]], verdict: Verdict
) -> None:
    claim = gpx_claims.Claim("", "", judge)  # type: ignore[arg-type]
    assert claim.judge_rows(rows(**times)).verdict is verdict


def test_a_claim_must_hold_in_every_case() -> None:
    both = Rows([*rows(gpx=[50], gpx_ap=[10]), *({**row, "case": "other"} for row in rows(gpx=[50], gpx_ap=[11]))])
    judged = gpx_claims.faster("gpx", "gpx-ap", 5)(both)
    assert judged.verdict is Verdict.NOT_HELD and "other" in judged.measured


@pytest.mark.parametrize(("us", "verdict"), [(11_000, Verdict.NOT_HELD), (18_000, Verdict.HELD)])
def test_times_that_the_paper_names_are_judged_where_it_took_them(us: float, verdict: Verdict) -> None:
    claim = gpx_claims.ABSOLUTE[1]
    row = {"case": "0.06 % match", "x": 90_000, "engine": "yfilter", "us": us}
    assert claim.judge_rows(Rows([row])).verdict is verdict
    assert claim.judge_rows(Rows([{**row, "x": 50_000}])).verdict is Verdict.NOT_MEASURABLE


def test_what_is_handed_on_is_told() -> None:
    row = {"engine": "bpa", "delegated_patterns": 0.0, "delegated_documents": 0.25}
    judged = gpx_claims.nothing_delegated(Rows([row]))
    assert judged.verdict is Verdict.NOT_HELD and "25.00% of the documents" in judged.measured
