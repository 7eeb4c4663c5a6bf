"""Skyline envelopes: the points of a set with no other point of the set between them and a given point.

Definition 2 of the select-join paper (appendix C): y is in Sky(J, z) when no other point of J lies in the smallest box
that contains both z and y. If a box contains z and any point of J, it contains one of Sky(J, z): take a point of J in
the box and move to any point of J between it and z, as long as there is one; such points stay in the box.

So "the box contains z and none of J" means "the box contains z and none of Sky(J, z)", and a message need carry only
Sky(J, z).

A point between z and y is on the same side of z on every axis, and at most as far on each. So the algorithm processes
the points per orthant (a point with z's key on an axis is in both), with keys mirrored so that nearer is less. In each
orthant the smallest point in the order of the axes is in the envelope; the points that it dominates are not; the
algorithm continues with the rest.

Cost: a pass over the n points of an orthant for each of the k in the envelope, O(2^d n + n k d) on d axes; on one axis
two neighbours (`sorted_row_views.py`).
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from pathcast.kernels import Int64s


def envelope(points: Sequence[Any], center: Any) -> list[Any]:
    """The points, each once, with no other between them and the center."""
    distinct = sorted(set(points))
    if not distinct or not len(center):
        return distinct[:1]
    keys, middle = _numbered(distinct, center)
    kept = np.zeros(len(distinct), bool)
    for above in product((False, True), repeat=len(center)):
        upper = np.array(above)
        here = np.flatnonzero(np.where(upper, keys >= middle, keys <= middle).all(axis=1))
        kept[here[_minimal(np.where(upper, keys[here], ~keys[here]))]] = True
    return [point for point, keep in zip(distinct, kept.tolist(), strict=True) if keep]


def _numbered(points: Sequence[Any], center: Any) -> tuple[Int64s, Int64s]:
    """Points and center as numbers that are in the same order on each axis."""
    rows = [*points, center]
    if not all(type(key) is int for key in center):
        columns = []
        for column in zip(*rows, strict=True):
            rank = {key: number for number, key in enumerate(sorted(set(column)))}
            columns.append([rank[key] for key in column])
        rows = list(zip(*columns, strict=True))
    numbers = np.array(rows, np.int64)
    return numbers[:-1], numbers[-1]


def _minimal(keys: Int64s) -> list[int]:
    """The rows that no other row is at or below on every axis. Rows are distinct."""
    rest = np.lexsort(keys.T[::-1])
    found: list[int] = []
    while len(rest):
        least = int(rest[0])
        found.append(least)
        rest = rest[(keys[rest] < keys[least]).any(axis=1)]
    return found


def inside(box: Sequence[tuple[Any, Any]], point: Sequence[Any]) -> bool:
    """Whether closed ranges hold a point."""
    return all(low <= key <= high for (low, high), key in zip(box, point, strict=True))
