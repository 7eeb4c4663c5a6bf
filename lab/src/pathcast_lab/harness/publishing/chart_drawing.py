"""Drawing: all charts are drawn the same way.

Rivals are named series. Ours is drawn last, thick, in a colour that nothing else has; the others differ in marker, dash
and lightness, so that a plot also reads in greyscale; floors are thin and dotted; a paper's own numbers are stars
without a line, in the colour of the series that they belong to. Axes have units; the footer names the scale,
the date and the code version of the rows. The same chart gives the same bytes (no clock, no random ids).

An SVG keeps its text as text, has no metadata, and its coordinates have one decimal: a tenth of a point is less than a
line is wide.
"""

import io
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from .chart_data import Chart, Panel, Series

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


def draw_png(chart: Chart, footer: str, file: Path) -> None:
    """Draw a chart into a PNG file."""
    with _style():
        _figure(chart, footer).savefig(file, dpi=160, metadata={"Software": None})


def draw_svg(chart: Chart, footer: str, file: Path) -> None:
    """Draw a chart into a small SVG file."""
    text = io.StringIO()
    with _style():
        _figure(chart, footer).savefig(text, format="svg", metadata={"Date": None})
    file.write_text(_small(text.getvalue()), encoding="utf-8")


def _short_lines(path: str) -> str:
    """A path of straight lines, whose horizontal and vertical ones name one coordinate each; other values unchanged."""
    at = ("", "")

    def shorter(line: re.Match[str]) -> str:
        nonlocal at
        before, at = at, (line[2], line[3])
        if line[1] == "M" or (at[0] != before[0] and at[1] != before[1]):
            return line[0]
        return f"V{at[1]}" if at[0] == before[0] else f"H{at[0]}"

    return path if _CURVES.search(path) else _LINE.sub(shorter, path)


def _small(svg: str) -> str:
    """The same picture in fewer bytes: no metadata, no empty groups, each style once, coordinates with one decimal."""
    for prefix, name in _NAMESPACES.items():
        ElementTree.register_namespace(prefix, name)
    root = ElementTree.fromstring(svg)
    _flatten(root)
    _number_names(root)
    styles: dict[str, str] = {}
    for element in root.iter():
        if style := element.attrib.pop("style", ""):
            style = style.replace("; ", ";").replace(": ", ":").replace("font-family:'DejaVu Sans';", "")
            element.set("class", styles.setdefault(style, f"s{len(styles)}"))
        for name, value in element.attrib.items():
            if name in _COORDINATES:
                element.set(name, _short_lines(_SPACES.sub(r"\1", " ".join(_NUMBER.sub(_decimal, value).split()))))
    sheet = next(element for element in root.iter() if element.tag.endswith("style"))
    rules = "".join(f".{name}{{{style}}}" for style, name in styles.items())
    sheet.text = f"text{{font-family:'DejaVu Sans',sans-serif}}{sheet.text}{rules}"
    text = ElementTree.tostring(root, encoding="unicode")
    return text.replace("><", ">\n<") + "\n"


_NAMESPACES = {"": "http://www.w3.org/2000/svg", "xlink": "http://www.w3.org/1999/xlink"}
_COORDINATES = frozenset({"d", "x", "y", "width", "height", "transform", "viewBox"})
_NUMBER = re.compile(r"-?\d+\.\d+")
_LINE = re.compile(r"([ML])(-?[\d.]+) (-?[\d.]+)")
_CURVES = re.compile(r"[^MLz\d. -]")
_SPACES = re.compile(r" ?\b([MLCQz])\b ?")


def _number_names(root: ElementTree.Element) -> None:
    """Number markers and clip paths in the order of the file: their own names vary with the last digits of a layout."""
    names: dict[str, str] = {}
    for element in root.iter():
        for key, value in element.attrib.items():
            if key == "id":
                element.set(key, names.setdefault(value, f"n{len(names)}"))
            elif found := re.fullmatch(r"(#|url\(#)([^)]*)(\)?)", value):
                name = names.setdefault(found[2], f"n{len(names)}")
                element.set(key, f"{found[1]}{name}{found[3] or ''}")


def _decimal(found: re.Match[str]) -> str:
    return f"{float(found[0]):.1f}".removesuffix(".0")


def _flatten(parent: ElementTree.Element) -> None:
    """Leave out metadata, names that nothing refers to, and groups without attributes."""
    children: list[ElementTree.Element] = []
    for child in parent:
        _flatten(child)
        tag = child.tag.rpartition("}")[2]
        child.tail = None
        if child.get("transform", "").startswith("rotate(-0"):
            del child.attrib["transform"]
        if tag in {"g", "text"}:
            child.attrib.pop("id", None)
        if tag == "metadata" or (tag in {"g", "defs"} and not len(child)):
            continue
        children.extend([child] if tag != "g" or child.attrib else child)
    if parent.text is not None and not parent.text.strip():
        parent.text = None
    parent[:] = children


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


