"""Delta tables: the rows of each micro-batch once, whatever is repeated or killed; read back with `deltalake`."""

import datetime
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

import pathcast
from pathcast.errors import PipelineError
from pathcast.spark import publish, write_delta_once
from pathcast.spark.pipeline.delta_tables import write_delta
from tests.spark.machines import MINUTES, short_lived

NEWS = [b"<news><p/></news>", b"<news lang='en'><title/></news>", b"<sport/>", b"<news"]


def rows_of(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DeltaTable(folder).to_pyarrow_table().to_pylist()
    return found


def test_each_micro_batch_of_each_writer_is_in_the_table_once(spark: SparkSession, tmp_path: Path) -> None:
    for writer, batch, wrote in (
        ("one", 0, True),
        ("one", 1, True),
        ("one", 1, False),
        ("one", 0, False),
        ("two", 0, True),
        ("one", 2, True),
    ):
        frame = spark.createDataFrame([(writer, batch, number) for number in range(3)], "w string, b int, n long")
        assert write_delta_once(frame, batch, tmp_path / "table", writer=writer) == wrote
    found = Counter((row["w"], row["b"], row["n"]) for row in rows_of(tmp_path / "table"))
    expected = [("one", 0), ("one", 1), ("one", 2), ("two", 0)]
    assert found == {(writer, batch, number): 1 for writer, batch in expected for number in range(3)}


def test_rows_keep_their_types(spark: SparkSession, tmp_path: Path) -> None:
    kinds = "id long, xml binary, at timestamp, error struct<reason:string,line:int>, names array<string>"
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=datetime.UTC)
    data = [(1, b"<a/>", moment, ("bad", 3), ["x", "y"]), (2, None, None, None, None)]
    write_delta_once(spark.createDataFrame(data, kinds), 0, tmp_path / "table", writer="one")
    write_delta_once(spark.createDataFrame(data, kinds), 1, tmp_path / "table", writer="one")
    (first, *_) = (row for row in rows_of(tmp_path / "table") if row["id"] == 1)
    assert first["xml"] == b"<a/>" and first["error"] == {"reason": "bad", "line": 3} and first["names"] == ["x", "y"]
    assert first["at"] == moment
    assert len(rows_of(tmp_path / "table")) == 4


def test_a_batch_without_rows_makes_an_empty_table(spark: SparkSession, tmp_path: Path) -> None:
    assert write_delta_once(spark.createDataFrame([], "n long"), 0, tmp_path / "table", writer="one")
    assert rows_of(tmp_path / "table") == []


def test_a_table_with_other_columns_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    write_delta_once(spark.range(2), 0, tmp_path / "table", writer="one")
    with pytest.raises(PipelineError, match="has the columns id int64, but the rows have id string; choose another"):
        write_delta_once(spark.createDataFrame([("x",)], "id string"), 1, tmp_path / "table", writer="one")
    assert len(rows_of(tmp_path / "table")) == 2


@pytest.mark.parametrize(("mode", "count"), [("append", 5), ("overwrite", 2), ("ignore", 3), ("error", None)])
def test_a_batch_has_modes(spark: SparkSession, tmp_path: Path, mode: str, count: int | None) -> None:
    write_delta(spark.range(3), tmp_path / "table", "error")
    if count is None:
        with pytest.raises(PipelineError, match="already exists"):
            write_delta(spark.range(2), tmp_path / "table", mode)
    else:
        write_delta(spark.range(2), tmp_path / "table", mode)
        assert len(rows_of(tmp_path / "table")) == count


PIPELINE = """
[source]
format = "parquet"
path = "in"
schema = "number long, xml binary"
options = { maxFilesPerTrigger = 1 }
[subscriptions]
index = "index"
[deliveries]
format = "delta"
path = "out"
columns = ["number"]
[dead_letters]
format = "delta"
path = "dead"
columns = ["number"]
[stream]
checkpoint = "checkpoint"
trigger = "available-now"
[spark]
"spark.master" = "local[1]"
"spark.ui.enabled" = "false"
"""
# `pathcast run`, killed at a commit to a table: before it, or after it and before Spark knows.
PROGRAM = """
import os, signal, sys
from pathcast.spark.pipeline import delta_tables
commit, moment = delta_tables._commit, sys.argv.pop(1)
def killed(*arguments):
    if moment == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    commit(*arguments)
    if moment == "after":
        os.kill(os.getpid(), signal.SIGKILL)
delta_tables._commit = killed
from pathcast.cli.app import main
main()
"""


def run_and_kill(folder: Path, moment: str) -> int:
    """Run the pipeline in a group of processes, none of which outlives it; return the exit status."""
    environment = os.environ | short_lived(folder / f"settings-{moment}")
    program = [sys.executable, "-c", PROGRAM, moment, "run", "pipeline.toml"]
    with (folder / "run.log").open("wb") as log:
        started = subprocess.Popen(
            program,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            return started.wait(timeout=MINUTES)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)
            started.wait()


@pytest.mark.slow
@pytest.mark.xdist_group("kill")
def test_a_killed_pipeline_loses_and_repeats_nothing(tmp_path: Path) -> None:
    subscriptions = pathcast.Subscriptions()
    for subscriber, xpath in (("ada", "/news/title"), ("bob", "//p"), ("eve", "/news")):
        subscriptions.add(xpath, subscriber=subscriber)
    matcher = subscriptions.compile()
    publish(matcher, tmp_path / "index")
    (tmp_path / "in").mkdir()
    for file in range(3):
        columns = {"number": pa.array(range(4 * file, 4 * file + 4), pa.int64()), "xml": pa.array(NEWS, pa.binary())}
        pq.write_table(pa.table(columns), tmp_path / "in" / f"{file}.parquet")
        os.utime(tmp_path / "in" / f"{file}.parquet", (1_000_000_000 + file, 1_000_000_000 + file))
    (tmp_path / "pipeline.toml").write_text(PIPELINE, encoding="utf-8")
    staged = []
    for moment, status in (("before", -signal.SIGKILL), ("after", -signal.SIGKILL), ("never", 0)):
        assert run_and_kill(tmp_path, moment) == status, (tmp_path / "run.log").read_text(encoding="utf-8")
        staged.append(len(list((tmp_path / "out").glob("pathcast-*-0-*"))))
    assert staged == [1, 1, 1], "the files of the attempt that was killed are removed by the next"
    expected = [
        (number, name)
        for number in range(12)
        if NEWS[number % 4].endswith(b">")
        for name in matcher.match(NEWS[number % 4]).subscribers
    ]
    assert Counter((row["number"], row["subscriber"]) for row in rows_of(tmp_path / "out")) == Counter(expected)
    assert sorted(row["number"] for row in rows_of(tmp_path / "dead")) == [3, 7, 11]
    assert {row["batch"] for row in rows_of(tmp_path / "out")} == {0, 1, 2}
