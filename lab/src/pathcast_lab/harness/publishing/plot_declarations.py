"""Plots: which columns of the rows an experiment draws, and the chart of some rows.

Kinds: `lines` (x against y, a line per series) and `bars` (a bar per series, labelled with its value). `panel` names a
column whose values each get a panel of their own, side by side, with a common y axis. `paper_points` are numbers that a
paper gives in its text; a chart shows them as stars beside the measured points.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..result_rows import Row, Rows, Value
from .chart_data import Chart, Kind, Log, Panel, Role, Series, rounded


@dataclass(frozen=True)
class PaperPoint:
    """A number from a paper's text: y of a series at x, as `source` says (paper and section).

    With `of`, y is a multiple of the measured figure of that series at the same x and in the same panel: a paper often
    gives a ratio, and its absolute numbers are those of another machine. `panel` is a value of the column of panels;
    without one, the point is in all panels.
    """

    series: str
    x: float | None
    y: float
    source: str
    of: str = ""
    panel: Value = None


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
    kind: Kind = "lines"
    x: str = ""
    x_label: str = ""
    ours: tuple[str, ...] = ()
    floors: tuple[str, ...] = ()
    panel: str | None = None
    interval: tuple[str, str] | None = None
    log: Log = ""
    only: Callable[[Row], bool] | None = None
    paper_points: tuple[PaperPoint, ...] = ()


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


def chart_of(plot: Plot, rows: Rows) -> Chart:
    """The chart of a plot for some rows."""
    if plot.only is not None:
        rows = Rows(row for row in rows if plot.only(row))
    panels: list[Panel] = []
    sources: dict[str, None] = {}
    for value in rows.distinct(plot.panel) if plot.panel else [None]:
        part = rows.where(**{plot.panel: value}) if plot.panel else rows
        measured = [series for name in rows.distinct(plot.series) for series in _measured(plot, part, str(name))]
        papers = list(_papers(plot, value, measured))
        sources |= dict.fromkeys(source for _, source in papers)
        panels.append(Panel(_panel_title(plot.panel, value), (*measured, *(one for one, _ in papers))))
    return Chart(plot.name, plot.title, plot.kind, plot.x_label, plot.y_label, plot.log, tuple(panels), tuple(sources))


def _panel_title(column: str | None, value: Value) -> str:
    """The value of a panel; a number with the name of its column."""
    return "" if column is None else f"{column} = {value:,}" if isinstance(value, int | float) else str(value)


def _measured(plot: Plot, rows: Rows, name: str) -> Iterator[Series]:
    """The series of a name in one panel; None if no row can be drawn."""
    points = [row for row in rows if str(row.get(plot.series)) == name and _is_drawn(row, plot)]
    if plot.kind == "bars":
        points = points[:1]
    points.sort(key=lambda row: _at(row, plot.x))
    if points:
        pairs = tuple((_at(row, plot.x), rounded(_at(row, plot.y))) for row in points)
        low, high = plot.interval or ("", "")
        ends = tuple((rounded(_at(row, low)), rounded(_at(row, high))) for row in points) if plot.interval else ()
        yield Series(name, _role(plot, name), pairs, ends)


def _papers(plot: Plot, panel: Value, measured: list[Series]) -> Iterator[tuple[Series, str]]:
    """The paper's numbers in one panel: those of one series together, each with its source."""
    found = {one.name: dict(one.points) for one in measured}
    points: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for one in plot.paper_points:
        if one.panel is not None and one.panel != panel:
            continue
        x = 0.0 if one.x is None else one.x
        base = found.get(one.of, {}).get(x) if one.of else 1.0
        if base is not None:
            points.setdefault((one.series, one.source), []).append((x, rounded(one.y * base)))
    for (name, source), pairs in points.items():
        yield Series(f"paper: {name}", "paper", tuple(pairs), like=name), source


def _role(plot: Plot, name: str) -> Role:
    return "ours" if name in plot.ours else "floor" if name in plot.floors else "rival"


def _is_drawn(row: Row, plot: Plot) -> bool:
    return all(row.get(column) is not None for column in (plot.y, plot.x) if column)


def _at(row: Row, column: str) -> float:
    if not column:
        return 0.0
    value = row[column]
    if not isinstance(value, int | float):
        raise TypeError(f"cannot plot column {column!r}: it holds {value!r}, not a number; plot another column")
    return value
