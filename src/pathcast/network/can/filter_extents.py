"""Extents: between which ends, and how wide, the ranges of some filters are; and cells, the boxes that zones are of.

A message goes to the zones that meet its region, and many of them hold nobody whom it is for: ranges are points near
the diagonal of a plane of low and high ends, a region is a rectangle of it. An *extent* is the least hull of some
points whose sides are those of boxes and of the diagonal: the least and the greatest of each end and of each width.

Cutting the space again and again makes a tree of boxes. A *cell* is a leaf of it; its *path* has the box that was cut
off from it by each cut, the first one first, so that a cell and its path are the space. Zones are made of cells, of
several where a node has taken another's place. A node knows an extent for every box of its cells' paths.

Invariant: hulls of hulls are hulls, so the extent of a box is that of its two parts together, and no part need be
asked again. `holds` is false only where no point of the extent can be.
Cost: six numbers an axis.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pathcast.kernels import Int64s

from .zones import Box


@dataclass(frozen=True, slots=True)
class Extent:
    """The least and the greatest of coordinates, which are low and high ends in turn, and then of widths."""

    low: tuple[int, ...]
    high: tuple[int, ...]

    @classmethod
    def of(cls, points: Int64s) -> "Extent | None":
        """The hull of points, one a row; None of none."""
        if not len(points):
            return None
        columns = np.concatenate([points, points[:, 1::2] - points[:, ::2]], axis=1)
        return cls(tuple(columns.min(axis=0).tolist()), tuple(columns.max(axis=0).tolist()))

    def holds(self, box: Box) -> bool:
        """Whether a point of a box can be one of those; a plain loop, asked for each piece of each message."""
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
        """Whether a point is no bound of it: without that point, it is the same."""
        widths = (high - low for low, high in zip(point[::2], point[1::2], strict=True))
        return all(low < at < high for low, at, high in zip(self.low, (*point, *widths), self.high, strict=True))


def both(one: Extent | None, other: Extent | None) -> Extent | None:
    """The extent of two together."""
    if one is None or other is None:
        return one or other
    return Extent(tuple(map(min, one.low, other.low)), tuple(map(max, one.high, other.high)))


def extent_size(extent: Extent | None) -> int:
    """Bytes of an extent: whether there is one, and three for each bound."""
    return 1 if extent is None else 1 + 6 * len(extent.low)


@dataclass(frozen=True, slots=True)
class Cell:
    """A leaf of the tree of cuts."""

    box: Box
    path: tuple[Box, ...] = ()

    def split(self, kept: Box, given: Box) -> tuple["Cell | None", "Cell | None"]:
        """What two parts of a zone have of it; each of two has the other at the end of its path."""
        mine, theirs = self.box & kept, self.box & given
        if mine.empty or theirs.empty:
            return (None, self) if mine.empty else (self, None)
        return Cell(mine, (*self.path, theirs)), Cell(theirs, (*self.path, mine))


def united(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """The same with one cell for two that were one before the last cut."""
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
