"""Points of one signature, in blocks: find the points in a region, below a point, or above a point.

The points are split at medians into blocks of about 64; the minimum and maximum of each column of a block show whether
it can contain a result. Since a region is a set of upper bounds on columns (`filter_point_transformation.py`), the
minima decide. New points are in a tail that is scanned, and are moved into blocks when the tail is a quarter of all.

Invariant: results are live rows, with their numbers after the query (a query may reorganise the rows); they are valid
until the next query or change.
Cost: of n points, a query reads n / 64 blocks and the rows of blocks with a result, or nearly so; a change is O(log n)
on average.
"""

import numpy as np
import numpy.typing as npt

from pathcast.kernels import Bools, Floats, Int32s, Int64s
from pathcast.store import grown, offsets_of

from .filter_point_transformation import Region

Rows = Int64s
BLOCK = 64
_SMALLEST = 4 * BLOCK


class PointSet:
    """Points with a number (of an entry) and a target each."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.columns: Floats = np.empty((8, width))
        self.entries: Rows = np.empty(8, np.int64)
        self.targets: Int32s = np.empty(8, np.int32)
        self.alive: Bools = np.zeros(8, bool)
        self._count = self._built = self._dead = 0
        self._place: dict[int, int] = {}
        self._least: Floats = np.empty((0, width))
        self._greatest: Floats = np.empty((0, width))
        self._starts: Rows = np.zeros(1, np.int64)

    def __len__(self) -> int:
        return self._count - self._dead

    def add(self, entries: npt.ArrayLike, points: npt.ArrayLike, target: int) -> None:
        """Add points under new numbers, all with one target."""
        numbers = np.asarray(entries, np.int64).reshape(-1)
        rows = np.asarray(points, np.float64).reshape(len(numbers), self.width)
        self._reserve(self._count + len(numbers))
        part = slice(self._count, self._count + len(numbers))
        self.columns[part], self.entries[part], self.targets[part], self.alive[part] = rows, numbers, target, True
        self._place.update(zip(numbers.tolist(), range(part.start, part.stop), strict=True))
        self._count = part.stop

    def remove(self, entry: int) -> None:
        """Remove a point."""
        self.alive[self._place.pop(entry)] = False
        self._dead += 1
        if self._dead > self._count // 2 and self._count > 8:
            self._lay_out()

    def point(self, entry: int) -> Floats:
        """The coordinates of a point."""
        found: Floats = self.columns[self._place[entry]]
        return found

    def row(self, entry: int) -> int:
        """The row of a point."""
        return self._place[entry]

    def all(self) -> Rows:
        """All live rows."""
        return np.flatnonzero(self.alive[: self._count])

    def inside(self, regions: list[tuple[int, Region]], *, loose: bool) -> Rows:
        """Rows in all of some regions, each given with its first column."""
        self._settle()
        rows = self._near(self._least, regions)
        for first, region in regions:
            if not len(rows):
                break
            part = self.columns[rows, first : first + region.most.shape[1]]
            rows = rows[region.within(part, loose=loose)]
        return rows

    def below(self, point: npt.ArrayLike) -> Rows:
        """Rows that are ≤ the point in every column: those that cover it."""
        return self.inside([(0, Region(np.asarray(point, np.float64).reshape(1, -1)))], loose=False)

    def above(self, point: npt.ArrayLike) -> Rows:
        """Rows that are ≥ the point in every column: those that it covers."""
        most = -np.asarray(point, np.float64).reshape(1, -1)
        self._settle()
        rows = self._near(-self._greatest, [(0, Region(most))])
        return rows[Region(most).within(-self.columns[rows])]

    def _near(self, least: Floats, regions: list[tuple[int, Region]]) -> Rows:
        """The rows of blocks that may contain a result, and of the tail."""
        if not self._built:
            return self.all()
        blocks = np.ones(len(least), bool)
        for first, region in regions:
            if not region.negated:
                blocks &= region.within(least[:, first : first + region.most.shape[1]], loose=True)
        starts, ends = self._starts[:-1][blocks], self._starts[1:][blocks]
        parts = [np.arange(start, end) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        rows = np.concatenate([*parts, np.arange(self._built, self._count)])
        found: Rows = rows[self.alive[rows]]
        return found

    def _settle(self) -> None:
        """Move the tail into blocks when it is too long."""
        if self._count > _SMALLEST and self._count - self._built + self._dead > max(_SMALLEST, self._built // 4):
            self._lay_out()

    def _lay_out(self) -> None:
        """Sort the rows by block, and remove dead rows."""
        rows = np.flatnonzero(self.alive[: self._count])
        small = len(rows) <= _SMALLEST
        groups = [rows] if small else cut(self.columns, rows)
        order = np.concatenate(groups)
        self.columns, self.entries, self.targets = self.columns[order], self.entries[order], self.targets[order]
        self.alive = np.ones(len(order), bool)
        self._count, self._dead = len(order), 0
        self._place = dict(zip(self.entries.tolist(), range(len(order)), strict=True))
        self._built = 0 if small else len(order)
        if not small:
            self._starts = offsets_of([len(group) for group in groups])
            self._least = np.minimum.reduceat(self.columns, self._starts[:-1], axis=0)
            self._greatest = np.maximum.reduceat(self.columns, self._starts[:-1], axis=0)

    def _reserve(self, count: int) -> None:
        if count <= len(self.alive):
            return
        room = max(count, 2 * len(self.alive))
        for name in ("columns", "entries", "targets", "alive"):
            setattr(self, name, grown(getattr(self, name)[: self._count], room))


def cut(columns: Floats, rows: Rows) -> list[Rows]:
    """Rows in groups of near points: split at the median of the column that spreads most by rank."""
    found: list[Rows] = []
    waiting = [(rows, 0)]
    while waiting:
        part, depth = waiting.pop()
        if len(part) <= BLOCK or not columns.shape[1]:
            found += [part[at : at + BLOCK] for at in range(0, len(part), BLOCK)]
            continue
        half = len(part) // 2
        order = np.argpartition(columns[part, depth % columns.shape[1]], half)
        waiting += [(part[order[:half]], depth + 1), (part[order[half:]], depth + 1)]
    return found


def maximal(points: Floats, chunk: int = 256) -> Bools:
    """Which points have no other point ≤ them; of equal points the first."""
    order = np.argsort(np.clip(points, -1e300, 1e300).sum(axis=1), kind="stable")
    kept = PointSet(points.shape[1])
    found = np.zeros(len(points), bool)
    for begin in range(0, len(order), chunk):
        part = order[begin : begin + chunk]
        fresh = part[[not len(kept.below(points[row])) for row in part]] if len(kept) else part
        rows = points[fresh]
        # Domination is transitive, so a point that an earlier point dominates is also dominated by a kept one.
        below = np.triu((rows[:, None] <= rows[None]).all(axis=2), 1).any(axis=0)
        fresh = fresh[~below]
        if len(fresh):
            found[fresh] = True
            kept.add(fresh, points[fresh], 0)
    return found
