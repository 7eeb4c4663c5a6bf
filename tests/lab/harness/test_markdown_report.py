import dataclasses

from pathcast_lab.harness import Experiment, Rows, perform
from pathcast_lab.harness.markdown_report import LONGEST_TABLE, cell, render, table


def test_the_claim_stands_beside_the_measured_result(toy: Experiment) -> None:
    page = render([perform(toy)])
    assert "| ours is ten times faster at 100 | paper, §1 | 100 ms | **held** |" in page
    assert "| it fits in no time | target | some time | **not held** |" in page


def test_a_section_says_how_on_what_and_with_what_it_was_measured(drawn_toy: Experiment) -> None:
    result = perform(drawn_toy, seed=4, changes=["rival=him"])
    page = render([result])
    for text in (
        "**How fast one counts.** Counts to each size.",
        "![Time to count](results/counting/small/time.png)",
        "[rows.csv](results/counting/small/rows.csv)",
        "- Counted on paper.",
        "both count the same (3 times)",
        "sizes = 1,10,100, rival = him",
        "`pathcast experiment run counting --scale small --seed 4 --set rival=him`",
        result.date,
        *result.machine.values(),
    ):
        assert text in page


def test_the_page_does_not_depend_on_the_order_in_which_results_came(toy: Experiment) -> None:
    one = perform(toy)
    results = [dataclasses.replace(one, experiment=name, scale=scale) for name in "ba" for scale in ("small", "paper")]
    page = render(results)
    assert page == render(reversed(results))
    headings = [line for line in page.splitlines() if line.startswith("##")]
    assert headings == [
        "## a",
        "### a, scale paper",
        "### a, scale small",
        "## b",
        "### b, scale paper",
        "### b, scale small",
    ]


def test_a_long_table_is_cut_and_says_so(toy: Experiment) -> None:
    rows = Rows({"size": number, "counter": "ours", "ms": 0.5} for number in range(LONGEST_TABLE + 3))
    page = render([dataclasses.replace(perform(toy), rows=rows)])
    assert page.count("| ours | 0.5 |") == LONGEST_TABLE
    assert "… and 3 more rows in the files." in page


def test_only_the_columns_to_show_are_shown_under_their_headings(toy: Experiment) -> None:
    page = render([dataclasses.replace(perform(toy), show={"ms": "time in ms"})])
    assert "| time in ms |\n| ---: |\n| 0.1 |" in page


def test_numbers_are_set_to_the_right_and_bars_do_not_break_a_table() -> None:
    assert table(["name", "n"], [["a|b", 1], ["c", None]]) == "| name | n |\n| --- | ---: |\n| a\\|b | 1 |\n| c |  |\n"


def test_cells_have_four_significant_digits_and_thousands_apart() -> None:
    shown = [cell(value) for value in (0.012345, 12.3456, 123456.7, 1234567, True, None, "a\nb")]
    assert shown == ["0.01235", "12.35", "123,457", "1,234,567", "yes", "", "a b"]
