"""Streams over files on Spark: each file once, whatever its name, when it is complete; reports count the others."""

import os
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pathcast.errors import PipelineError
from pathcast.spark import progress_facts, progress_line, publish, stream_files
from pathcast.spark.pipeline.dry_run_plan import plan
from pathcast.spark.pipeline.pipeline_dataframes import open_source
from pathcast.spark.pipeline.run_pipeline import AnyReport, DeferredReport, Report, run
from tests.spark.test_pipeline_dataframes import ignored, matcher, pipeline, rows, run_to_end

NAMES = [
    "a.xml", "b.xml", "c [x].xml", "d{a,b}.xml", "e*.xml", "f?.xml", "[ab].xml", "g%20.xml", "a b.xml", "h#i.xml",
    "l\\m.xml", "ü é.xml", "n\no.xml", "broken [x].xml",
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    publish(matcher({"/a": "ada"}), tmp_path / "index")
    (tmp_path / "feed").mkdir()
    return tmp_path


def put(file: Path, text: str = "<a/>", *, settled: bool = True) -> None:
    file.write_text(text)
    if settled:
        os.utime(file, (1_700_000_000, 1_700_000_000))


def paths(folder: Path, name: str) -> list[str]:
    return sorted(row["path"] for row in rows(folder / name))


@pytest.mark.parametrize("form", ["files", "binaryFile"])
def test_a_stream_delivers_what_a_batch_delivers_whatever_the_names(spark, folder, form):
    names = [*NAMES, "j:k.xml"] if form == "files" else NAMES  # Hadoop can't open a name with a colon
    for name in (*names, "_hidden.xml", ".hidden.xml"):
        put(folder / "feed" / name, "<a>" if name.startswith("broken") else "<a/>")
    source = f'format = "{form}"\npath = "feed"'
    run(spark, pipeline(folder, source=source), ignored)
    batch = {name: paths(folder, name) for name in ("deliveries", "dead")}
    for name in batch:
        (folder / name).rename(folder / f"{name}-of-the-batch")
    reports = run_to_end(spark, pipeline(folder, source=source, stream='[stream]\ncheckpoint = "checkpoint"'))
    assert {name: paths(folder, name) for name in batch} == batch
    assert sorted(path.rpartition("/")[2] for name in batch for path in batch[name]) == sorted(names)
    assert [(one.documents, one.dead_letters, one.deferred) for one in reports] == [(len(names), 1, 0)]


def test_files_that_are_being_written_are_deferred_and_delivered_once_when_they_are_complete(spark, folder):
    feed = folder / "feed"
    put(feed / "whole.xml")
    put(feed / "empty.xml", "")
    put(feed / "slow.xml", "<a>", settled=False)
    put(feed / "filled-later.xml", "", settled=False)
    source = 'format = "files"\npath = "feed"\nsettle = "2 hours"'
    stop = Event()
    told: list[AnyReport] = []

    def tell(report: AnyReport) -> None:
        told.append(report)
        stop.set()

    endless = '[stream]\ncheckpoint = "checkpoint"\ntrigger = "0 seconds"'
    assert not run(spark, pipeline(folder, source=source, stream=endless), tell, stop)
    report, last = told
    assert isinstance(report, Report) and isinstance(last, DeferredReport)
    assert (report.documents, report.matches, report.dead_letters, report.deferred) == (2, 1, 1, 2)
    assert str(report).endswith(", 2 files deferred")
    assert (last.deferred, last.files) == (2, [str(feed / "filled-later.xml"), str(feed / "slow.xml")])
    assert "2 files deferred, still being written; run again to read" in str(last)
    put(feed / "slow.xml", "<a></a>")
    put(feed / "filled-later.xml", "<a></a>")
    told.clear()
    once = '[stream]\ncheckpoint = "checkpoint"\ntrigger = "once"'
    assert run(spark, pipeline(folder, source=source, stream=once), told.append)
    (report,) = told
    assert isinstance(report, Report)
    assert (report.documents, report.matches, report.dead_letters, report.deferred) == (2, 2, 0, 0)
    assert [Path(path).name for path in paths(folder, "deliveries")] == ["filled-later.xml", "slow.xml", "whole.xml"]
    assert [Path(path).name for path in paths(folder, "dead")] == ["empty.xml"]


def test_a_checkpoint_of_sparks_own_source_goes_on_and_progress_counts_deferred_files(spark, folder):
    for name in ("a.xml", "b [x].xml"):
        put(folder / "feed" / name)
    taken: list[str] = []
    checkpoint = str(folder / "checkpoint")

    def collect(batch, _):
        taken.extend(row.path.rpartition("/")[2] for row in batch.collect())

    def finish(frame):
        writer = frame.writeStream.foreachBatch(collect).option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return query

    columns = "path string, modificationTime timestamp, length long, content binary"
    finish(spark.readStream.format("binaryFile").schema(columns).load(str(folder / "feed")))
    taken.clear()
    put(folder / "feed" / "c [x].xml")
    query = finish(stream_files(spark, folder / "feed", checkpoint=checkpoint))
    assert taken == ["c [x].xml"]
    facts = progress_facts(query.recentProgress[0])
    assert (facts["rows"], facts["deferred"]) == (1, 0)
    assert "deferred" not in progress_line(facts)
    assert progress_line({**facts, "deferred": 2}).endswith(", 2 files deferred")


def test_spark_is_kept_from_reading_files_of_other_formats_twice(spark, folder):
    for name in ("a", "b [x]"):
        table = pa.table({"xml": pa.array([b"<a/>"], pa.binary())})
        pq.write_table(table, folder / "feed" / f"{name}.parquet")
    source = 'format = "parquet"\npath = "feed"\nschema = "xml binary"'
    stream = '[stream]\ncheckpoint = "checkpoint"'
    with pytest.raises(PipelineError, match=r"'b \[x\].parquet' contains one of .* recursiveFileLookup = true"):
        run(spark, pipeline(folder, source=source, stream=stream), ignored)
    recursive = f"{source}\noptions = {{ recursiveFileLookup = true }}"
    assert run(spark, pipeline(folder, source=recursive, stream=stream), ignored)
    assert len(rows(folder / "deliveries")) == 2


def test_the_plan_says_when_files_are_read_and_finds_them_as_the_stream_does(folder):
    put(folder / "feed" / "a.xml")
    stream = '[stream]\ncheckpoint = "checkpoint"'
    source = 'format = "files"\npath = "feed/{a,b}.xml"\nsettle = "5 minutes"'
    planned = dict(plan(pipeline(folder, source=source, stream=stream)))
    assert planned["new files"] == "read when they have not changed for 5 minutes"
    with pytest.raises(PipelineError, match="does not exist"):
        list(plan(pipeline(folder, source=source.replace("a,b", "b,c"), stream=stream)))


@pytest.mark.parametrize(("trigger", "waits"), [("once", True), ("available-now", False), ("2 seconds", False)])
def test_a_source_is_told_when_its_stream_ends_after_one_micro_batch(folder, monkeypatch, trigger, waits):
    told: dict[str, object] = {}
    monkeypatch.setattr(
        "pathcast.spark.pipeline.pipeline_dataframes.stream_files", lambda *_, **options: told.update(options)
    )
    stream = f'[stream]\ncheckpoint = "checkpoint"\ntrigger = "{trigger}"'
    described = pipeline(folder, source='format = "files"\npath = "feed"', stream=stream)
    nowhere: Any = None
    open_source(nowhere, described.source, described.stream)
    assert told["waitForDeferred"] is waits


def test_an_address_is_left_to_spark(spark):
    with pytest.raises(PipelineError, match="path must be a local or mounted path, got 's3a://feed'"):
        stream_files(spark, "s3a://feed", checkpoint="checkpoint")
