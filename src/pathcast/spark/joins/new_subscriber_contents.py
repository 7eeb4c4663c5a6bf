"""Initial contents: the contents of subscriptions that are new in a micro-batch, read from its state.

A version of the subscriptions takes effect with a micro-batch, for all keys at once. A new subscription begins with the
tables as the micro-batch before left them, read by Spark's state reader, and continues with the messages of this one.
Both can be repeated with the same result, so a separate job can compute them, then or later, as long as the checkpoint
keeps the state (the last 100 micro-batches).

Invariant: contents and the messages from the micro-batch on, in the order of each key, are the query's rows.
Cost: the state is read once; an index look-up per row, and the listed rows.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pathcast.errors import PipelineError
from pathcast.joins.partition import StandingJoins, next_id_in
from pathcast.joins.server import InitialContents

from ..arrow_to_spark_types import spark_schema
from ..pipeline.checkpoint_reader import query_id
from ..publishing.index_versions import AnyPath, version_folder
from ..publishing.micro_batch_version_pins import RETAINED, pins_of
from .standing_join_stream import STATE
from .worker_join_subscriptions import Subscribed, find_subscriptions

_ARROW_CONTENTS = pa.schema(
    [
        ("subscription", pa.int64()),
        ("subscriber", pa.string()),
        ("edge", pa.int32()),
        ("join_value", pa.string()),
        ("message", pa.binary()),
    ]
)
CONTENTS = spark_schema(_ARROW_CONTENTS)
# Messages per Arrow batch.
_BATCH_ROWS = 10_000
_Batches = Iterator[pa.RecordBatch]


def initial_contents(
    spark: SparkSession,
    versions: AnyPath,
    checkpoint: AnyPath,
    batch: int,
    *,
    pins: AnyPath | None = None,
    operator: int = 0,
) -> DataFrame:
    """The initial contents of subscriptions that are new in a micro-batch of a stream.

    `versions` and `pins` as for `join_subscriptions`; `checkpoint` is the stream's folder, `batch` the number of a
    micro-batch that has begun (in `foreachBatch`: after its messages were written). `operator` is the number of the
    join among the stream's stateful operators, the first being 0.

    A row per subscription and key with rows for it: `subscription` and `subscriber`, `edge`, `join_value`, and
    `message`, which a client receives before the messages of this micro-batch. No rows if no subscription is new.
    """
    found = newcomers(versions, checkpoint, batch, pins=pins)
    if found is None:
        return spark.createDataFrame([], CONTENTS)
    version, first = found
    states = (
        spark.read.format("statestore")
        .option("path", str(Path(checkpoint).absolute()))
        .option("operatorId", operator)
        .option("stateVarName", STATE)
        .option("batchId", batch - 1)
        .load()
        .select(f.col("key.edge"), f.col("key.join_value"), f.col(f"value.{STATE}").alias(STATE))
    )
    fresh = find_subscriptions(None, None, versions, None, streaming=False, version=version)
    return states.mapInArrow(_beginning(fresh, first), CONTENTS)


def newcomers(
    versions: AnyPath, checkpoint: AnyPath, batch: int, *, pins: AnyPath | None = None
) -> tuple[int, int] | None:
    """The version of a micro-batch, and the first id that is new in it; None if there is none."""
    known = pins_of(Path(versions).absolute(), query_id(checkpoint), None if pins is None else Path(pins).absolute())
    if batch not in known:
        raise PipelineError(
            f"the version that micro-batch {batch} of {checkpoint} used is unknown; choose a micro-batch that "
            f"has begun and is among the last {RETAINED}"
        )
    before = [number for number in known if number < batch]
    if batch == 0 or (before and known[max(before)] == known[batch]):
        return None
    if not before:
        raise PipelineError(
            f"cannot find the subscriptions that are new in micro-batch {batch} of {checkpoint}: the version that "
            f"micro-batch {batch - 1} used is unknown, since only the versions of the last {RETAINED} micro-batches "
            f"are kept; choose a micro-batch later than {batch}"
        )
    first, after = (next_id_in(version_folder(versions, known[number])) for number in (max(before), batch))
    return None if after == first else (known[batch], first)


class _Fresh:
    """The subscriptions of a version with ids from a given id on."""

    def __init__(self, standing: StandingJoins, first: int) -> None:
        fresh = standing.since(first)
        self.subscribers = {one.id: one.subscriber for one in fresh.asked}
        self.beginnings = InitialContents(fresh)


def _beginning(subscribed: Subscribed, first: int) -> Callable[[_Batches], _Batches]:
    def begin(batches: _Batches) -> _Batches:
        fresh = subscribed.open(_Fresh, first)
        rows: list[tuple[object, ...]] = []
        for batch in batches:
            columns = [batch.column(name).to_pylist() for name in ("edge", "join_value", STATE)]
            for edge, value, state in zip(*columns, strict=True):
                for id, message in fresh.beginnings.of(edge, state):
                    name = fresh.subscribers.get(id)
                    rows.append((id, None if name is None else str(name), edge, value, message.encode()))
                    if len(rows) >= _BATCH_ROWS:
                        yield _batch(rows)
                        rows = []
        if rows:
            yield _batch(rows)

    return begin


def _batch(rows: list[tuple[object, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(values, kind) for values, kind in zip(columns, _ARROW_CONTENTS.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW_CONTENTS)
