"""Skyline envelopes: of a set of points, those with no other of the set between them and a given one.

Definition 2 of the select-join paper (appendix C): y is in Sky(J, z) when no other point of J lies in the smallest box
that holds both z and y. If a box holds z and any point of J, it holds one of Sky(J, z): take a point of J in it and go
on to any point between, as long as there is one; what lies between stays in the box.

So "my box holds z and none of J" is "my box holds z and none of Sky(J, z)", and a message need carry only those.
Cost: O(n²) comparisons on d axes; on one axis two neighbours (`runs.py`).
"""

from collections.abc import Sequence
from typing import Any


def envelope(points: Sequence[Any], center: Any) -> list[Any]:
    """The points, each once, with no other between them and the center."""
    distinct = sorted(set(points))
    return [
        point for point in distinct if not any(other != point and _between(center, other, point) for other in distinct)
    ]


def _between(center: Any, other: Any, point: Any) -> bool:
    """Whether `other` is in the smallest box that holds the other two."""
    return all(min(c, p) <= o <= max(c, p) for c, o, p in zip(center, other, point, strict=True))


def inside(box: Sequence[tuple[Any, Any]], point: Sequence[Any]) -> bool:
    """Whether closed ranges hold a point."""
    return all(low <= key <= high for (low, high), key in zip(box, point, strict=True))
