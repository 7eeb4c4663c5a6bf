"""Subscriptions of an overlay as a table: rows of (id, subscriber, xpath, router) become the next version of it.

    report = compile_overlay(spark.read.csv("subscriptions.csv", header=True), "overlay", Topology.tree(4))

    table ∪ changes ── one partition, in order ──▶ a task: rows checked, subscribed, advertised, published ──▶ report

One task does all the work: it subscribes each row at its router, lets routers advertise, and publishes them
(published_overlays.py). The driver gets counts. An invalid row gets a reason and does not stop the others; invalid rows
stay in Spark.

A version keeps its rows and settings in `table.arrow`, since routers know patterns by destination, not by id. The next
table is compared with them.

Invariant: every row of the table is in the overlay, replaced or removed by a change, or in `invalid`. Rows and settings
equal to those of the newest version publish nothing, so a task that Spark repeats publishes once.
Cost: some 20 µs per subscription to parse, and some 100 µs for each router between it and the source to aggregate, in
the memory of one worker.
"""

import json
import secrets
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from pathcast.documents import Limits
from pathcast.errors import PathcastError, SnapshotError
from pathcast.matching.subscriptions import LARGEST_ID
from pathcast.patterns import Namespaces, Pattern, parse
from pathcast.patterns.parsing import MAX_STEPS
from pathcast.routing import Overlay, Policy
from pathcast.routing.snapshot import StoredOverlay
from pathcast.transmission import Topology

from ..publishing.index_versions import turn, version_folder, versions
from ..publishing.subscription_report import (
    REJECTED,
    REPORTED,
    TOLD,
    Batches,
    Counts,
    SubscriptionReport,
    read,
    report,
    telling,
    told,
    told_by,
    written,
)
from ..publishing.subscription_row_parser import ADDED, CHANGES, NOBODY, REMOVED, TABLE, check_names
from ..publishing.subscription_table_differences import difference
from .published_overlays import AnyPath, save_for

NEEDED = ("id", "subscriber", "xpath", "router")
# The file in a version with the rows that it was made of.
_CONTENT = "table.arrow"
_STORED = pa.schema([("id", pa.int64()), *((name, pa.string()) for name in ("router", "xpath", "subscriber"))])
_TEXTS = ("given", "subscriber", "xpath", "router", "change")


def compile_overlay(
    subscriptions: DataFrame,
    folder: AnyPath,
    topology: Topology,
    *,
    changes: DataFrame | None = None,
    keep: float = 0.25,
    at: str | None = None,
    policy: str | Policy = "L",
    namespaces: Namespaces = None,
    limits: Limits | None = None,
    max_invalid: float = 1.0,
) -> SubscriptionReport:
    """Publish an overlay with these subscriptions, and changes to them, as the next version of a folder.

    `subscriptions` has the columns `id`, `subscriber`, `xpath` and `router`, `changes` also `change`: `added` adds a
    subscription, or replaces the one with the same id, `removed` removes it; the last counts, in the order of the rows
    or of a column `sequence`. `keep` and `at` are those of `Overlay.advertise` and `publish`. The folder is one that
    workers can write to. If more than the share `max_invalid` of the subscriptions are invalid, nothing is published.
    """
    place = str(Path(folder).absolute())
    work = OverlayPublishing(place, topology, keep, at, Policy.read(policy), namespaces, limits, max_invalid)
    rows = _in_order(subscriptions, changes)
    return report(*told_by(rows.mapInArrow(work.function(), TOLD)))


