"""Beyond one machine: shards are distinct and their answers right, and requirements follow from their costs."""

from typing import Any

import pytest

from pathcast.workloads import news_schema
from pathcast_lab.engine import single_shard_measurement
from pathcast_lab.engine.capacity_planning import PerDocument, line_through, required, rising_line, short
from pathcast_lab.engine.distinct_path_variants import VARIANTS, draw_bases, variants
from pathcast_lab.engine.shard_cost_reasons import SHARD
from pathcast_lab.harness import CheckError, Row, Rows, find, in_fresh_process, perform

FEW = ["smaller=64,200", "size=300", "shards=2", "documents=12", "rounds=1"]


def test_variants_of_distinct_bases_are_distinct_paths_with_the_same_names() -> None:
    bases = draw_bases(news_schema(), 20 * VARIANTS, seed=5)
    found = variants(bases, 20 * VARIANTS, seed=5)
    assert len(set(found)) == len(found) == 20 * VARIANTS
    assert {path.replace("//", "/") for path in found} == set(bases)
    assert found[: VARIANTS + 1] == variants(bases, VARIANTS + 1, seed=5)
    assert variants(bases[3:], VARIANTS, seed=5) == found[3 * VARIANTS : 4 * VARIANTS]


def test_too_few_bases_are_an_error() -> None:
    bases = draw_bases(news_schema(), 2 * VARIANTS, seed=5)
    with pytest.raises(ValueError, match="2 bases have only 128 variants, 129 were requested"):
        variants(bases, 129, seed=5)


def test_requirements_follow_from_the_costs_of_a_shard() -> None:
    cost = PerDocument(size=1_000, read=10e-6, match=30e-6, matches=2.0, memory=5e6)
    found = required(cost, 9_500, 50_000, document_bytes=4_000, id_bytes=4)
    assert found.shards == 10
    assert found.workers_per_shard == 2
    assert found.cores == pytest.approx(50_000 * 10 * 40e-6)
    assert found.cores_read_once == pytest.approx(50_000 * (10e-6 + 10 * 30e-6))
    assert (found.memory_per_worker, found.memory) == (5e6, 50e6)
    assert found.matches == pytest.approx(19)
    assert found.deliveries == pytest.approx(950_000)
    assert found.per_subscription == pytest.approx(100)
    assert found.bytes_to_shards == pytest.approx(50_000 * 10 * 4_000)
    assert found.bytes_of_ids == pytest.approx(950_000 * 4)
    assert found.bytes_to_subscribers == pytest.approx(950_000 * 4_000)


def test_a_line_goes_through_two_points() -> None:
    line = line_through((10, 5.0), (30, 9.0))
    assert (line.base, line.each, line.at(100)) == pytest.approx((3.0, 0.2, 23.0))
    with pytest.raises(ValueError, match="a line needs two different sizes, got 10 twice"):
        line_through((10, 5.0), (10, 9.0))


def test_a_line_through_noise_does_not_fall() -> None:
    assert rising_line((10, 5.0), (30, 9.0)) == line_through((10, 5.0), (30, 9.0))
    assert rising_line((10, 6.0), (100, 5.0)).at(1_000) == 5.5


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (3.14159, "", "3.14"),
        (999.4, "", "999"),
        (12_345, "", "12,300"),
        (1_216_000, "", "1.22 million"),
        (1.9e11, "", "190 billion"),
        (3877, "B", "3.88 kB"),
        (12, "B", "12 B"),
        (1.94e12, "B/s", "1.94 TB/s"),
    ],
)
def test_figures_are_short(value: float, unit: str, text: str) -> None:
    assert short(value, unit) == text


