"""What a micro-batch did is observed while it runs, and reported as a dictionary and as a line."""

import json
import logging
import time

import pytest
from pyspark.sql import Observation

from pathcast.errors import PipelineError
from pathcast.spark import ProgressListener, StructuredFormatter, match_documents, observed, progress_line, publish

from .test_versions import matcher

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


def test_each_batch_of_a_stream_is_reported_once(spark, news, tmp_path, caplog):
    publish(matcher("//p", "/news"), tmp_path / "index")
    reports = []
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
        deadline = time.monotonic() + 20
        while len(reports) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        spark.streams.removeListener(listener)
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
