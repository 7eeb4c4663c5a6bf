"""The table of subscriptions of a pipeline, without Spark: checked by a dry run, published if it is small.

The rows go to the same functions that a Spark task calls (index_publishing_task.py, compile_overlay_subscriptions.py),
so the version that this process publishes is the one that Spark would have published. run_pipeline.py publishes larger
tables, and those that small_subscription_table_reader.py leaves to Spark.

Invariant: what a dry run reports is what the run reports.
Cost: that of index_publishing_task.py, without the seconds that Spark takes to start.
"""

import secrets
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pathcast.errors import PipelineError
from pathcast.matching import Subscriptions
from pathcast.routing import Policy

from ..overlay.compile_overlay_subscriptions import NEEDED, OverlayPublishing
from ..publishing.index_publishing_task import Publishing
from ..publishing.index_versions import GRACE, KEEP
from ..publishing.invalid_subscription_summary import Reason, described, reasons_in, rejection
from ..publishing.parallel_pattern_compilation import default_settings
from ..publishing.small_subscription_table_reader import (
    ROW_SCHEMA,
    NotSmallError,
    Small,
    SmallTable,
    read_small,
    rows_in_order,
)
from ..publishing.subscription_report import REJECTED, Counts, counts_in
from .dry_run_plan import topology_of
from .pipeline_file import is_address
from .pipeline_sections import Pipeline, SubscriptionSource


class TableCheck(NamedTuple):
    """The result of a dry run on a table: a line for the plan, and the problems, one per line."""

    summary: str
    problems: list[str]


def check_table(pipeline: Pipeline, small: Small | None = None) -> TableCheck:
    """Parse the table of subscriptions and compare it with the newest version; nothing is published."""
    given = pipeline.subscriptions
    try:
        counts, invalid = _work(pipeline, *_read(given, small)).preview()
    except NotSmallError as error:
        return TableCheck(f"not checked: {error}; the run checks the table with Spark", [])
    summary = f"{counts.subscriptions:,} valid, {counts.invalid:,} invalid; {counts.changes}"
    problems = list(described(counts, reasons_in(invalid), given, kept=False))
    if counts.has_too_many_invalid(given.max_invalid):
        problems.append(f"the run would publish nothing and end: {rejection(counts, given)}")
    return TableCheck(summary, problems)


def publish_small(pipeline: Pipeline, small: Small | None = None) -> str | None:
    """Publish the table of subscriptions if it is small, and return a report; None if Spark has to publish it."""
    given = pipeline.subscriptions
    try:
        table, changes = _read(given, small)
    except NotSmallError:
        return None
    # The order of rows matters, and Spark has its own order of files.
    in_order = table.single and (changes is None or changes.single)
    if not in_order or is_address(given.index) or is_address(given.invalid or ""):
        return None
    work = _work(pipeline, table, changes)
    try:
        counts, invalid = counts_in(work.publish())
        if given.invalid is not None:
            _write_parquet(invalid, Path(given.invalid))
    except OSError as error:
        raise PipelineError(
            f"{pipeline.file}: the subscriptions cannot be published: {error}; "
            "check the folders that the keys subscriptions.index and subscriptions.invalid name"
        ) from None
    return outcome(pipeline, counts, reasons_in(invalid))


def outcome(pipeline: Pipeline, counts: Counts, reasons: list[Reason]) -> str:
    """The report of a published table; raises `PipelineError` if the table was rejected."""
    given = pipeline.subscriptions
    lines = list(described(counts, reasons, given, kept=True))
    if counts.version == REJECTED:
        raise PipelineError("\n".join([f"{pipeline.file}: nothing published: {rejection(counts, given)}", *lines[1:]]))
    return "\n".join([f"subscriptions: {counts.line}", *lines])


def _read(given: SubscriptionSource, small: Small | None) -> tuple[SmallTable, SmallTable | None]:
    """The table, and the changes to it."""
    assert given.table is not None
    table = read_small(given.table, given.format_of_table, small)
    return table, None if given.changes is None else read_small(given.changes, given.format_of_changes, small)


class _Work(NamedTuple):
    """The operations on a table: publish it, or preview the result of publishing."""

    publish: Callable[[], pa.Table]
    preview: Callable[[], tuple[Counts, pa.Table]]


def _work(pipeline: Pipeline, table: SmallTable, changes: SmallTable | None) -> _Work:
    given, overlay = pipeline.subscriptions, pipeline.overlay
    if overlay is not None:
        routed = OverlayPublishing(
            given.index,
            topology_of(overlay),
            overlay.keep,
            overlay.at,
            Policy.read(overlay.policy),
            given.namespaces,
            pipeline.limits,
            given.max_invalid,
        )
        wanted = list(rows_in_order(table, changes, NEEDED))
        return _Work(partial(routed.publish, wanted), partial(routed.preview, wanted))
    Subscriptions(given.namespaces)  # raises on invalid ones
    work = Publishing(
        given.index,
        secrets.token_hex(8),
        default_settings(given.namespaces, None),
        table=True,
        has_id="id" in table.names,
        changes=changes is not None,
        keep=KEEP,
        grace=GRACE,
        max_invalid=given.max_invalid,
        shards=given.shards,
    )
    rows = pa.Table.from_pylist(list(rows_in_order(table, changes)), ROW_SCHEMA)
    return _Work(partial(work.publish, rows), partial(work.preview, rows))


def _write_parquet(rows: pa.Table, folder: Path) -> None:
    """Replace the content of a folder by these rows, as Spark does in mode overwrite; links to it stay valid."""
    folder = folder.resolve()
    fresh = folder.with_name(f".{folder.name}-{secrets.token_hex(8)}")
    fresh.mkdir(parents=True)
    pq.write_table(rows, fresh / "part-00000.parquet")
    if folder.is_dir():
        shutil.rmtree(folder)
    else:
        folder.unlink(missing_ok=True)
    fresh.rename(folder)