def _in_order(subscriptions: DataFrame, changes: DataFrame | None) -> DataFrame:
    """The rows of the table, then those of the changes, in one partition."""
    sequenced = changes is not None and "sequence" in changes.columns
    sequence = changes.schema["sequence"].dataType if changes is not None and sequenced else "bigint"
    none = f.lit(None)
    nobody = subscriptions.sparkSession.range(1).select(
        none.cast("bigint").alias("id"),
        *(none.cast("string").alias(name) for name in _TEXTS),
        f.lit(NOBODY).alias("of"),
        none.cast(sequence).alias("_sequence"),
        f.lit(0).cast("bigint").alias("_place"),
    )
    rows = nobody.union(_rows(subscriptions, TABLE, none.cast(sequence)))
    if changes is not None:
        rows = rows.union(_rows(changes, CHANGES, f.col("sequence") if sequenced else none.cast(sequence)))
    return rows.repartition(1).sortWithinPartitions("of", "_sequence", "_place")


def _rows(frame: DataFrame, of: int, sequence: Any) -> DataFrame:
    check_names(frame.columns, of, NEEDED)
    return frame.select(
        f.expr("try_cast(id as bigint)").alias("id"),
        f.col("id").cast("string").alias("given"),
        *(f.col(name).cast("string") for name in ("subscriber", "xpath", "router")),
        (f.col("change").cast("string") if of == CHANGES else f.lit(ADDED)).alias("change"),
        f.lit(of).alias("of"),
        sequence.alias("_sequence"),
        f.monotonically_increasing_id().alias("_place"),
    )


@dataclass(frozen=True, slots=True)
class OverlayPublishing:
    """The job of the task."""

    folder: str
    topology: Topology
    keep: float
    at: str | None
    policy: Policy
    namespaces: Namespaces
    limits: Limits | None
    max_invalid: float = 1.0

    def function(self) -> Callable[[Batches], Batches]:
        """The function that the task runs on all rows, in order."""

        def compiled(batches: Batches) -> Batches:
            yield from telling(lambda: self.publish(row for batch in batches for row in batch.to_pylist()))

        return compiled

    def publish(self, rows: Iterable[dict[str, Any]]) -> pa.Table:
        """Publish an overlay; return the report."""
        with turn(self.folder, secrets.token_hex(8)) as mine:
            reading, counts, invalid = self._read(rows)
            if counts.published:
                overlay = reading.overlay
                overlay.subscribe_patterns(reading.wanted.values())
                overlay.advertise(self.keep)

                def save(fresh: Path) -> None:
                    save_for(overlay, fresh, self.at, self.policy)
                    (fresh / _CONTENT).write_bytes(written(self._content(reading)))

                counts = counts._replace(version=mine.publish(save))
            return told(counts, invalid)

    def preview(self, rows: Iterable[dict[str, Any]]) -> tuple[Counts, pa.Table]:
        """The report of `publish`, without publishing: the counts, with the version before, and the invalid rows."""
        return self._read(rows)[1:]

    def _read(self, rows: Iterable[dict[str, Any]]) -> tuple["_Reading", Counts, pa.Table]:
        reading = _Reading(Overlay(self.topology, namespaces=self.namespaces, limits=self.limits), self.namespaces)
        reading.read_all(rows)
        wrong = [row | {"reason": wrong.reason, "column": wrong.column} for row, wrong in reading.invalid]
        invalid = pa.Table.from_pylist(wrong, REPORTED)
        version, before = _newest_content(self.folder)
        after = self._content(reading)
        changes = difference(before, after)
        is_same = not any(changes) and before.schema.metadata == after.schema.metadata
        counts = Counts(version, int(not is_same), len(after), *changes, len(invalid))
        if counts.has_too_many_invalid(self.max_invalid):
            counts = counts._replace(version=REJECTED, published=0)
        return reading, counts, invalid

    def _content(self, reading: "_Reading") -> pa.Table:
        """The content of a version: its rows, and its settings as the schema's metadata."""
        limits = None if self.limits is None else asdict(self.limits)
        links = [each.tolist() for each in (self.topology.ends, self.topology.bandwidth, self.topology.latency)]
        nodes = [self.topology.nodes, self.topology.root, links]
        settings = [nodes, self.keep, self.at, str(self.policy), self.namespaces, limits]
        rows = [
            {"id": id, "router": router, "xpath": reading.texts[id], "subscriber": subscriber}
            for id, (router, _, subscriber) in reading.wanted.items()
        ]
        return pa.Table.from_pylist(rows, _STORED.with_metadata({"settings": json.dumps(settings, sort_keys=True)}))


