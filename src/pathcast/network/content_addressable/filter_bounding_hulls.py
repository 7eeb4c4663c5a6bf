"""Bounding hulls: bounds on ends and widths of the ranges of some filters; and cells, the boxes that zones consist of.

A message goes to the zones that meet its region, and many of them have no matching filter: ranges are points near the
diagonal of a plane of low and high ends, and a region is a rectangle in it. An *extent* is the smallest hull of some
points with sides parallel to the axes and to the diagonal: the minimum and maximum of each end and of each width.

Repeated cuts of the space form a tree of boxes. A *cell* is a leaf of the tree; its *path* lists the box that each cut
separated from it, the first cut first, so that a cell and its path make up the space. A zone consists of cells, of
several if its node has taken another's place. A node knows an extent for every box of its cells' paths.

Invariant: a hull of hulls is a hull, so the extent of a box follows from those of its two parts, without asking the
parts again. `holds` is false only where no point of the extent can be.
Cost: six numbers per axis.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pathcast.kernels import Int64s

from .zone_boxes import Box


@dataclass(frozen=True, slots=True)
class Extent:
    """The minimum and maximum of the coordinates, which alternate low and high ends, and then of the widths."""

    low: tuple[int, ...]
    high: tuple[int, ...]

    @classmethod
    def of(cls, points: Int64s) -> "Extent | None":
        """The hull of points, one per row; None without points."""
        if not len(points):
            return None
        columns = np.concatenate([points, points[:, 1::2] - points[:, ::2]], axis=1)
        return cls(tuple(columns.min(axis=0).tolist()), tuple(columns.max(axis=0).tolist()))

    def holds(self, box: Box) -> bool:
        """Whether the extent can have a point in a box; a plain loop, since it runs for each piece of each message."""
        ends = len(box.low)
        for at in range(0, ends, 2):
            least, most = max(self.low[at], box.low[at]), min(self.high[at], box.high[at] - 1)
            lower, upper = max(self.low[at + 1], box.low[at + 1]), min(self.high[at + 1], box.high[at + 1] - 1)
            if least > most or lower > upper:
                return False
            width = ends + at // 2
            if max(self.low[width], lower - most) > min(self.high[width], upper - least):
                return False
        return True

    def inside(self, point: tuple[int, ...]) -> bool:
        """Whether a point is strictly inside: without it, the extent would be the same."""
        widths = (high - low for low, high in zip(point[::2], point[1::2], strict=True))
        return all(low < at < high for low, at, high in zip(self.low, (*point, *widths), self.high, strict=True))


def both(one: Extent | None, other: Extent | None) -> Extent | None:
    """The extent of two extents together."""
    if one is None or other is None:
        return one or other
    return Extent(tuple(map(min, one.low, other.low)), tuple(map(max, one.high, other.high)))


def extent_size(extent: Extent | None) -> int:
    """Bytes of an extent: one for whether it exists, and three per bound."""
    return 1 if extent is None else 1 + 6 * len(extent.low)


@dataclass(frozen=True, slots=True)
class Cell:
    """A leaf of the tree of cuts."""

    box: Box
    path: tuple[Box, ...] = ()

    def split(self, kept: Box, given: Box) -> tuple["Cell | None", "Cell | None"]:
        """The cell's share in two parts of a zone; if both have one, each ends the other's path."""
        mine, theirs = self.box & kept, self.box & given
        if mine.empty or theirs.empty:
            return (None, self) if mine.empty else (self, None)
        return Cell(mine, (*self.path, theirs)), Cell(theirs, (*self.path, mine))


def united(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """The same cells, with pairs that were one before the last cut merged."""
    found: list[Cell] = []
    for cell in cells:
        one = cell
        while one.path and (other := next((it for it in found if it.box == one.path[-1]), None)) is not None:
            whole = one.box.joined(other.box)
            assert whole is not None
            found.remove(other)
            one = Cell(whole, one.path[:-1])
        found.append(one)
    return tuple(found)
