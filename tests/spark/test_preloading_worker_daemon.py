"""The process that Spark's workers are forked from: it has loaded Pathcast, and has one thread."""

import os
import subprocess
import sys
from pathlib import Path

from pathcast.spark.sessions.preloading_worker_daemon import ROOMS

PROGRAM = """
import os, sys
from pathcast.spark.sessions.preloading_worker_daemon import preload
preload()
print(len(os.listdir("/proc/self/task")), *(name for name in sys.argv[1:] if name in sys.modules))
"""


def test_rooms_are_loaded_and_nothing_that_starts_threads():
    # As Spark sets it for its Python processes; NumPy has threads otherwise.
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    asked = [sys.executable, "-c", PROGRAM, *ROOMS, "llvmlite", "pyarrow", "pandas"]
    answer = subprocess.run(asked, env=environment, capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["1", *ROOMS, "llvmlite"]


def test_workers_are_its_children(spark):
    def parents(batches):
        import pyarrow as pa

        for batch in batches:
            command = Path(f"/proc/{os.getppid()}/cmdline").read_bytes().split(b"\0")
            yield pa.RecordBatch.from_pydict({"module": [command[2].decode()] * len(batch)})

    rows = spark.range(2).mapInArrow(parents, "module string").collect()
    assert {row.module for row in rows} == {"pathcast.spark.sessions.preloading_worker_daemon"}
