"""A stream that is killed: files of documents are published to a broker. Arguments: folder, address of the broker.

The first attempt of each task fails after half of its rows. The documents have no ids, which the broker would
deduplicate by themselves.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext

from pathcast.spark import session


def failing_first(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows; on the first attempt of a task an error after half of them."""
    task = TaskContext.get()
    rows = [batch.slice(at, 1) for batch in batches for at in range(batch.num_rows)]
    for at, row in enumerate(rows):
        if task is not None and task.attemptNumber() == 0 and at == len(rows) // 2:
            raise RuntimeError("the first attempt fails")
        yield row


if __name__ == "__main__":
    folder, address = Path(sys.argv[1]), sys.argv[2]
    spark = session("publishing", {"spark.master": "local[2,3]", "spark.sql.shuffle.partitions": "2"})
    stream = spark.readStream.schema("body string").option("maxFilesPerTrigger", 1)
    rows = stream.parquet(str(folder / "in")).repartition(2).mapInArrow(failing_first, "body string")
    query = (
        rows.writeStream.format("pathcast")
        .options(url=address, feed="news")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()
