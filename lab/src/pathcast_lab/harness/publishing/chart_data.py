"""Charts: a plot's declaration applied to rows, as plain data that can be stored and drawn without the rows.

A chart has panels, a panel has series, and a series has points `(x, y)`; bars have one point each, and no x. A series
is ours, a rival's, a floor, or has the paper's own numbers. Numbers keep five significant digits.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Role = Literal["ours", "rival", "floor", "paper"]
Kind = Literal["lines", "bars"]
Log = Literal["", "x", "y", "xy"]


@dataclass(frozen=True)
class Series:
    """`like` names the series that a series of the paper's numbers belongs to; `ends` are intervals of y."""

    name: str
    role: Role
    points: tuple[tuple[float, float], ...]
    ends: tuple[tuple[float, float], ...] = ()
    like: str = ""


@dataclass(frozen=True)
class Panel:
    """Series side by side; the title is empty where a chart has one panel."""

    title: str
    series: tuple[Series, ...]


@dataclass(frozen=True)
class Chart:
    """The content of a plot. `sources` name the places of the paper's own numbers."""

    name: str
    title: str
    kind: Kind
    x_label: str
    y_label: str
    log: Log
    panels: tuple[Panel, ...]
    sources: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The series that were measured: ours first, then rivals in the order of the rows, then floors."""
        roles = {one.name: one.role for panel in self.panels for one in panel.series if one.role != "paper"}
        order = {"ours": 0, "rival": 1, "floor": 2}
        return tuple(sorted(roles, key=lambda name: order[roles[name]]))

    def role(self, name: str) -> Role:
        """The role of a series that was measured."""
        return next(one.role for panel in self.panels for one in panel.series if one.name == name)

    def to_record(self) -> dict[str, Any]:
        """The chart as plain data."""
        return dataclasses.asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Chart":
        """The inverse of `to_record`, also after a round trip through JSON."""
        panels = tuple(Panel(panel["title"], tuple(map(_series, panel["series"]))) for panel in record["panels"])
        return cls(**{**record, "panels": panels, "sources": tuple(record["sources"])})


def _series(record: Mapping[str, Any]) -> Series:
    pairs = {name: tuple((one, other) for one, other in record[name]) for name in ("points", "ends")}
    return Series(**{**record, **pairs})


def rounded(value: float) -> float:
    """Five significant digits: more than a plot shows."""
    return value if isinstance(value, int) else float(f"{value:.5g}")
