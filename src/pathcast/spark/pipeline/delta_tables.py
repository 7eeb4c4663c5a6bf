"""Delta tables: rows of a micro-batch appended exactly once, without Delta's own jars.

    table/pathcast-<writer>-17-3f2a9c1e/part-….parquet      written by Spark's tasks, not yet part of the table
    table/_delta_log/00000000000000000017.json              the commit: these files, and the transaction (writer, 17)

Spark writes Parquet files below the table's folder; `deltalake` commits all files of a micro-batch together with an
*application transaction* that names the writer and the number of the micro-batch. A repeated micro-batch finds its
number in the table, and computes its rows without writing them.

Invariant: a table has the rows of each micro-batch of a writer once, all or none, whenever a process is killed. Files
of an attempt that was killed are not part of the table; the next attempt removes them.
Not done: tables at remote addresses (`s3a://…`), which Spark writes with Delta's jars; partitions, changes of columns.
"""

import json
import os
import re
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from pathcast.errors import PipelineError
from pathcast.extras import extra

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction, CommitProperties

# Spark's default for timestamps in Parquet files, INT96, is not a type of Delta tables.
_TIMESTAMPS = "spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS"


def write_delta_once(
    rows: DataFrame, batch: int, folder: str | os.PathLike[str], *, writer: str, **options: str
) -> bool:
    """Append the rows of a micro-batch to a Delta table, unless the table has that batch; return whether it had not.

    For `foreachBatch`. `writer` identifies the stream, by its checkpoint: batches are identified by writer and number.
    The table is created if necessary; the folder must be on a disk that driver and workers share. `options` are those
    of Spark's Parquet files.
    """
    from deltalake.transaction import CommitProperties, Transaction

    home = Path(folder).absolute()
    table = _table(home, rows)
    known = table.transaction_version(writer)
    if known is not None and known >= batch:
        rows.write.format("noop").mode("overwrite").save()  # the batch's observations and state need the rows computed
        return False
    stem = f"pathcast-{re.sub('[^0-9A-Za-z]', '-', writer)}-{batch}-"
    for left in home.glob(f"{stem}*"):  # left by an attempt that was killed
        shutil.rmtree(left, ignore_errors=True)
    _append(
        table,
        rows,
        home / f"{stem}{secrets.token_hex(4)}",
        "append",
        options,
        CommitProperties(app_transactions=[Transaction(writer, batch)]),
    )
    return True


def write_delta(rows: DataFrame, folder: str | os.PathLike[str], mode: str, **options: str) -> None:
    """Write rows to a Delta table; `mode`: `append`, `overwrite`, `ignore` or `error`, for a table that exists."""
    home = Path(folder).absolute()
    if mode in ("ignore", "error") and (home / "_delta_log").exists():
        if mode == "ignore":
            return
        raise PipelineError(f'the Delta table {home} already exists; remove it, or set mode = "append" or "overwrite"')
    table = _table(home, rows)
    staging = home / f"pathcast-batch-{secrets.token_hex(8)}"
    _append(table, rows, staging, "overwrite" if mode == "overwrite" else "append", options, None)


def _table(home: Path, rows: DataFrame) -> "DeltaTable":
    """The table of a folder, created if necessary; it must have the columns of the rows."""
    import pyarrow as pa

    with extra("delta"):
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
    columns = _columns(rows)
    home.mkdir(parents=True, exist_ok=True)
    try:
        table = DeltaTable.create(home, columns, mode="ignore")
    except DeltaError as error:
        raise PipelineError(f"cannot open the Delta table {home}: {error}") from error
    has = pa.schema(table.schema().to_arrow())
    if {field.name: _plain(field.type) for field in has} != {field.name: _plain(field.type) for field in columns}:
        raise PipelineError(
            f"the Delta table {home} has the columns {_shown(has)}, but the rows have {_shown(columns)}; "
            "choose another table"
        )
    return table


def _columns(rows: DataFrame) -> "pa.Schema":
    """The columns of rows, all nullable: what a table promises cannot change later."""
    import pyarrow as pa

    return pa.schema([field.with_nullable(True) for field in to_arrow_schema(rows.schema, timezone="UTC")])


def _plain(kind: "pa.DataType") -> str:
    """A type as text, alike for large and small offsets, and without names and nullability of list elements."""
    text = re.sub(r"\blarge_", "", str(kind)).replace("_view", "")
    return re.sub(r"<\w+: ", "<", text.replace(" not null", ""), count=1) if text.startswith("list") else text


def _shown(columns: "pa.Schema") -> str:
    return ", ".join(f"{field.name} {field.type}" for field in columns)


def _append(
    table: "DeltaTable",
    rows: DataFrame,
    staging: Path,
    mode: str,
    options: dict[str, str],
    properties: "CommitProperties | None",
) -> None:
    """Write rows to files, and make them part of the table in one commit."""
    from deltalake.exceptions import DeltaError

    rows.sparkSession.conf.set(*_TIMESTAMPS)
    rows.write.options(**options).parquet(str(staging))
    actions = [_added(file, staging.parent) for file in sorted(staging.glob("*.parquet"))]
    try:
        _commit(table, actions, mode, properties)
    except DeltaError as error:
        raise PipelineError(f"cannot commit to the Delta table {staging.parent}: {error}") from error


def _commit(table: "DeltaTable", actions: "list[AddAction]", mode: str, properties: "CommitProperties | None") -> None:
    table.create_write_transaction(list(actions), mode, table.schema(), commit_properties=properties)


def _added(file: Path, home: Path) -> "AddAction":
    """The action that adds a Parquet file."""
    import pyarrow.parquet as pq
    from deltalake.transaction import AddAction

    facts = file.stat()
    stats = json.dumps({"numRecords": pq.read_metadata(file).num_rows})
    return AddAction(str(file.relative_to(home)), facts.st_size, {}, facts.st_mtime_ns // 1_000_000, True, stats)
