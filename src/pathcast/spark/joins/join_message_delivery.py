"""Deliveries of joins: each message goes to the subscriptions with a filter that matches it, and to no others.

Only the filters decide (`pathcast.network.join_message_recipients`), as in a content-based network. The filters can be
split into shards, by the ids of subscriptions: every message is matched against every shard, and a worker holds the
filters of one shard.

Invariant: a message has a row for each subscription that it concerns, whatever the shards; in a stream by the version
that its micro-batch is pinned to.
Cost: reading a message some 50 µs; a look-up in blocks of filters; rows are built as columns.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from pathcast.errors import PipelineError
from pathcast.joins.partition import StandingJoins
from pathcast.messages import decode
from pathcast.network import Recipients
from pathcast.store import offsets_of

from ..matching.input_column_checks import columns_in
from ..matching.match_documents import SHARD_COLUMN
from ..publishing.index_versions import AnyPath
from .worker_join_subscriptions import Subscribed, find_subscriptions

SUBSCRIPTION, SUBSCRIBER = "subscription", "subscriber"
LISTED = "subscriptions"
# Rows per Arrow batch, approximately.
_BATCH_ROWS = 20_000
_Batches = Iterator[pa.RecordBatch]


def deliver_joins(
    messages: DataFrame,
    subscriptions: StandingJoins | None = None,
    *,
    versions: AnyPath | None = None,
    pins: AnyPath | None = None,
    folder: AnyPath | None = None,
    shards: int | None = None,
    lists: bool = False,
    version: int | None = None,
) -> DataFrame:
    """One row per message and subscription that it concerns: the message's columns, `subscription` and `subscriber`.

    `messages` are those of `join_subscriptions`, or any frame with a binary column `message`. The subscriptions are
    given as an object, or are in `versions`, with `pins` and `version`, as for `join_subscriptions`: in one stream both
    stages use the same version. A large object is written below `folder`. With `shards`, this many workers hold a part
    of the filters each. With `lists`, a row per message (and shard) has all ids in `subscriptions`, if there are any:
    fewer bytes if a message concerns thousands. Rows with `error` are omitted (`dead_letters`).
    """
    added = [LISTED] if lists else [SUBSCRIPTION, SUBSCRIBER]
    _check_messages(messages, [*added, *([SHARD_COLUMN] if shards is not None else [])])
    if (subscriptions is None) == (versions is None):
        given = "no subscriptions given" if subscriptions is None else "subscriptions and versions= are both given"
        raise PipelineError(f"{given}; give either subscriptions (a StandingJoins) or versions= (a folder of versions)")
    if shards is not None and shards < 1:
        raise PipelineError(f"shards must be a whole number of at least 1, got {shards}")
    subscribed = find_subscriptions(
        subscriptions, folder, versions, pins, streaming=messages.isStreaming, version=version
    )
    rows = messages.where(f.col("error").isNull()).drop("error") if "error" in messages.columns else messages
    rows = rows.where(f.col("message").isNotNull())
    fields = list(rows.schema.fields)
    if shards is not None:
        numbers = f.array(*(f.lit(number) for number in range(shards)))
        rows = rows.withColumn(SHARD_COLUMN, f.explode(numbers)).repartitionById(shards, SHARD_COLUMN)
    new: list[t.StructField] = [t.StructField(SUBSCRIPTION, t.LongType()), t.StructField(SUBSCRIBER, t.StringType())]
    if lists:
        new = [t.StructField(LISTED, t.ArrayType(t.LongType()))]
    return rows.mapInArrow(delivering(subscribed, shards, lists=lists), t.StructType([*fields, *new]))


def delivering(subscribed: Subscribed, shards: int | None, *, lists: bool) -> Callable[[_Batches], _Batches]:
    """The function that a worker runs on messages."""

    def deliver(batches: _Batches) -> _Batches:
        for given in batches:
            if not len(given):
                continue
            batch, share = given, 0
            if shards is not None:
                share = given.column(SHARD_COLUMN)[0].as_py()
                batch = given.drop_columns([SHARD_COLUMN])
            recipients = subscribed.open(Recipients, share, shards or 1)
            places: list[int] = []
            found: list[np.ndarray] = []
            count = 0
            for place, data in enumerate(batch.column("message")):
                ids = recipients.of(decode(data.as_py()))
                if len(ids):
                    places.append(place)
                    found.append(ids)
                    count += len(ids)
                if count >= _BATCH_ROWS:
                    yield _rows(batch, places, found, recipients, lists=lists)
                    places, found, count = [], [], 0
            if found:
                yield _rows(batch, places, found, recipients, lists=lists)

    return deliver


def _rows(
    batch: pa.RecordBatch, places: list[int], found: list[np.ndarray], recipients: Recipients, *, lists: bool
) -> pa.RecordBatch:
    ids = np.concatenate(found)
    counts = [len(each) for each in found]
    if lists:
        offsets = offsets_of(counts).astype(np.int32)
        rows = batch.take(pa.array(places, pa.int64()))
        return rows.append_column(LISTED, pa.ListArray.from_arrays(pa.array(offsets), pa.array(ids, pa.int64())))
    rows = batch.take(pa.array(np.repeat(places, counts), pa.int64()))
    names = [recipients.subscribers.get(id) for id in ids.tolist()]
    rows = rows.append_column(SUBSCRIPTION, pa.array(ids, pa.int64()))
    return rows.append_column(SUBSCRIBER, pa.array([None if one is None else str(one) for one in names], pa.string()))


def _check_messages(messages: DataFrame, added: list[str]) -> None:
    names = messages.columns
    if "message" not in names or not isinstance(messages.schema["message"].dataType, t.BinaryType):
        columns = columns_in(messages.schema)
        raise PipelineError(
            f"the input has no binary column 'message', which join_subscriptions(…) adds; its columns are {columns}"
        )
    for name in names:
        if name.lower() in added:
            raise PipelineError(
                f"the column '{name}' already exists, but the result needs this name; rename the column first"
            )
