"""The GPX paper's figures as experiments: they run, check answers before times, and judge what the paper claims."""

from collections.abc import Callable
from pathlib import Path
from time import sleep

import numpy as np
import pytest

from pathcast import Subscriptions
from pathcast.documents import DocumentBatch, Limits
from pathcast.documents.document_reader import Reader
from pathcast.literature.yfilter import YFilterEngine
from pathcast_lab.gpx import claim_judges, gpx_claims, measured_engines
from pathcast_lab.gpx.gpx_workloads import Workload
from pathcast_lab.gpx.result_bit_vector_kernels import collect_bits
from pathcast_lab.harness import (
    CheckError,
    Claim,
    Experiment,
    Judgement,
    Rows,
    Run,
    Verdict,
    experiments,
    find,
    number_in,
    perform,
)
from pathcast_lab.harness.experiment_parameters import ParameterError

TINY = ["documents=4", "rounds=1", "engines=automaton,yfilter,bpa"]


@pytest.fixture(autouse=True)
def no_outside_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATHCAST_DATA", str(tmp_path))


Judge = Callable[[Rows], Judgement]


def figure(name: str) -> Experiment:
    return find([name])[0]


def test_every_figure_of_the_evaluation_is_an_experiment() -> None:
    figures = [f"gpx-fig{number}{letter}" for number, letters in
               ((2, "abc"), (3, "abc"), (4, "abcdef"), (5, "ab"), (6, "abcd")) for letter in letters]  # fmt: skip
    assert {"gpx-clustering", "gpx-reuse", *figures} <= {one.name for one in experiments()}


def test_a_figure_gives_a_row_for_each_place_and_engine() -> None:
    result = perform(figure("gpx-fig2b"), changes=[*TINY, "points=30,60"])
    assert [(row["x"], row["engine"]) for row in result.rows] == [
        (x, engine) for x in (30, 60) for engine in ("automaton", "yfilter", "bpa")
    ]
    assert result.rows.distinct("distinct") == [30, 60]
    for row in result.rows:
        assert all(number_in(row, column) > 0 for column in ("us", "match_us", "reading_us", "memory_mb"))
        assert row["delegated_patterns"] == row["delegated_documents"] == 0
    assert "active states visited" in str(result.rows.one(engine="yfilter", x=60)["work"])
    assert all(number_in(row, "ns_step") > 0 and number_in(row, "steps") > 0 for row in result.rows)
    assert result.checks["all engines find the same matches"] == 4
    verdicts = {claim.statement: claim.verdict for claim in result.claims}
    assert verdicts["no engine hands patterns or documents to another"] is Verdict.HELD
    assert verdicts["the last predicate as access predicate is faster than the first"] is Verdict.NOT_MEASURABLE


def test_cases_are_measured_one_by_one_and_hold_their_match_rate() -> None:
    result = perform(
        figure("gpx-fig2a"), changes=["documents=10", "rounds=1", "engines=automaton,yfilter", "points=300"]
    )
    assert result.rows.distinct("case") == ["0.06 % match", "1 % match", "3 % match"]
    assert [round(number_in(row, "matched"), 1) for row in result.rows.where(engine="yfilter")] == [
        pytest.approx(rate, abs=0.15) for rate in (0.06, 1, 3)
    ]
    assert any("our news schema" in note for note in result.notes)


def test_queries_of_many_wildcards_end_in_one_as_often() -> None:
    _, queries = Workload("protein", 1, 2_000, wildcard=0.7).generate(Run(scale="small", seed=0))
    assert sum(query.endswith("*") for query in queries) / 2_000 == pytest.approx(0.7, abs=0.05)


def test_a_case_can_be_measured_alone() -> None:
    tiny = ["documents=3", "rounds=1", "engines=automaton,yfilter", "points=6", "queries=50"]
    assert perform(figure("gpx-fig5a"), changes=[*tiny, "cases=as generated"]).rows.distinct("case") == ["as generated"]
    with pytest.raises(ParameterError, match="gpx-fig5a has no case 'both'; its cases are 0.06 % match, as generated"):
        perform(figure("gpx-fig5a"), changes=[*tiny, "cases=both"])


def test_many_queries_at_a_match_rate_repeat_a_pool_of_them() -> None:
    run = Run(scale="small", seed=0)
    documents, queries = Workload("protein", 10, 300, match_rate=0.2, pool=50).generate(run)
    assert len(queries) == 300 and set(queries) == set(queries[:50])
    again, more = Workload("protein", 10, 400, match_rate=0.2, pool=50).generate(run)
    assert again == documents and more[:50] == queries[:50] and len(more) == 400
    other, _ = Workload("protein", 11, 300, match_rate=0.2, pool=50).generate(run)
    assert len(other) == 11


