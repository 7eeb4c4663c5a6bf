"""Differences between a table of subscriptions and the newest version of an index: added, removed, changed.

A version is compared by its content: id, expression, subscriber. Two versions with the same content and the same
settings answer every document alike, so publishers skip a version that would repeat the newest one.

Invariant: the subscriptions of the newest version + added - removed = those of the next one; changed subscriptions keep
their id.
Cost: some 4 µs per subscription of both versions, and the memory of their texts.
Not done: versions that this release cannot open count as empty.
"""

from collections import Counter
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pathcast.errors import SnapshotError
from pathcast.matching import Subscriptions, open_index

from .index_shards import shard_folder, shard_of, shards_in
from .index_versions import version_folder, versions
from .parallel_pattern_compilation import Settings


class Difference(NamedTuple):
    """The numbers of new, removed and changed subscriptions."""

    added: int
    removed: int
    changed: int


class Stored(NamedTuple):
    """The content of a version, its settings (None if they are unknown), and its number of shards, 0 if it has none."""

    version: int
    rows: pa.Table
    settings: Settings | None
    shards: int

    def compared(
        self, after: Subscriptions, settings: Settings, shards: int, *, by_id: bool = True
    ) -> tuple[Difference, bool]:
        """The difference between this version and these subscriptions, and whether a new version would repeat it."""
        if not self.version:
            return Difference(len(after), 0, 0), False
        rows = rows_of(after)
        found = difference(self.rows, rows)
        same = self.settings is not None and self.settings.written() == settings.written() and self.shards == shards
        return found if by_id else difference(self.rows, rows, by_id=False), same and not any(found)


def rows_of(subscriptions: Subscriptions) -> pa.Table:
    """The content of a set of subscriptions."""
    ids, xpaths, subscribers = subscriptions.columns()
    columns = [pa.array(ids, pa.int64()), pa.array(xpaths, pa.string()), pa.array(subscribers, pa.string())]
    return pa.table(columns, names=["id", "xpath", "subscriber"])


def newest(folder: str, shard: int = 0, shards: int = 0) -> Stored:
    """The content of the newest version, 0 if there is none; with `shards`, the part of one shard of this many."""
    known = versions(folder)
    rows, settings, pieces = rows_of(Subscriptions()), None, 0
    if known:
        place = version_folder(folder, known[-1])
        pieces = shards_in(place)
        own = pieces == shards > 0
        numbers = [shard] if own else range(pieces)
        try:
            opened = [open_index(each) for each in [shard_folder(place, number) for number in numbers] or [place]]
        except SnapshotError:
            opened = []
        if opened:
            rows, settings = pa.concat_tables([rows_of(one.subscriptions) for one in opened]), Settings.of(opened[0])
        if shards and not own:
            homes = zip(rows["subscriber"].to_pylist(), rows["id"].to_pylist(), strict=True)
            rows = rows.filter(pa.array([shard_of(*each, shards) == shard for each in homes], pa.bool_()))
    return Stored(known[-1] if known else 0, rows, settings, pieces)


def difference(before: pa.Table, after: pa.Table, *, by_id: bool = True) -> Difference:
    """The difference between two sets of subscriptions; without `by_id` rows are compared by content alone.

    The latter is for tables without ids, whose rows are numbered again each time.
    """
    names = [name for name in after.column_names if name != "id"]
    if not by_id:
        old, new = (Counter(zip(*(rows[name].to_pylist() for name in names), strict=True)) for rows in (before, after))
        return Difference((new - old).total(), (old - new).total(), 0)
    was, now = (rows["id"].to_numpy() for rows in (before, after))
    common, *places = np.intersect1d(was, now, assume_unique=True, return_indices=True)
    left, right = (rows.take(pa.array(at)) for rows, at in zip((before, after), places, strict=True))
    changed = np.zeros(len(common), dtype=np.bool_)
    for name in names:
        changed |= pc.not_equal(pc.fill_null(left[name], ""), pc.fill_null(right[name], "")).to_numpy()
    return Difference(len(after) - len(common), len(before) - len(common), int(changed.sum()))
