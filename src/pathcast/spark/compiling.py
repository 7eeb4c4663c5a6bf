"""Patterns compiled by workers: large sets of expressions with predicates become shards, which the driver merges.

    10,000 expressions a row ──mapInArrow──▶ their shard, a binary value ──▶ merged by the driver

A worker parses, normalises and compiles a row's expressions into the tables of a small index
(`matching/shards.py`). The driver makes no object for any of them. Only what is worth it goes this way: expressions
with predicates, and only many, since workers have to start and to load the kernels. A plain path costs the driver 2 µs,
less than its way to a worker and back.

Invariant: entries, reasons and columns are those that the driver alone would have come to.
Cost: some 120 µs an expression, shared by the workers, and 5 µs of the driver's time. With two workers it pays from
some tens of thousands on.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pathcast.matching.contract import Engine, Mergeable
from pathcast.matching.shards import Arrays, compile_shard, merge_shard, packed, unpacked
from pathcast.matching.table import PatternTable
from pathcast.patterns import Namespaces

# Fewer expressions with predicates than this are compiled by the driver alone, unless somebody asks for another bound:
# it takes that long until two workers are ready. One worker alone is never quicker.
MANY = 50_000
# So many are compiled at a time: a worker has some 10 kB for each, and makes one value of all.
SHARD = 10_000
# So many are on their way through Spark at a time: the driver's JVM has some 200 bytes for each.
ROUND = 500_000
_CODEC = "lz4"
_PARALLELISM = "spark.sql.leafNodeDefaultParallelism"
# What tells expressions that are no plain paths.
_PREDICATES = r"[\[@(]"

Batches = Iterator[pa.RecordBatch]
Int32s = npt.NDArray[np.int32]


class Compiled:
    """What became of expressions: the `entries` of all, -1 where there is none, and why some were `refused`, by place.

    `left` are the places of those that nobody has looked at yet.
    """

    def __init__(self, count: int) -> None:
        self.entries: Int32s = np.full(count, -1, dtype=np.int32)
        self.refused: dict[int, tuple[str, int | None]] = {}
        self.left: npt.NDArray[np.int64] = np.arange(count)


def compile_in_parallel(
    spark: SparkSession, expressions: pa.Array, table: PatternTable, engine: Engine, many: int | None = None
) -> Compiled:
    """Compile the expressions with predicates, if there are many and the engine can merge them; the others are left."""
    compiled = Compiled(len(expressions))
    if many is None:
        many = MANY if _has_several_workers(spark) else len(expressions) + 1
    if not isinstance(engine, Mergeable) or len(expressions) < many:
        return compiled
    has_predicates = pc.match_substring_regex(expressions, _PREDICATES)
    chosen = np.flatnonzero(has_predicates.to_numpy(zero_copy_only=False))
    if len(chosen) < max(1, many):
        return compiled
    looked_at = np.zeros(len(expressions), dtype=np.bool_)
    for begin in range(0, len(chosen), ROUND):
        some = chosen[begin : begin + ROUND]
        for place, shard in _shards(spark, expressions.take(pa.array(some)), table, engine.name):
            merged = merge_shard(table, engine, shard)
            places = some[place : place + len(merged.entries)]
            compiled.entries[places] = merged.entries
            compiled.refused |= {int(places[at]): (reason, column) for at, reason, column in merged.refused}
            looked_at[np.delete(places, merged.left)] = True
    compiled.left = np.flatnonzero(~looked_at)
    return compiled


def _has_several_workers(spark: SparkSession) -> bool:
    """Whether tasks run side by side; a client of Spark Connect can't tell, and takes it that they do."""
    try:
        return spark.sparkContext.defaultParallelism > 1
    except PySparkException:
        return True


def _shards(
    spark: SparkSession, expressions: pa.Array, table: PatternTable, engine: str
) -> Iterator[tuple[int, Arrays]]:
    """The shards of expressions, each with the place of its first one."""
    begins = range(0, len(expressions), SHARD)
    texts = [_written(expressions.slice(begin, SHARD)) for begin in begins]
    frame = spark.createDataFrame(pa.table({"place": list(begins), "xpaths": texts}), "place bigint, xpaths binary")
    compiler = _compiler(table.namespaces, table.max_steps, engine)
    with _a_task_for_each(spark, len(texts)):
        shards = frame.mapInArrow(compiler, "place bigint, bytes bigint, shard binary").toArrow()
    for place, size, shard in zip(*(shards[name].to_pylist() for name in shards.column_names), strict=True):
        yield place, unpacked(pa.decompress(shard, size, _CODEC).to_pybytes())


def _compiler(namespaces: Namespaces, max_steps: int, engine: str) -> Callable[[Batches], Batches]:
    """What a worker does with its rows."""

    def compiled(batches: Batches) -> Batches:
        for batch in batches:
            for place, texts in zip(batch["place"], batch["xpaths"], strict=True):
                data = packed(compile_shard(_read(texts.as_buffer()), namespaces, max_steps, engine))
                columns = [[place.as_py()], [len(data)], [pa.compress(data, _CODEC, asbytes=True)]]
                yield pa.RecordBatch.from_arrays([pa.array(column) for column in columns], ["place", "bytes", "shard"])

    return compiled


def _written(texts: pa.Array) -> bytes:
    """Texts as bytes, small."""
    sink = pa.BufferOutputStream()
    schema = pa.schema([("text", texts.type)])
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression=_CODEC)) as stream:
        stream.write_table(pa.table([texts], schema))
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _read(data: pa.Buffer) -> list[str]:
    with pa.ipc.open_stream(data) as stream:
        texts: list[str] = stream.read_all()["text"].to_pylist()
    return texts


@contextmanager
def _a_task_for_each(spark: SparkSession, rows: int) -> Iterator[None]:
    """While the block runs, each row of a frame that the driver makes is a task."""
    before = spark.conf.get(_PARALLELISM, None)
    spark.conf.set(_PARALLELISM, str(rows))
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_PARALLELISM)
        else:
            spark.conf.set(_PARALLELISM, before)
