"""Rows of a table and of changes to it, resolved by id: decide which rows count, in tasks that see all rows of an id.

    table ∪ changes ── by id, in order ──▶ the row that is kept, invalid rows

Of the rows of an id, the first with a valid expression counts, then the last valid change. Most ids have one row: it is
passed on unread, and the task that writes its shard parses it. If an id has several rows, their expressions are parsed
here, because that decides which row counts. In a table without ids, valid rows get ids in order (`numbered`): then all
rows are parsed here, each in its partition.

Invariant: at most one row of an id is kept; kept and invalid rows are those that one task with all rows would find.
Cost: 1 µs per row, and parsing if an id has several; a task holds the rows of one id, and a batch.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import count, islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from pathcast.errors import LimitError, PatternError
from pathcast.matching.subscriptions import LARGEST_ID
from pathcast.matching.table import PatternTable
from pathcast.patterns import parse

from .index_shards import shard_of
from .parallel_pattern_compilation import Settings
from .subscription_report import Batches
from .subscription_row_parser import ADDED, NOBODY, REMOVED, ROWS, TABLE, Reasons, checked, reason_columns, usable_ids

CHECKED = f"{ROWS}, reason string, column int"
# `kept`: the row is in its shard, if its expression is valid.
RESOLVED = (
    "id bigint, subscriber string, xpath string, change string, reason string, column int, "
    "of int, place bigint, shard int, kept boolean"
)
_REMEMBERED = 10_000

Wrong = Callable[[str], tuple[str, int | None] | None]


def resolved_rows(rows: DataFrame, settings: Settings, shards: int, *, has_id: bool) -> DataFrame:
    """Split rows, given in any order, into kept and invalid rows."""
    rows = rows.where(f"of != {NOBODY}")
    if has_id:
        rows = rows.select("*", f.lit(None).cast("string").alias("reason"), f.lit(None).cast("int").alias("column"))
    else:
        one = rows.mapInArrow(checking(settings), CHECKED).repartition(1)
        rows = one.sortWithinPartitions("of", "place").mapInArrow(numbering(), CHECKED)
    together = rows.repartition("id").sortWithinPartitions("id", "of", "place")
    return together.mapInArrow(resolving(settings, shards), RESOLVED)


def checking(settings: Settings) -> Callable[[Batches], Batches]:
    """The function of a task that finds invalid rows in a table without ids; changes are not checked."""

    def looked_at(batches: Batches) -> Batches:
        wrong = wrong_by(settings)
        for batch in batches:
            is_mine = pc.equal(batch["of"], TABLE).to_pylist()
            found = [wrong(x) if mine else None for x, mine in zip(batch["xpath"].to_pylist(), is_mine, strict=True)]
            reasons = {row: why for row, why in enumerate(found) if why is not None}
            said = reason_columns(len(batch), reasons)
            yield pa.RecordBatch.from_arrays([*batch.columns, *said], [*batch.schema.names, "reason", "column"])

    return looked_at


def numbering() -> Callable[[Batches], Batches]:
    """The function of a task that assigns ids to the rows of a table, given in order."""

    def numbered(batches: Batches) -> Batches:
        first = 1
        for batch in batches:
            free = pc.and_(pc.equal(batch["of"], TABLE), pc.is_null(batch["reason"])).to_numpy(zero_copy_only=False)
            given = first - 1 + np.cumsum(free)
            first += int(free.sum())
            ids = pc.if_else(pa.array(free), pa.array(given, pa.int64()), batch["id"])
            yield batch.set_column(batch.schema.get_field_index("id"), "id", ids)

    return numbered


def resolving(settings: Settings, shards: int) -> Callable[[Batches], Batches]:
    """The function of a task that gets all rows of its ids, sorted by id and then by place."""

    def resolved(batches: Batches) -> Batches:
        wrong = wrong_by(settings)
        for rows in _by_whole_ids(batches):
            yield from _resolved(rows, wrong, shards).combine_chunks().to_batches()

    return resolved


def wrong_by(settings: Settings) -> Wrong:
    """A function that returns the problem of an expression and its column; None if it is valid."""
    encode = PatternTable(settings.namespaces, settings.max_steps).encoder.encode

    @lru_cache(_REMEMBERED)
    def wrong(xpath: str) -> tuple[str, int | None] | None:
        if encode(xpath) is None:
            try:
                parse(xpath, settings.namespaces, max_steps=settings.max_steps)
            except (PatternError, LimitError) as error:
                return error.reason, error.column
        return None

    return wrong


def _by_whole_ids(batches: Batches) -> Iterator[pa.Table]:
    """The rows in groups, such that all rows of an id are in one group."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if not len(batch):
            continue
        ids = batch["id"].fill_null(0).to_numpy()
        begin = len(batch)
        if 0 < ids[-1] <= LARGEST_ID:  # its next rows may be in the next batch
            begin = int(np.searchsorted(ids, ids[-1]))
        if held and begin == 0 and held[0]["id"][0].as_py() == ids[0]:
            held.append(batch)
            continue
        if held or begin:
            yield pa.Table.from_batches([*held, batch.slice(0, begin)])
        held = [batch.slice(begin)] if begin < len(batch) else []
    if held:
        yield pa.Table.from_batches(held)


