"""Through Spark Connect: the same functions, with a client that has no JVM."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.machines import MINUTES, WITHOUT_JAVA, short_lived

# Starts its own server, and a program can have only one kind of session.
pytestmark = pytest.mark.xdist_group("a Spark each")

PROGRAM = """
import json, os, sys
from pathlib import Path
os.environ["SPARK_REMOTE"] = "local[2]"  # a server in the same program, which ends with it
from pathcast.spark import (
    ProgressListener, PublishedIndex, compile_subscriptions, dead_letters, deliver, join_subscriptions, match_documents,
    observed, pack_index, pin_version, publish_joins, session, stream_files, with_source, write_once,
)
from pathcast.joins import Schema
from pathcast.joins.partition.join_server_specification import StandingJoins
from pathcast.spark.publishing.micro_batch_version_pins import pins_of
from pathcast.spark.publishing.index_versions import version_folder
from pyspark.errors import PySparkException

def started(writer):
    # Spark waits 10 s for the Python of foreachBatch, which is not enough on a busy machine.
    while True:
        try:
            return writer.start()
        except PySparkException as error:
            if "Python worker failed to connect back" not in str(error):
                raise

folder = Path(sys.argv[1])
spark = session()
table = spark.createDataFrame([(1, "ada", "//p"), (2, "bob", "/news"), (3, "eve", "//[")],
                              "id int, subscriber string, xpath string")
report = compile_subscriptions(table, folder / "index", many=1)  # what has a bracket is compiled by a worker
news = [(1, b"<news><p/></news>"), (2, b"<p/>"), (3, b"<news>")]
spark.createDataFrame(news, "id int, xml binary").coalesce(1).write.parquet(str(folder / "news"))

matched = match_documents(with_source(spark.read.parquet(str(folder / "news"))), folder / "index", by="subscriber")
delivered = sorted([row.id, row.subscriber] for row in deliver(matched).collect())
dead = [[row.id, row.error.line, row.source_offset] for row in dead_letters(matched).collect()]
pack_index(folder / "index", folder / "packed.zip")
spark.addArtifacts(f"{folder}/packed.zip#packed", archive=True)

reports = []
listener = ProgressListener(reports.append)
spark.streams.addListener(listener)
stream = spark.readStream.schema("id int, xml binary").parquet(str(folder / "news"))
rows = observed(match_documents(stream, folder / "index", measure=True)).select("id", "matches")
writer = rows.writeStream.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
query = writer.start(str(folder / "out"), format="parquet")
query.awaitTermination()
listener.remove_from(spark)  # its thread would keep the program from ending

index, pins, split = str(folder / "index"), str(folder / "pins"), str(folder / "split")
pin_version(index, "split", 0, pins)  # a batch that was begun and not finished, with what was the newest version
compile_subscriptions(spark.createDataFrame([(9, "new", "/news")], "id int, subscriber string, xpath string"), index)
def write(rows, batch):
    matched = match_documents(rows, PublishedIndex(index, pin_version(index, "split", batch, pins)), by="subscriber")
    write_once(deliver(matched).select("id", "subscriber"), batch, split)
writer = stream.writeStream.foreachBatch(write).option("checkpointLocation", str(folder / "split-checkpoint"))
started(writer.trigger(availableNow=True)).awaitTermination()
def unpinned(rows, batch):
    rows.collect()
hidden = match_documents(stream, index).writeStream.foreachBatch(unpinned).trigger(availableNow=True)
hidden = started(hidden.option("checkpointLocation", str(folder / "hidden-checkpoint")))
try:
    hidden.awaitTermination()
    rejected = ""
except Exception as error:
    rejected = str(error)
