"""The stream of joins that is killed: changes → deliveries and contents of new subscribers, by `write_once`.

Started as a separate program, with the folder of the scene as its argument. Continues from its checkpoint until a
file `stop` appears; then it processes all existing input and ends.
"""

import sys
import time
from pathlib import Path

from program import SETTINGS  # type: ignore[import-not-found]  # beside this one: both are run as programs
from pyspark.sql import DataFrame

from pathcast.spark import deliver_joins, initial_contents, join_subscriptions, session, write_once


def main(folder: Path) -> None:
    # One worker for all stages starts in half the time of two.
    spark = session("killed", {**SETTINGS, "spark.master": "local[1,4]"})
    columns = "sequence long, table string, change string, row string, values string"
    changes = spark.readStream.schema(columns).option("maxFilesPerTrigger", 2).parquet(str(folder / "in"))
    checkpoint = folder / "joined-checkpoint"

    def write(rows: DataFrame, batch: int) -> None:
        rows.persist()
        write_once(deliver_joins(rows, versions=folder / "joins", lists=True), batch, folder / "delivered")
        write_once(initial_contents(spark, folder / "joins", checkpoint, batch), batch, folder / "contents")
        rows.unpersist()

    joined = (
        join_subscriptions(changes, versions=folder / "joins")
        .writeStream.queryName("joined")
        .foreachBatch(write)
        .option("checkpointLocation", str(checkpoint))
        .start()
    )
    (folder / "streaming").touch()
    while not (folder / "stop").exists():
        if not joined.isActive:
            sys.exit(f"{joined.name} has ended: {joined.exception()}")
        time.sleep(0.05)
    joined.processAllAvailable()
    joined.stop()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