def test_shards_are_measured_checked_and_extrapolated() -> None:
    (experiment,) = find(["engine-scale"])
    result = perform(experiment, changes=[*FEW, "subscriptions=3000", "rate=1000"])
    assert {
        "the bases of all shards are distinct",
        "all subscriptions of a shard are distinct patterns",
        "on a sample, lxml finds what ours finds",
        "an index without shards finds what ours finds",
        "shards and an index without them find as many matches",
    } == set(result.checks)
    shards = result.rows.where(part="shard")
    assert [(row["shard"], row["size"], row["distinct"]) for row in shards] == [(1, 300, 300), (2, 300, 300)]
    required_rows = result.rows.where(part="required", size=300)
    assert required_rows.distinct("shards") == [10]
    us = sum(shards.numbers("us")) / 2
    assert required_rows.number("cores", series="each shard reads the documents") == pytest.approx(
        us * 1e-6 * 10 * 1000
    )
    assert any(
        note.startswith("3,000 such subscriptions and 1,000 documents per second require 10 shards")
        for note in result.notes
    )
    assert any("50 deliveries per second" in note for note in result.notes)


def test_a_shard_with_a_wrong_answer_gets_no_times(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = in_fresh_process

    def one_wrong(function: Any, *arguments: Any) -> Any:
        outcome = honest(function, *arguments)
        if function is single_shard_measurement._serve:
            first = outcome.value.answers.ids[0]
            first[:] = first[1:] if 1 in first else [1, *first]
        return outcome

    monkeypatch.setattr(single_shard_measurement, "in_fresh_process", one_wrong)
    (experiment,) = find(["engine-scale"])
    with pytest.raises(CheckError, match="on a sample, lxml finds what ours finds: event 1: "):
        perform(experiment, changes=["smaller=64,100", "size=64", "shards=1", "documents=12", "rounds=1"])


def shard(number: int = 1, **values: float) -> Row:
    usual = {"size": 1_000_000, "us": 40.0, "predicted_us": 40.0, "memory_mb": 300.0, "predicted_memory_mb": 300.0}
    return {"part": SHARD, "shard": number, **usual, **values}


@pytest.mark.parametrize(
    ("changed", "verdicts"),
    [
        ({}, ["held", "held", "held", "held"]),
        ({"memory_mb": 380.0}, ["not held", "held", "held", "held"]),
        ({"us": 31.0}, ["held", "not held", "held", "held"]),
        ({"us": 51.0, "predicted_us": 51.0}, ["held", "held", "not held", "held"]),
        ({"memory_mb": 501.0, "predicted_memory_mb": 501.0}, ["held", "held", "held", "not held"]),
    ],
)
def test_claims_are_judged_at_every_shard(changed: dict[str, float], verdicts: list[str]) -> None:
    (experiment,) = find(["engine-scale"])
    rows = Rows([shard(1), shard(2), shard(3, **changed)])
    assert [claim.judge_rows(rows).verdict for claim in experiment.claims] == verdicts


def test_small_shards_say_nothing_about_bytes_per_subscription() -> None:
    (experiment,) = find(["engine-scale"])
    judgement = experiment.claims[3].judge_rows(Rows([shard(1, size=999_999)]))
    assert (judgement.verdict, judgement.measured) == (
        "not measurable",
        "the shards have fewer than 1,000,000 subscriptions",
    )


def test_reasons_name_the_parts_of_the_time() -> None:
    (experiment,) = find(["engine-scale"])
    costs = [("smaller shard", 0, 9.0, 1.0, 20), ("smaller shard", 0, 11.0, 3.0, 60)]
    costs += [("shard", 1, 10.0, 8.0, 200), ("shard", 2, 30.0, 9.0, 210), ("shard", 3, 10.5, 8.5, 190)]
    rows = Rows(
        {"part": part, "shard": number, "read_us": read, "match_us": match, "us": read + match, "matches": matches}
        | ({"predicted_us": 16.0} if number else {})
        for part, number, read, match, matches in costs
    )
    reasons = " ".join(claim.reason_on(rows) for claim in experiment.claims)
    assert (
        "On shard 2, reading took 30.0 µs per document (predicted 10.0 µs), matching 9.0 µs (predicted 6.0" in reasons
    )
    assert "A match took 43 ns, and 50 ns in the smaller shards" in reasons
    assert "took 30.0 (median 10.5) µs to read" in reasons
    assert "9.0 (median 8.5) µs to find 210.0 (median 200.0) matches" in reasons
