"""Standing joins on Spark: changes of tables in, messages that keep all clients up to date out.

    changes ─ fan out, gather ─▶ (edge, join value, events) ─ shuffle, transformWithState ─▶ (key, answers) ─▶ messages

The changes under one join value of one edge need no other rows (`pathcast.joins.partition.value_partitioned_join`), so
edge and join value are the key of the state: one value per key, in Spark's state store (RocksDB), with the rows of both
tables as package joins writes them. Events of one key arrive as one row and its messages leave as one
(`table_change_fan_out.py`, `join_message_rows_by_key.py`), so that a key costs one read, one write and few rows per
micro-batch.

Invariant: messages are those of one server, in the order of `sequence` under each key. An event is applied with the
micro-batch that contains it, in the order of `sequence` within the batch, and in the same way under all of its keys: a
late event is applied late. An event that already arrived within the last `REMEMBERED` micro-batches, or whose row still
exists, is skipped. A replayed micro-batch gives the same messages.
Cost: a read and a write per key and micro-batch, some 2 ms including Spark's own work; a worker that processed the key
last time need not read it again. A change takes workers some 30 µs if `pathcast.joins.schemes.bulk_message_writer`
applies, otherwise some 110 µs.
"""

import os
from collections.abc import Iterator
from typing import Any

from pyspark import TaskContext
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.utils import is_remote

from pathcast.errors import PipelineError
from pathcast.joins.partition import Event, Parts, StandingJoins

from ..matching.input_column_checks import ERROR
from .extract_rows import CHANGE, ROW, SEQUENCE, TABLE
from .join_message_rows_by_key import ANSWERED, MESSAGES, Refusal, pack, pack_refused, unfold
from .table_change_fan_out import FANNED, LETTER, REFUSED, TIME, TIMED, VALUES, fanning
from .worker_join_subscriptions import Subscribed, find_subscriptions

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
STATE = "part"
_Answered = Row(*ANSWERED.fieldNames())


def join_subscriptions(
    changes: DataFrame,
    subscriptions: StandingJoins | None = None,
    *,
    folder: str | os.PathLike[str] | None = None,
    versions: str | os.PathLike[str] | None = None,
    pins: str | os.PathLike[str] | None = None,
    version: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> DataFrame:
    """The messages that changes of tables cause for standing joins (docs/guides/joins.md).

    `changes` has the columns `table`, `change` (insert, delete, update), `row` (JSON), `sequence`, a unique whole
    number for each change, and for updates `values` (JSON). Many `subscriptions` are written below `folder`, which
    every worker must be able to read.

    Subscriptions that change while a stream runs are in a folder, `versions` (`publish_joins`), instead of
    `subscriptions`: each micro-batch uses the newest version, and keeps it when it is replayed. `pins` is the folder
    that records the version of each micro-batch, instead of one in `versions`. `version` is a fixed version for all
    tasks. `checkpoint` is the folder of the stream's checkpoint, which workers must see as well: over Spark Connect,
    tasks of a `foreachBatch` read their micro-batch from it. They need it for `versions`, and to forget changes that
    came long ago.

    A row per message: `edge` and `join_value`, the key in whose order messages come; `sequence` of the change and the
    `number` of the message within it; `message`, which `pathcast.messages.decode` reads. A change that cannot be
    applied is a row with `error` and the change. On streams the tables live in the checkpoint.
    """
    _check_changes(changes)
    if (subscriptions is None) == (versions is None):
        given = "no subscriptions given" if subscriptions is None else "subscriptions and versions= are both given"
        raise PipelineError(f"{given}; give either subscriptions (a StandingJoins) or versions= (a folder of versions)")
    timed = checkpoint is not None and changes.isStreaming and is_remote()
    subscribed = find_subscriptions(
        subscriptions,
        folder,
        versions,
        pins,
        streaming=changes.isStreaming,
        version=version,
        checkpoint=checkpoint if timed else None,
    )
    provider = str(changes.sparkSession.conf.get(_PROVIDER, ""))
    if "RocksDB" not in provider:
        raise PipelineError(
            f"the session keeps its state with {provider or 'its default'}, but joins need RocksDB: set {_PROVIDER} to "
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider (pathcast.spark.session does)"
        )
    wanted = [name for name in (*LETTER, SEQUENCE, "error") if name in changes.columns]
    time = [f.unix_millis(f.current_timestamp()).alias(TIME)] if timed else []
    keyed = changes.select(*wanted, *time).mapInArrow(fanning(subscribed), TIMED if timed else FANNED)
    answered = keyed.groupBy("edge", "join_value").transformWithState(
        JoinProcessor(subscribed), outputStructType=ANSWERED, outputMode="Append", timeMode="None"
    )
    return answered.mapInArrow(unfold, MESSAGES)


class JoinProcessor(StatefulProcessor):
    """Processes the events of a key in a worker: runs the part of the join that they concern from its state."""

    def __init__(self, subscribed: Subscribed) -> None:
        self._subscribed = subscribed
        self._opened: tuple[Parts, int] | None = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState(STATE, f"{STATE} binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        edge, value = key
        if edge == REFUSED:
            yield _Answered(None, None, None, pack_refused(map(_refusal, rows)))
            return
        events: list[Event] = []
        for row in rows:
            if self._opened is None:
                found = None if self._subscribed.checkpoint is None else self._subscribed.batch(row[TIME])
                self._opened = self._subscribed.open(Parts, batch=found), _batch() if found is None else found[1]
            parts, batch = self._opened
            events += parts.codec(edge).read_events(row["events"])
        kept = self._state.get()
        before = None if kept is None else bytes(kept[0])
        after, messages = parts.run_encoded(edge, before, events, batch)
        if after is None:
            self._state.clear()
        elif after != before:
            self._state.update((after,))
        answers, refusals = pack(messages, parts.schema)
        if answers is not None or refusals is not None:
            yield _Answered(edge, value, answers, refusals)

    def close(self) -> None:
        """Nothing is open."""


def _refusal(row: Row) -> Refusal:
    table, change, given, values = (row[name] for name in LETTER)
    reason, line, column = (row["error"][name] for name in ERROR.names)
    return row[SEQUENCE], table, change, given, values, (reason, line, column)


def _batch() -> int:
    """The number of the micro-batch that the running task belongs to; 0 outside of streams."""
    task = TaskContext.get()
    found = None if task is None else task.getLocalProperty("streaming.sql.batchId")
    return 0 if found is None else int(found)


def _check_changes(changes: DataFrame) -> None:
    names = changes.columns
    texts = [TABLE, CHANGE, ROW, *([VALUES] if VALUES in names else [])]
    kinds: list[tuple[str, t.DataType]] = [*((name, t.StringType()) for name in texts), (SEQUENCE, t.LongType())]
    for name, kind in kinds:
        if name not in names:
            raise PipelineError(f"changes have no column '{name}'; the columns are {', '.join(names)}")
        found = changes.schema[name].dataType
        if type(found) is not type(kind):
            raise PipelineError(
                f"the column '{name}' of changes is of type {found.simpleString()}; cast the "
                f"column to {kind.simpleString()}"
            )
