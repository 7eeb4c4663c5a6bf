"""A pipeline over a broker's log, with the subscriptions of the log, delivers what the broker delivers."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pathcast.broker import Broker
from pathcast.broker_log import SubscriptionRecord
from pathcast.log import ReadLeases, SqliteLog
from pathcast.spark.pipeline import Report, read_pipeline, run

from ..broker.broker_world import published
from ..broker.served_broker import Served, served
from ..broker_log.log_history import Delivery, History

pytestmark = pytest.mark.slow

STREAM = """
[source]
format = "pathcast"
options = {{ url = "{url}"{options} }}

[deliveries]
path = "deliveries"
{deliveries}

[dead_letters]
path = "dead"
{stream}
"""
CHECKPOINT = '[stream]\ncheckpoint = "checkpoint"\n'


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    log = SqliteLog(tmp_path / "log", segment_bytes=4_096)
    with served(tmp_path, broker=Broker(log, leases=ReadLeases(log))) as found:
        yield found


def run_once(
    spark: SparkSession, folder: Path, server: Served, options: str = "", stream: str = CHECKPOINT, deliveries: str = ""
) -> list[Report]:
    """Run the pipeline over what the log has."""
    text = STREAM.format(url=server.address, options=options, stream=stream, deliveries=deliveries)
    file = folder / "pipeline.toml"
    file.write_text(text, encoding="utf-8")
    reports: list[Report] = []
    assert run(spark, read_pipeline(file), reports.append)  # type: ignore[arg-type]
    return reports


def rows(spark: SparkSession, folder: Path) -> list[Delivery]:
    """All deliveries that the pipeline wrote."""
    if not (folder / "deliveries").exists():
        return []
    found = spark.read.parquet(str(folder / "deliveries"))
    return [tuple(row) for row in found.select("tenant", "subscription", "sequence", "subscriber").collect()]


def put(server: Served, id: str, pattern: str, begin: int | None = None) -> int:
    record = SubscriptionRecord("t", id, "ada", pattern, pattern, begin=begin)
    return server.broker.subscribe(record).result()


def test_a_stream_delivers_what_the_broker_delivers(spark: SparkSession, server: Served, tmp_path: Path) -> None:
    """Subscriptions, guards, mediators and limits change and documents expire while pipeline and broker run."""
    history = History(server.broker, 7)
    expected: Counter[Delivery] = Counter()
    batches = 0
    for most in (1_000, 30, 50):
        for _ in range(2):
            history.retract()
        for _ in range(50):
            history.add()
        expected.update(history.settle())
        batches += len(
            run_once(spark, tmp_path, server, f', maxDocumentsPerTrigger = "{most}", sequencesPerTask = "40"')
        )
        assert Counter(rows(spark, tmp_path)) == expected
    assert expected.total() > 100
    assert batches > 4


def test_a_batch_reads_a_range_and_lists_the_subscriptions_of_a_document(
    spark: SparkSession, server: Served, tmp_path: Path
) -> None:
    put(server, "s", "//a")
    first, second = (published(server.broker, "news", "<a/>")[0] for _ in range(2))
    put(server, "t", "//a")
    (third,) = published(server.broker, "news", "<a/>")
    server.broker.unsubscribe("t", "s").result()
    published(server.broker, "news", "<a/>")
    (report,) = run_once(
        spark,
        tmp_path,
        server,
        f', from = "{second}", to = "{third + 1}"',
        "",
        'per = "document"\ncolumns = ["sequence"]',
    )
    assert (report.documents, report.matches) == (2, 3)
    found = spark.read.parquet(str(tmp_path / "deliveries")).orderBy("sequence").collect()
    assert [(row["sequence"], [each["subscription"] for each in row["subscriptions"]]) for row in found] == [
        (second, ["s"]),
        (third, ["s", "t"]),
    ]
    assert first < second
