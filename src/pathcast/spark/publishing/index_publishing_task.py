"""The task that publishes: rows of a table of subscriptions, or of changes to one, become the next version of an index.

    rows ∪ names of pieces ── one partition ──▶ a task: put in order, parsed, entered, published ──▶ counts, wrong rows

The task has exclusive access to the folder from opening the newest version to publishing the next one, so that two
concurrent changes to an index do not undo each other.

Invariant: every row of the table is in the index or among the invalid rows; none is in both. A task that Spark runs
twice publishes once, and reports the same both times. Rows that change nothing publish nothing.
Cost: some 3 µs for a plain path and 130 µs for a pattern with predicates, 10 µs if other workers have compiled it,
in the memory of one worker. The cost of changes is that of the changed rows, and of writing the index.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pathcast.matching import Matcher, Mergeable, Subscriptions, open_index

from .index_shards import save_shards
from .index_versions import parts_folder, turn, version_folder, versions
from .parallel_pattern_compilation import Settings, count_with_predicates, merge_pieces
from .subscription_report import REJECTED, Batches, Counts, read, telling, told, written
from .subscription_row_parser import ADDED, CHANGES, REMOVED, TABLE, Parsed, Pieces, checked, put_in_order, reported
from .subscription_table_differences import Difference, newest

# The origin of a row with the name of a piece: in the column of expressions; the piece's origin is in `place`.
PIECE = 3
# Instead of a version: nothing was published yet, since other workers should compile the expressions first; the number
# of expressions is in place of the subscriptions.
TOO_MANY = -1


@dataclass(frozen=True, slots=True)
class Publishing:
    """The job of the task: its tables, and the number of expressions from which other workers compile them.

    If more than the share `max_invalid` of the subscriptions are invalid, nothing is published. With `shards`, the
    index is written in this many pieces.
    """

    folder: str
    token: str
    settings: Settings
    table: bool
    has_id: bool
    changes: bool
    keep: int
    grace: float
    bound: int | None = None
    max_invalid: float = 1.0
    shards: int | None = None

    def function(self) -> Callable[[Batches], Batches]:
        """The function that the task runs on all rows."""

        def published(batches: Batches) -> Batches:
            yield from telling(lambda: self.publish(pa.Table.from_batches(list(batches))))

        return published

    def publish(self, rows: pa.Table) -> pa.Table:
        """Publish rows, given in any order; return the report."""
        with turn(self.folder, self.token, keep=self.keep, grace=self.grace) as mine:
            earlier = mine.earlier()
            if earlier is not None:
                return read(earlier)
            entered = self._entered(rows)
            if isinstance(entered, int):
                return told(Counts(TOO_MANY, 0, entered, 0, 0, 0, 0))
            matcher, counts, invalid = entered
            if counts.published:
                number = mine.publish(
                    lambda place: self._save(matcher, place),
                    lambda number: written(told(counts._replace(version=number), invalid)),
                )
                counts = counts._replace(version=number)
            mine.drop_parts()
            return told(counts, invalid)

    def preview(self, rows: pa.Table) -> tuple[Counts, pa.Table]:
        """The report of `publish`, without publishing: the counts, with the version before, and the invalid rows."""
        entered = replace(self, bound=None)._entered(rows)
        assert not isinstance(entered, int)
        return entered[1:]

    def _entered(self, rows: pa.Table) -> tuple[Matcher, Counts, pa.Table] | int:
        """The next version, its counts and the invalid rows; or the number of expressions for others to compile."""
        known = versions(self.folder)
        fresh = self.table or not known
        matcher = self._empty() if fresh else open_index(version_folder(self.folder, known[-1]))
        tables = {of: put_in_order(rows, of) for of in self._tables()}
        if self.bound is not None and isinstance(matcher.engine, Mergeable):
            many = sum(count_with_predicates(_expressions(each)) for each in tables.values())
            if many >= self.bound:
                return many
        changes, invalid = self._enter(matcher, tables, rows.filter(pc.equal(rows["of"], PIECE)))
        is_same = not fresh and not any(changes)
        if self.table:
            changes, is_same = newest(self.folder).compared(
                matcher.subscriptions, Settings.of(matcher), self.shards or 0, by_id=self.has_id
            )
        counts = Counts(known[-1] if known else 0, int(not is_same), len(matcher.subscriptions), *changes, len(invalid))
        if counts.has_too_many_invalid(self.max_invalid):
            counts = counts._replace(version=REJECTED, published=0)
        return matcher, counts, invalid

    def _empty(self) -> Matcher:
        settings = self.settings
        return Subscriptions(settings.namespaces, max_steps=settings.max_steps).compile(settings.engine)

    def _save(self, matcher: Matcher, place: Path) -> None:
        if self.shards is None:
            matcher.save(place)
        else:
            save_shards(matcher, place, self.shards)

    def _tables(self) -> list[int]:
        return [of for of, given in ((TABLE, self.table), (CHANGES, self.changes)) if given]

    def _enter(self, matcher: Matcher, tables: dict[int, pa.Table], pieces: pa.Table) -> tuple[Difference, pa.Table]:
        """Add rows to a set of subscriptions; return the effect of the changes, and the invalid rows."""
        kept = matcher.subscriptions
        home = parts_folder(self.folder, self.token)

        def compiled(of: int) -> Pieces:
            names = pieces["xpath"].filter(pc.equal(pieces["place"], of)).to_pylist()
            return partial(merge_pieces, home, names, matcher)

        changes = Difference(0, 0, 0)
        invalid: list[pa.Table] = []
        if TABLE in tables:
            parsed = Parsed(tables[TABLE], matcher, compiled(TABLE), has_id=self.has_id)
            invalid += [parsed.bad, _enter_all(parsed)]
        if CHANGES in tables:
            with kept.unchanged():
                parsed = Parsed(tables[CHANGES], matcher, compiled(CHANGES), has_id=True)
                changes, unknown = _apply(kept, parsed)
            invalid += [parsed.bad, unknown]
        return changes, pa.concat_tables(invalid)


def _expressions(rows: pa.Table) -> pa.Array:
    """The distinct expressions of rows that must be parsed."""
    chosen = checked(rows, has_id=False)[1]
    return pc.unique(rows["xpath"].take(pa.array(chosen)).combine_chunks())


def _enter_all(parsed: Parsed) -> pa.Table:
    """Add the rows to an empty set; return those whose id is already in use."""
    rows = parsed.good
    if rows["id"].null_count == len(rows):  # ids are assigned in the order of the rows
        parsed.enter(rows, with_ids=False)
        return reported(rows.slice(0, 0))
    ids = rows["id"].to_numpy()
    first = np.zeros(len(ids), dtype=np.bool_)
    first[np.unique(ids, return_index=True)[1]] = True
    parsed.enter(rows.filter(pa.array(first)))
    twice = rows.filter(pa.array(~first))
    return reported(twice, [f"id {number} is already in use" for number in twice["id"].to_pylist()])


def _apply(kept: Subscriptions, parsed: Parsed) -> tuple[Difference, pa.Table]:
    """Change a set; return the difference, and the removals of unknown ids."""
    rows = _last_of_each(parsed.good)
    ids, words = rows["id"].to_pylist(), rows["change"].to_pylist()
    xpaths, owners = rows["xpath"].to_pylist(), rows["subscriber"].to_pylist()
    unknown: list[int] = []
    fresh: list[int] = []
    removed = changed = 0
    for row, number in enumerate(ids):
        there = number in kept
        if words[row] == REMOVED and not there:
            unknown.append(row)
            continue
        if words[row] == ADDED:
            if there and kept[number][1:] == (xpaths[row], owners[row]):
                continue  # a change that was already made
            fresh.append(row)
            changed += there
        else:
            removed += 1
        if there:
            kept.remove(number)
    parsed.enter(rows.take(pa.array(fresh, pa.int64())))
    reasons = [f"cannot remove subscription {ids[row]}: the id is not in use" for row in unknown]
    made = Difference(len(fresh) - changed, removed, changed)
    return made, reported(rows.take(pa.array(unknown, pa.int64())), reasons)


def _last_of_each(rows: pa.Table) -> pa.Table:
    """The last change to each id, in order."""
    ids = rows["id"].to_numpy()
    last = len(ids) - 1 - np.unique(ids[::-1], return_index=True)[1]
    return rows.take(pa.array(np.sort(last)))
