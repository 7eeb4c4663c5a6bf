"""The stabbing-set index: semijoins in clusters whose filtering ranges share a point (§3 of the select-join paper).

A semijoin of one base axis and one filtering axis is a box, x its base range, y its filtering range; a `Forest` stores
the boxes. Queries are windows on its trees (`clustered_semijoin_index_kernels.py`): exposed semijoins are found among
the clusters in the gap, and the description of affected ones without listing them. A missing axis has the range of all
numbers; two base axes without a filtering one (join results) are x and y. The plain index serves panels of any other
shape, and strings.

Invariant: answers are those of `scan_index.py`.
Cost: O(τ log n) node visits per query for τ clusters, plus the listed results. The number of `anchors` is within a
factor of the fewest (`clustered_box_forest.py`).
"""

from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pathcast.kernels import Int64s

from ..query.order_preserving_key_encoding import Kind, TextKey
from .clustered_box_forest import Forest
from .clustered_box_forest_kernels import GREATEST, LEAST
from .clustered_semijoin_index_kernels import (
    any_affected,
    any_unaffected,
    any_window,
    find_gaps,
    list_affected,
    list_minimal,
    list_window,
    nearest,
    reach,
)
from .mmap_scratch_arrays import scratch
from .scan_index import ScanIndex, union
from .semijoin_index_protocol import Comparison, Ends, Ids, Point, Ranges, SemijoinIndex
from .stabbing_partition_kernels import Clusters
from .window_query_kernels import Window

_ALL = (int(LEAST), int(GREATEST))
# A window on one axis: least and greatest low end, least and greatest high end.
_AxisWindow = tuple[int, int, int, int]
_OPEN: list[_AxisWindow] = [(*_ALL, *_ALL), (*_ALL, *_ALL)]
_MINIMAL = 256


def stabbing_index(base: Sequence[Kind], filtering: Sequence[Kind]) -> SemijoinIndex:
    """The index for a panel over axes of these kinds."""
    shape = len(base), len(filtering)
    texts = any(isinstance(kind.lowest, TextKey) for kind in (*base, *filtering))
    if texts or (max(shape) > 1 and shape != (2, 0)):
        return ScanIndex(base, filtering)
    return StabbingIndex(*shape)


