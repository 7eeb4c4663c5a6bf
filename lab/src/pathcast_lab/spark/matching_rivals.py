"""Rivals of matching on Spark: other functions over the same documents, on the same Spark.

A `Stage` is a Spark session with a number of cores and documents in memory. Its output goes to a sink that discards all
rows, so a time is that of the function and of the Arrow transfer:

- identity: batches come back unchanged, which is the limit of `mapInArrow`;
- matching: `match_documents`;
- lxml: each document is parsed into a tree and forgotten;
- Spark's own `xpath_boolean`, one expression at a time.

Times of streams are those that Spark reports per micro-batch.
"""

import os
import re
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pathcast.spark.matching.arrow_document_columns import parts_of_values
from pathcast.spark.matching.match_documents import match_documents, match_part
from pathcast.spark.matching.worker_index import Index
from pathcast.spark.sessions.spark_session import session

Batches = Iterator[pa.RecordBatch]
# Seconds that a task waits which measures memory.
_PAUSE = 0.1


class Memory(NamedTuple):
    """Bytes of an index in a worker's memory: of its files, the worker's share of those, and what it made itself."""

    mapped: int
    share: int
    own: int


def identity(batches: Batches) -> Batches:
    """Return the rows unchanged."""
    yield from batches


def parsed_by_lxml(batches: Batches) -> Batches:
    """Return the rows unchanged, after parsing each document."""
    from lxml import etree

    for batch in batches:
        for document in batch.column("xml").to_pylist():
            etree.fromstring(document)
        yield batch


