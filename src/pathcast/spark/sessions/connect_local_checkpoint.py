"""Local checkpoints that also work through Spark Connect: a program that forgets `stop()` still ends.

A client of Spark Connect asks the server to drop a checkpoint when the last DataFrame that refers to it goes away.
While Python shuts down, that request waits forever for a thread that cannot start. So the session stops before the
shutdown begins: a stopped session asks for nothing, and its server has dropped all its checkpoints.

Cost: one function call at the end of the program.
"""

import atexit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote


def checkpoint(frame: DataFrame) -> DataFrame:
    """The frame, whose rows Spark computes at most once and keeps until the session ends."""
    kept = frame.localCheckpoint(eager=False)
    if is_remote():
        _stop_at_exit(frame.sparkSession)
    return kept


def _stop_at_exit(session: SparkSession) -> None:
    atexit.unregister(session.stop)  # registered once, however many checkpoints there are
    atexit.register(session.stop)
