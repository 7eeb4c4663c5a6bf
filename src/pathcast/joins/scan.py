"""The plain index: all semijoins of a panel in arrays, looked at one and all for every question.

It is the twin that faster indexes are held against, and what serves panels that they don't: several axes, or strings.

Invariant: place `k` of the arrays belongs to `ids[k]`; the arrays are full up to their last place.
Cost: an event takes some passes over n semijoins (about 1 ns each a range end); anchors are found anew after a change,
in O(n log n).
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from .index import Ends, Ids, Point, Ranges
from .kinds import Kind, TextKey

_Array = npt.NDArray[Any]
_FIRST = 16


class ScanIndex:
    """All semijoins of one panel, in no order."""

    def __init__(self, base: Sequence[Kind], filtering: Sequence[Kind]) -> None:
        self._base, self._filtering = len(base), len(filtering)
        self._types = [object if isinstance(kind.lowest, TextKey) else np.int64 for kind in (*base, *filtering)]
        self._low: list[_Array] = [np.empty(_FIRST, kind) for kind in self._types]
        self._high: list[_Array] = [np.empty(_FIRST, kind) for kind in self._types]
        self._ids = np.empty(_FIRST, np.int64)
        self._places: dict[int, int] = {}
        self._anchors: list[Point] | None = []

    def __len__(self) -> int:
        return len(self._places)

    def add(self, id: int, base: Ranges, filtering: Ranges) -> None:
        """Take up a semijoin, a closed range of keys an axis."""
        if id in self._places:
            raise KeyError(id)
        place = len(self._places)
        if place == len(self._ids):
            self._grow()
        self._ids[place] = id
        for axis, (low, high) in enumerate((*base, *filtering)):
            self._low[axis][place], self._high[axis][place] = low, high
        self._places[id] = place
        self._anchors = None

    def add_many(self, ids: Ids, base: Sequence[Ends], filtering: Sequence[Ends]) -> None:
        """Take up many at once."""
        first, last = len(self._places), len(self._places) + len(ids)
        if len(np.unique(ids)) < len(ids) or any(id in self._places for id in ids.tolist()):
            raise KeyError("an id is there already")
        while last > len(self._ids):
            self._grow()
        self._ids[first:last] = ids
        for axis, (low, high) in enumerate((*base, *filtering)):
            self._low[axis][first:last], self._high[axis][first:last] = low, high
        self._places.update(zip(ids.tolist(), range(first, last), strict=True))
        self._anchors = None

    def _grow(self) -> None:
        self._ids = np.concatenate([self._ids, np.empty_like(self._ids)])
        for ends in (self._low, self._high):
            ends[:] = [np.concatenate([one, np.empty_like(one)]) for one in ends]

    def remove(self, id: int) -> None:
        """Forget a semijoin: the last one takes its place."""
        place = self._places.pop(id)
        last = len(self._places)
        if place != last:
            self._ids[place] = self._ids[last]
            self._places[int(self._ids[place])] = place
            for ends in (self._low, self._high):
                for one in ends:
                    one[place] = one[last]
        self._anchors = None

    def filtering(self, id: int) -> Ranges:
        """The filtering ranges of a semijoin."""
        place = self._places[id]
        ends = zip(self._low[self._base :], self._high[self._base :], strict=True)
        return [(_key(low[place]), _key(high[place])) for low, high in ends]

    def selected(self, at: Point) -> Ids:
        """Those whose base ranges hold the point."""
        return self._named(self._select(at))

    def affected(self, at: Point, joining: Sequence[Point]) -> Ids:
        """Those selected by `at` whose filtering ranges hold one of `joining`."""
        return self._named(self._select(at) & self._any(joining))

    def anchors(self) -> list[Point]:
        """Points of which every semijoin's filtering ranges hold one; on one axis as few as can be."""
        if self._anchors is None:
            places = np.arange(len(self._places))
            self._anchors = sorted(set(self._stab(places, self._base))) if len(places) else []
        return self._anchors

    def _stab(self, places: npt.NDArray[np.int64], axis: int) -> list[Point]:
        """Anchors of some places: each of the clusters on one axis is clustered on the next."""
        if axis == len(self._low):
            return [()]
        order = places[np.argsort(self._high[axis][places], kind="stable")]
        rest = order
        points: list[Point] = []
        while len(rest):
            anchor = self._high[axis][rest[0]]
            stabbed = self._low[axis][rest] <= anchor
            key = _key(anchor)
            if self._filtering == 1:
                points.append(key)
            else:
                points += [(key, *more) for more in self._stab(rest[stabbed], axis + 1)]
            rest = rest[~stabbed]
        return points

    def disposable(self, at: Point, low: Any, high: Any) -> bool:
        """Whether no semijoin that `at` selects lies with its (one) filtering range strictly between two keys."""
        size = len(self._places)
        inside = (self._low[-1][:size] > low) & (self._high[-1][:size] < high)
        return not bool((self._select(at) & inside).any())

    def exposed(self, at: Point, held: Sequence[Point]) -> Ids:
        """Those whose filtering ranges hold `at` and none of `held`."""
        return self._named(self._expose(at, held))

    def spans(self, at: Point, held: Sequence[Point]) -> Sequence[Ranges]:
        """The base ranges of those that are exposed; on one axis their union, ascending and disjoint."""
        places = np.flatnonzero(self._expose(at, held))
        boxes = [[(low[k], high[k]) for low, high in self._base_ends()] for k in places]
        if self._base == 1:
            return [[span] for span in _union([box[0] for box in boxes])]
        return boxes

    def _base_ends(self) -> list[tuple[_Array, _Array]]:
        return list(zip(self._low[: self._base], self._high[: self._base], strict=True))

    def _named(self, marks: npt.NDArray[np.bool_]) -> Ids:
        return np.sort(self._ids[: len(self._places)][marks])

    def _select(self, at: Point) -> npt.NDArray[np.bool_]:
        return self._hold(at, 0, self._base)

    def _any(self, points: Sequence[Point]) -> npt.NDArray[np.bool_]:
        marks = np.zeros(len(self._places), bool)
        for point in points:
            marks |= self._hold(point, self._base, self._filtering)
        return marks

    def _expose(self, at: Point, held: Sequence[Point]) -> npt.NDArray[np.bool_]:
        return self._hold(at, self._base, self._filtering) & ~self._any(held)

    def _hold(self, point: Point, first: int, axes: int) -> npt.NDArray[np.bool_]:
        """Which boxes hold a point on `axes` axes from `first` on."""
        size = len(self._places)
        marks = np.ones(size, bool)
        for axis, key in enumerate((point,) if axes == 1 else point, first):
            marks &= (self._low[axis][:size] <= key).astype(bool) & (self._high[axis][:size] >= key).astype(bool)
        return marks


def _key(key: Any) -> Any:
    return int(key) if isinstance(key, np.int64) else key


def _union(spans: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """The union of closed ranges as disjoint ones in order."""
    spans.sort()
    joined = spans[:1]
    for low, high in spans[1:]:
        if low > joined[-1][1]:
            joined.append((low, high))
        elif high > joined[-1][1]:
            joined[-1] = (joined[-1][0], high)
    assert all(one[1] < other[0] for one, other in pairwise(joined))
    return joined
