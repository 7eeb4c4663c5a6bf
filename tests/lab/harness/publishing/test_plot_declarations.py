import dataclasses
import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from matplotlib.colors import to_rgb
from PIL import Image

from pathcast_lab.harness import PaperPoint, Plot, Rows
from pathcast_lab.harness.publishing.chart_data import Chart
from pathcast_lab.harness.publishing.chart_drawing import OURS, RIVALS, _figure, _short_lines, draw_png, draw_svg, short
from pathcast_lab.harness.publishing.plot_declarations import chart_of

ROWS = Rows(
    {"schema": schema, "engine": engine, "n": n, "ms": n * factor, "low": n * factor * 0.9, "high": n * factor * 1.1}
    for schema in ("news", "protein")
    for engine, factor in (("gpx", 3.0), ("yfilter", 2.0), ("ours", 0.1), ("floor", 0.05))
    for n in (10, 100, 1000)
)
LINES = Plot(
    name="times",
    title="Time a document",
    y="ms",
    y_label="ms per document",
    series="engine",
    x="n",
    x_label="subscriptions",
    ours=("ours",),
    floors=("floor",),
    panel="schema",
    interval=("low", "high"),
    log="xy",
)
BARS = Plot(
    name="bars",
    title="Time",
    y="ms",
    y_label="ms per document",
    series="engine",
    kind="bars",
    ours=("ours",),
    panel="schema",
)


def svg_of(plot: Plot, rows: Rows, folder: Path) -> str:
    file = folder / f"{plot.name}.svg"
    draw_svg(chart_of(plot, rows), "toy · scale small · 2030-01-02 · v1.2.3", file)
    return file.read_text()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("M0 7.4L79 7.4L79 0L0 0z", "M0 7.4H79V0H0z"),
        ("M1 2L1 -3M1 -3L2 -3L3 4", "M1 2V-3M1 -3H2L3 4"),
        ("M0 0L0 1Q0 2 3 2L4 2", "M0 0L0 1Q0 2 3 2L4 2"),
        ("translate(1 2)", "translate(1 2)"),
    ],
)
def test_horizontal_and_vertical_lines_name_one_coordinate(path: str, expected: str) -> None:
    assert _short_lines(path) == expected


def test_a_png_is_large_enough_to_read(tmp_path: Path) -> None:
    draw_png(chart_of(LINES, ROWS), "footer", tmp_path / "times.png")
    with Image.open(tmp_path / "times.png") as image:
        assert image.width >= 1000


def test_an_svg_is_small_and_its_text_stays_as_it_is(tmp_path: Path) -> None:
    rows = Rows({**row, "schema": "0.06 % match"} for row in ROWS.where(schema="news"))
    svg = svg_of(LINES, rows, tmp_path)
    assert len(svg) < 12_000
    assert ">0.06 % match<" in svg
    assert "v1.2.3<" in svg
    assert not re.search(r'd="[^"]*\d\.\d\d', svg), "coordinates have one decimal"
    assert "metadata" not in svg
    ids, used = re.findall(r' id="([^"]*)"', svg), set(re.findall(r"#(\w+)[)\"]", svg))
    assert sorted(ids) == sorted(f"n{number}" for number in range(len(ids))) and set(ids) == used


@pytest.mark.parametrize("plot", [LINES, BARS], ids=["lines", "bars"])
def test_a_plot_names_rivals_panels_units_and_where_it_comes_from(tmp_path: Path, plot: Plot) -> None:
    rows = ROWS if plot.kind == "lines" else ROWS.where(n=10)
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg_of(plot, rows, tmp_path))
    wanted = {"gpx", "yfilter", "ours", "floor", "news", "protein", plot.title, plot.y_label}
    assert wanted | {"toy · scale small · 2030-01-02 · v1.2.3"} <= set(texts)


def test_a_bar_says_its_value_in_three_digits(tmp_path: Path) -> None:
    svg = svg_of(BARS, ROWS.where(n=10), tmp_path)
    assert all(f">{value}<" in svg for value in ("30.0", "20.0", "1.00", "0.500"))


def test_ours_has_a_colour_that_no_rival_has(tmp_path: Path) -> None:
    assert OURS not in RIVALS
    assert OURS in svg_of(LINES, ROWS, tmp_path)
    rivals_only = Rows(row for row in ROWS if row["engine"] != "ours")
    assert OURS not in svg_of(LINES, rivals_only, tmp_path)


