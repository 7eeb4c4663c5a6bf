"""The streams that are killed: Parquet → match → a file sink, and XML files → match → `write_once` in `foreachBatch`.

Started as a separate program, with the folder of the scene as its argument. Continues from its checkpoints until a
file `stop` appears; then it processes all existing input and ends.
"""

import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from pathcast.spark import PublishedIndex, dead_letters, deliver, match_documents, session, stream_files, write_once
from pathcast.spark.sessions.spark_session import LOCAL_SETTINGS

SETTINGS = {
    # Two cores; a task is tried four times, so that a dead worker does not end the query.
    "spark.master": "local[2,4]",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "5",
    # A stream that lives for seconds gains nothing from the second compiler or from threads for the collector.
    "spark.driver.extraJavaOptions": LOCAL_SETTINGS["spark.driver.extraJavaOptions"]
    + " -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def main(folder: Path) -> None:
    spark = session("killed", SETTINGS)
    files = spark.readStream.schema("id long, xml binary").option("maxFilesPerTrigger", 10).parquet(str(folder / "in"))
    filed = (
        match_documents(files, folder / "index")
        .select("id", "matches", "error")
        .writeStream.queryName("filed")
        .option("checkpointLocation", str(folder / "filed-checkpoint"))
        .start(str(folder / "filed"), format="parquet")
    )

    def write(rows: DataFrame, batch: int) -> None:
        rows.persist()
        write_once(deliver(rows).select("id", "subscriber"), batch, folder / "delivered")
        write_once(dead_letters(rows), batch, folder / "dead")
        rows.unpersist()

    checkpoint = folder / "delivered-checkpoint"
    # Without settling, so that what has come is available at once, as the end of this program wants it.
    news = stream_files(spark, folder / "documents", checkpoint=checkpoint, settle="0 seconds", maxFilesPerTrigger=80)
    numbered = news.select(f.regexp_extract("path", r"(\d+) \[x\]", 1).cast("long").alias("id"), f.col("content"))
    delivered = (
        match_documents(
            numbered,
            PublishedIndex(folder / "index", pins=folder / "pins"),
            document="content",
            by="subscriber",
        )
        .writeStream.queryName("delivered")
        .foreachBatch(write)
        .option("checkpointLocation", str(checkpoint))
        .start()
    )
    (folder / "streaming").touch()
    while not (folder / "stop").exists():
        for query in (filed, delivered):
            if not query.isActive:
                sys.exit(f"{query.name} has ended: {query.exception()}")
        time.sleep(0.05)
    for query in (filed, delivered):
        query.processAllAvailable()
        query.stop()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