def test_a_match_rate_is_held_on_some_documents_and_that_is_told() -> None:
    run = Run(scale="small", seed=0)
    documents, queries = Workload("protein", 120, 60, match_rate=0.2).generate(run)
    subscriptions = Subscriptions()
    subscriptions.add_many(queries)
    matcher = subscriptions.compile()
    held = sum(len(found) for found in matcher.match_many(documents[::3])) / 40 / 60
    assert held == pytest.approx(0.2, abs=0.03)
    assert run.notes == ["The match rate of 20.00% is held on 40 of the 120 documents."]


def test_an_engine_that_is_not_there_is_left_out_and_named() -> None:
    changes = ["documents=2", "rounds=1", "engines=automaton,xfilter,bpa", "points=0.5", "queries=40"]
    result = perform(figure("gpx-fig4b"), changes=changes)
    assert result.rows.distinct("engine") == ["automaton", "bpa"]
    assert any("xfilter" in note for note in result.notes)


def test_no_time_is_taken_when_an_engine_errs(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = YFilterEngine.match_batch

    def forgetful(self: YFilterEngine, batch: DocumentBatch) -> object:
        offsets, entries = honest(self, batch)
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
        (claim_judges.Faster("gpx", "gpx-ap", 5), {"gpx": [5, 50], "gpx_ap": [1, 10]}, Verdict.HELD),
        (claim_judges.Faster("gpx", "gpx-ap", 5), {"gpx": [50, 49], "gpx_ap": [1, 10]}, Verdict.NOT_HELD),
        (claim_judges.Faster("gpx", "gpx-ap", 5), {"gpx": [4, 50], "gpx_ap": [1, 10]}, Verdict.NOT_HELD),
        (claim_judges.Faster("gpx", "gpx-ap", 5), {"gpx": [5, 49, 50], "gpx_ap": [1, 10, 10]}, Verdict.NOT_HELD),
        (claim_judges.Faster("gpx", "gpx-ap", 5, x=1), {"gpx": [50, 4], "gpx_ap": [1, 10]}, Verdict.HELD),
        (claim_judges.Faster("gpx", "gpx-ap", 5, x=9), {"gpx": [50, 4], "gpx_ap": [1, 10]}, Verdict.NOT_MEASURABLE),
        (claim_judges.Faster("gpx", "gpx-ap", 5), {"gpx": [1, 50]}, Verdict.NOT_MEASURABLE),
        (claim_judges.Steady("gpx-ap", 1.5), {"gpx_ap": [10, 15, 14]}, Verdict.HELD),
        (claim_judges.Steady("gpx-ap", 1.5), {"gpx_ap": [10, 99, 14]}, Verdict.NOT_HELD),
        (claim_judges.ReadingNegligible("gpx-ap", 0.1), {"gpx_ap": [10, 11]}, Verdict.HELD),
        (claim_judges.ReadingNegligible("gpx-ap", 0.1), {"gpx_ap": [2, 11]}, Verdict.NOT_HELD),
        (claim_judges.Ahead(10), {"automaton": [2, 2], "gpx": [99, 99], "yfilter": [11, 11]}, Verdict.HELD),
        (claim_judges.Ahead(10), {"automaton": [2, 2], "gpx": [99, 99], "yfilter": [10, 11]}, Verdict.NOT_HELD),
    ],
)
def test_claims_are_judged_at_every_place_of_the_axis(
    judge: Judge, times: dict[str, list[float]], verdict: Verdict
) -> None:
    claim = Claim("", "", judge)
    assert claim.judge_rows(rows(**times)).verdict is verdict


def test_a_judgement_names_the_worst_and_the_best_place() -> None:
    judged = claim_judges.Faster("gpx", "gpx-ap", 5)(rows(gpx=[50, 30, 80], gpx_ap=[10, 10, 10]))
    assert judged.measured == "gpx-ap against gpx: worst 3 times faster at 2; best 8 times faster at 3"


def test_a_ratio_below_one_is_called_slower_and_a_place_is_named() -> None:
    placed = Rows({**row, "place": f"{row['x']} filters"} for row in rows(gpx=[5, 30], gpx_ap=[10, 10]))
    judged = claim_judges.Faster("gpx", "gpx-ap", 1)(placed)
    assert judged.measured == "gpx-ap against gpx: worst 2 times slower at 1 filters; best 3 times faster at 2 filters"
    ahead = claim_judges.Ahead(10)(rows(automaton=[5], gpx=[3]))
    assert ahead.measured == "2 times slower than gpx at 1"