spark.conf.set("spark.sql.streaming.stateStore.providerClass",
               "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
spark.conf.set("spark.sql.shuffle.partitions", "1")
joins, place, told = str(folder / "joins"), str(folder / "joins-checkpoint"), str(folder / "told")
publish_joins(joins, StandingJoins(Schema({"A": "k int"}), ["select * from A where k > 1"]))
rows = [("A", "insert", '{"k": 1}', 1), ("A", "insert", '{"k": 2}', 2)]
columns = "table string, change string, row string, sequence long"
spark.createDataFrame(rows, columns).coalesce(1).write.parquet(str(folder / "changes"))
changes = spark.readStream.schema(columns).parquet(str(folder / "changes"))
def tell(rows, batch):
    write_once(rows.select("sequence"), batch, told)
messages = join_subscriptions(changes, versions=joins, checkpoint=place)
writer = messages.writeStream.foreachBatch(tell).option("checkpointLocation", place).trigger(availableNow=True)
join_query = started(writer)
join_query.awaitTermination()
(folder / "feed").mkdir()
for name in ("a.xml", "b.xml", "c [x].xml"):
    (folder / "feed" / name).write_text("<p/>")
place, fed = str(folder / "files-checkpoint"), str(folder / "fed")
def feed(rows, batch):
    matched = match_documents(rows, PublishedIndex(index, 2), document="content")
    write_once(matched.select("path", "matches"), batch, fed)
files = stream_files(spark, folder / "feed", checkpoint=place, settle="100 milliseconds", maxFilesPerTrigger=2)
writer = files.writeStream.foreachBatch(feed).option("checkpointLocation", place).trigger(availableNow=True)
started(writer).awaitTermination()
said = {
    "files": sorted([row.path.rpartition("/")[2], row.matches] for row in spark.read.parquet(fed).collect()),
    "joins": [sorted(row.sequence for row in spark.read.parquet(told).collect()), pins_of(joins, str(join_query.id))],
    "report": [report.version, report.subscriptions, [row.reason for row in report.invalid.collect()]],
    "kind": type(spark).__module__,
    "delivered": delivered,
    "dead": dead,
    "artifact": sorted([row.id, row.matches] for row in
                       match_documents(spark.read.parquet(str(folder / "news")), "artifact:packed").collect()),
    "stream": sorted([row.id, row.matches] for row in spark.read.parquet(str(folder / "out")).collect()),
    "split": sorted([row.id, row.subscriber] for row in spark.read.parquet(split).collect()),
    "rejected": "pin_version(index, name, batch_id)" in rejected,
    "pins": pins_of(folder / "index", str(query.id)),
    "reports": [[report["batch"], report["rows"], report["version"]] for report in reports],
}
print(json.dumps(said))
spark.stop()
"""


UNSTOPPED = """
import os, sys
os.environ["SPARK_REMOTE"] = "local[1]"
from pathcast.spark import compile_subscriptions, session

table = session().createDataFrame([(1, "ada", "//p"), (2, "eve", "//[")], "id int, subscriber string, xpath string")
report = compile_subscriptions(table, sys.argv[1] + "/index", many=1)
print(report.version, flush=True)
raise ValueError("something else went wrong")
"""


def run_program(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program on a machine without Java. The folder is its argument."""
    environment = os.environ | short_lived(folder / "settings")
    run = [WITHOUT_JAVA, sys.executable, "-c", program, str(folder)]
    return subprocess.run(run, env=environment, capture_output=True, text=True, check=False, timeout=MINUTES)


def test_a_program_that_fails_without_stopping_its_session_ends(tmp_path):
    answer = run_program(UNSTOPPED, tmp_path)
    assert answer.stdout == "1\n"
    assert answer.returncode == 1 and "something else went wrong" in answer.stderr


def test_tables_and_streams_are_matched_through_connect_on_a_machine_without_java(tmp_path):
    answer = run_program(PROGRAM, tmp_path)
    assert answer.returncode == 0, answer.stderr
    said = json.loads(answer.stdout.splitlines()[-1])
    assert said["kind"].startswith("pyspark.sql.connect")
    assert said["report"][:2] == [1, 2] and len(said["report"][2]) == 1
    assert said["delivered"] == [[1, "ada"], [1, "bob"], [2, "ada"]]
    assert said["dead"] == [[3, 1, 2]]
    assert said["artifact"] == said["stream"] == [[1, [1, 2]], [2, [1]], [3, None]]
    assert said["pins"] == {"0": 1}
    assert said["split"] == said["delivered"]
    assert said["rejected"]
    assert said["joins"] == [[1, 2], {"0": 1}]
    assert said["reports"] == [[0, 3, 1]]
    assert said["files"] == [["a.xml", []], ["b.xml", []], ["c [x].xml", []]]