class _Outcome:
    """The result for rows: which are kept, which are skipped, and why some are invalid."""

    def __init__(self, size: int, reasons: Reasons) -> None:
        self.kept = np.zeros(size, dtype=np.bool_)
        self.passed = np.zeros(size, dtype=np.bool_)
        self.reasons = reasons

    def keep(self, row: int) -> None:
        self.kept[row] = True

    def refuse(self, row: int, reason: str, column: int | None = None) -> None:
        self.reasons[row] = reason, column


def _resolved(rows: pa.Table, wrong: Wrong, shards: int) -> pa.Table:
    ids = pc.fill_null(rows["id"], 0).to_numpy()
    outcome = _Outcome(len(rows), _known_reasons(rows))
    is_open = np.ones(len(rows), dtype=np.bool_)
    is_open[list(outcome.reasons)] = False
    again = np.zeros(len(rows) + 1, dtype=np.bool_)
    again[1:-1] = (ids[1:] == ids[:-1]) & usable_ids(rows["id"])[1:]
    alone = is_open & ~again[:-1] & ~again[1:]
    is_added = pc.equal(rows["change"], ADDED).fill_null(False).to_numpy()
    outcome.kept[alone & is_added] = True
    for row in np.flatnonzero(alone & ~is_added).tolist():
        outcome.refuse(row, _unknown(ids[row]))
    several = np.flatnonzero(is_open & ~alone)
    rest = iter(rows.take(pa.array(several)).to_pylist())
    for some in np.split(several, np.flatnonzero(np.diff(ids[several])) + 1):
        _resolve_one(some.tolist(), list(islice(rest, len(some))), outcome, wrong)
    return _written(rows, outcome, shards)


def _resolve_one(places: list[int], rows: list[dict[str, Any]], outcome: _Outcome, wrong: Wrong) -> None:
    """Resolve the rows of an id: the first valid one of the table, then the last valid change."""
    first: tuple[int, dict[str, Any]] | None = None
    last: tuple[int, dict[str, Any]] | None = None
    for place, row in zip(places, rows, strict=True):
        why = wrong(row["xpath"]) if row["change"] == ADDED else None
        if why is not None:
            outcome.refuse(place, *why)
        elif row["of"] != TABLE:
            if last is not None:
                outcome.passed[last[0]] = True
            last = place, row
        elif first is None:
            first = place, row
        else:
            outcome.refuse(place, f"id {row['id']} is already in use")
    if last is not None:
        _change(first, last, outcome)
    elif first is not None:
        outcome.keep(first[0])


def _change(first: tuple[int, dict[str, Any]] | None, last: tuple[int, dict[str, Any]], outcome: _Outcome) -> None:
    place, change = last
    if change["change"] == REMOVED and first is None:
        outcome.refuse(place, _unknown(change["id"]))
    elif first is not None and _says_the_same(first[1], change):
        outcome.keep(first[0])
        outcome.passed[place] = True
    else:
        if first is not None:
            outcome.passed[first[0]] = True
        if change["change"] == ADDED:
            outcome.keep(place)
        else:
            outcome.passed[place] = True


def _says_the_same(row: dict[str, Any], change: dict[str, Any]) -> bool:
    return all(row[name] == change[name] for name in ("change", "xpath", "subscriber"))


def _unknown(id: int) -> str:
    return f"cannot remove subscription {id}: the id is not in use"


def _known_reasons(rows: pa.Table) -> Reasons:
    """The problems in ids and words, and those that an earlier task found."""
    reasons, _ = checked(rows, has_id=True)
    said = np.flatnonzero(pc.is_valid(rows["reason"]).to_numpy()).tolist()
    return reasons | {row: (rows["reason"][row].as_py(), rows["column"][row].as_py()) for row in said}


def _written(rows: pa.Table, outcome: _Outcome, shards: int) -> pa.Table:
    names, ids, kept = rows["subscriber"].to_pylist(), rows["id"].to_pylist(), outcome.kept.tolist()
    spread = zip(names, ids, kept, count(), strict=False)
    homes = [shard_of(name, id, shards) if here else row % shards for name, id, here, row in spread]
    columns = {name: rows[name] for name in ("id", "subscriber", "xpath", "change")}
    columns |= zip(("reason", "column"), reason_columns(len(rows), outcome.reasons), strict=True)
    columns |= {"of": rows["of"], "place": rows["place"], "shard": pa.array(homes, pa.int32())}
    columns["kept"] = pa.array(outcome.kept)
    return pa.table(columns).filter(pa.array(~outcome.passed))
