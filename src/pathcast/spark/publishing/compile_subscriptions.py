"""Subscriptions as a table: a DataFrame of (id, subscriber, xpath) becomes the next version of an index.

    report = compile_subscriptions(spark.read.parquet("subscriptions"), "index")
    report = compile_subscriptions(None, "index", changes=spark.read.parquet("changes"))
    report.invalid.write.mode("append").parquet("invalid-subscriptions")

Tasks do all the work. One task checks the rows, parses them and publishes the index (index_publishing_task.py); if
there are many patterns with predicates, other tasks compile these first (parallel_pattern_compilation.py); if no worker
can hold the index, each shard is written by its own task (index_shard_writer.py). The driver gets a row of counts. An
invalid row gets a reason and does not stop the others; invalid rows stay in Spark. A stream uses the new version from
its next micro-batch on.

Invariant: every row of the table is in the index or in `invalid`; none is in both.
Cost: some 3 µs for a plain path; 130 µs for a pattern with predicates or, of many, 10 µs plus 120 µs of other workers.
The cost of changes is that of the changed rows, and of writing the index.
"""

import os
import secrets
import shutil
from dataclasses import replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pathcast.errors import PipelineError
from pathcast.matching import Subscriptions
from pathcast.patterns import Namespaces

from .index_publishing_task import PIECE, TOO_MANY, Publishing
from .index_shard_writer import ShardWriting, write_shards
from .index_shards import check_shards
from .index_versions import GRACE, KEEP, check_keep, parts_folder
from .parallel_pattern_compilation import SHARD, Compiling, bound_of, compiled_pieces, default_settings
from .subscription_report import TOLD, SubscriptionReport, report, told_by
from .subscription_row_parser import in_order, read_table

AnyPath = str | os.PathLike[str]
Table = DataFrame | AnyPath


def compile_subscriptions(
    subscriptions: Table | None,
    folder: AnyPath,
    *,
    changes: Table | None = None,
    namespaces: Namespaces = None,
    engine: str | None = None,
    keep: int = KEEP,
    grace: float = GRACE,
    many: int | None = None,
    shards: int | None = None,
    max_invalid: float = 1.0,
) -> SubscriptionReport:
    """Publish a table of subscriptions, or changes to those that a folder holds, as the next version of an index.

    A table is a DataFrame, or the path of a Parquet or CSV file or folder. `subscriptions` has a column `xpath`,
    optionally `id` and `subscriber`, and is the whole set; None: that of the folder's newest version (none yet: empty).
    `changes` has `id`, `xpath`, optionally `subscriber`, and `change`: `added` adds a subscription, or replaces the one
    with the same id; `removed` removes it. The last of several changes to one id counts, in the order of the rows, or
    of a column `sequence` if there is one. `namespaces` and `engine` are those of a new set; changes keep those of the
    folder. From `many` distinct expressions with predicates on, workers compile them; None: if that is faster. With
    `shards` the index is written in this many pieces, each by a task that holds no other; changes then need the whole
    set of `subscriptions` as well. All workers must share the folder and be able to write to it.

    Input that changes nothing publishes no version: then `report.published` is false. If more than the share
    `max_invalid` of the subscriptions are invalid, nothing is published either, and `report.version` is 0.
    """
    if subscriptions is None and changes is None:
        raise PipelineError("neither subscriptions nor changes= is given; give at least one of them")
    if subscriptions is None and shards is not None:
        raise PipelineError(
            "shards= needs all subscriptions, but only changes= is given; give subscriptions, or omit shards="
        )
    check_keep(keep)
    Subscriptions(namespaces)  # raises on invalid ones
    table, changed = (None if each is None else _frame(each) for each in (subscriptions, changes))
    rows = in_order(table, changed)
    place, token, settings = str(Path(folder).absolute()), secrets.token_hex(8), default_settings(namespaces, engine)
    has_id = table is not None and "id" in table.columns
    try:
        if shards is not None:
            check_shards(shards)
            writing = ShardWriting(place, token, settings, shards, keep, grace, max_invalid)
            return report(*write_shards(rows, writing, has_id=has_id))
        bound = bound_of(rows.sparkSession, many)
        tables = table is not None, has_id, changed is not None
        work = Publishing(place, token, settings, *tables, keep, grace, bound, max_invalid)
        return _published(rows, work)
    except BaseException:
        shutil.rmtree(parts_folder(place, token), ignore_errors=True)  # if the driver sees the workers' files
        raise


def _published(rows: DataFrame, work: Publishing) -> SubscriptionReport:
    """Have a task publish the rows; others compile the expressions first if there are too many for one task."""
    counts, invalid = told_by(rows.repartition(1).mapInArrow(work.function(), TOLD))
    if counts.version == TOO_MANY:
        compiling = Compiling(work.folder, work.token, work.settings, fresh=work.table, size=SHARD)
        pieces = compiled_pieces(rows, compiling, counts.subscriptions)
        nothing = [f.lit(None).cast(rows.schema[name].dataType) for name in rows.columns]
        columns = dict(zip(rows.columns, nothing, strict=True))
        columns |= {"xpath": f.col("part"), "of": f.lit(PIECE), "place": f.col("of").cast("bigint")}
        named = pieces.select(*(column.alias(name) for name, column in columns.items()))
        last = replace(work, bound=None)
        counts, invalid = told_by(rows.union(named).repartition(1).mapInArrow(last.function(), TOLD))
    return report(counts, invalid)


def _frame(table: Table) -> DataFrame:
    return table if isinstance(table, DataFrame) else read_table(SparkSession.active(), table)
