"""Subscriptions of an overlay as a table: rows of (id, subscriber, xpath, router) become the next version of it.

    report = compile_overlay(spark.read.csv("subscriptions.csv", header=True), "overlay", Topology.tree(4))

Spark reads the table; the driver checks its rows, subscribes each at its router, lets routers advertise, and publishes
them (overlays.py). What is wrong becomes a row with its reason and stops nothing.

Invariant: every row of the table is in the overlay, replaced or removed by a change, or in `invalid`.
Cost: some 20 µs a subscription to parse, and some 100 µs for each router between it and the source to aggregate.
"""

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from pathcast.documents import Limits
from pathcast.errors import PathcastError, PipelineError
from pathcast.matching.files import LARGEST_ID
from pathcast.patterns import Namespaces, Pattern, parse
from pathcast.patterns.parse import MAX_STEPS
from pathcast.routing import Overlay, Policy
from pathcast.transmission import Topology

from .overlays import AnyPath, publish_overlay
from .parsing import ADDED, INVALID, REMOVED
from .subscriptions import SubscriptionReport

_NEEDED = ("id", "subscriber", "xpath", "router")


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
) -> SubscriptionReport:
    """Publish an overlay with these subscriptions, and changes to them, as the next version of a folder.

    `subscriptions` has the columns `id`, `subscriber`, `xpath` and `router`, `changes` also `change`: `added` puts a
    subscription in, in place of one with the same id, `removed` takes it out; the last counts, in the order of the rows
    or of a column `sequence`. `keep` and `at` are those of `Overlay.advertise` and `publish`.
    """
    reading = _Reading(Overlay(topology, namespaces=namespaces, limits=limits), namespaces)
    for row in _rows(subscriptions, changes=False):
        reading.take(row)
    added, removed = len(reading.wanted), 0
    for row in _rows(changes, changes=True) if changes is not None else ():
        come, gone = reading.change(row)
        added, removed = added + come, removed + gone
    overlay = reading.overlay
    overlay.subscribe_patterns(reading.wanted.values())
    overlay.advertise(keep)
    version = publish_overlay(overlay, folder, at=at, policy=policy)
    rows = [
        (*(row[name] for name in ("id", "subscriber", "xpath", "change")), wrong.reason, wrong.column)
        for row, wrong in reading.invalid
    ]
    invalid = subscriptions.sparkSession.createDataFrame(rows, INVALID)
    return SubscriptionReport(version, len(reading.wanted), added, removed, len(rows), invalid)


class _Wrong(Exception):  # noqa: N818 - told, not raised to anybody
    """What is wrong with a row: the reason, and the column in its expression."""

    def __init__(self, reason: str, column: int | None = None) -> None:
        super().__init__(reason)
        self.reason, self.column = reason, column


class _Reading:
    """Rows as they are found right, by id, and those that are wrong."""

    def __init__(self, overlay: Overlay, namespaces: Namespaces) -> None:
        self.overlay, self._namespaces = overlay, namespaces
        self.wanted: dict[int, tuple[str, Pattern, str]] = {}
        self.invalid: list[tuple[dict[str, Any], _Wrong]] = []
        self._parsed: dict[str, Pattern | _Wrong] = {}

    def take(self, row: dict[str, Any]) -> bool:
        """Subscribe; whether nothing is wrong."""
        try:
            self.wanted[row["id"]] = self._read(row)
        except _Wrong as wrong:
            self.invalid.append((row, wrong))
            return False
        return True

    def change(self, row: dict[str, Any]) -> tuple[int, int]:
        """Make a change; how many subscriptions have come and gone by it."""
        old = self.wanted.pop(row["id"], None)
        if row["change"] == REMOVED and old is not None:
            return 0, 1
        if row["change"] == ADDED and self.take(row):
            return 1, int(old is not None)
        if old is not None:
            self.wanted[row["id"]] = old
        if row["change"] == REMOVED:
            self.invalid.append((row, _Wrong(f"there is no subscription {row['id']} to remove")))
        elif row["change"] != ADDED:
            self.invalid.append((row, _Wrong(f"change {row['change']}: must be '{ADDED}' or '{REMOVED}'")))
        return 0, 0

    def _read(self, row: dict[str, Any]) -> tuple[str, Pattern, str]:
        if row["id"] is None or not 0 < row["id"] <= LARGEST_ID:
            raise _Wrong(f"id {row['given']}: an id is a whole number from 1 to {LARGEST_ID:,}")
        if row["id"] in self.wanted:
            raise _Wrong(f"id {row['id']} is given twice")
        if not row["subscriber"]:
            raise _Wrong("subscriber: an overlay delivers to somebody, and there is no name")
        try:
            router = self.overlay.router(row["router"] or "").name
        except PathcastError as error:
            raise _Wrong(f"router: {error.reason}") from None
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


def _rows(frame: DataFrame, *, changes: bool) -> list[dict[str, Any]]:
    what = "changes" if changes else "subscriptions"
    for name in (*_NEEDED, *(["change"] if changes else [])):
        if name not in frame.columns:
            raise PipelineError(
                f"the {what} of an overlay have no column '{name}'; their columns are {', '.join(frame.columns)}"
            )
    if changes and "sequence" in frame.columns:
        frame = frame.orderBy("sequence")
    found: pa.Table = frame.select(
        f.expr("try_cast(id as bigint)").alias("id"),
        f.col("id").cast("string").alias("given"),
        *(f.col(name).cast("string") for name in ("subscriber", "xpath", "router")),
        (f.col("change").cast("string") if changes else f.lit(ADDED)).alias("change"),
    ).toArrow()
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows
