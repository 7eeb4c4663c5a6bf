"""Boxes of whole numbers: zones of a CAN, and regions of messages.

A box has a low corner (inclusive) and a high corner (exclusive). With whole numbers every distance and every cut is
exact, so greedy routing always makes progress.

Cost: a few comparisons per dimension.
"""

from dataclasses import dataclass

import numpy as np

from pathcast.kernels import Bools, Int64s

# A space extends from 0 to SIDE in every dimension.
BITS = 20
SIDE = 1 << BITS


@dataclass(frozen=True, slots=True)
class Box:
    """The points from `low` (inclusive) to `high` (exclusive)."""

    low: tuple[int, ...]
    high: tuple[int, ...]

    @property
    def empty(self) -> bool:
        """Whether the box contains no point."""
        return any(low >= high for low, high in zip(self.low, self.high, strict=True))

    @property
    def volume(self) -> int:
        """The number of points in the box."""
        found = 1
        for low, high in zip(self.low, self.high, strict=True):
            found *= max(0, high - low)
        return found

    def __contains__(self, point: tuple[int, ...]) -> bool:
        return all(low <= at < high for low, at, high in zip(self.low, point, self.high, strict=True))

    def rows(self, points: Int64s) -> Bools:
        """Which of some points, one per row, are in the box."""
        return np.asarray(((points >= self.low) & (points < self.high)).all(axis=1), np.bool_)

    def __and__(self, other: "Box") -> "Box":
        return Box(tuple(map(max, self.low, other.low)), tuple(map(min, self.high, other.high)))

    def meets(self, other: "Box") -> bool:
        """Whether two boxes have a common point."""
        # A plain loop: this runs half a million times for a thousand messages.
        for a, b, c, d in zip(self.low, self.high, other.low, other.high, strict=True):
            if a >= d or c >= b:
                return False
        return True

    def distance(self, other: "Box") -> int:
        """The Manhattan distance between two boxes; 0 if they meet."""
        found = 0
        for a, b, c, d in zip(self.low, self.high, other.low, other.high, strict=True):
            if b <= c:
                found += c - b + 1
            elif d <= a:
                found += a - d + 1
        return found

    def touches(self, other: "Box") -> bool:
        """Whether two boxes share a face: they overlap in all dimensions but one, in which they are adjacent."""
        beside = 0
        for a, b, c, d in zip(self.low, self.high, other.low, other.high, strict=True):
            if b == c or d == a:
                beside += 1
            elif b < c or d < a:
                return False
        return beside == 1

    def minus(self, other: "Box") -> list["Box"]:
        """The rest of the box without the other, as disjoint boxes: beside each face of the other, dimension by
        dimension.
        """
        if not self.meets(other):
            return [self]
        found = []
        low, high = list(self.low), list(self.high)
        for at in range(len(low)):
            if low[at] < other.low[at]:
                found.append(Box(tuple(low), (*high[:at], other.low[at], *high[at + 1 :])))
                low[at] = other.low[at]
            if other.high[at] < high[at]:
                found.append(Box((*low[:at], other.high[at], *low[at + 1 :]), tuple(high)))
                high[at] = other.high[at]
        return found

    def split(self, dimension: int, at: int) -> tuple["Box", "Box"]:
        """The two parts: below a place, and from it on."""
        below = Box(self.low, (*self.high[:dimension], at, *self.high[dimension + 1 :]))
        return below, Box((*self.low[:dimension], at, *self.low[dimension + 1 :]), self.high)

    def joined(self, other: "Box") -> "Box | None":
        """The union of two boxes, if it is a box."""
        differ = [at for at in range(len(self.low)) if (self.low[at], self.high[at]) != (other.low[at], other.high[at])]
        if len(differ) != 1:
            return None
        at = differ[0]
        if self.high[at] == other.low[at]:
            return Box(self.low, other.high)
        return Box(other.low, self.high) if other.high[at] == self.low[at] else None

    def __str__(self) -> str:
        return " × ".join(f"[{low}, {high})" for low, high in zip(self.low, self.high, strict=True))


def apart(boxes: list[Box]) -> list[Box]:
    """The same points as disjoint boxes."""
    found: list[Box] = []
    for box in boxes:
        rest = [box] if not box.empty else []
        for have in found:
            rest = [part for one in rest for part in one.minus(have)]
        found += rest
    return found


def boxes_size(boxes: tuple[Box, ...]) -> int:
    """Bytes of some boxes: their number, a bit per side, and three bytes per side that is not a side of the space."""
    if not boxes:
        return 0
    sides = (2 * len(boxes[0].low) + 7) // 8
    cuts = sum(sum(map(bool, box.low)) + sum(high != SIDE for high in box.high) for box in boxes)
    return 1 + len(boxes) * sides + 3 * cuts
