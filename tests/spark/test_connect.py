"""Through Spark Connect: the same functions, with a client that has no JVM of its own."""

import json
import subprocess
import sys

import pytest

# Starts a server of its own, and a program can have only one kind of session.
pytestmark = pytest.mark.xdist_group("without java")

PROGRAM = """
import json, os, sys, time
from pathlib import Path
os.environ["SPARK_REMOTE"] = "local[2]"  # a server in the same program, which ends with it
from pathcast.spark import (
    ProgressListener, compile_subscriptions, dead_letters, deliver, match_documents, observed, pack_index, session,
    with_source,
)
from pathcast.spark.pins import pins_of
from pathcast.spark.versions import version_folder

folder = Path(sys.argv[1])
spark = session()
table = spark.createDataFrame([(1, "ada", "//p"), (2, "bob", "/news"), (3, "eve", "//[")],
                              "id int, subscriber string, xpath string")
report = compile_subscriptions(table, folder / "index")
news = [(1, b"<news><p/></news>"), (2, b"<p/>"), (3, b"<news>")]
spark.createDataFrame(news, "id int, xml binary").coalesce(1).write.parquet(str(folder / "news"))

matched = match_documents(with_source(spark.read.parquet(str(folder / "news"))), folder / "index", by="subscriber")
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
for _ in range(200):
    if reports:
        break
    time.sleep(0.05)
spark.streams.removeListener(listener)  # its thread would keep the program from ending
said = {
    "report": [report.version, report.subscriptions, [row.reason for row in report.invalid.collect()]],
    "kind": type(spark).__module__,
    "delivered": sorted([row.id, row.subscriber] for row in deliver(matched).collect()),
    "dead": [[row.id, row.error.line, row.source_offset] for row in dead_letters(matched).collect()],
    "artifact": sorted([row.id, row.matches] for row in
                       match_documents(spark.read.parquet(str(folder / "news")), "artifact:packed").collect()),
    "stream": sorted([row.id, row.matches] for row in spark.read.parquet(str(folder / "out")).collect()),
    "pins": pins_of(folder / "index", str(query.id)),
    "reports": [[report["batch"], report["rows"], report["version"]] for report in reports],
}
print(json.dumps(said))
spark.stop()
"""


def test_tables_and_streams_are_matched_through_connect(tmp_path):
    run = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    answer = subprocess.run(run, capture_output=True, text=True, check=False, timeout=200)
    assert answer.returncode == 0, answer.stderr[-5000:]
    said = json.loads(answer.stdout.splitlines()[-1])
    assert said["kind"].startswith("pyspark.sql.connect")
    assert said["report"][:2] == [1, 2] and len(said["report"][2]) == 1
    assert said["delivered"] == [[1, "ada"], [1, "bob"], [2, "ada"]]
    assert said["dead"] == [[3, 1, 2]]
    assert said["artifact"] == said["stream"] == [[1, [1, 2]], [2, [1]], [3, None]]
    assert said["pins"] == {"0": 1}
    assert said["reports"] == [[0, 3, 1]]