def test_a_claim_must_hold_in_every_case() -> None:
    both = Rows([*rows(gpx=[50], gpx_ap=[10]), *({**row, "case": "other"} for row in rows(gpx=[50], gpx_ap=[11]))])
    judged = claim_judges.Faster("gpx", "gpx-ap", 5)(both)
    assert judged.verdict is Verdict.NOT_HELD and "other" in judged.measured


@pytest.mark.parametrize(("us", "verdict"), [(11_000, Verdict.NOT_HELD), (18_000, Verdict.HELD)])
def test_times_that_the_paper_names_are_judged_where_it_took_them(us: float, verdict: Verdict) -> None:
    claim = gpx_claims.ABSOLUTE[1]
    row = {"case": "0.06 % match", "x": 90_000, "engine": "yfilter", "us": us}
    assert claim.judge_rows(Rows([row])).verdict is verdict
    assert claim.judge_rows(Rows([{**row, "x": 50_000}])).verdict is Verdict.NOT_MEASURABLE


def test_what_is_handed_on_is_told() -> None:
    row = {"engine": "bpa", "delegated_patterns": 0.0, "delegated_documents": 0.25}
    judged = claim_judges.nothing_delegated(Rows([row]))
    assert judged.verdict is Verdict.NOT_HELD and "25.00% of the documents" in judged.measured


# What is measured, as §5 measures it.


def test_at_the_papers_scale_the_sizes_are_the_papers() -> None:
    sizes = {one.name: one.parameters["paper"] for one in experiments() if one.name.startswith("gpx-")}
    assert {points.documents for points in sizes.values()} == {500}
    assert (sizes["gpx-fig2a"].points[0], sizes["gpx-fig2a"].points[-1]) == (10_000, 90_000)
    assert (sizes["gpx-fig2b"].points[0], sizes["gpx-fig2b"].points[-1]) == (1_000, 9_000)
    for letter in "abc":
        assert (sizes[f"gpx-fig3{letter}"].points[0], sizes[f"gpx-fig3{letter}"].points[-1]) == (500_000, 4_000_000)
        assert sizes[f"gpx-fig4{letter}"].queries == 2_000_000 and sizes[f"gpx-fig4{letter}"].points[-1] == 0.7
    assert all(sizes[f"gpx-fig4{letter}"].points[-1] == 0.9 for letter in "def")
    assert (sizes["gpx-fig5a"].points[-1], sizes["gpx-fig5b"].points[-1]) == (12, 10)
    assert all(sizes[f"gpx-fig6{letter}"].queries == 500_000 for letter in "ab")
    assert all(sizes[f"gpx-fig6{letter}"].points[-1] == 10 for letter in "ab")
    assert all(sizes[f"gpx-fig6{letter}"].cases == ("1 filter", "2 filters") for letter in "cd")


def test_every_figure_has_the_default_engine_and_says_what_the_paper_claims() -> None:
    for one in experiments():
        if one.name.startswith("gpx-"):
            assert all(scale.engines[0] == "automaton" for scale in one.parameters.values())
            assert any(claim.source.startswith("Sadoghi, Burcea, Jacobsen 2011, §") for claim in one.claims)
            assert {"memory_mb", "delegated_patterns", "delegated_documents"} <= set(one.show)


def test_the_generators_parameters_reach_the_queries() -> None:
    run = Run(scale="small", seed=0)
    short = Workload("nitf", 3, 200, length=3, wildcard=0.0, descendant=0.0).generate(run)[1]
    assert all(query.count("/") <= 3 and "*" not in query and "//" not in query for query in short)
    loose = Workload("nitf", 3, 200, wildcard=0.7, descendant=0.9, distinct=True).generate(run)[1]
    assert len(set(loose)) == 200 and sum("*" in query and "//" in query for query in loose) > 100
    filtered = Workload("nitf", 3, 50, filters=5).generate(run)[1]
    assert max(query.count("[@") for query in filtered) == 5