def _newest_content(folder: str) -> tuple[int, pa.Table]:
    """The newest version and its rows: none if it was not made of a table or cannot be opened; 0 if none exists."""
    known = versions(folder)
    nothing = _STORED.empty_table()
    if not known:
        return 0, nothing
    place = version_folder(folder, known[-1])
    try:
        StoredOverlay(place)
        rows = read((place / _CONTENT).read_bytes())
    except (FileNotFoundError, SnapshotError, pa.ArrowException):
        return known[-1], nothing
    return known[-1], rows if rows.schema.equals(_STORED) else nothing


class _Wrong(Exception):  # noqa: N818 - reported in a row, never to the caller
    """The problem of a row: the reason, and the column in its expression."""

    def __init__(self, reason: str, column: int | None = None) -> None:
        super().__init__(reason)
        self.reason, self.column = reason, column


_Refused = tuple[dict[str, Any], _Wrong]


class _Reading:
    """Valid rows by id, and invalid rows."""

    def __init__(self, overlay: Overlay, namespaces: Namespaces) -> None:
        self.overlay, self._namespaces = overlay, namespaces
        self.wanted: dict[int, tuple[str, Pattern, str]] = {}
        self.texts: dict[int, str] = {}
        self.invalid: list[_Refused] = []
        self._parsed: dict[str, Pattern | _Wrong] = {}

    def read_all(self, rows: Iterable[dict[str, Any]]) -> None:
        """Read the rows of a table and apply changes."""
        for row in rows:
            if row["of"] == TABLE:
                self.take(row)
            elif row["of"] == CHANGES:
                self.change(row)

    def take(self, row: dict[str, Any]) -> bool:
        """Add a row; return whether it is valid."""
        try:
            self.wanted[row["id"]] = self._read(row)
        except _Wrong as wrong:
            self.invalid.append((row, wrong))
            return False
        self.texts[row["id"]] = row["xpath"]
        return True

    def change(self, row: dict[str, Any]) -> None:
        """Apply a change."""
        old = self.wanted.pop(row["id"], None)
        if (row["change"] == REMOVED and old is not None) or (row["change"] == ADDED and self.take(row)):
            return
        if old is not None:
            self.wanted[row["id"]] = old
        if row["change"] == REMOVED:
            self.invalid.append((row, _Wrong(f"cannot remove subscription {row['id']}: the id is not in use")))
        elif row["change"] != ADDED:
            self.invalid.append((row, _Wrong(f"change must be '{ADDED}' or '{REMOVED}', got {row['change']!r}")))

    def _read(self, row: dict[str, Any]) -> tuple[str, Pattern, str]:
        if row["id"] is None or not 0 < row["id"] <= LARGEST_ID:
            raise _Wrong(f"id must be a whole number from 1 to {LARGEST_ID:,}, got {row['given']!r}")
        if row["id"] in self.wanted:
            raise _Wrong(f"id {row['id']} is already in use; choose another id")
        if not row["subscriber"]:
            raise _Wrong("subscriber is missing; give every row of an overlay a subscriber")
        try:
            router = self.overlay.router(row["router"] or "").name
        except PathcastError as error:
            raise _Wrong(f"invalid router: {error.reason}") from None
        return router, self._pattern(row["xpath"] or ""), row["subscriber"]

    def _pattern(self, xpath: str) -> Pattern:
        found = self._parsed.get(xpath)
        if found is None:
            try:
                found = parse(xpath, self._namespaces, max_steps=MAX_STEPS)
            except PathcastError as error:
                found = _Wrong(error.reason, error.column)
            self._parsed[xpath] = found
        if isinstance(found, _Wrong):
            raise found
        return found
