"""Standing joins on Spark: changes of tables in, the messages that keep all clients right out.

    changes ─ fan out, gather ─▶ (edge, join value, events) ─ shuffle, transformWithState ─▶ (key, answers) ─▶ messages

What happens under one join value of one edge needs no other rows (`pathcast.joins.partition.join_value_parts`), so that
is the key of the state: one value a key, in Spark's state store (RocksDB), with the rows of both tables as the joins
room writes them. Events of one key come as one row and its messages leave as one (`event_fanout.py`,
`join_key_answers.py`), so that a key costs one look into the store, one entry and few rows a micro-batch.

Invariant: messages are those of one server, in the order of `sequence` under each key. An event is applied with the
micro-batch that brings it, in the order of `sequence` among those of the batch, under all of its keys alike: one that
comes late is applied late. One that came within the last `REMEMBERED` micro-batches is passed by, and so is one whose
row is still there. A replayed micro-batch gives the same messages.
Cost: a look and an entry a key and micro-batch, some 2 ms with all that Spark does for it; a worker that ran the key
last time need not read it anew. A change takes workers some 30 µs where `pathcast.joins.schemes.event_messages` fits,
else some 110.
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

from ..matching.column_checks import ERROR
from .event_fanout import FANNED, LETTER, REFUSED, TIME, TIMED, VALUES, fanning
from .extract_rows import CHANGE, ROW, SEQUENCE, TABLE
from .join_key_answers import ANSWERED, MESSAGES, Refusal, pack, pack_refused, unfold
from .worker_subscriptions import Subscribed, find_subscriptions

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
    """The messages that changes of tables mean for standing joins (docs/guides/joins.md).

    `changes` has the columns `table`, `change` (insert, delete, update), `row` (JSON), `sequence`, a whole number of
    its own for each change, and for updates `values` (JSON). Where `subscriptions` are many, they are put below
    `folder`, which every worker can read.

    Subscriptions that come and go while a stream runs lie in a folder, `versions` (`publish_joins`), in place of
    `subscriptions`: each micro-batch takes the newest version, and stays with it when it is replayed. `pins` is the
    folder that records the version of each micro-batch, instead of one in `versions`. `version` is the one to take, for
    all tasks alike.
    `checkpoint` is the folder of the stream's checkpoint, which workers see as well: over Spark Connect, tasks of a
    `foreachBatch` find there which micro-batch they belong to. They need it for `versions`, and to forget changes that
    came long ago.

    A row per message: `edge` and `join_value`, the key in whose order messages come; `sequence` of the change and the
    `number` of the message within it; `message`, which `pathcast.messages.decode` reads. A change that can't be made
    is a row with `error` and the change. On streams the tables live in the checkpoint.
    """
    _check_changes(changes)
    if (subscriptions is None) == (versions is None):
        raise PipelineError("give subscriptions, a StandingJoins, or versions=…, a folder of them: one of the two")
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
            f"the session keeps state with {provider or 'its default'}; joins need RocksDB: set {_PROVIDER} to "
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
    """What a worker does with the events of a key: the part of the join that they concern, run from its state."""

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
                f"the column '{name}' of changes is of type {found.simpleString()}, not {kind.simpleString()}"
            )
