import dataclasses
from typing import Any

import pytest

from pathcast_lab.harness import Experiment, Verdict, default_publication, perform
from pathcast_lab.harness.experiment_registry import experiments
from pathcast_lab.harness.experiment_result import JudgedClaim, Published
from pathcast_lab.harness.publishing.chart_data import Chart, Panel, Series
from pathcast_lab.harness.publishing.markdown_report import cell, render, shown_scales, table
from pathcast_lab.harness.publishing.published_records import load_records, published
from pathcast_lab.harness.publishing.result_page_definitions import OTHERS, PAGES, page_of

HELD = JudgedClaim("ours is faster", "paper, §1", Verdict.HELD, "5 times", "3 times", "we measure in a hurry")
NOT_HELD = dataclasses.replace(HELD, verdict=Verdict.NOT_HELD, measured="2 times")


def record(toy: Experiment, **changes: Any) -> Published:
    return dataclasses.replace(published(toy, perform(toy)), **{"experiment": "gpx-fig2a", **changes})


def test_the_claim_stands_beside_the_papers_number_and_ours(toy: Experiment) -> None:
    page = render([record(toy, claims=(HELD,))])["gpx.md"]
    assert "| ours is faster | 3 times (paper, §1) | 5 times | **held** |  |" in page


def test_a_reason_is_shown_only_where_a_claim_is_not_held(toy: Experiment) -> None:
    page = render([record(toy, claims=(NOT_HELD,))])["gpx.md"]
    assert "| 2 times | **not held** | we measure in a hurry |" in page
    unknown = dataclasses.replace(NOT_HELD, reason="")
    assert "| **not held** | Cause not determined. |" in render([record(toy, claims=(unknown,))])["gpx.md"]


def test_a_target_of_ours_is_called_that(toy: Experiment) -> None:
    target = dataclasses.replace(HELD, source="target")
    assert "| 3 times (our target) |" in render([record(toy, claims=(target,))])["gpx.md"]


def test_of_two_scales_the_papers_is_shown_with_verdicts_of_the_small_one_that_differ(toy: Experiment) -> None:
    same = dataclasses.replace(HELD, statement="both agree")
    small = record(toy, scale="small", claims=(NOT_HELD, same))
    page = render([small, record(toy, scale="paper", claims=(HELD, same))])["gpx.md"]
    assert page.count("## How fast one counts") == 1
    assert "Scale paper, " in page
    assert "| **held**; scale small: not held |" in page
    assert page.count("scale small") == 1


def test_a_record_with_a_code_version_is_shown_before_a_larger_one_without(toy: Experiment) -> None:
    small = record(toy, scale="small", claims=(HELD,), version="v1", sources="abc")
    page = render([record(toy, scale="paper", claims=(NOT_HELD,), version=None, sources=None), small])["gpx.md"]
    assert "Scale small, " in page
    assert "| **held**; scale paper: not held |" in page
    page = render([record(toy, scale="paper", claims=(NOT_HELD,), version="v1", sources="abc"), small])["gpx.md"]
    assert "Scale paper, " in page


@pytest.mark.parametrize(
    ("source", "title", "shown"),
    [
        ("GPX 2011, §5", "GPX, Figure 2(a): distinct queries", "GPX 2011, §5, Figure 2(a)"),
        ("Yang 2008, §6", "Select-joins, Table 4: size", "Yang 2008, §6, Table 4"),
        ("Yang 2008, §6, Figure 17", "Figures 6, 17 and 20", "Yang 2008, §6, Figure 17"),
        ("Yang 2008, §6", "Figures 6, 17 and 20", "Yang 2008, §6"),
        ("target", "GPX, Figure 2(a): distinct queries", "our target"),
        ("our estimate", "Figure 1: reading", "our estimate"),
    ],
)
def test_a_papers_claim_names_the_figure(toy: Experiment, source: str, title: str, shown: str) -> None:
    page = render([record(toy, title=title, claims=(dataclasses.replace(HELD, source=source),))])["gpx.md"]
    assert f"| 3 times ({shown}) |" in page


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"version": None, "sources": None, "changed": None}, "Measured before code versions were recorded."),
        ({"version": "v1", "sources": "abc", "changed": False}, "Measured with version v1 (sources abc)."),
        (
            {"version": "v1", "sources": "abc", "changed": True},
            "**Measured with version v1; the code it exercises has changed since.**",
        ),
    ],
)
def test_a_figure_says_which_code_it_was_measured_with(toy: Experiment, changes: dict[str, Any], note: str) -> None:
    assert note in render([record(toy, **changes)])["gpx.md"]


def test_the_index_counts_verdicts_and_figures_by_page(toy: Experiment) -> None:
    stale = {"version": "v1", "sources": "abc", "changed": True, "date": "2030-01-02 03:04 UTC"}
    old = {"version": None, "sources": None, "date": "2030-02-03 04:05 UTC"}
    results = [
        record(toy, claims=(HELD, NOT_HELD), **stale),
        record(toy, experiment="gpx-fig2b", claims=(HELD,), **old),
        record(toy, experiment="reading", claims=(HELD,), **stale),
    ]
    index = render(results)["index.md"]
    assert (
        "| [GPX-Matcher](gpx.md) | 2 | 1 | 0 | 2030-01-02 to 2030-02-03 | v1 (1) | 1 stale, 1 without a"
        " code version |" in index
    )
    assert "| [The default engine](engine.md) | 1 | 0 | 0 | 2030-01-02 | v1 (1) | 1 stale |" in index


