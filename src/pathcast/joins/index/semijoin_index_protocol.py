"""The index of a panel: semijoins of one form with ranges on the same axes, queried for each event.

A semijoin is a box: ranges on the *base* axes (attributes of the table whose tuples it receives) and ranges on the
*filtering* axes (attributes of the table that lets them through). Both are closed ranges of keys
(`order_preserving_key_encoding.py`). A point is one key for one axis, a tuple of keys for any other number; `joining`
are points in order.

The questions are those of §3 of the select-join paper:

    base event, a tuple `at` of the base table comes or goes; `joining` are the filtering tuples of its join value
        selected    base ranges hold `at`
        affected    selected, and the filtering ranges hold at least one of `joining`
        disposable  no selected semijoin has its filtering range strictly between two neighbours (appendix B)
        minimal     the filtering ranges of affected ones that hold no other such range (§3.2.1, minimum area)
        unaffected  is some semijoin selected and not affected whose filtering range covers a point (minimum points)
        compare     is some semijoin affected by both of two versions of a tuple, by one of them only
    filter event, a tuple `at` of the filtering table comes or goes; `held` are tuples of its join value that stay:
    a⁻ and a⁺ on one axis, a skyline envelope on several
        exposed     the filtering ranges hold `at` and none of `held` (Theorem 1)
        spans       the base ranges of those that are exposed
        reached     the base tuples in them

`anchors` are points such that every semijoin's filtering ranges hold one: the clusters of the stabbing-set index.

`nearest` are the joining keys next to an anchor.

Implementations return equal answers (except anchors): `scan_index.py` scans all semijoins,
`clustered_semijoin_index.py` uses clusters.
"""

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

from pathcast.kernels import Int64s

Point: TypeAlias = Any
Ids = Int64s
Ranges: TypeAlias = Sequence[tuple[Any, Any]]
# Affected by both versions of a tuple; by the new one only; by the old one only.
Comparison: TypeAlias = tuple[bool, bool, bool]
Ends: TypeAlias = tuple[Int64s, Int64s]


class SemijoinIndex(Protocol):
    """The queries that a scheme makes to the semijoins of one panel. Ids ascend."""

    def __len__(self) -> int:
        """The number of semijoins."""
        ...

    def add(self, id: int, base: Ranges, filtering: Ranges) -> None:
        """Add a semijoin, one closed range of keys per axis."""
        ...

    def add_many(self, ids: Ids, base: Sequence[Ends], filtering: Sequence[Ends]) -> None:
        """Add many semijoins: for each axis the low ends of all and the high ends of all, int64 keys."""
        ...

    def remove(self, id: int) -> None:
        """Remove a semijoin; `KeyError` when it does not exist."""
        ...

    def base(self, id: int) -> Ranges:
        """The base ranges of a semijoin."""
        ...

    def filtering(self, id: int) -> Ranges:
        """The filtering ranges of a semijoin."""
        ...

    def selected(self, at: Point) -> Ids:
        """Those whose base ranges hold the point."""
        ...

    def affected(self, at: Point, joining: Sequence[Point]) -> Ids:
        """Those selected by `at` whose filtering ranges hold one of `joining`."""
        ...

    def anchors(self) -> Sequence[Point]:
        """Points, ascending, of which every semijoin's filtering ranges hold one."""
        ...

    def nearest(self, joining: Sequence[Any]) -> list[Any]:
        """Of ascending keys, those that are the greatest up to an anchor or the least from one on, each once.

        For one filtering axis.
        """
        ...

    def disposable(self, at: Point, keys: Sequence[Any]) -> Sequence[bool]:
        """For each pair of neighbours among ascending keys, whether no semijoin that `at` selects lies between them.

        It lies there if its (one) filtering range does, strictly.
        """
        ...

    def minimal(self, at: Point, joining: Sequence[Any]) -> list[tuple[Any, Any]]:
        """The filtering ranges of affected ones that hold no other such range, ascending; for one filtering axis."""
        ...

    def unaffected(self, at: Point, joining: Sequence[Any], low: Any, high: Any) -> bool:
        """Whether a semijoin is selected and not affected, and its range begins by `low` and ends from `high` on.

        For one filtering axis.
        """
        ...

    def compare(self, old: Point | None, new: Point | None, joining: Sequence[Point] | None) -> Comparison:
        """Compare two versions of a tuple that join the same tuples.

        A version may be None, which no semijoin selects; `joining` is None for selections, which every tuple passes.
        """
        ...

    def exposed(self, at: Point, held: Sequence[Point]) -> Ids:
        """Those whose filtering ranges hold `at` and none of `held`."""
        ...

    def spans(self, at: Point, held: Sequence[Point]) -> Sequence[Ranges]:
        """Base ranges whose union is that of all that are exposed."""
        ...

    def reached(self, at: Point, held: Sequence[Point], keys: Sequence[Any], most: int | None = None) -> list[int]:
        """Of ascending keys on the one base axis, the places of those in the base ranges of exposed semijoins.

        Ascending; if there are more than `most`, any of them.
        """
        ...