class Stage:
    """A separate Spark session, with documents in memory; `close` ends it."""

    def __init__(self, cores: int, documents: Sequence[bytes], folder: Path, spark: SparkSession | None = None) -> None:
        settings = {
            "spark.master": f"local[{cores}]",
            # Documents are held in memory beside the results of a few thousand matches each.
            "spark.driver.memory": "3g",
        }
        self.cores = cores
        self.spark = spark if spark is not None else session("pathcast benchmark", settings)
        self._folder = folder
        self._documents = list(documents)
        self._frames: dict[int, DataFrame] = {}
        self._count = 0

    def documents(self, count: int) -> DataFrame:
        """`count` documents, repeated as often as needed, in memory."""
        if count not in self._frames:
            file = self._folder / f"documents-{self.cores}-{count}.parquet"
            numbers = range(count)
            xml = pa.array([self._documents[number % len(self._documents)] for number in numbers], pa.binary())
            pq.write_table(pa.table([pa.array(numbers, pa.int64()), xml], names=["number", "xml"]), file)
            frame = self.spark.read.parquet(str(file)).repartition(4 * self.cores).persist()
            assert frame.count() == count
            self._frames[count] = frame
        return self._frames[count]

    def identity(self, count: int) -> None:
        """Send documents to Python and back."""
        self._map(identity, count)

    def lxml(self, count: int) -> None:
        """Send documents to Python, parse them there with lxml, and send them back."""
        self._map(parsed_by_lxml, count)

    def match(self, index: Path, by: Literal["id", "subscriber"], count: int) -> None:
        """Match documents."""
        _throw_away(match_documents(self.documents(count), index, by=by))

    def answers(self, index: Path, by: Literal["id", "subscriber"], count: int) -> list[list[int] | list[str]]:
        """The matches of this many documents, in their order."""
        column = "matches" if by == "id" else "subscribers"
        rows = match_documents(self.documents(count), index, by=by).select("number", column).orderBy("number")
        return [list(row[column]) for row in rows.collect()]

    def xpath_boolean(self, xpaths: Sequence[str], count: int) -> tuple[float, int]:
        """Seconds that Spark's own function takes for each document and expression, and the matches that it finds."""
        quoted = [xpath.replace("'", "\\'") for xpath in xpaths]
        frame = self.documents(count)
        found = frame.select(
            f.expr(" + ".join(f"cast(xpath_boolean(cast(xml as string), '{xpath}') as int)" for xpath in quoted))
        )
        begin = time.perf_counter()
        matches = sum(row[0] for row in found.collect())
        return (time.perf_counter() - begin) / len(quoted) / count, matches

    def micro_batches(self, index: Path | None, rows: int, files: int) -> float:
        """The median of a stream's micro-batches of this many documents, in seconds; without an index, identity's."""
        source = self._stream_files(rows, files)
        stream = self.spark.readStream.schema("number long, xml binary").option("maxFilesPerTrigger", 1)
        documents = stream.parquet(str(source))
        frame = (
            documents.mapInArrow(identity, documents.schema)
            if index is None
            else match_documents(documents, index, by="subscriber")
        )
        self._count += 1
        writer = frame.writeStream.format("noop").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(self._folder / f"checkpoint-{self._count}")).start()
        query.awaitTermination()
        taken = [one.durationMs["triggerExecution"] / 1000 for one in query.recentProgress if one.numInputRows]
        return statistics.median(taken[len(taken) // 3 :])  # the first ones load classes and open the index

    def index_memory(self, index: Path, count: int) -> list[Memory]:
        """The memory of the index in each worker, once all of them have matched with it."""
        documents = self.documents(count)
        seen: dict[int, Memory] = {}
        for _ in range(2):  # first all open it, then each one's share is known
            rows = documents.mapInArrow(_measuring(str(index)), "pid int, mapped long, share long, own long").collect()
            for row in rows:
                before = seen.get(row["pid"])
                own = row["own"] if before is None else max(row["own"], before.own)
                seen[row["pid"]] = Memory(row["mapped"], row["share"], own)
        return list(seen.values())

    def close(self) -> None:
        """End this Spark."""
        self.spark.stop()

    def _map(self, function: Callable[[Batches], Batches], count: int) -> None:
        documents = self.documents(count)
        _throw_away(documents.mapInArrow(function, documents.schema))

    def _stream_files(self, rows: int, files: int) -> Path:
        folder = self._folder / f"stream-{rows}-{files}"
        if not folder.exists():
            folder.mkdir()
            for number in range(files):
                some = [self._documents[(number * rows + row) % len(self._documents)] for row in range(rows)]
                table = pa.table(
                    [pa.array(range(rows), pa.int64()), pa.array(some, pa.binary())], names=["number", "xml"]
                )
                pq.write_table(table, folder / f"{number:03}.parquet")
        return folder


def _throw_away(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _measuring(index: str) -> Callable[[Batches], Batches]:
    """A function that matches with an index and reports how much memory of its worker that took."""

    def measure(batches: Batches) -> Batches:
        before = _own_memory()
        matcher, _ = Index(index).open()
        for batch in batches:
            for part in parts_of_values(batch.column("xml")):
                match_part(part, matcher, "subscriber")
        own = _own_memory() - before
        time.sleep(_PAUSE)  # so that the other workers get their share of the tasks
        values = (os.getpid(), *_mapped(index), own)
        yield pa.record_batch(
            [pa.array([value], kind) for value, kind in zip(values, (pa.int32(), *[pa.int64()] * 3), strict=True)],
            names=["pid", "mapped", "share", "own"],
        )

    return measure


def _mapped(folder: str) -> tuple[int, int]:
    """Bytes of the files below a folder that this process has in its memory, and its share: a page that n processes
    have counts one n-th.
    """
    mapped = share = 0
    inside = False
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8", errors="replace").splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            inside = folder in line
        elif inside and line.startswith("Rss:"):
            mapped += int(line.split()[1]) * 1024
        elif inside and line.startswith("Pss:"):
            share += int(line.split()[1]) * 1024
    return mapped, share


def _own_memory() -> int:
    """Bytes of this process's memory that do not belong to files."""
    text = Path("/proc/self/smaps_rollup").read_text(encoding="ascii")
    return 1024 * sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Anonymous:"))
