"""Shards written by tasks: a table of subscriptions that is too large for one worker becomes an index in pieces.

    rows, resolved by id ── by shard ──▶ a task each: its part parsed, compiled, written ──▶ one task: the version

subscription_row_resolution.py decides before which rows count. A task holds only the rows of its shard, and writes them
to its own folder; its result names that folder. The last task gets exclusive access to the versions
(index_versions.py), moves the named folders together, and publishes the whole by a rename. A task that was killed, or
that ran in parallel to its twin, has no result, so its folder is in no version.

Each task compares its shard with that of the newest version. If no shard differs, there is no new version.

Invariant: a version has all its shards, each complete, or does not exist. A last task that Spark runs twice publishes
once.
Cost: that of the shards, in parallel; the driver gets one row. If the newest version has another number of shards,
each task reads all of them.
Not done: a subscription whose new subscriber belongs to another shard counts as added and removed, not as changed.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from pathcast.matching import Subscriptions

from ..sessions.connect_local_checkpoint import checkpoint
from .index_shards import SHARD
from .index_versions import check_home, parts_folder, turn, versions
from .parallel_pattern_compilation import Settings
from .subscription_report import (
    REJECTED,
    REPORTED,
    TOLD,
    Batches,
    Counts,
    counted,
    read,
    refused,
    telling,
    told,
    written,
    wrong_rows,
)
from .subscription_row_parser import nobodys_rows
from .subscription_row_resolution import resolved_rows
from .subscription_table_differences import newest
from .task_error_codec import read_failure

_WRITTEN = f"{TOLD}, shard int, part string"


@dataclass(frozen=True, slots=True)
class ShardWriting:
    """The job of the tasks."""

    folder: str
    token: str
    settings: Settings
    shards: int
    keep: int
    grace: float
    max_invalid: float = 1.0

    def function(self) -> Callable[[Batches], Batches]:
        """The function that a task runs on the rows of a shard, in order."""

        def wrote(batches: Batches) -> Batches:
            part = _Part(self)
            for batch in batches:
                wrong = part.take(batch)
                if len(wrong):
                    yield from part.signed(refused(wrong).combine_chunks().to_batches())
            yield from part.signed(list(telling(part.save)))

        return wrote

    def committing(self) -> Callable[[Batches], Batches]:
        """The function of the task that makes a version of the other tasks' results."""

        def committed(batches: Batches) -> Batches:
            yield from telling(lambda: self.commit(pa.Table.from_batches(list(batches))))

        return committed

    def commit(self, rows: pa.Table) -> pa.Table:
        """Publish the shards in the results of tasks; return the total result."""
        for failure in pc.drop_null(rows["failure"]).to_pylist():
            raise read_failure(failure)
        parts = dict(zip(rows["shard"].to_pylist(), rows["part"].to_pylist(), strict=True))
        assert len(rows) == self.shards
        assert set(parts) == set(range(self.shards))
        sums = (pc.sum(rows[f"{name}_count"]).as_py() for name in Counts._fields[1:])
        counts = Counts(0, *sums)
        with turn(self.folder, self.token, keep=self.keep, grace=self.grace) as mine:
            earlier = mine.earlier()
            if earlier is not None:
                return read(earlier)
            compared = set(rows["version_count"].to_pylist())
            if counts.has_too_many_invalid(self.max_invalid):
                counts = counts._replace(version=REJECTED, published=0)
            elif not counts.published and compared == set(versions(self.folder)[-1:]):
                counts = counts._replace(version=compared.pop())
            else:
                counts = counts._replace(published=1)
                names = {f"{SHARD}{shard}": part for shard, part in parts.items()}
                number = mine.publish_parts(names, lambda number: written(told(counts._replace(version=number))))
                counts = counts._replace(version=number)
            mine.drop_parts()
        return told(counts)


def write_shards(rows: DataFrame, work: ShardWriting, *, has_id: bool) -> tuple[Counts, DataFrame]:
    """Have tasks publish rows as shards; return the counts and the invalid rows."""
    resolved = resolved_rows(rows, work.settings, work.shards, has_id=has_id)
    none = {name: f.lit(None).cast(resolved.schema[name].dataType) for name in resolved.columns}
    # Each shard has a row, so that there is a task which writes it.
    none |= {"of": f.col("of"), "place": f.col("place"), "shard": f.col("place").cast("int"), "kept": f.lit(False)}
    nobodys = nobodys_rows(rows.sparkSession, work.shards).select(*(each.alias(name) for name, each in none.items()))
    shards = nobodys.union(resolved).repartitionById(work.shards, "shard").sortWithinPartitions("of", "place")
    # Invalid rows are requested later; nothing must be written again then.
    parts = checkpoint(shards.mapInArrow(work.function(), _WRITTEN))
    one = parts.where("reason is null").repartition(1).mapInArrow(work.committing(), TOLD)
    (row,) = one.collect()
    return counted(row), wrong_rows(parts)


class _Part:
    """The rows of a shard, as they arrive."""

    def __init__(self, work: ShardWriting) -> None:
        self._work = work
        self._shard: int | None = None
        self._name: str | None = None
        self._kept: list[pa.RecordBatch] = []
        self._invalid = 0

    def take(self, batch: pa.RecordBatch) -> pa.Table:
        """Add rows; return those that are already known to be invalid."""
        shards = pc.unique(batch["shard"]).to_pylist()
        self._shard = shards[0] if self._shard is None and shards else self._shard
        assert all(shard == self._shard for shard in shards)
        self._kept.append(batch.filter(batch["kept"]).select(["id", "subscriber", "xpath", "change"]))
        wrong = pa.Table.from_batches([batch.filter(pc.is_valid(batch["reason"])).select(REPORTED.names)])
        self._invalid += len(wrong)
        return wrong

    def save(self) -> pa.Table:
        """Compile and write the shard; return its result."""
        work, settings = self._work, self._work.settings
        check_home(work.folder)
        rows = pa.Table.from_batches(self._kept)
        self._kept = []
        subscriptions = Subscriptions(settings.namespaces, max_steps=settings.max_steps)
        xpaths, names, ids = (rows[name].to_pylist() for name in ("xpath", "subscriber", "id"))
        errors = subscriptions.add_many(xpaths, names, ids, errors="collect")
        name = f"{SHARD}{self._shard}-{secrets.token_hex(8)}"  # each attempt has its own
        subscriptions.compile(settings.engine).save(parts_folder(work.folder, work.token) / name)
        self._name = name
        invalid = rows.take(pa.array([error.index for error in errors], pa.int64()))
        invalid = invalid.append_column("reason", pa.array([error.reason for error in errors], pa.string()))
        invalid = invalid.append_column("column", pa.array([error.column for error in errors], pa.int32()))
        assert self._shard is not None
        before = newest(work.folder, self._shard, work.shards)
        changes, is_same = before.compared(subscriptions, settings, work.shards)
        invalid_count = self._invalid + len(errors)
        counts = Counts(before.version, int(not is_same), len(subscriptions), *changes, invalid_count)
        return told(counts, invalid.cast(REPORTED))

    def signed(self, batches: list[pa.RecordBatch]) -> Batches:
        """The result, with the shard and its folder."""
        for batch in batches:
            size = len(batch)
            said = [pa.array([self._shard] * size, pa.int32()), pa.array([self._name] * size, pa.string())]
            yield pa.RecordBatch.from_arrays([*batch.columns, *said], [*batch.schema.names, "shard", "part"])