def _figure(chart: Chart, footer: str) -> "Figure":
    from matplotlib.figure import Figure

    bars = chart.kind == "bars"
    titled = any(panel.title for panel in chart.panels)
    shown = list(chart.names)
    legend = [*shown, *dict.fromkeys(one.name for panel in chart.panels for one in panel.series if one.role == "paper")]
    columns = min(len(chart.panels), 3) or 1
    lines = math.ceil(len(chart.panels) / columns) or 1
    body = 0.55 + 0.36 * len(shown) if bars else 3.4
    width = {1: 7.2, 2: 9.2}.get(columns, 11.0)
    legend_width = sum(0.65 + 0.085 * len(name) for name in legend)
    legend_rows = 0 if bars else math.ceil(legend_width / (width - 0.3))
    header, bottom = 0.52 + 0.24 * legend_rows, 0.34
    height = header + lines * (body + (0.25 if titled else 0)) + bottom
    figure = Figure(figsize=(width, height), facecolor="white")
    area = (0.01, bottom / height, 0.98, 1 - (header + bottom) / height)
    figure.set_layout_engine("constrained", rect=area, w_pad=0.08, h_pad=0.05)
    grid = figure.subplots(lines, columns, squeeze=False, sharey=True, sharex=bars)
    for axes, panel in zip(grid.flat, chart.panels, strict=False):
        _frame(axes, chart)
        (_bars if bars else _lines)(axes, chart, panel)
        _label_short_scales(axes)
        if panel.title:
            axes.set_title(panel.title, fontsize=9, color=INK, loc="left", fontweight="bold")
    for axes in list(grid.flat)[len(chart.panels) :]:
        axes.set_visible(False)
    if "y" not in chart.log:  # after all panels, which share the axis: a limit ends its scaling
        grid.flat[0].set_xlim(left=0) if bars else grid.flat[0].set_ylim(bottom=0)
    left = 0.14 / width
    figure.text(left, 1 - 0.12 / height, chart.title, fontsize=12, fontweight="bold", va="top")
    if legend_rows:
        handles: dict[str, Any] = {}
        for axes in grid.flat:
            handles = {**dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True)), **handles}
        figure.legend(
            [handles[name] for name in legend if name in handles],
            [name for name in legend if name in handles],
            loc="upper left",
            bbox_to_anchor=(left - 0.08 / width, 1 - 0.4 / height),
            ncols=math.ceil(len(legend) / legend_rows),
            frameon=False,
            handlelength=2.6,
            columnspacing=1.6,
            borderaxespad=0,
        )
    figure.text(left, 0.1 / height, footer, fontsize=7, color=FAINT, va="bottom")
    return figure


def _frame(axes: "Axes", plot: Chart) -> None:
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


def _lines(axes: "Axes", chart: Chart, panel: Panel) -> None:
    by_name = {one.name: one for one in panel.series}
    for name in chart.names:
        if name in by_name:
            _line(axes, chart, by_name[name])
    for one in panel.series:
        if one.role == "paper":
            _stars(axes, chart, one, [x for x, _ in one.points], [y for _, y in one.points])


def _line(axes: "Axes", chart: Chart, one: Series) -> None:
    look = _look(chart, one.name)
    xs = [x for x, _ in one.points]
    axes.plot(
        xs,
        [y for _, y in one.points],
        label=one.name,
        color=look.colour,
        linewidth=look.width,
        linestyle=look.dash,
        marker=look.marker,
        markersize=look.size,
        markeredgecolor="white",
        markeredgewidth=0.7,
        zorder=look.order,
    )
    if one.ends:
        axes.fill_between(
            xs,
            [low for low, _ in one.ends],
            [high for _, high in one.ends],
            color=look.colour,
            alpha=0.14,
            linewidth=0,
            zorder=look.order - 1,
        )


def _stars(axes: "Axes", chart: Chart, one: Series, xs: list[float], ys: list[float]) -> None:
    """The paper's own numbers."""
    colour = _look(chart, one.like).colour if one.like in chart.names else INK
    axes.plot(
        xs,
        ys,
        label=one.name,
        linestyle="",
        marker="*",
        markersize=13,
        color="white",
        markeredgecolor=colour,
        markeredgewidth=1.4,
        zorder=20,
    )


def _bars(axes: "Axes", chart: Chart, panel: Panel) -> None:
    names = chart.names
    ours = [name for name in names if chart.role(name) == "ours"]
    for one in panel.series:
        (_, value), *_ = one.points
        if one.role == "paper":
            if one.like in names:
                _stars(axes, chart, one, [value], [names.index(one.like)])
            continue
        place = names.index(one.name)
        colour = OURS if one.role == "ours" else "#c9ced6" if one.role == "floor" else "#8d99a8"
        axes.barh(place, value, height=0.62, color=colour)
        end = value
        if one.ends:
            ((low, high),) = one.ends
            axes.hlines(place, low, high, color=INK, linewidth=1.2)
            axes.vlines([low, high], place - 0.1, place + 0.1, color=INK, linewidth=1.2)
            end = max(value, high)
        weight = "bold" if one.role == "ours" else "normal"
        figure = axes.annotate(_figure_of(value), (end, place), (5, 0), textcoords="offset points", fontweight=weight)
        figure.set(verticalalignment="center_baseline", bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8})
    axes.set_yticks(range(len(names)), list(names))
    axes.set_ylim(len(names) - 0.45, -0.55)
    for label in axes.get_yticklabels():
        if label.get_text() in ours:
            label.set_fontweight("bold")
    axes.tick_params(axis="y", length=0)
    axes.margins(x=0.18)


@dataclass(frozen=True)
class _Look:
    colour: str
    marker: str
    dash: tuple[float, tuple[float, ...] | None]
    width: float
    size: float
    order: int


def _look(chart: Chart, name: str) -> _Look:
    """The same name looks the same in every panel."""
    names, role = chart.names, chart.role(name)
    alike: Sequence[str] = [one for one in names if chart.role(one) == role]
    place = alike.index(name)
    if role == "ours":
        return _Look(OURS, "o", DASHES[place % len(DASHES)], 2.6, 7, 10)
    if role == "floor":
        return _Look(FAINT, "", (0, (1, 2)), 1.3, 0, 3)
    return _Look(RIVALS[place % len(RIVALS)], MARKERS[place % len(MARKERS)], DASHES[place % len(DASHES)], 1.5, 5.5, 5)


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
