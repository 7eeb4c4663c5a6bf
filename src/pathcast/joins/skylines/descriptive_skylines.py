"""Descriptive skylines: a few points that describe the affected ones among all selected semijoins.

§3.2.1 and appendices B and C of the select-join paper. A tuple of the base table arrives; J are the filtering tuples of
its join value. A semijoin is *selected* if its base ranges contain the tuple, and *affected* if its filtering range I
also contains a point of J. A point (X, Y) covers I when I begins at X or before and ends at Y or after. A skyline is
correct when it covers, of the selected semijoins, exactly the affected ones.

    tup    (c, c) for every c in J: I covers (c, c) exactly if it holds c
    sub    (lo, hi) of every affected I that holds no other affected one: what covers it holds the same point of J
    clu    (c, c) for the nearest of J on both sides of each anchor p: I holds its p, so if it holds any c in J, it
    holds
           the nearest one on that side
    clu+   clu, with runs q₁ … qₙ of its points made one, (qₙ, q₁), which covers what reaches into [q₁, qₙ]: all that
    hold
           a q, and those that lie strictly between two neighbours. A run may be joined if no *selected* one does
           (the triangle is disposable). One disposable triangle is enough to save a point; the paper asks for two
    min    the fewest points. Sort the minimal affected ranges; (X, Y) covers a contiguous run i … j of them if
           X ≥ lo_j and Y ≤ hi_i, so (lo_j, hi_i) is the least that does, and it is right if no selected, unaffected
           range has lo ≤ lo_j and hi ≥ hi_i. What is right for a run is right for its parts; so taking the longest run
           each time yields the fewest. One search per range, where the paper has O(k²)

On several filtering axes: `tup` the same; `clu`, `clu+` and `min` the skyline envelope of each anchor; `sub` the
boxes that hold no other.

Cost: that of the index; `tup` O(|J|), `clu` O(τ log |J|) for τ anchors.
"""

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from ..index.scan_index import minimal_ranges
from ..index.semijoin_index_protocol import Ranges, SemijoinIndex
from ..query.order_preserving_key_encoding import TextKey
from ..server.sorted_row_views import Run
from .skyline_around_point import envelope, inside

FLAVOURS = ("tup", "sub", "clu", "clu+", "min")
# X and Y on each filtering axis.
Corners: TypeAlias = tuple[Any, ...]
# Panels with the point of the tuple in each; panels that cannot select it (a NULL) are omitted.
Placed: TypeAlias = Sequence[tuple[SemijoinIndex, Any]]


def describe(flavour: str, placed: Placed, run: Run, axes: int) -> list[Corners]:
    """The skyline for a tuple and the filtering tuples of its join value; empty when no semijoin is affected."""
    if not len(run) or not placed:
        return []
    if flavour == "tup":
        return [_corner(point, axes) for point in _distinct(run.keys)]
    if flavour == "sub":
        return _minimal_area(placed, run, axes)
    if axes > 1:
        points = {point for index, _ in placed for p in index.anchors() for point in envelope(run.keys, p)}
        return [_corner(point, axes) for point in sorted(points)]
    if flavour == "min":
        return _fewest(placed, run)
    nearest = _nearest(placed, run)
    return _joined(placed, nearest) if flavour == "clu+" else [(key, key) for key in nearest]


def _corner(point: Any, axes: int) -> Corners:
    """A point of J as a point of the skyline: each coordinate twice."""
    return (point, point) if axes == 1 else tuple(key for key in point for _ in range(2))


def _distinct(keys: Sequence[Any]) -> list[Any]:
    return [key for at, key in enumerate(keys) if not at or keys[at - 1] != key]


def _nearest(placed: Placed, run: Run) -> list[Any]:
    """The points of J next to some anchor, ascending."""
    if len(placed) == 1:
        return placed[0][0].nearest(run.keys)
    return sorted({key for index, _ in placed for key in index.nearest(run.keys)})


def _joined(placed: Placed, keys: Sequence[Any]) -> list[Corners]:
    """Maximal runs of keys with disposable triangles between them, one point per run."""
    if not keys:
        return []
    breaks: set[int] = set()
    for index, at in placed:
        breaks.update([place for place, free in enumerate(index.disposable(at, keys)) if not free])
    last = [*sorted(breaks), len(keys) - 1]
    first = [0, *(place + 1 for place in last[:-1])]
    return [(keys[end], keys[begin]) for begin, end in zip(first, last, strict=True)]


def _minimal_area(placed: Placed, run: Run, axes: int) -> list[Corners]:
    if axes == 1 and not isinstance(run.keys[0], TextKey):
        minimal = [ends for index, at in placed for ends in index.minimal(at, run.keys)]
        return [(low, high) for low, high in (minimal if len(placed) == 1 else minimal_ranges(minimal))]
    affected = [index.filtering(int(id)) for index, at in placed for id in index.affected(at, run.keys)]
    boxes = {tuple(_plain(box, run, axes)) for box in affected}
    if axes == 1:
        return [(low, high) for low, high in minimal_ranges([box[0] for box in boxes])]
    kept = [box for box in boxes if not any(other != box and _within(other, box) for other in boxes)]
    return [tuple(key for ends in box for key in ends) for box in sorted(kept)]


def _within(one: Ranges, other: Ranges) -> bool:
    return all(a >= c and b <= d for (a, b), (c, d) in zip(one, other, strict=True))


def _plain(box: Ranges, run: Run, axes: int) -> Iterable[tuple[Any, Any]]:
    """The ranges with values as ends.

    Only ranges of strings can end where no value is ("below 'm'", "no end"). The outermost point of J in the box
    takes the place of such an end: whatever reaches it from the other end is affected, too.
    """
    if not any(isinstance(end, TextKey) and (end.side or end.rank) for ends in box for end in ends):
        return box
    points = [(key,) if axes == 1 else key for key in run.keys if inside(box, (key,) if axes == 1 else key)]
    plain = []
    for axis, (low, high) in enumerate(box):
        keys = [point[axis] for point in points]
        plain.append((min(keys) if _no_value(low) else low, max(keys) if _no_value(high) else high))
    return plain


def _no_value(end: Any) -> bool:
    return isinstance(end, TextKey) and bool(end.side or end.rank)


def _fewest(placed: Placed, run: Run) -> list[Corners]:
    minimal = _minimal_area(placed, run, 1)
    corners: list[Corners] = []
    first = 0
    for at, (low, _) in enumerate(minimal):
        # The run cannot include this range if an unaffected one begins by `low` and reaches its first range.
        high = minimal[first][1]
        if not corners or any(index.unaffected(point, run.keys, low, high) for index, point in placed):
            first = at
            corners.append(minimal[at])
        else:
            corners[-1] = (low, high)
    return corners
