"""Metrics of a micro-batch are observed while it runs, and reported as a dictionary and as a line."""

import json
import logging
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import Observation
from pyspark.sql.streaming.listener import QueryTerminatedEvent

from pathcast.errors import PipelineError
from pathcast.spark import ProgressListener, StructuredFormatter, match_documents, observed, progress_line, publish
from tests.spark.test_index_versions import matcher

NEWS = [(1, b"<news><p/><p/></news>"), (2, b"<p/>"), (3, b"<news>"), (4, None), (5, b"<q/>")]


@pytest.fixture(scope="module")
def news(spark):
    return spark.createDataFrame(NEWS, "id int, xml binary").coalesce(1)


def test_counts_are_observed_as_the_rows_pass(news, tmp_path):
    publish(matcher("//p", "/news"), tmp_path)
    counted = Observation("counts")
    rows = observed(match_documents(news, tmp_path, measure=True), counted)
    assert rows.columns == ["id", "xml", "matches", "error"]
    assert rows.count() == 5
    facts = counted.get
    assert {key: facts[key] for key in ("rows", "matches", "dead_letters", "version", "elements")} == {
        "rows": 5,
        "matches": 3,
        "dead_letters": 2,
        "version": 1,
        "elements": 5,
    }
    assert 0 < facts["new_paths"] <= 5
    assert facts["nanoseconds"] > 0


def test_deliveries_are_counted_by_subscriber_and_nothing_needs_measuring(news, index):
    counted = Observation("counts")
    observed(match_documents(news, index, by="subscriber"), counted).count()
    assert counted.get == {"rows": 5, "deliveries": 2, "dead_letters": 2}


def test_of_nothing_nothing_is_counted(news, index):
    counted = Observation("counts")
    observed(match_documents(news.where("false"), index), counted).count()
    assert counted.get == {"rows": 0, "matches": 0, "dead_letters": 0}


def test_another_frame_is_refused(news):
    with pytest.raises(PipelineError, match="no column 'error'"):
        observed(news)


def namespace(**fields: object) -> Any:
    """An object like Spark's with only these fields."""
    return SimpleNamespace(**fields)


class Streams:
    """The listeners of a session as Spark Connect keeps them: removing the last one waits for the event under way."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.handler = threading.Thread()

    def removeListener(self, listener: ProgressListener) -> None:  # noqa: N802 - Spark's name
        with self.lock:
            self.handler.join(10)
            assert not self.handler.is_alive(), "each waits for the other"

    def ends_soon(self, listener: ProgressListener, event: QueryTerminatedEvent, removing: threading.Event) -> None:
        """The event thread reports the end of a query shortly after the removal of its listener has begun."""

        def tell() -> None:
            removing.wait(10)
            with self.lock:
                listener.onQueryTerminated(event)

        self.handler = threading.Thread(target=tell, daemon=True)
        self.handler.start()


def test_a_listener_is_removed_when_no_event_is_under_way():
    streams, listener, removing = Streams(), ProgressListener(), threading.Event()
    listener.onQueryStarted(namespace(id="1", runId="2", name="news"))
    streams.ends_soon(listener, namespace(id="1", runId="2", exception=None), removing)
    threading.Timer(0.2, removing.set).start()
    listener.remove_from(namespace(streams=streams))
    assert not streams.handler.is_alive()


def test_a_listener_of_a_running_query_stays(spark):
    listener = ProgressListener()
    listener.onQueryStarted(namespace(id="1", runId="2", name="news"))
    with pytest.raises(PipelineError, match=r"news did not end within 0\.05 s; .*query\.stop\(\)"):
        listener.remove_from(spark, seconds=0.05)


def test_each_batch_of_a_stream_is_reported_once(spark, news, tmp_path, caplog):
    publish(matcher("//p", "/news"), tmp_path / "index")
    reports: list[dict[str, Any]] = []
    listener = ProgressListener(reports.append)
    spark.streams.addListener(listener)
    try:
        for _ in range(2):
            news.write.mode("append").parquet(str(tmp_path / "news"))
        stream = spark.readStream.schema(news.schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "news"))
        query = (
            observed(match_documents(stream, tmp_path / "index", measure=True))
            .writeStream.queryName("news")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "out"), format="parquet")
        )
        query.awaitTermination()
    finally:
        listener.remove_from(spark)
    assert [report["batch"] for report in reports] == [0, 1]
    for report in reports:
        assert (report["query"], report["rows"], report["matches"], report["dead_letters"]) == ("news", 5, 3, 2)
        assert report["version"] == 1
        assert 0 <= report["memo_hit_rate"] <= 1
        assert report["seconds"] > 0
    json.dumps(reports)
    line = progress_line(reports[0])
    assert line.startswith("news: batch 0, 5 documents")
    assert "3 matches, 2 dead letters" in line
    assert line.endswith("version 1")


def test_a_log_line_carries_the_facts():
    record = logging.makeLogRecord({"name": "pathcast.spark", "levelname": "INFO", "msg": "a %s", "args": ("line",)})
    record.pathcast = {"batch": 3, "rows": 5}
    line = json.loads(StructuredFormatter().format(record))
    assert (line["message"], line["batch"], line["rows"], line["level"]) == ("a line", 3, 5, "INFO")