class StabbingIndex:
    """The semijoins of one panel, by clusters of their filtering ranges."""

    def __init__(self, base: int, filtering: int) -> None:
        self._base, self._filtering = base, filtering
        self._forest = Forest()
        self._clusters: Clusters | None = None
        self._places: Int64s = np.empty(1024, np.int64)
        self._following, self._found = np.empty((2, 1024), np.int32)

    def __len__(self) -> int:
        return len(self._forest)

    # Semijoins.

    def add(self, id: int, base: Ranges, filtering: Ranges) -> None:
        """Add a semijoin, one closed range of keys per axis."""
        ranges = [*base, *filtering]
        x = ranges[0] if self._base else _ALL
        y = ranges[-1] if self._filtering or self._base == 2 else _ALL
        self._clusters = None
        self._forest.add(id, (*x, *y))

    def add_many(self, ids: Ids, base: Sequence[Ends], filtering: Sequence[Ends]) -> None:
        """Add many semijoins."""
        boxes = scratch((len(ids), 4), np.int64)
        boxes[:] = (*_ALL, *_ALL)
        ranges = [*base, *filtering]
        if self._base:
            boxes[:, 0], boxes[:, 1] = ranges[0]
        if self._filtering or self._base == 2:
            boxes[:, 2], boxes[:, 3] = ranges[-1]
        self._clusters = None
        self._forest.add_many(np.ascontiguousarray(ids, np.int64), boxes)

    def remove(self, id: int) -> None:
        """Remove a semijoin."""
        self._clusters = None
        self._forest.remove(id)

    def base(self, id: int) -> Ranges:
        """The base ranges of a semijoin."""
        box = self._forest.box(id)
        return [(box[0], box[1]), (box[2], box[3])][: self._base]

    def filtering(self, id: int) -> Ranges:
        """The filtering ranges of a semijoin."""
        box = self._forest.box(id)
        return [(box[2], box[3])] if self._filtering else []

    # Base events.

    def selected(self, at: Point) -> Ids:
        """Those whose base ranges hold the point."""
        return self._named(self._listed(list_window, self._holding(at)))

    def affected(self, at: Point, joining: Sequence[Point]) -> Ids:
        """Those selected by `at` whose filtering ranges hold one of `joining`."""
        if not self._filtering:
            return self.selected(at) if len(joining) else np.empty(0, np.int64)
        return self._named(self._listed(list_affected, self._holding(at), _keys(joining)))

    def anchors(self) -> Sequence[Point]:
        """Points, ascending, of which every semijoin's filtering range holds one."""
        if self._filtering:
            anchors: list[int] = self._forest.anchors.tolist()
            return anchors
        return [()] if len(self) else []

    def nearest(self, joining: Sequence[Any]) -> list[Any]:
        """Of ascending keys those next to an anchor, each once."""
        anchors = self._forest.anchors
        found = np.empty(min(2 * len(anchors), len(joining)), np.int64)
        count = nearest(anchors, _keys(joining), found)
        keys: list[int] = found[:count].tolist()
        return keys

    def disposable(self, at: Point, keys: Sequence[Any]) -> list[bool]:
        """For each pair of neighbours among ascending keys, whether no semijoin that `at` selects lies between them."""
        free = np.empty(max(0, len(keys) - 1), np.bool_)
        find_gaps(self.clusters, at if self._base else 0, _keys(keys), free)
        answers: list[bool] = free.tolist()
        return answers

    def minimal(self, at: Point, joining: Sequence[Any]) -> list[tuple[Any, Any]]:
        """The filtering ranges of those that are affected and hold no other such range, ascending."""
        keys, x = _keys(joining), at if self._base else 0
        ranges: list[tuple[int, int]] = []
        found = np.empty((_MINIMAL, 2), np.int64)
        least, count = _ALL[0], _MINIMAL
        while count == _MINIMAL and least <= _ALL[1]:
            count = list_minimal(self.clusters, x, keys, least, found)
            ranges += map(tuple, found[:count].tolist())
            least = ranges[-1][0] + 1 if ranges else least
        return ranges

    def unaffected(self, at: Point, joining: Sequence[Any], low: Any, high: Any) -> bool:
        """Whether a semijoin is selected and not affected, and its range begins by `low` and ends from `high` on."""
        return any_unaffected(self.clusters, at if self._base else 0, _keys(joining), low, high)

    def compare(self, old: Point | None, new: Point | None, joining: Sequence[Point] | None) -> Comparison:
        """Whether a semijoin is affected by both of two points, by the new one only, by the old one only."""
        if joining is not None and not len(joining):
            return False, False, False
        keys = _keys(joining) if self._filtering and joining is not None else None
        before, after = self._point(old), self._point(new)
        return (
            self._any(_holding_both(before, after), keys),
            self._any(_holding_first(after, before), keys),
            self._any(_holding_first(before, after), keys),
        )

    def _point(self, at: Point | None) -> tuple[int, ...] | None:
        """A base point as keys on x and, for two base axes, y."""
        return (at,) if self._base == 1 and at is not None else at

    def _any(self, windows: Iterator[list[_AxisWindow]], keys: Int64s | None) -> bool:
        """Whether there is a box in one of the windows on x (and y) whose filtering range holds a key, if given."""
        for axes in windows:
            window = _window(axes)
            if any_window(self.clusters, window) if keys is None else any_affected(self.clusters, window, keys):
                return True
        return False

    # Filter events.

    def exposed(self, at: Point, held: Sequence[Point]) -> Ids:
        """Those whose filtering ranges hold `at` and none of `held`."""
        return self._named(self._expose(at, held))

    def spans(self, at: Point, held: Sequence[Point]) -> Sequence[Ranges]:
        """The base ranges of those that are exposed; on one axis their union, ascending and disjoint."""
        places = self._expose(at, held)
        if not self._base:
            return [[]] if len(places) else []
        boxes = self._forest.arrays.boxes[places]
        if self._base == 1:
            return [[span] for span in union(boxes[:, 0], boxes[:, 1])]
        return [[(a, b), (c, d)] for a, b, c, d in boxes.tolist()]

    def reached(self, at: Point, held: Sequence[Point], keys: Sequence[Any], most: int | None = None) -> list[int]:
        """Of ascending base keys, the places of those that an exposed semijoin selects."""
        gap = self._gap(at, held)
        if gap is None or not len(keys):
            return []
        if len(keys) >= len(self._following):
            self._following, self._found = np.empty((2, 2 * len(keys)), np.int32)
        count = reach(self.clusters, *gap, _keys(keys), most or len(keys), self._following, self._found)
        return sorted(self._found[:count].tolist())

    def _gap(self, at: Point, held: Sequence[Point]) -> tuple[int, int, int] | None:
        """The keys around `at` that the filtering range of an exposed semijoin may have; None when none is exposed."""
        if not self._filtering:
            return None if len(held) else (_ALL[0], 0, _ALL[1])
        low, high = _ALL
        for key in held:
            if key < at:
                low = max(low, key + 1)
            elif key > at:
                high = min(high, key - 1)
            else:
                return None
        return low, at, high

    def _expose(self, at: Point, held: Sequence[Point]) -> Int64s:
        gap = self._gap(at, held)
        if gap is None:
            return np.empty(0, np.int64)
        low, y, high = gap
        filtering = (low, y, y, high) if self._filtering else _OPEN[1]
        return self._listed(list_window, Window(*_OPEN[0], *filtering))

    # Trees.

    @property
    def clusters(self) -> Clusters:
        """The boxes as arguments of kernels; valid until the next change."""
        if self._clusters is None:
            self._clusters = self._forest.clusters
        return self._clusters

    def _holding(self, at: Point) -> Window:
        """The window of the boxes whose base ranges hold a point."""
        return _window([_holding(key, key) for key in self._point(at) or ()])

    def _listed(self, kernel: Any, *asked: Any) -> Int64s:
        """The results that a kernel lists, in an array that is large enough."""
        count = kernel(self.clusters, *asked, self._places)
        if count > len(self._places):
            self._places = np.empty(count + count // 4, np.int64)
            count = kernel(self.clusters, *asked, self._places)
        return self._places[:count]

    def _named(self, places: Int64s) -> Ids:
        return np.sort(self._forest.arrays.ids[places])


def _holding_both(one: tuple[int, ...] | None, other: tuple[int, ...] | None) -> Iterator[list[_AxisWindow]]:
    """The window of the boxes that hold two points."""
    if one is not None and other is not None:
        yield [_holding(min(a, b), max(a, b)) for a, b in zip(one, other, strict=True)]


def _holding_first(one: tuple[int, ...] | None, other: tuple[int, ...] | None) -> Iterator[list[_AxisWindow]]:
    """The windows of the boxes that hold a point and not another: there is a first axis on which they don't."""
    if one is None:
        return
    if other is None:
        yield [_holding(key, key) for key in one]
        return
    for axis, (key, missed) in enumerate(zip(one, other, strict=True)):
        if key != missed:
            before = [_holding(min(a, b), max(a, b)) for a, b in zip(one[:axis], other[:axis], strict=True)]
            low, high = _ALL
            here = (missed + 1, key, key, high) if missed < key else (low, key, key, missed - 1)
            yield [*before, here, *(_holding(a, a) for a in one[axis + 1 :])]


def _window(axes: Sequence[_AxisWindow]) -> Window:
    """A window on both axes; one that is not given is open."""
    return Window(*(end for axis in (*axes, *_OPEN[len(axes) :]) for end in axis))


def _holding(low: int, high: int) -> _AxisWindow:
    """The window of ranges that hold two keys."""
    return (_ALL[0], low, high, _ALL[1])


def _keys(keys: Sequence[Any]) -> Int64s:
    """Keys as an array; those of a run are not copied."""
    return np.frombuffer(keys, np.int64) if isinstance(keys, array) and keys else np.array(keys, np.int64)
