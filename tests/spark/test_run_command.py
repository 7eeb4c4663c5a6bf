"""`pathcast run` with the Spark that runs: exit status, signals, reports and publishing, without starting another."""

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from pathcast.cli.app import app
from pathcast.spark.pipeline.pipeline_file import read_pipeline
from pathcast.spark.pipeline.run_pipeline import compile_table, until_stopped
from pathcast.spark.publishing.index_versions import versions
from tests.spark.machines import MINUTES

PIPELINE = """
[source]
format = "parquet"
path = "news"
schema = "number long, xml binary"
[subscriptions]
index = "index"
table = "wanted.csv"
invalid = "invalid"
[deliveries]
path = "deliveries"
columns = ["number"]
[stream]
checkpoint = "checkpoint"
"""


@pytest.fixture
def folder(spark, tmp_path: Path) -> Path:
    (tmp_path / "wanted.csv").write_text("id,subscriber,xpath\n1,ada,//title\n2,bob,//[\n")
    (tmp_path / "news").mkdir()
    write_news(tmp_path, 1)
    (tmp_path / "stream.toml").write_text(PIPELINE)
    (tmp_path / "endless.toml").write_text(PIPELINE + 'trigger = "0 seconds"\n')
    return tmp_path


def write_news(folder: Path, number: int) -> None:
    table = pa.table({"number": pa.array([number], pa.int64()), "xml": pa.array([b"<a><title/></a>"], pa.binary())})
    pq.write_table(table, folder / "news" / f".{number}")
    (folder / "news" / f".{number}").rename(folder / "news" / f"{number}.parquet")


def delivered(folder: Path) -> list[tuple[int, str]]:
    return sorted((row["number"], row["subscriber"]) for row in pq.read_table(folder / "deliveries").to_pylist())


def test_reports_as_json_and_a_session_that_is_left_to_its_maker(spark, folder):
    answer = CliRunner().invoke(app, ["run", str(folder / "stream.toml"), "--json"])
    assert answer.exit_code == 0, answer.output
    (report,) = map(json.loads, answer.stdout.splitlines())
    assert (report["batch"], report["version"], report["documents"], report["matches"]) == (0, 1, 1, 1)
    assert set(report) == {
        "query", "batch", "version", "documents", "matches", "dead_letters", "memo_hit_rate", "seconds",
        "deferred",
    }  # fmt: skip
    assert "subscriptions: version 1: 1 subscriptions, 1 added, 0 removed, 0 changed, 0 unchanged, 1 invalid" in (
        answer.stderr
    )
    assert spark.range(3).count() == 3
    again = CliRunner().invoke(app, ["run", str(folder / "stream.toml")])
    assert "subscriptions: version 1, unchanged: 1 subscriptions, 1 invalid\n1 of 2 subscriptions" in again.stderr
    assert versions(folder / "index") == [1]


def test_a_batch_is_told_in_a_line(folder):
    (folder / "batch.toml").write_text(PIPELINE.partition("[stream]")[0].replace('invalid = "invalid"\n', ""))
    answer = CliRunner().invoke(app, ["run", str(folder / "batch.toml")])
    assert answer.exit_code == 0, answer.output
    assert "1 of 2 subscriptions is invalid:\n  1 × expected a step, got '['" in answer.stderr
    assert "with their reasons, set subscriptions.invalid to a folder" in answer.stderr
    assert answer.stdout.startswith("batch: 1 documents, 1 matches, 0 dead letters")
    assert answer.stdout.count("\n") == 1
    assert delivered(folder) == [(1, "ada")]


def test_a_pipeline_that_fails_has_status_1(folder):
    (folder / "deliveries").write_text("in the way")
    answer = CliRunner().invoke(app, ["run", str(folder / "stream.toml")])
    assert answer.exit_code == 1
    assert answer.stdout == ""
    assert answer.stderr.splitlines()[-1].startswith("error: the stream failed in micro-batch 0: ")


