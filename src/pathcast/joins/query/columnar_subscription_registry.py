"""Batches of subscriptions: many with the same tables and columns, whose ranges are arrays.

A subscription as an object takes kilobytes: a query, filters, a name. A million subscriptions that differ only in the
ends of their ranges are stored as arrays of ends, 16 bytes per column, and become objects on access (`Registry`).

Invariant: the member `first + k` of a batch has place k of its arrays; members of a batch have the same forms.
Cost: 16 bytes per range, plus the indexes of its groups.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pathcast.errors import QueryError
from pathcast.kernels import AnyArray, Floats, Int64s
from pathcast.messages import Interval

from ..index.mmap_scratch_arrays import scratch
from ..schemes.semijoin_templates import Form
from .join_graph_schema import Draft, Edge, Schema
from .join_subscription import Subscription
from .order_preserving_key_encoding import FLOAT, INT, Kind
from .select_join_query import Column, Query, Selection

Numbers = Int64s | Floats
Keys = Int64s
_SIGN = np.int64((1 << 63) - 1)


@dataclass
class Batch:
    """Subscriptions `first` to `first + count - 1`, except those that were removed."""

    first: int
    count: int
    query: Query
    ends: Mapping[Column, tuple[Numbers, Numbers]]
    choice: Mapping[str, Edge | None] | None = None
    forms: Mapping[int, Form] = field(default_factory=dict)
    signature: int | None = None
    removed: set[int] = field(default_factory=set)

    def __contains__(self, id: int) -> bool:
        return self.first <= id < self.first + self.count and id not in self.removed

    def __len__(self) -> int:
        return self.count - len(self.removed)

    def __iter__(self) -> Iterator[int]:
        return (id for id in range(self.first, self.first + self.count) if id not in self.removed)

    def query_of(self, id: int) -> Query:
        """The query of one of them."""
        ranges: dict[str, dict[str, Interval]] = {table: {} for table in self.query.tables}
        for (table, column), (lows, highs) in self.ends.items():
            at = id - self.first
            ranges[table][column] = Interval(lows[at].item(), highs[at].item())
        asked = [f"{t}.{c} {one}" for t, columns in ranges.items() for c, one in columns.items()]
        text = f"{self.query.text} where {' and '.join(asked)}"
        return Query(text, self.query.tables, self.query.edges, ranges, self.query.output, empty=False)


class Registry(Mapping[int, Subscription]):
    """All subscriptions by id, single ones and members of batches."""

    def __init__(self, member: Callable[[Batch, int], Subscription]) -> None:
        self._member = member
        self._single: dict[int, Subscription] = {}
        self.batches: list[Batch] = []

    def add(self, subscription: Subscription) -> None:
        self._single[subscription.id] = subscription

    def remove(self, id: int) -> None:
        """Remove a known subscription."""
        if self._single.pop(id, None) is None:
            batch = self._batch(id)
            batch.removed.add(id)
            if not len(batch):
                self.batches.remove(batch)

    def _batch(self, id: int) -> Batch:
        for batch in self.batches:
            if id in batch:
                return batch
        raise KeyError(
            f"unknown subscription id {id}: the subscription was never added or has been removed; give the id "
            "of an existing subscription"
        )

    @property
    def single(self) -> list[Subscription]:
        """The subscriptions that are in no batch."""
        return list(self._single.values())

    def __getitem__(self, id: int) -> Subscription:
        found = self._single.get(id)
        return found if found is not None else self._member(self._batch(id), id)

    def __iter__(self) -> Iterator[int]:
        yield from self._single
        for batch in self.batches:
            yield from batch

    def __len__(self) -> int:
        return len(self._single) + sum(len(batch) for batch in self.batches)


def read_batch(
    schema: Schema, first: int, query: Selection, given: Mapping[str, Any]
) -> tuple[Batch, dict[Column, tuple[Keys, Keys]], Draft]:
    """A batch with its ranges as keys, and the kinds that it settles."""
    declared, draft = query.resolve(schema)
    if any(declared.ranges.values()):
        raise QueryError(
            f"the query of a batch must not have ranges, got '{query}'; omit where=, and give the ranges of all "
            "subscriptions as the argument `ranges`"
        )
    ends: dict[Column, tuple[Numbers, Numbers]] = {}
    keys: dict[Column, tuple[Keys, Keys]] = {}
    for name, arrays in given.items():
        column = query.column(schema, name)
        if any(column in pair for edge in declared.edges for pair in edge.pairs()):
            raise QueryError(
                f"a batch cannot have ranges on the join column '{name}'; call subscribe for each query instead"
            )
        draft.learn(*column, FLOAT)
        kind = draft.kind(*column)
        assert kind is not None
        at = schema.inside.place(*column) if schema.inside else column
        if at in ends:
            raise QueryError(
                f"'{name}' and an earlier key of `ranges` name the same column, {'.'.join(column)}; "
                "give its ranges once"
            )
        ends[at] = _checked_ends(kind, name, arrays)
        keys[at] = keys_of(name, kind, ends[at])
    counts = {len(low) for low, _ in ends.values()}
    if len(counts) != 1 or 0 in counts:
        found = ", ".join(f"{len(low):,} on {'.'.join(at)}" for at, (low, _) in ends.items()) or "none"
        raise QueryError(
            f"a batch must have ranges on at least one column, and the same number of ranges on each, got {found}"
        )
    resolved = schema.inside.query(declared) if schema.inside else declared
    return Batch(first, counts.pop(), resolved, ends), keys, draft


def _checked_ends(kind: Kind, name: str, ends: Any) -> tuple[Numbers, Numbers]:
    """The low and high ends of a batch's ranges on a column, as arrays of numbers."""
    if kind not in {INT, FLOAT}:
        raise QueryError(
            f"column '{name}' is of kind {kind.name}, but a batch has ranges on int or float columns only; "
            "call subscribe for each query instead"
        )
    if not isinstance(ends, Sequence) or len(ends) != 2:
        raise QueryError(
            f"the ranges on '{name}' must be a pair of arrays, the low ends and the high ends, got {ends!r:.60}"
        )
    arrays = [np.asarray(one) for one in ends]
    for one in arrays:
        if one.ndim != 1 or one.dtype.kind not in "if":
            raise QueryError(
                f"the ends of the ranges on '{name}' must be one-dimensional arrays of numbers, got {one!r:.60}"
            )
    low, high = (_plain(one) for one in arrays)
    if len(low) != len(high):
        raise QueryError(
            f"the ranges on '{name}' have {len(low):,} low ends but {len(high):,} high ends; give both for each range"
        )
    ordered = low <= high
    if not bool(ordered.all()):
        at = int(np.argmin(ordered))
        raise QueryError(f"range {at} on '{name}' must have low at most high, got low={low[at]}, high={high[at]}")
    return low, high


def _plain(values: AnyArray) -> Numbers:
    return values.astype(np.int64) if values.dtype.kind == "i" else values.astype(np.float64)


def keys_of(name: str, kind: Kind, ends: tuple[Numbers, Numbers]) -> tuple[Keys, Keys]:
    """Ends of closed ranges as keys, as `Kind.ends` does for a single range."""
    if kind is FLOAT and all(one.dtype == np.float64 for one in ends):
        return _float_keys(ends[0]), _float_keys(ends[1])
    pairs = [kind.ends(Interval(low, high)) for low, high in zip(ends[0].tolist(), ends[1].tolist(), strict=True)]
    if any(pair is None for pair in pairs):
        raise QueryError(
            f"range {pairs.index(None):,} on '{name}' contains no whole number, "
            "but its column is of kind int; remove the range"
        )
    low, high = np.array([pair for pair in pairs if pair is not None], np.int64).reshape(-1, 2).T
    return np.ascontiguousarray(low), np.ascontiguousarray(high)


def _float_keys(values: Numbers) -> Keys:
    keys: Keys = scratch(values.shape, np.int64)
    np.add(values, 0.0, out=keys.view(np.float64))
    np.bitwise_xor(keys, _SIGN, out=keys, where=keys < 0)
    return keys
