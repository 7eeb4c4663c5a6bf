import dataclasses
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pathcast_lab.harness import Experiment, Judgement, Verdict, default_publication, perform
from pathcast_lab.harness import experiment_registry as registry
from pathcast_lab.harness.publishing.markdown_report import render, shown_scales
from pathcast_lab.harness.publishing.published_records import load_records, publish, published, refresh, write
from pathcast_lab.harness.result_archive import ArchiveError

DOCS = default_publication().parent


def texts_in(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}


def test_the_committed_pages_are_those_that_the_records_give() -> None:
    for name, text in render(load_records(DOCS / "results")).items():
        assert (DOCS / "results" / name).read_text() == text, f"{name}: run `pathcast experiment report`"


def test_the_committed_records_are_written_again_as_they_are(tmp_path: Path) -> None:
    records = [one for one in load_records(DOCS / "results") if one.experiment == "reading"]
    write(records, tmp_path)
    assert load_records(tmp_path) == refresh(records)
    assert (tmp_path / "plots" / "reading.svg").stat().st_size < 25_000


def test_published_figures_were_measured_with_a_commit() -> None:
    """Not with changes that nobody else has: `git describe` marks these."""
    versions = {one.experiment: one.version for one in load_records(DOCS / "results") if one.version is not None}
    assert versions
    assert {name: version for name, version in versions.items() if "dirty" in version} == {}


def test_no_rows_of_experiments_are_in_the_repository() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=DOCS.parent, capture_output=True, text=True, check=False).stdout
    assert [name for name in listed.splitlines() if re.search(r"(^results/|/rows\.|\.parquet$)", name)] == []


def test_docs_stay_small() -> None:
    sizes = {file: file.stat().st_size for file in DOCS.rglob("*") if file.is_file()}
    assert sum(sizes.values()) < 3_000_000
    assert max(len(page.read_text().splitlines()) for page in (DOCS / "results").glob("*.md")) <= 320
    assert max(size for file, size in sizes.items() if file.suffix == ".svg") < 25_000


def test_every_figure_has_its_plot_and_no_plot_is_left_over() -> None:
    shown = {one.experiment for one in shown_scales(load_records(DOCS / "results")) if one.chart is not None}
    assert {file.stem for file in (DOCS / "results" / "plots").iterdir()} == shown


def test_a_result_is_published_with_its_chart_and_can_be_written_again(drawn_toy: Experiment, tmp_path: Path) -> None:
    publish([(drawn_toy, [perform(drawn_toy)])], tmp_path)
    assert sorted(texts_in(tmp_path)) == ["index.md", "others.md", "plots/counting.svg", "records/others.json"]
    first = texts_in(tmp_path)
    publish([], tmp_path)
    assert texts_in(tmp_path) == first


def test_a_later_result_replaces_the_former_one_and_keeps_others(
    toy_with: Callable[..., Experiment], tmp_path: Path
) -> None:
    one, other = toy_with(name="one"), toy_with(name="other")
    publish([(one, [perform(one)]), (other, [perform(other)])], tmp_path)
    publish([(one, [perform(one, seed=7)])], tmp_path)
    assert [(record.experiment, record.seed) for record in load_records(tmp_path)] == [("one", 7), ("other", 0)]


def test_both_scales_keep_their_charts(drawn_toy: Experiment, tmp_path: Path) -> None:
    publish([(drawn_toy, [perform(drawn_toy, scale=scale) for scale in ("small", "paper")])], tmp_path)
    assert {record.scale: record.chart is not None for record in load_records(tmp_path)} == {
        "paper": True,
        "small": True,
    }


def test_claims_are_judged_again_when_a_result_is_published(toy: Experiment) -> None:
    result = perform(toy)
    stricter = tuple(
        dataclasses.replace(claim, judge=lambda rows: Judgement(Verdict.NOT_HELD, "no"), expected="more", reason="why")
        for claim in toy.claims
    )
    found = published(dataclasses.replace(toy, claims=stricter), result)
    assert {(one.verdict, one.expected, one.reason) for one in found.claims} == {(Verdict.NOT_HELD, "more", "why")}


def test_a_figure_is_stale_when_the_code_it_exercises_has_changed(
    toy: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_registry", {"counting": toy})
    before = published(toy, dataclasses.replace(perform(toy), version="v1", sources="abc"))
    assert [one.changed for one in refresh([before], lambda module: "abc")] == [False]
    assert [one.changed for one in refresh([before], lambda module: "xyz")] == [True]
    assert [one.changed for one in refresh([dataclasses.replace(before, experiment="gone")], lambda _: "abc")] == [True]
    unknown = dataclasses.replace(before, version=None, sources=None)
    assert [one.changed for one in refresh([unknown], lambda module: "xyz")] == [None]


def test_pages_give_the_reasons_that_the_code_gives_now(toy: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    before = published(toy, perform(toy))
    claims = tuple(dataclasses.replace(claim, reason="The cable was loose.") for claim in toy.claims)
    monkeypatch.setattr(registry, "_registry", {"counting": dataclasses.replace(toy, claims=claims)})
    [after] = refresh([before], lambda module: "abc")
    assert {claim.reason for claim in after.claims} == {"The cable was loose."}
    gone = dataclasses.replace(before, experiment="gone")
    assert refresh([gone], lambda module: "abc")[0].claims == before.claims


def test_a_reason_that_was_made_from_measurements_stays(toy: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    claims = tuple(dataclasses.replace(claim, reason=lambda rows: f"{len(rows)} rows.") for claim in toy.claims)
    made = dataclasses.replace(toy, claims=claims)
    monkeypatch.setattr(registry, "_registry", {"counting": made})
    result = perform(made)
    before = published(made, result)
    assert {claim.reason for claim in before.claims} == {f"{len(result.rows)} rows."}
    assert {claim.reason for claim in result.claims} == {f"{len(result.rows)} rows."}
    assert refresh([before], lambda module: "abc")[0].claims == before.claims


def test_damaged_records_are_named(tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "gpx.json").write_text("[{}]")
    with pytest.raises(ArchiveError, match="cannot read the records in .*gpx.json"):
        load_records(tmp_path)
