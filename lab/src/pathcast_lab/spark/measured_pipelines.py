"""Pipelines that are measured: the same documents through more and more stages, on the same Spark.

A `PipelineStage` is a Spark session with documents of many publishers in memory. Its output goes to a sink that
discards all rows; deliveries are numbers of documents and names, as with `columns = ["number"]` in a pipeline.
A stream is timed as it runs, is stopped in the middle of a micro-batch, and started again.
"""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from threading import Event

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from pathcast.mediation import Mediator
from pathcast.spark.matching.deliveries_and_dead_letters import deliver
from pathcast.spark.matching.match_documents import match_documents
from pathcast.spark.matching.mediate_documents import Mediating
from pathcast.spark.matching.roxsum_messages import summarize
from pathcast.spark.overlay.route_documents import disseminate
from pathcast.spark.pipeline.pipeline_file import read_pipeline
from pathcast.spark.pipeline.run_pipeline import AnyReport, Report, run
from pathcast.spark.sessions.spark_session import session

from .matching_rivals import identity

_STREAM = """
[source]
format = "parquet"
path = "stream"
schema = "number long, publisher string, xml binary"
options = {{ maxFilesPerTrigger = 1 }}
[mediation]
mediator = "mediator"
[overlay]
policy = "L"
[subscriptions]
index = "overlay"
[deliveries]
path = "deliveries"
columns = ["number"]
[stream]
checkpoint = "checkpoint"
"""


@dataclass(frozen=True)
class Recovery:
    """A stream that was stopped: seconds of its micro-batches, and from the new start to the end of the first one.

    `begun` and `resumed` are the numbers of the first micro-batch that was not done and of the first one afterwards.
    """

    micro_batch: float
    started: float
    recovered: float
    begun: int
    resumed: int
    deliveries: int


class PipelineStage:
    """A separate Spark session; `folder` has `index`, `overlay` and `mediator`."""

    def __init__(
        self, cores: int, documents: Sequence[tuple[str, bytes]], folder: Path, spark: SparkSession | None = None
    ) -> None:
        settings = {"spark.master": f"local[{cores}]", "spark.driver.memory": "3g"}
        self.spark = spark if spark is not None else session("pathcast benchmark", settings)
        self._folder = folder
        self._mediation = Mediating(Mediator.open(folder / "mediator"))
        self._write(folder / "documents.parquet", documents, 0)
        self.documents = self.spark.read.parquet(str(folder / "documents.parquet")).repartition(2 * cores).persist()
        assert self.documents.count() == len(documents)

    def identity(self) -> DataFrame:
        """Send all rows to Python and back."""
        return self.documents.mapInArrow(identity, self.documents.schema)

    def matched(self, *, mediated: bool) -> DataFrame:
        """Deliveries by one index, of documents as they come or as the global schema has them."""
        mediation = self._mediation if mediated else None
        return deliver(match_documents(self.documents, self._folder / "index", by="subscriber", mediation=mediation))

    def routed(self, policy: str, *, mediated: bool = True) -> DataFrame:
        """Deliveries by an overlay."""
        mediation = self._mediation if mediated else None
        rows = disseminate(self.documents, self._folder / "overlay", policy, mediation=mediation)
        return rows.drop("sender", "annotations", "bytes")

    @staticmethod
    def numbers(deliveries: DataFrame) -> DataFrame:
        """Of deliveries the numbers of documents and the names."""
        return deliveries.select("number", *(name for name in ("router", "subscriber") if name in deliveries.columns))

    @staticmethod
    def summarised(deliveries: DataFrame) -> DataFrame:
        """Deliveries as messages, one target's documents together."""
        by = [name for name in ("router", "subscriber") if name in deliveries.columns]
        return summarize(deliveries.select(*by, "number", "xml"), by=by)

    @staticmethod
    def throw_away(frame: DataFrame) -> None:
        """Compute all rows and discard them."""
        frame.write.format("noop").mode("overwrite").save()

    @staticmethod
    def found(deliveries: DataFrame) -> list[tuple[int, str]]:
        """Deliveries as pairs of number and subscriber, sorted."""
        rows = deliveries.where("subscriber is not null").select("number", "subscriber").toArrow()
        return sorted(zip(rows["number"].to_pylist(), rows["subscriber"].to_pylist(), strict=True))

    def recovery(self, documents: Sequence[tuple[str, bytes]], files: int) -> Recovery:
        """Run the pipeline as a stream of this many micro-batches, stop it in the middle of one, and start it again."""
        place = self._folder / "stream"
        place.mkdir()
        size = len(documents) // files
        for number in range(files):
            file = place / f"{number:03}.parquet"
            self._write(file, documents[number * size : (number + 1) * size], number * size)
            os.utime(file, (number, number))
        (self._folder / "pipeline.toml").write_text(_STREAM.format(), encoding="utf-8")
        pipeline = read_pipeline(self._folder / "pipeline.toml")
        told: list[tuple[float, Report]] = []
        stop = Event()

        def tell(report: AnyReport) -> None:
            assert isinstance(report, Report)
            told.append((time.perf_counter(), report))
            if len(told) == files // 2:
                stop.set()

        begin = time.perf_counter()
        run(self.spark, pipeline, tell, stop)
        before = list(told)
        again = time.perf_counter()
        run(self.spark, pipeline, tell)
        ends = [moment for moment, _ in told]
        steady = sorted(later - earlier for earlier, later in pairwise(ends))
        rows = self.spark.read.parquet(str(self._folder / "deliveries"))
        return Recovery(
            micro_batch=steady[len(steady) // 2],
            started=before[0][0] - begin,
            recovered=ends[len(before)] - again,
            begun=int(before[-1][1].batch or 0) + 1,
            resumed=int(told[len(before)][1].batch or 0),
            deliveries=rows.count(),
        )

    def close(self) -> None:
        """End this Spark."""
        self.spark.stop()

    @staticmethod
    def _write(file: Path, documents: Sequence[tuple[str, bytes]], first: int) -> None:
        publishers, xml = zip(*documents, strict=True)
        numbers = pa.array(range(first, first + len(documents)), pa.int64())
        table = pa.table(
            [numbers, pa.array(publishers), pa.array(xml, pa.binary())], names=["number", "publisher", "xml"]
        )
        pq.write_table(table, file)