def test_a_section_says_how_and_how_to_repeat_it(drawn_toy: Experiment) -> None:
    result = dataclasses.replace(perform(drawn_toy, seed=4, changes=["rival=him"]), seconds=1234.5)
    page = render([published(drawn_toy, result)])["others.md"]
    for text in (
        "Counts to each size.",
        "![Time to count](plots/counting.svg)",
        "Counted on paper.",
        "`pathcast experiment run counting --scale small --seed 4 --set rival=him` (took 1,234 s)",
        result.machine["processor"],
    ):
        assert text in page


def test_a_method_that_several_figures_share_is_printed_once(toy: Experiment) -> None:
    page = render([record(toy), record(toy, experiment="gpx-fig2b")])["gpx.md"]
    assert page.count("Counts to each size.") == 1
    assert page.count("## How fast one counts") == 2


def test_a_method_from_further_up_is_referred_to(toy: Experiment) -> None:
    results = [
        record(toy, experiment="gpx-fig1", title="First"),
        record(toy, experiment="gpx-fig2", title="Second", method="Otherwise."),
        record(toy, experiment="gpx-fig3", title="Third"),
    ]
    page = render(results)["gpx.md"]
    assert "## Third\n\nMeasured as “First”.\n" in page
    assert page.count("Counts to each size.") == 1


def test_figures_come_first_and_by_their_numbers(toy: Experiment) -> None:
    names = ["gpx-reuse", "gpx-fig10", "gpx-fig2b", "gpx-fig2a", "gpx-table1"]
    page = render([record(toy, experiment=name, title=name) for name in names])["gpx.md"]
    found = [line[3:] for line in page.splitlines() if line.startswith("## ")]
    assert found == ["gpx-fig2a", "gpx-fig2b", "gpx-fig10", "gpx-table1", "gpx-reuse", "Machines"]


def test_a_page_shows_some_notes_and_counts_the_others(toy: Experiment) -> None:
    page = render([record(toy, notes=tuple(f"Note {number}." for number in range(9)))])["gpx.md"]
    assert "Notes: Note 0. Note 1. Note 2. Note 3. Note 4. Note 5. (3 more in the record.)" in page


def test_the_pages_do_not_depend_on_the_order_in_which_records_came(toy: Experiment) -> None:
    results = [record(toy, experiment=f"gpx-{name}", scale=scale) for name in "ba" for scale in ("small", "paper")]
    assert render(results) == render(reversed(results))


def test_a_page_compares_two_series_in_a_sentence(toy: Experiment) -> None:
    series = (
        Series("read, match, write ids", "ours", ((1000, 20.0), (2000, 30.0))),
        Series("lxml, one by one (extrapolated)", "rival", ((2000, 123_456.0),)),
    )
    chart = Chart("time", "Time", "lines", "subscriptions", "µs", "", (Panel("", series),))
    pages = render([record(toy, experiment="engine", chart=chart, version="v1", sources="abc", changed=True)])
    page = pages["engine.md"]
    assert "4,100 times as long. [The default engine](engine.md), version v1 (stale)." in pages["index.md"]
    unknown = render([record(toy, experiment="engine", chart=chart, version=None, sources=None)])
    assert "4,100 times as long" not in unknown["index.md"], "no code version"
    assert "**At 2,000 distinct subscriptions" in page
    assert "in 30 µs." in page
    assert "takes 123,000 µs, extrapolated from a sample: 4,100 times as long.**" in page
    alone = dataclasses.replace(chart, panels=(Panel("", series[:1]),))
    assert "extrapolated" not in render([record(toy, experiment="engine", chart=alone)])["engine.md"]


def test_compared_series_are_those_of_the_published_charts() -> None:
    charts = {one.experiment: one.chart for one in shown_scales(load_records(default_publication()))}
    for page in PAGES:
        for comparison in page.comparisons:
            chart = charts[comparison.experiment]
            assert chart is not None
            assert comparison.sentence(chart)


def test_every_experiment_has_a_page() -> None:
    assert {page_of(one.name) for one in experiments()} == set(PAGES)
    assert page_of("counting") is OTHERS


def test_every_claim_has_a_number_to_compare_with_and_at_most_one_sentence_of_reason() -> None:
    for one in experiments():
        for claim in one.claims:
            assert claim.expected, f"{one.name}: {claim.statement}"
            if isinstance(claim.reason, str):
                assert not claim.reason or (claim.reason.endswith(".") and ". " not in claim.reason), claim.reason


def test_the_papers_numbers_name_their_section() -> None:
    points = [point for one in experiments() for plot in one.plots for point in plot.paper_points]
    assert len(points) > 20
    assert all("§" in point.source for point in points)


def test_numbers_are_set_to_the_right_and_bars_do_not_break_a_table() -> None:
    assert table(["name", "n"], [["a|b", 1], ["c", None]]) == "| name | n |\n| --- | ---: |\n| a\\|b | 1 |\n| c |  |\n"


def test_cells_have_four_significant_digits_and_thousands_apart() -> None:
    shown = [cell(value) for value in (0.012345, 12.3456, 123456.7, 1234567, True, None, "a\nb")]
    assert shown == ["0.01235", "12.35", "123,457", "1,234,567", "yes", "", "a b"]
