"""Plots: which columns of the rows to draw, and the one way in which all of them are drawn.

Rivals are named series. Ours is drawn last, thick, in a colour that nothing else has; the others differ in marker, dash
and lightness, so that a plot also reads in greyscale; floors are thin and dotted. Axes carry units, the footer says at
which scale, when and on what the rows were measured. The same rows give the same bytes (no clock, no random ids).

Kinds: `lines` (x against y, a line per series) and `bars` (a bar per series, labelled with its value). `panel` names a
column whose values each get a panel of their own, side by side, with a common y axis.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .result_rows import Row, Rows, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OURS = "#d62f0f"
INK, FAINT, GRID = "#1f2328", "#6b7280", "#e3e6ea"
# Neighbours differ in hue, lightness, marker and dash at once.
RIVALS = ("#1d3557", "#2a7f8e", "#6b3f8a", "#c58b2a", "#4c5b3f", "#8fb3d9", "#7d8085", "#c9a2bf")
MARKERS = ("s", "^", "D", "v", "P", "X", "<", ">")
DASHES: tuple[tuple[float, tuple[float, ...] | None], ...] = (
    (0, None),
    (0, (5, 2)),
    (0, (1.5, 1.5)),
    (0, (6, 2, 1.5, 2)),
)
FORMATS = ("png", "svg")


@dataclass(frozen=True)
class Plot:
    """One plot of an experiment. `series` names the column that tells rivals apart; `ours` and `floors` are among its
    values.

    `interval` names the columns with the lower and upper end of y; `log` lists the logarithmic axes ("x", "y", "xy");
    `only` selects the rows that belong in the plot.
    """

    name: str
    title: str
    y: str
    y_label: str
    series: str
    kind: Literal["lines", "bars"] = "lines"
    x: str = ""
    x_label: str = ""
    ours: tuple[str, ...] = ()
    floors: tuple[str, ...] = ()
    panel: str | None = None
    interval: tuple[str, str] | None = None
    log: Literal["", "x", "y", "xy"] = ""
    only: Callable[[Row], bool] | None = None


def over_subscriptions(
    name: str,
    title: str,
    *,
    y: str,
    y_label: str,
    ours: str,
    floor: str,
    only: Callable[[Row], bool],
    x_label: str = "subscriptions",
) -> Plot:
    """The lines of `series` over the number of subscriptions, both axes logarithmic."""
    return Plot(
        name,
        title,
        y,
        y_label,
        series="series",
        x="subscriptions",
        x_label=x_label,
        ours=(ours,),
        floors=(floor,),
        log="xy",
        only=only,
    )


def draw(plot: Plot, rows: Rows, footer: str, folder: Path) -> list[Path]:
    """Draw the plot into the folder, once a format; gives the files."""
    if plot.only is not None:
        rows = Rows(row for row in rows if plot.only(row))
    files = [folder / f"{plot.name}.{kind}" for kind in FORMATS]
    with _style():
        figure = _figure(plot, rows, footer)
        for file in files:
            figure.savefig(file, dpi=160, metadata={"Date": None} if file.suffix == ".svg" else {"Software": None})
    return files


@contextmanager
def _style() -> Iterator[None]:
    import matplotlib as mpl

    settings: Any = {
        "font.family": "DejaVu Sans",
        "font.size": 9,
        "text.color": INK,
        "axes.edgecolor": FAINT,
        "axes.labelcolor": INK,
        "axes.linewidth": 0.8,
        "xtick.color": FAINT,
        "ytick.color": FAINT,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "svg.hashsalt": "pathcast",
        "svg.fonttype": "none",
    }
    with mpl.rc_context(settings):
        yield


def _figure(plot: Plot, rows: Rows, footer: str) -> "Figure":
    from matplotlib.figure import Figure

    panels: list[Value] = rows.distinct(plot.panel) if plot.panel else [None]
    names = _series(plot, rows)
    bars = plot.kind == "bars"
    columns = min(len(panels), 3) or 1
    lines = math.ceil(len(panels) / columns) or 1
    body = 0.55 + 0.36 * len(names) if bars else 3.4
    width = {1: 7.2, 2: 9.2}.get(columns, 11.0)
    legend_width = sum(0.65 + 0.085 * len(name) for name in names)
    legend_rows = 0 if bars else math.ceil(legend_width / (width - 0.3))
    header, bottom = 0.52 + 0.24 * legend_rows, 0.34
    height = header + lines * (body + (0.25 if plot.panel else 0)) + bottom
    figure = Figure(figsize=(width, height), facecolor="white")
    area = (0.01, bottom / height, 0.98, 1 - (header + bottom) / height)
    figure.set_layout_engine("constrained", rect=area, w_pad=0.08, h_pad=0.05)
    grid = figure.subplots(lines, columns, squeeze=False, sharey=True, sharex=bars)
    for axes, panel in zip(grid.flat, panels, strict=False):
        _frame(axes, plot)
        part = rows.where(**{plot.panel: panel}) if plot.panel else rows
        (_bars if bars else _lines)(axes, plot, part, names)
        _label_short_scales(axes)
        if plot.panel:
            axes.set_title(str(panel), fontsize=9, color=INK, loc="left", fontweight="bold")
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_visible(False)
    left = 0.14 / width
    figure.text(left, 1 - 0.12 / height, plot.title, fontsize=12, fontweight="bold", va="top")
    if legend_rows:
        handles, labels = grid.flat[0].get_legend_handles_labels()
        figure.legend(
            handles,
            labels,
            loc="upper left",
            bbox_to_anchor=(left - 0.08 / width, 1 - 0.4 / height),
            ncols=math.ceil(len(names) / legend_rows),
            frameon=False,
            handlelength=2.6,
            columnspacing=1.6,
            borderaxespad=0,
        )
    figure.text(left, 0.1 / height, footer, fontsize=7, color=FAINT, va="bottom")
    return figure


def _frame(axes: "Axes", plot: Plot) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    value_axis, other_axis = (axes.xaxis, axes.yaxis) if plot.kind == "bars" else (axes.yaxis, axes.xaxis)
    axes.grid(True, axis=value_axis.axis_name, color=GRID, linewidth=0.8)  # type: ignore[arg-type]
    axes.set_axisbelow(True)
    axes.tick_params(which="minor", length=0)
    for letter, axis in (("y", value_axis), ("x", other_axis)):
        if letter in plot.log:
            (axes.set_xscale if axis is axes.xaxis else axes.set_yscale)("log")
            axis.set_minor_formatter(NullFormatter())
        if axis is value_axis or plot.kind == "lines":
            axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    if plot.kind == "bars":
        axes.set_xlabel(plot.y_label)
    else:
        axes.set_xlabel(plot.x_label)
        if axes.get_subplotspec().is_first_col():  # type: ignore[union-attr]
            axes.set_ylabel(plot.y_label)


def _label_short_scales(axes: "Axes") -> None:
    """A logarithmic axis of less than two decades has too few powers of ten for labels: 2 and 5 get one too."""
    from matplotlib.ticker import LogLocator

    for axis in (axes.xaxis, axes.yaxis):
        low, high = axis.get_view_interval()
        if axis.get_scale() == "log" and high < 100 * low:
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))


def _lines(axes: "Axes", plot: Plot, rows: Rows, names: Sequence[str]) -> None:
    for name in names:
        look = _look(plot, names, name)
        points = [row for row in rows.where(**{plot.series: name}) if _drawn(row, plot)]
        points.sort(key=lambda row: _at(row, plot.x))
        xs, ys = [_at(row, plot.x) for row in points], [_at(row, plot.y) for row in points]
        axes.plot(
            xs,
            ys,
            label=name,
            color=look.colour,
            linewidth=look.width,
            linestyle=look.dash,
            marker=look.marker,
            markersize=look.size,
            markeredgecolor="white",
            markeredgewidth=0.7,
            zorder=look.order,
        )
        if plot.interval:
            low, high = plot.interval
            axes.fill_between(
                xs,
                [_at(row, low) for row in points],
                [_at(row, high) for row in points],
                color=look.colour,
                alpha=0.14,
                linewidth=0,
                zorder=look.order - 1,
            )
    if "y" not in plot.log:
        axes.set_ylim(bottom=0)


def _bars(axes: "Axes", plot: Plot, rows: Rows, names: Sequence[str]) -> None:
    for place, name in enumerate(names):
        found = [row for row in rows.where(**{plot.series: name}) if _drawn(row, plot)]
        if not found:
            continue
        value, look = _at(found[0], plot.y), _look(plot, names, name)
        colour = look.colour if name in plot.ours else "#c9ced6" if name in plot.floors else "#8d99a8"
        axes.barh(place, value, height=0.62, color=colour)
        end = value
        if plot.interval:
            low, high = (_at(found[0], column) for column in plot.interval)
            axes.hlines(place, low, high, color=INK, linewidth=1.2)
            axes.vlines([low, high], place - 0.1, place + 0.1, color=INK, linewidth=1.2)
            end = max(value, high)
        weight = "bold" if name in plot.ours else "normal"
        figure = axes.annotate(_figure_of(value), (end, place), (5, 0), textcoords="offset points", fontweight=weight)
        figure.set(verticalalignment="center_baseline", bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8})
    axes.set_yticks(range(len(names)), list(names))
    axes.set_ylim(len(names) - 0.45, -0.55)
    for label in axes.get_yticklabels():
        if label.get_text() in plot.ours:
            label.set_fontweight("bold")
    axes.tick_params(axis="y", length=0)
    axes.margins(x=0.18)
    if "y" not in plot.log:
        axes.set_xlim(left=0)


@dataclass(frozen=True)
class _Look:
    colour: str
    marker: str
    dash: tuple[float, tuple[float, ...] | None]
    width: float
    size: float
    order: int


def _look(plot: Plot, names: Sequence[str], name: str) -> _Look:
    """The same name looks the same in every panel."""
    if name in plot.ours:
        dash = DASHES[plot.ours.index(name) % len(DASHES)]
        return _Look(OURS, "o", dash, 2.6, 7, 10)
    if name in plot.floors:
        return _Look(FAINT, "", (0, (1, 2)), 1.3, 0, 3)
    rivals = [one for one in names if one not in plot.ours and one not in plot.floors]
    place = rivals.index(name)
    return _Look(RIVALS[place % len(RIVALS)], MARKERS[place % len(MARKERS)], DASHES[place % len(DASHES)], 1.5, 5.5, 5)


def _series(plot: Plot, rows: Rows) -> list[str]:
    """Ours first, then rivals in the order of the rows, then floors."""
    names = [str(name) for name in rows.distinct(plot.series)]
    return sorted(names, key=lambda name: (name in plot.floors) - (name in plot.ours))


def _drawn(row: Row, plot: Plot) -> bool:
    return all(row.get(column) is not None for column in (plot.y, plot.x) if column)


def _at(row: Row, column: str) -> float:
    value = row[column]
    if not isinstance(value, int | float):
        raise TypeError(f"column {column!r} holds {value!r}, which cannot be drawn")
    return value


def _figure_of(value: float) -> str:
    """A value beside its bar, always with three digits: 9.58, 38.0, 192."""
    return f"{value:#.3g}".rstrip(".") if 0.001 <= abs(value) < 1000 else short(value)


def short(value: float) -> str:
    """A number for a label: 0.0123, 1.5, 38, 4,200, 1.2 M."""
    size = abs(value)
    for limit, unit in ((1e9, " G"), (1e6, " M")):
        if size >= limit:
            return f"{value / limit:.3g}{unit}"
    if size >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
