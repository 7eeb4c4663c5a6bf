"""The plain index: all semijoins of a panel in arrays, scanned for every query.

It is the reference for faster indexes, and serves the panels that they do not support: several axes, or strings.

Invariant: place `k` of the arrays belongs to `ids[k]`; the arrays are full up to their last place.
Cost: an event takes some passes over n semijoins (about 1 ns per range end); anchors are recomputed after a change, in
O(n log n).
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pathcast.kernels import AnyArray, Bools, Int64s

from ..query.order_preserving_key_encoding import Kind, TextKey
from .semijoin_index_protocol import Comparison, Ends, Ids, Point, Ranges

_FIRST = 16
# From this many points on, one search per range costs less than one pass per point.
_FEW = 4


class ScanIndex:
    """All semijoins of one panel, in no order."""

    def __init__(self, base: Sequence[Kind], filtering: Sequence[Kind]) -> None:
        self._base, self._filtering = len(base), len(filtering)
        self._types = [object if isinstance(kind.lowest, TextKey) else np.int64 for kind in (*base, *filtering)]
        self._low: list[AnyArray] = [np.empty(_FIRST, kind) for kind in self._types]
        self._high: list[AnyArray] = [np.empty(_FIRST, kind) for kind in self._types]
        self._ids = np.empty(_FIRST, np.int64)
        self._places: dict[int, int] = {}
        self._anchors: list[Point] | None = []

    def __len__(self) -> int:
        return len(self._places)

    def add(self, id: int, base: Ranges, filtering: Ranges) -> None:
        """Add a semijoin, one closed range of keys per axis."""
        if id in self._places:
            raise KeyError(f"semijoin id {id} is already in use; choose another id")
        place = len(self._places)
        if place == len(self._ids):
            self._grow()
        self._ids[place] = id
        for axis, (low, high) in enumerate((*base, *filtering)):
            self._low[axis][place], self._high[axis][place] = low, high
        self._places[id] = place
        self._anchors = None

    def add_many(self, ids: Ids, base: Sequence[Ends], filtering: Sequence[Ends]) -> None:
        """Add many semijoins."""
        first, last = len(self._places), len(self._places) + len(ids)
        if len(np.unique(ids)) < len(ids) or any(id in self._places for id in ids.tolist()):
            taken = [id for id, count in Counter(ids.tolist()).items() if count > 1 or id in self._places]
            why = "already in use" if taken[0] in self._places else "given twice"
            raise KeyError(f"semijoin id {taken[0]} is {why}; give distinct unused ids")
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
        """Remove a semijoin: the last one takes its place."""
        place = self._places.pop(id)
        last = len(self._places)
        if place != last:
            self._ids[place] = self._ids[last]
            self._places[int(self._ids[place])] = place
            for ends in (self._low, self._high):
                for one in ends:
                    one[place] = one[last]
        self._anchors = None

    def base(self, id: int) -> Ranges:
        """The base ranges of a semijoin."""
        return self._ranges(id)[: self._base]

    def filtering(self, id: int) -> Ranges:
        """The filtering ranges of a semijoin."""
        return self._ranges(id)[self._base :]

    def _ranges(self, id: int) -> list[tuple[Any, Any]]:
        place = self._places[id]
        return [(_key(low[place]), _key(high[place])) for low, high in zip(self._low, self._high, strict=True)]

    def selected(self, at: Point) -> Ids:
        """Those whose base ranges hold the point."""
        return self._named(self._select(at))

    def affected(self, at: Point, joining: Sequence[Point]) -> Ids:
        """Those selected by `at` whose filtering ranges hold one of `joining`."""
        return self._named(self._select(at) & self._any(joining))

    def anchors(self) -> list[Point]:
        """Points of which every semijoin's filtering ranges contain one; on one axis the fewest possible."""
        if self._anchors is None:
            places = np.arange(len(self._places))
            self._anchors = sorted(set(self._stab(places, self._base))) if len(places) else []
        return self._anchors

    def _stab(self, places: Int64s, axis: int) -> list[Point]:
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

    def nearest(self, joining: Sequence[Any]) -> list[Any]:
        """Of ascending keys those next to an anchor, each once."""
        found: set[Any] = set()
        for anchor in self.anchors():
            at = bisect_left(joining, anchor)
            if at < len(joining) and joining[at] == anchor:
                found.add(anchor)
            else:
                found.update(joining[max(0, at - 1) : at + 1])
        return sorted(found)

    def disposable(self, at: Point, keys: Sequence[Any]) -> list[bool]:
        """For each pair of neighbours among ascending keys, whether no semijoin that `at` selects lies between them."""
        chosen = np.flatnonzero(self._select(at))
        known = np.array(keys, self._types[-1])
        # A range that holds no key lies between the last key before it and the next.
        before = np.searchsorted(known, self._low[-1][chosen])
        between = before[before == np.searchsorted(known, self._high[-1][chosen], "right")]
        taken = np.bincount(between, minlength=len(keys) + 1)
        return [not count for count in taken[1 : len(keys)].tolist()]

    def minimal(self, at: Point, joining: Sequence[Any]) -> list[tuple[Any, Any]]:
        """The filtering ranges of affected ones that hold no other such range, ascending."""
        places = np.flatnonzero(self._select(at) & self._any(joining))
        ranges = zip(self._low[-1][places].tolist(), self._high[-1][places].tolist(), strict=True)
        return minimal_ranges(ranges)

    def unaffected(self, at: Point, joining: Sequence[Any], low: Any, high: Any) -> bool:
        """Whether a semijoin is selected and not affected, and its range begins by `low` and ends from `high` on."""
        size = len(self._places)
        reaching = (self._low[-1][:size] <= low).astype(bool) & (self._high[-1][:size] >= high).astype(bool)
        return bool((reaching & self._select(at) & ~self._any(joining)).any())

    def compare(self, old: Point | None, new: Point | None, joining: Sequence[Point] | None) -> Comparison:
        """Compare two versions of a tuple: affected by both, by the new one only, by the old one only."""
        size = len(self._places)
        through = np.ones(size, bool) if joining is None else self._any(joining)
        before, after = (through & self._select(at) if at is not None else np.zeros(size, bool) for at in (old, new))
        return bool((before & after).any()), bool((after & ~before).any()), bool((before & ~after).any())

    def exposed(self, at: Point, held: Sequence[Point]) -> Ids:
        """Those whose filtering ranges hold `at` and none of `held`."""
        return self._named(self._expose(at, held))

    def spans(self, at: Point, held: Sequence[Point]) -> Sequence[Ranges]:
        """The base ranges of those that are exposed; on one axis their union, ascending and disjoint."""
        places = np.flatnonzero(self._expose(at, held))
        if self._base == 1:
            return [[span] for span in union(self._low[0][places], self._high[0][places])]
        ends = list(zip(self._low[: self._base], self._high[: self._base], strict=True))
        return [[(low[place], high[place]) for low, high in ends] for place in places]

    def reached(self, at: Point, held: Sequence[Point], keys: Sequence[Any], most: int | None = None) -> list[int]:
        """Of ascending base keys, the places of those that an exposed semijoin selects."""
        spans = [span[0] for span in self.spans(at, held)]
        ends = [(bisect_left(keys, low), bisect_right(keys, high)) for low, high in spans]
        return [place for first, last in ends for place in range(first, last)][:most]

    def _named(self, marks: Bools) -> Ids:
        return np.sort(self._ids[: len(self._places)][marks])

    def _select(self, at: Point) -> Bools:
        return self._hold(at, 0, self._base)

    def _any(self, points: Sequence[Point]) -> Bools:
        size = len(self._places)
        if self._filtering == 1 and self._types[-1] is np.int64 and len(points) > _FEW:
            keys = np.sort(np.array(points, np.int64))
            low, high = self._low[-1][:size], self._high[-1][:size]
            return np.searchsorted(keys, low) < np.searchsorted(keys, high, "right")
        marks = np.zeros(size, bool)
        for point in points:
            marks |= self._hold(point, self._base, self._filtering)
        return marks

    def _expose(self, at: Point, held: Sequence[Point]) -> Bools:
        return self._hold(at, self._base, self._filtering) & ~self._any(held)

    def _hold(self, point: Point, first: int, axes: int) -> Bools:
        """Which boxes hold a point on `axes` axes from `first` on."""
        size = len(self._places)
        marks = np.ones(size, bool)
        for axis, key in enumerate((point,) if axes == 1 else point, first):
            marks &= (self._low[axis][:size] <= key).astype(bool) & (self._high[axis][:size] >= key).astype(bool)
        return marks


def _key(key: Any) -> Any:
    return int(key) if isinstance(key, np.int64) else key


def union(low: AnyArray, high: AnyArray) -> list[tuple[Any, Any]]:
    """The union of closed ranges as disjoint ones in order."""
    if not len(low):
        return []
    order = np.argsort(low, kind="stable")
    low, furthest = low[order], np.maximum.accumulate(high[order])
    first = np.flatnonzero(np.concatenate([[True], (low[1:] > furthest[:-1]).astype(bool)]))
    last = np.concatenate([first[1:] - 1, [len(low) - 1]])
    return [(_key(low[a]), _key(furthest[b])) for a, b in zip(first, last, strict=True)]


def minimal_ranges(ranges: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """The ranges that hold no other, ascending at both ends."""
    kept: list[tuple[Any, Any]] = []
    for low, high in sorted(set(ranges), key=lambda ends: (ends[0], _Reversed(ends[1]))):
        while kept and kept[-1][1] >= high:
            kept.pop()
        kept.append((low, high))
    return kept


class _Reversed:
    """Sorts in reverse."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: "_Reversed") -> bool:
        return bool(other.key < self.key)
