"""Sorted rows: the rows of one join value, sorted by their keys on the selection attributes of a view.

    view   (table, join columns, axes): join value → run
    run    keys  array of int64, sorted; or a list, where keys are strings or points of several axes
           rows  array of int64: the row of each key

Views correspond to the paper's B-trees on (B, A): a hash on the join value, then a sorted array. A NULL on an axis
satisfies no range on it, so a view omits rows with one.

Invariant: keys ascend; equal keys are in no particular order.
Cost: finding neighbours takes O(log n); inserting moves at most n numbers of 8 bytes by one memmove, and so does
deleting, which also scans the rows of one key.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from pathcast.messages import Scalar

from ..query.order_preserving_key_encoding import Kind, TextKey

JoinValue = tuple[Scalar, ...]
# Among more rows of one key than this, a row is found by a scan of memory.
_FEW = 32


class Run:
    """Keys in order, and the row of each."""

    __slots__ = ("keys", "rows")

    def __init__(self, *, numbers: bool) -> None:
        self.keys: Any = array("q") if numbers else []
        self.rows = array("q")

    def __len__(self) -> int:
        return len(self.rows)

    def insert(self, key: Any, row: int) -> None:
        at = bisect_right(self.keys, key)
        self.keys.insert(at, key)
        self.rows.insert(at, row)

    def delete(self, key: Any, row: int) -> None:
        low, high = bisect_left(self.keys, key), bisect_right(self.keys, key)
        if high - low > _FEW:
            at = low + int(np.flatnonzero(np.frombuffer(self.rows, np.int64)[low:high] == row)[0])
        else:
            at = self.rows.index(row, low, high)
        del self.keys[at]
        del self.rows[at]

    def neighbours(self, key: Any) -> tuple[Any | None, Any | None]:
        """a⁻ and a⁺: the largest key up to this one and the smallest from it on; None where there is none."""
        at = bisect_left(self.keys, key)
        if at < len(self.keys) and self.keys[at] == key:
            return key, key
        return (self.keys[at - 1] if at else None), (self.keys[at] if at < len(self.keys) else None)

    def between(self, low: Any, high: Any) -> Sequence[int]:
        """The rows with keys from `low` to `high`."""
        return self.rows[bisect_left(self.keys, low) : bisect_right(self.keys, high)]


class View:
    """The rows of one table by join value, each run sorted on some axes."""

    def __init__(self, join: Sequence[int], axes: Sequence[int], kinds: Sequence[Kind]) -> None:
        self.join = tuple(join)
        self.axes = tuple(axes)
        self.kinds = tuple(kinds)
        self.numbers = len(self.axes) == 1 and not isinstance(self.kinds[0].lowest, TextKey)
        self._joined = self.join[0] if len(self.join) == 1 else None
        self._axis = self.axes[0] if len(self.axes) == 1 else None
        self.runs: dict[JoinValue, Run] = {}
        self._empty = Run(numbers=self.numbers)

    def join_value(self, row: Sequence[Scalar]) -> JoinValue:
        """The row's values in the join columns."""
        if self._joined is not None:
            return (row[self._joined],)
        return tuple([row[at] for at in self.join])

    def key(self, row: Sequence[Scalar]) -> Any | None:
        """The row's key: a single key for one axis, otherwise a tuple; None when an axis is NULL."""
        if self._axis is not None:
            value = row[self._axis]
            return None if value is None else self.kinds[0].key(value)
        values = [row[at] for at in self.axes]
        if any(value is None for value in values):
            return None
        return tuple(kind.key(value) for kind, value in zip(self.kinds, values, strict=True))

    def run(self, value: JoinValue) -> Run:
        """The run of a join value; an empty one when there is none."""
        return self.runs.get(value, self._empty)

    def insert(self, row_id: int, row: Sequence[Scalar]) -> None:
        key = self.key(row)
        if key is None:
            return
        value = self.join_value(row)
        run = self.runs.get(value)
        if run is None:
            run = self.runs[value] = Run(numbers=self.numbers)
        run.insert(key, row_id)

    def put(self, value: JoinValue, keys: Any, rows: "array[int]") -> None:
        """Set the rows of a join value; keys must ascend."""
        if not rows:
            self.runs.pop(value, None)
            return
        run = self.runs.get(value)
        if run is None:
            run = self.runs[value] = Run(numbers=self.numbers)
        run.keys, run.rows = keys, rows

    def delete(self, row_id: int, row: Sequence[Scalar]) -> None:
        key = self.key(row)
        if key is None:
            return
        value = self.join_value(row)
        run = self.runs[value]
        run.delete(key, row_id)
        if not run:
            del self.runs[value]