def test_neighbouring_rivals_differ_in_greyscale() -> None:
    def lightness(colour: str) -> float:
        red, green, blue = to_rgb(colour)
        return 0.299 * red + 0.587 * green + 0.114 * blue

    steps = [abs(lightness(one) - lightness(other)) for one, other in pairwise(RIVALS)]
    assert min(steps) > 0.03


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    assert svg_of(LINES, ROWS, tmp_path) == svg_of(LINES, ROWS, tmp_path)
    for file in ("one.png", "two.png"):
        draw_png(chart_of(LINES, ROWS), "footer", tmp_path / file)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_a_chart_is_the_same_after_a_way_through_json() -> None:
    for plot in (LINES, BARS):
        chart = chart_of(plot, ROWS)
        assert Chart.from_record(json.loads(json.dumps(chart.to_record()))) == chart


def test_a_panel_of_a_number_names_what_the_number_is() -> None:
    plot = Plot("bytes", "Bytes", "bytes", "bytes", series="engine", kind="bars", panel="keep")
    rows = Rows({"engine": "ours", "keep": keep, "bytes": 1} for keep in (0.25, 5_000))
    assert [panel.title for panel in chart_of(plot, rows).panels] == ["keep = 0.25", "keep = 5,000"]
    assert [panel.title for panel in chart_of(LINES, ROWS).panels] == ["news", "protein"]


PAPER = (
    PaperPoint("gpx", 100, 77.0, "paper, §5", panel="news"),
    PaperPoint("ours", 1000, 0.5, "paper, §6", of="yfilter", panel="news"),
    PaperPoint("ours", 500, 0.5, "paper, §7", of="yfilter"),
)


def test_the_papers_numbers_stand_beside_what_was_measured(tmp_path: Path) -> None:
    chart = chart_of(dataclasses.replace(LINES, paper_points=PAPER), ROWS)
    news, protein = chart.panels
    found = {one.name: one.points for one in news.series if one.role == "paper"}
    assert found == {"paper: gpx": ((100, 77.0),), "paper: ours": ((1000, 1000.0),)}, "half of yfilter's 2,000"
    assert not [one for one in protein.series if one.role == "paper"]
    assert chart.sources == ("paper, §5", "paper, §6"), "nothing was measured at 500"
    svg = svg_of(dataclasses.replace(LINES, paper_points=PAPER), ROWS, tmp_path)
    assert ">paper: gpx<" in svg
    assert ">paper: gpx<" not in svg_of(LINES, ROWS, tmp_path)


def test_a_bar_has_the_papers_number_as_a_star(tmp_path: Path) -> None:
    point = PaperPoint("gpx", None, 44.0, "paper, §5")
    bare = svg_of(BARS, ROWS.where(n=10), tmp_path)
    starred = svg_of(dataclasses.replace(BARS, paper_points=(point,)), ROWS.where(n=10), tmp_path)
    assert "stroke-width:1.4" in starred
    assert "stroke-width:1.4" not in bare


def test_rows_without_the_value_are_left_out_and_only_selects(tmp_path: Path) -> None:
    rows = Rows([*ROWS.where(schema="news"), {"schema": "news", "engine": "late", "n": 10, "ms": None}])
    plot = Plot(**{**vars(LINES), "only": lambda row: row["engine"] != "gpx", "interval": None})
    svg = svg_of(plot, rows, tmp_path)
    assert ">gpx<" not in svg
    assert ">yfilter<" in svg


@pytest.mark.parametrize("plot", [dataclasses.replace(LINES, log=""), BARS], ids=["lines", "bars"])
def test_every_panel_fits_into_the_axis_that_all_share(plot: Plot) -> None:
    rows = Rows({**row, "ms": float(row["ms"] or 0) * (9 if row["schema"] == "protein" else 1)} for row in ROWS)
    figure = _figure(chart_of(dataclasses.replace(plot, interval=None), rows), "footer")
    largest = 9 * 3.0 * (1000 if plot.kind == "lines" else 10)
    limits = [axes.get_xlim() if plot.kind == "bars" else axes.get_ylim() for axes in figure.axes]
    assert all(low == 0 and high > largest for low, high in limits)


def test_text_cannot_be_drawn_as_a_number() -> None:
    with pytest.raises(TypeError, match="cannot plot column 'ms': it holds 'fast', not a number"):
        chart_of(LINES, Rows([{"schema": "news", "engine": "gpx", "n": 1, "ms": "fast"}]))


def test_a_short_logarithmic_axis_still_has_labels(tmp_path: Path) -> None:
    rows = Rows({"schema": "news", "engine": "gpx", "n": n, "ms": n, "low": n, "high": n} for n in (3, 8))
    svg = svg_of(LINES, rows, tmp_path)
    assert ">5<" in svg


def test_labels_of_numbers_are_short() -> None:
    assert [short(value) for value in (0.01234, 1.5, 38.02, 4200.4, 1_200_000, 3e9)] == [
        "0.0123",
        "1.5",
        "38",
        "4,200",
        "1.2 M",
        "3 G",
    ]
