import re
from itertools import pairwise
from pathlib import Path

import pytest
from matplotlib.colors import to_rgb
from PIL import Image

from pathcast_lab.harness import Plot, Rows
from pathcast_lab.harness.result_plots import OURS, RIVALS, draw, short

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
    y_label="ms a document",
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
    y_label="ms a document",
    series="engine",
    kind="bars",
    ours=("ours",),
    panel="schema",
)


def svg_of(plot: Plot, rows: Rows, folder: Path) -> str:
    draw(plot, rows, "toy · scale small · 2030-01-02 · a machine", folder)
    return (folder / f"{plot.name}.svg").read_text()


def test_png_and_svg_are_written_and_the_png_is_large_enough_to_read(tmp_path: Path) -> None:
    files = draw(LINES, ROWS, "footer", tmp_path)
    assert [file.name for file in files] == ["times.png", "times.svg"]
    with Image.open(tmp_path / "times.png") as image:
        assert image.width >= 1000


@pytest.mark.parametrize("plot", [LINES, BARS], ids=["lines", "bars"])
def test_a_plot_names_rivals_panels_units_and_where_it_comes_from(tmp_path: Path, plot: Plot) -> None:
    rows = ROWS if plot.kind == "lines" else ROWS.where(n=10)
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg_of(plot, rows, tmp_path))
    wanted = {"gpx", "yfilter", "ours", "floor", "news", "protein", plot.title, plot.y_label}
    assert wanted | {"toy · scale small · 2030-01-02 · a machine"} <= set(texts)


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
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        draw(LINES, ROWS, "footer", tmp_path / folder)
    for file in ("times.png", "times.svg"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_rows_without_the_value_are_left_out_and_only_selects(tmp_path: Path) -> None:
    rows = Rows([*ROWS.where(schema="news"), {"schema": "news", "engine": "late", "n": 10, "ms": None}])
    plot = Plot(**{**vars(LINES), "only": lambda row: row["engine"] != "gpx", "interval": None})
    svg = svg_of(plot, rows, tmp_path)
    assert ">gpx<" not in svg
    assert ">yfilter<" in svg


def test_text_cannot_be_drawn_as_a_number(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="column 'ms' holds 'fast'"):
        draw(LINES, Rows([{"schema": "news", "engine": "gpx", "n": 1, "ms": "fast"}]), "footer", tmp_path)


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