def test_what_is_published_is_taken_up_by_the_stream_that_runs_and_sigterm_stops_it(spark, folder):
    failures: list[BaseException] = []

    def meanwhile() -> None:
        commits = folder / "checkpoint" / "commits"
        try:
            wait_for((commits / "0").exists)
            (folder / "wanted.csv").write_text("id,subscriber,xpath\n1,ada,//[\n2,bob,//title\n")
            compile_table(spark, read_pipeline(folder / "endless.toml"))  # what `--publish` does
            write_news(folder, 2)
            wait_for((commits / "1").exists)
        except BaseException as error:  # noqa: BLE001 - raised by the test
            failures.append(error)
        os.kill(os.getpid(), signal.SIGTERM)

    other = Thread(target=meanwhile)
    other.start()
    answer = CliRunner().invoke(app, ["run", str(folder / "endless.toml")])
    other.join()
    assert not failures
    assert answer.exit_code == 143, answer.output
    assert "stopped; run the pipeline again to continue" in answer.stderr
    assert versions(folder / "index") == [1, 2]
    assert delivered(folder) == [(1, "ada"), (2, "bob")]
    assert [row["id"] for row in pq.read_table(folder / "invalid").to_pylist()] == [1]


def endless(session: SparkSession, _: object = None) -> None:
    """A job that only a cancellation ends."""
    session.range(10**15).selectExpr("max(id % 7)").collect()  # a sum would overflow


@pytest.mark.parametrize(("work", "published"), [("_batch", True), ("compile_table", False)], ids=["batch", "table"])
def test_sigterm_cancels_a_batch_and_the_compilation_of_a_table(spark, folder, monkeypatch, work, published):
    (folder / "batch.toml").write_text(PIPELINE.partition("[stream]")[0])

    def meanwhile() -> None:
        wait_for(lambda: len(spark.sparkContext.statusTracker().getActiveJobsIds()) > 0)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(f"pathcast.spark.pipeline.run_pipeline.{work}", endless)
    monkeypatch.setattr("pathcast.cli.run_pipeline_command._publish_small", lambda _: published)  # prints a report
    other = Thread(target=meanwhile)
    other.start()
    answer = CliRunner().invoke(app, ["run", str(folder / "batch.toml")])
    other.join()
    assert answer.exit_code == 143, answer.output
    assert answer.output == "stopping …\nstopped\n"
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()


def test_work_that_is_stopped_between_two_jobs_is_cancelled_in_the_next(spark, monkeypatch):
    stop, interrupted = Event(), Event()
    interrupt_all: Callable[[], list[str]] = spark.interruptAll

    def interrupt() -> list[str]:
        try:
            return interrupt_all()
        finally:
            interrupted.set()

    def work() -> None:
        stop.set()
        assert interrupted.wait(MINUTES)
        endless(spark)

    monkeypatch.setattr(spark, "interruptAll", interrupt)
    assert until_stopped(spark, work, stop) is None
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()
    assert until_stopped(spark, lambda: pytest.fail("started after a stop"), stop) is None


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + MINUTES
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def test_publishing_ends_when_the_version_is_there(folder):
    answer = CliRunner().invoke(app, ["run", str(folder / "stream.toml"), "--publish"])
    assert answer.exit_code == 0, answer.output
    assert "subscriptions: version 1: 1 subscriptions" in answer.stderr
    assert versions(folder / "index") == [1]
    assert not (folder / "checkpoint").exists()


def test_publishing_needs_a_table(folder):
    (folder / "stream.toml").write_text(PIPELINE.replace('table = "wanted.csv"\ninvalid = "invalid"\n', ""))
    answer = CliRunner().invoke(app, ["run", str(folder / "stream.toml"), "--publish"])
    assert answer.exit_code == 2
    assert "has nothing to publish; set subscriptions.table" in answer.stderr
