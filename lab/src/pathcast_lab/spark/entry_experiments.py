"""Entries of one large file: split and read, against the same entries as whole documents, and Spark's own XML reader.

Documents are generated news. The file has all of them as children of its root; the rival `whole` has them in a Parquet
file, one per row, and the rival `rowTag` reads the file with Spark's source `xml`. All ways give the same rows: the
attribute `serial` of each document, which Pathcast takes from the element arrays after reading all of the document.
"""

import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pathcast_lab.harness import Claim, Judgement, Plot, Row, Rows, Run, experiment, judged, race, ratio

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

SPLIT, WHOLE, ROW_TAG = "split a file", "whole documents", "Spark's xml with rowTag"
ALONE_SPLIT, ALONE_READ, ALONE_BOTH = "split only", "read whole documents", "split and read"
_DECLARATION = re.compile(rb"\A<\?xml.*?\?>\s*", re.DOTALL)


@dataclass(frozen=True)
class SparkEntries:
    """`distinct` documents, repeated to `entries`; `rounds` of each race; `cores` of Spark."""

    entries: int = 8_000
    distinct: int = 2_000
    rounds: int = 5
    cores: int = 2


def _times(rows: Rows, rival: str) -> Judgement:
    found = rows.number("times", series=SPLIT, rival=rival)
    ours, theirs = (
        rows.one(series=series, rival=other)["entries_s"] for series, other in ((SPLIT, rival), (rival, ""))
    )
    shown = f"{found:.2f} times ({float(ours or 0):,.0f} against {float(theirs or 0):,.0f} entries/s)"
    return judged(found >= 1.0 if rival == WHOLE else found > 1.0, shown)


@experiment(
    "spark-entries",
    title="Spark: entries of one file as documents",
    small=SparkEntries(),
    paper=SparkEntries(entries=40_000, rounds=7),
    claims=(
        Claim(
            "the entries of one file are read at least as fast as the same bytes as whole documents",
            "target",
            lambda rows: _times(rows, WHOLE),
            "1.0 times",
        ),
        Claim(
            "the entries of one file are read faster than by Spark's own XML reader with rowTag",
            "target",
            lambda rows: _times(rows, ROW_TAG),
            "more than 1.0 times",
        ),
    ),
    plots=(
        Plot(
            "speed",
            "Entries per second",
            y="entries_s",
            y_label="entries/s",
            series="series",
            kind="bars",
            ours=(SPLIT,),
        ),
    ),
    show={
        "series": "what",
        "rival": "against",
        "entries_s": "entries/s",
        "mb_s": "MB/s",
        "times": "times as fast",
    },
)
def spark_entries(run: Run, parameters: SparkEntries) -> Iterator[Row]:
    """The ways in turn, on Spark and in a single process; what they give is compared first."""
    from pathcast.spark import session
    from pathcast.workloads import generate_documents, news_schema

    run.begin("documents")
    generated = generate_documents(news_schema(), parameters.distinct, seed=run.seed)
    distinct = [_DECLARATION.sub(b"", bytes(document)).strip() for document in generated]
    documents = [distinct[number % len(distinct)] for number in range(parameters.entries)]
    with tempfile.TemporaryDirectory(prefix="pathcast-spark-entries-") as name:
        folder = Path(name)
        file = folder / "feed.xml"
        file.write_bytes(b"<feed>\n" + b"\n".join(documents) + b"\n</feed>\n")
        size = file.stat().st_size
        yield from _measured(run, parameters, _alone(file, documents), size, ALONE_BOTH)
        spark = session("entries", {"spark.master": f"local[{parameters.cores}]"})
        try:
            yield from _measured(run, parameters, _on_spark(spark, file, documents), size, SPLIT)
        finally:
            spark.stop()


def _measured(
    run: Run, parameters: SparkEntries, ways: dict[str, Callable[[], object]], size: int, ours: str
) -> Iterator[Row]:
    """A row per way, and one per rival with how many times as fast ours is."""
    run.check_equal(f"the same rows, {ours}", {name: way() for name, way in ways.items()})
    run.begin(f"race, {ours}", parameters.rounds)
    timed = race(ways, rounds=parameters.rounds, after_round=run.advance)
    for name, timing in timed.items():
        speed = {"entries_s": parameters.entries / timing.median, "mb_s": size / timing.median / 1e6}
        yield {"series": name, "rival": "", **speed, "times": None}
        if name != ours:
            speed = {"entries_s": parameters.entries / timed[ours].median, "mb_s": size / timed[ours].median / 1e6}
            yield {"series": ours, "rival": name, **speed, "times": ratio(timing, timed[ours]).median}


def _alone(file: Path, documents: list[bytes]) -> dict[str, Callable[[], object]]:
    """The ways in a single process; each gives the number of documents."""
    from pathcast.documents import Limits, Names, Reader, entries_of, parse_entry_path

    path, reader = parse_entry_path("/feed/*"), Reader(Names(), Limits(), "refuse")

    def read(given: Iterator[bytes]) -> int:
        count = size = 0
        batch: list[bytes] = []
        for document in given:
            batch.append(document)
            size += len(document)
            if size > 1 << 20:
                count += len(reader.read(batch, borrowed=True))
                batch, size = [], 0
        return count + len(reader.read(batch, borrowed=True))

    def split() -> Iterator[bytes]:
        return (entry.document for entry in entries_of(file, path, limits=Limits()))

    return {
        ALONE_SPLIT: lambda: sum(1 for _ in split()),
        ALONE_READ: lambda: read(iter(documents)),
        ALONE_BOTH: lambda: read(split()),
    }


def _on_spark(spark: "SparkSession", file: Path, documents: list[bytes]) -> dict[str, Callable[[], object]]:
    """The ways on Spark; each gives the number of rows, and number and sum of the attributes."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.sql import functions as f

    from pathcast.spark import split_documents

    pq.write_table(pa.table({"xml": pa.array(documents, pa.binary())}), file.parent / "whole", row_group_size=500)

    def found(frame: "DataFrame") -> tuple[int, ...]:
        serial = f.col("serial").cast("long")
        return tuple(frame.agg(f.count(f.lit(1)), f.count(serial), f.sum(serial)).collect()[0])

    def split() -> tuple[int, ...]:
        files = spark.createDataFrame([(str(file),)], "path string")
        entries = split_documents(files, "/feed/news", file_path="path")
        return found(entries.mapInArrow(serials, "serial string"))

    def whole() -> tuple[int, ...]:
        return found(spark.read.parquet(str(file.parent / "whole")).mapInArrow(serials, "serial string"))

    def row_tag() -> tuple[int, ...]:
        rows = spark.read.format("xml").option("rowTag", "news").schema("_serial string").load(str(file))
        return found(rows.select(f.col("_serial").alias("serial")))

    return {SPLIT: split, WHOLE: whole, ROW_TAG: row_tag}


def serials(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    """The attribute `serial` of each document."""
    import pyarrow as pa

    from pathcast.documents import Limits
    from pathcast.spark.matching.arrow_document_columns import parts_of_rows
    from pathcast.spark.matching.document_batch_reader import PartReader

    reader = PartReader(Limits())
    for batch in batches:
        for part in parts_of_rows(batch, "xml"):
            found = [document.attributes(0).get("serial") for document in reader.read(part)]
            yield pa.RecordBatch.from_pydict({"serial": pa.array(found, pa.string())})
