"""The index of a panel: semijoins of one form whose ranges are over the same axes, asked about an event.

A semijoin is a box: ranges on the *base* axes (attributes of the table whose tuples it receives) and ranges on the
*filtering* axes (attributes of the table that lets them through). Both are closed ranges of keys (`kinds.py`). A point
is one key for one axis, a tuple of keys for any other number; `joining` are points in order.

The questions are those of §3 of the select-join paper:

    base event, a tuple `at` of the base table comes or goes; `joining` are the filtering tuples of its join value
        selected    base ranges hold `at`
        affected    selected, and the filtering ranges hold at least one of `joining`
        disposable  no selected semijoin has its filtering range strictly between two neighbours (appendix B)
    filter event, a tuple `at` of the filtering table comes or goes; `held` are tuples of its join value that stay:
    a⁻ and a⁺ on one axis, a skyline envelope on several
        exposed     the filtering ranges hold `at` and none of `held` (Theorem 1)
        spans       the base ranges of those that are exposed

`anchors` are points such that every semijoin's filtering ranges hold one: the clusters of the stabbing-set index.

Implementations give equal answers: `scan.py` by looking at all semijoins.
"""

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Point: TypeAlias = Any
Ids: TypeAlias = npt.NDArray[np.int64]
Ranges: TypeAlias = Sequence[tuple[Any, Any]]
Ends: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


class SemijoinIndex(Protocol):
    """What a scheme asks of the semijoins of one panel. Ids are ascending."""

    def __len__(self) -> int:
        """How many semijoins there are."""
        ...

    def add(self, id: int, base: Ranges, filtering: Ranges) -> None:
        """Take up a semijoin, a closed range of keys an axis."""
        ...

    def add_many(self, ids: Ids, base: Sequence[Ends], filtering: Sequence[Ends]) -> None:
        """Take up many at once: for each axis the low ends of all and the high ends of all, int64 keys."""
        ...

    def remove(self, id: int) -> None:
        """Forget a semijoin; `KeyError` when it is not there."""
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

    def disposable(self, at: Point, keys: Sequence[Any]) -> Sequence[bool]:
        """For each pair of neighbours among ascending keys, whether no semijoin that `at` selects lies between them.

        It lies there if its (one) filtering range does, strictly.
        """
        ...

    def exposed(self, at: Point, held: Sequence[Point]) -> Ids:
        """Those whose filtering ranges hold `at` and none of `held`."""
        ...

    def spans(self, at: Point, held: Sequence[Point]) -> Sequence[Ranges]:
        """Base ranges whose union is that of all that are exposed."""
        ...