@pytest.fixture
def slow_engine(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Makes yfilter take 100 ms to build and 10 ms per document; the sizes of its batches."""
    sizes: list[int] = []
    build, match = YFilterEngine.build.__func__, YFilterEngine.match_batch  # type: ignore[attr-defined]

    def slow_build(cls: type[YFilterEngine], table: object) -> object:
        sleep(0.1)
        return build(cls, table)

    def slow_match(self: YFilterEngine, batch: DocumentBatch) -> object:
        sleep(0.01 * len(batch))
        sizes.append(len(batch))
        return match(self, batch)

    monkeypatch.setattr(YFilterEngine, "build", classmethod(slow_build))
    monkeypatch.setattr(YFilterEngine, "match_batch", slow_match)
    return sizes


def test_reading_counts_and_building_does_not(slow_engine: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    read = Reader.read

    def slow_read(self: Reader, documents: list[bytes], **options: bool) -> object:
        sleep(0.02 * len(documents))
        return read(self, documents, **options)

    monkeypatch.setattr(Reader, "read", slow_read)
    [row] = perform(figure("gpx-fig2b"), changes=[*TINY, "points=30"]).rows.where(engine="yfilter")
    assert number_in(row, "build_s") > 0.1
    assert number_in(row, "reading_us") > 20_000 and number_in(row, "match_us") > 10_000
    assert 30_000 < number_in(row, "us") < 30_000 + 100_000 / 4


def test_a_slow_engine_is_timed_on_some_documents_and_compared_on_those(slow_engine: list[int]) -> None:
    changes = ["documents=40", "rounds=1", "engines=automaton,yfilter", "points=30", "seconds=0.2"]
    result = perform(figure("gpx-fig2b"), changes=changes)
    timed = {row["engine"]: number_in(row, "timed") for row in result.rows}
    assert timed["automaton"] == 40 and 10 <= timed["yfilter"] <= 20
    assert max(slow_engine) == timed["yfilter"]
    assert result.show["timed"] == "documents timed" and result.rows.distinct("documents") == [40]
    assert result.checks["all engines find the same matches"] == 1


def test_engines_that_reuse_tuples_are_measured_beside_those_that_do_not() -> None:
    changes = ["documents=5", "rounds=1", "engines=automaton,gpx-ap,gpx-ap+reuse", "points=300"]
    result = perform(figure("gpx-reuse"), changes=changes)
    assert result.rows.distinct("engine") == ["automaton", "gpx-ap", "gpx-ap+reuse"]
    assert result.rows.number("steps", engine="gpx-ap+reuse") < result.rows.number("steps", engine="gpx-ap")
    claims = {claim.statement: claim.verdict for claim in result.claims}
    assert claims["evaluating the tuples that paths share only once makes gpx-ap faster"] in (
        Verdict.HELD, Verdict.NOT_HELD,
    )  # fmt: skip


def test_the_results_are_bit_vectors_with_a_bit_a_query() -> None:
    queries = ["/a/b", "//c", "/a/b", "//z"]
    subscriptions = Subscriptions()
    subscriptions.add_many(queries)
    engine = YFilterEngine.build(subscriptions.table)
    reader = Reader(subscriptions.table.names, Limits(), "refuse")
    filtering = measured_engines.Filtering(
        engine, measured_engines.queries_behind(subscriptions), reader, [b"<c/>", b"<a><b/></a>"]
    )
    filtering()
    assert filtering.bits.tolist() == [0b101], "queries 1 and 3 on the last document"
    assert len(filtering.reading) == len(filtering.matching) == len(filtering.collecting) == 1


# Explanations.


def explained(judge: Judge, **times: list[float]) -> list[str]:
    each = [
        {**row, "distinct": 9, "matched": 1.0, "collecting_us": 0.5, "work": "things", "steps": 10.0,
         "ns_step": 100.0 * float(row["us"] or 0)}
        for row in rows(**times)
    ]  # fmt: skip
    return list(claim_judges.explanations([Claim("", "", judge), Claim("", "", judge)], Rows(each)))


def test_where_a_claim_does_not_hold_the_steps_at_the_worst_place_are_told_once() -> None:
    found = explained(claim_judges.Faster("yfilter", "gpx-ap", 10), yfilter=[9, 30], gpx_ap=[1, 10])
    assert found == ["yfilter takes 10 steps of 3,000 ns, gpx-ap takes 10 steps of 1,000 ns per document at 2."]
    assert explained(claim_judges.Faster("yfilter", "gpx-ap", 3), yfilter=[30], gpx_ap=[10]) == []
    assert explained(claim_judges.Faster("yfilter", "gpx-ap", 3), yfilter=[30]) == [], "nothing to compare"


@pytest.mark.parametrize(
    ("judge", "times", "said"),
    [
        (
            claim_judges.Steady("gpx-ap", 1.5),
            {"gpx_ap": [10.0, 16.0]},
            "Distinct queries, and steps of gpx-ap per document: 9 and 10 at 1, 9 and 10 at 2.",
        ),
        (
            claim_judges.ReadingNegligible("gpx-ap", 0.1),
            {"gpx_ap": [5.0]},
            "A document is read in 1 µs and matched by gpx-ap in 4 µs at 1.",
        ),
        (
            claim_judges.Ahead(10),
            {"automaton": [2.0], "gpx": [9.0]},
            "automaton takes 10 steps of 200 ns, gpx takes 10 steps of 900 ns per document at 1.",
        ),
    ],
)
def test_other_claims_are_explained_by_what_was_counted(judge: Judge, times: dict[str, list[float]], said: str) -> None:
    assert explained(judge, **times) == [said]
