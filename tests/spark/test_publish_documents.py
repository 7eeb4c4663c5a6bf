"""Writing to `format("pathcast")`: each row is published once, whatever fails, is killed or is repeated."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pathcast.broker import Broker
from pathcast.broker_log import DocumentRecord, meta_of
from pathcast.errors import PipelineError
from pathcast.log import SqliteLog
from pathcast.spark.log.publish_documents import commit, uploaded
from pathcast.spark.log.publish_options import publish_options

from ..broker.broker_process import BrokerProcess
from ..broker.commit_proxy import CommitProxy
from ..broker.served_broker import Served, served

pytestmark = pytest.mark.slow


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "data") as found:
        yield found


def published(broker: Broker) -> list[tuple[str | None, str, bytes]]:
    found = [(meta_of(entry), entry.body) for entry in broker.log.read(1)]
    return [(meta.id, meta.feed, body) for meta, body in found if isinstance(meta, DocumentRecord)]


def write(frame: DataFrame, server: Served, **options: str) -> None:
    frame.write.format("pathcast").options(url=server.address, **options).mode("append").save()


def rows(spark: SparkSession, *numbers: int) -> DataFrame:
    return spark.createDataFrame([(f"d{each}", f"<n k='{each}'/>") for each in numbers], "id string, body string")


def test_rows_are_published_with_their_columns(spark: SparkSession, server: Served) -> None:
    server.http.put("/v1/subscriptions/s", json={"xpath": "//n"}).raise_for_status()
    write(rows(spark, *range(20)).repartition(4), server, feed="news")
    assert sorted(published(server.broker)) == sorted((f"d{n}", "news", f"<n k='{n}'/>".encode()) for n in range(20))
    assert len(server.http.post("/v1/subscriptions/s:pull").json()["deliveries"]) == 20
    body = "<?xml version='1.0' encoding='latin-1'?><n>é</n>".encode("latin-1")
    more = [(bytearray(body), "mail", {"type": "t"}, None), (bytearray(b"<a/>"), None, None, "x")]
    frame = spark.createDataFrame(more, "body binary, feed string, headers map<string,string>, id string")
    write(frame.coalesce(1), server, feed="other")
    assert published(server.broker)[20:] == [(None, "mail", body), ("x", "other", b"<a/>")]
    back = spark.read.format("pathcast").options(url=server.address, feeds="mail").load().collect()
    assert [(bytes(row.body), row.headers["type"]) for row in back] == [(body, "t")]


def test_a_batch_with_an_id_is_written_once(spark: SparkSession, server: Served) -> None:
    frame = spark.createDataFrame([("<n/>",)] * 3, "body string")
    for publication in ("daily", "daily", "weekly"):
        write(frame, server, feed="news", batchId="2026-01-31", publication=publication)
    assert len(published(server.broker)) == 6
    write(frame, server, feed="news")
    write(frame, server, feed="news")  # without an id, each job is a batch of its own
    assert len(published(server.broker)) == 12


def test_a_bad_row_publishes_nothing_and_is_named(spark: SparkSession, server: Served) -> None:
    base = [(f"d{n}", "<n/>", "news") for n in range(5)]
    schema = "id string, body string, feed string"
    wrong = {
        ("d9", None, "news"): r"row 5 of partition 0 \(id 'd9'\) has no body",
        ("d9", "<n/>", None): r"row 5 of partition 0 \(id 'd9'\) has no feed",
        ("d9", "<n/>", "a b"): "row 5 of partition 0 cannot be published: document 5: invalid feed 'a b'",
        ("", "<n/>", "news"): "row 5 of partition 0 cannot be published: document 5: the id has 0 characters",
        (
            "d9",
            "<n>",
            "news",
        ): r"row 5 of partition 0 cannot be published: nothing was published: document 5 \(id 'd9'\)",
    }
    for row, reason in wrong.items():
        with pytest.raises(PySparkException, match=reason):
            write(spark.createDataFrame([*base, row], schema).coalesce(1), server)
    assert published(server.broker) == []
    assert "pathcast_upload_bytes 0.0" in server.http.get("/metrics").text  # discarded
    broken = spark.createDataFrame([*base, ("d9", "<n>", "news")], schema)
    write(broken, server, invalid="keep")
    assert len(published(server.broker)) == 6


def test_a_row_beyond_the_first_upload_of_a_task_is_named(server: Served) -> None:
    options = publish_options({"url": server.address, "feed": "news"}, is_stream=False)
    rows = uploaded(options, iter([pa.record_batch({"body": ["<n/>"] * 1_203 + ["<n>", "<n/>"]})]))
    assert len(rows.uploads) == 2
    with pytest.raises(PipelineError, match="row 1203 of partition -1 cannot be published"):
        commit(options, [rows], "0")
    assert published(server.broker) == []


def test_options_and_columns_are_checked_before_anything_is_uploaded(spark: SparkSession, server: Served) -> None:
    good = rows(spark, 1)
    frames = {
        "column 'k' cannot be published": good.selectExpr("body", "1 k"),
        "no column 'body'": good.select("id"),
        "column 'id' must be string, got int": good.selectExpr("body", "1 id"),
    }
    for reason, frame in frames.items():
        with pytest.raises(PySparkException, match=reason):
            write(frame, server, feed="news")
    options = {
        "the rows have no feed; set the option 'feed'": {},
        "unknown write option 'colour'": {"feed": "news", "colour": "red"},
        "option 'invalid' must be one of reject, keep": {"feed": "news", "invalid": "maybe"},
        "option 'batchid' is empty": {"feed": "news", "batchId": ""},
    }
    for reason, given in options.items():
        with pytest.raises(PySparkException, match=f"(?i){reason}"):
            write(good, server, **given)
    with pytest.raises(PySparkException, match="a log cannot be overwritten"):
        good.write.format("pathcast").options(url=server.address, feed="news").mode("overwrite").save()
    with pytest.raises(PySparkException, match="needs the option 'url'"):
        good.write.format("pathcast").options(feed="news").mode("append").save()


def feed_files(folder: Path, files: int, per_file: int) -> list[str]:
    """Files of documents, in the order of their times; returns all names, which the documents have as `k`."""
    (folder / "in").mkdir()
    names = [[f"{file}-{number}" for number in range(per_file)] for file in range(files)]
    for file, of_file in enumerate(names):
        path = folder / "in" / f"{file:04}.parquet"
        pq.write_table(pa.table({"body": [f"<n k='{name}'/>" for name in of_file]}), path)
        os.utime(path, (file, file))
    return [name for of_file in names for name in of_file]


class Driver:
    """`publishing_program.py` in a process group of its own, which can be killed with its JVM and its workers."""

    def __init__(self, folder: Path, address: str) -> None:
        program = Path(__file__).parent / "kill" / "publishing_program.py"
        self._errors = (folder / "driver.stderr").open("a+")
        self._process = subprocess.Popen(
            [sys.executable, str(program), str(folder), address], stderr=self._errors, start_new_session=True
        )

    def kill(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)

    def wait(self) -> int:
        status = self._process.wait(timeout=300)
        self._errors.close()
        return status


def test_a_stream_that_is_killed_and_replayed_publishes_each_document_once(tmp_path: Path) -> None:
    """The first attempt of each task fails. The driver is killed before a commit, and after a commit whose answer it
    never gets; the broker is killed during a commit, and the driver asks again.
    """
    wanted = feed_files(tmp_path, files=4, per_file=40)
    acted: list[str] = []

    def before(number: int) -> bool:
        if number == 1:
            acted.append("driver before commit")
            driver.kill()
            return True
        if number == 5:
            acted.append("broker during commit")
            threading.Timer(0.01, restart).start()
        return False

    def after(number: int) -> bool:
        if number == 3:
            acted.append("driver after commit")
            driver.kill()
            return True
        return False

    def restart() -> None:
        broker.kill()
        broker.start()
        restarted.set()

    restarted = threading.Event()
    with BrokerProcess(tmp_path / "data") as broker, CommitProxy(broker.address, before, after) as proxy:
        statuses: list[int] = []
        while not statuses or statuses[-1]:
            driver = Driver(tmp_path, proxy.address)
            statuses.append(driver.wait())
            assert len(statuses) < 5, (tmp_path / "driver.stderr").read_text()
        assert restarted.wait(30)
        assert broker.stop() == 0, broker.errors()
    assert acted == ["driver before commit", "driver after commit", "broker during commit"]
    assert statuses == [-signal.SIGKILL, -signal.SIGKILL, 0]
    assert any(answer.get("repeated") for answer in proxy.answers)
    log = SqliteLog(tmp_path / "data" / "log", read_only=True)
    found = [entry.body.decode().partition("'")[2].partition("'")[0] for entry in log.read(1, kinds=["document"])]
    log.close()
    # Micro-batches stay in their order; within one, the order of tasks is Spark's.
    assert [name.partition("-")[0] for name in found] == [name.partition("-")[0] for name in wanted]
    assert sorted(found) == sorted(wanted)
