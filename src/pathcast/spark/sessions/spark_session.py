"""The session: Spark in local mode with settings that start fast, stay quiet and suit documents.

A running session, one that spark-submit started and one on a remote Spark Connect server are used unchanged. Every JVM
that a session starts, also that of a local Connect server, runs on the Java that java_installation.py finds. Settings
in `spark-defaults.conf` or given to `session` override ours.

Cost: about 5 s on two free cores, most of it the JVM loading Spark's classes; another 2 s go into the first query.
"""

import os
import signal
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pathcast.errors import PipelineError

from .java_installation import find_java
from .jvm_signals_and_exit import spared_from_sigterm

_LOGGING = Path(__file__).with_name("log4j2.properties")

# A stream that is killed while it writes its first offsets leaves a temporary file. With this check, which is Spark's
# default, it never starts again: Spark takes the file for an older query's.
EMPTY_CHECKPOINT_CHECK = "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart"

LOCAL_SETTINGS = {
    # All cores that the process may use; Java counts them with affinity and containers' limits in mind.
    "spark.master": "local[*]",
    # Driver and workers talk through this address only: no name resolution, no port open to the network.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # The web UI needs a port, collides with a second session, and is open to other users of the machine.
    "spark.ui.enabled": "false",
    # Spark's own progress bar overwrites other lines of the terminal.
    "spark.ui.showConsoleProgress": "false",
    # 200 partitions are meant for clusters. In a stream each is a task, and a state store, per micro-batch.
    "spark.sql.shuffle.partitions": "4",
    # Rows per Arrow batch handed to Python. Spark's 10,000 suit narrow rows; documents are a few kB to a few MB each,
    # and a worker holds a batch twice.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "500",
    # Streams keep their state (standing joins) in RocksDB; a checkpoint writes its changes, not all of it.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    EMPTY_CHECKPOINT_CHECK: "false",
    # Workers are forks of a process that has Pathcast loaded: each starts one second faster.
    "spark.python.daemon.module": "pathcast.spark.sessions.preloading_worker_daemon",
    # A worker that dies in native code leaves a Python traceback instead of "worker exited unexpectedly".
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
    # Print warnings that a user can act on, not those of every start (see log4j2.properties).
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
}


def session(
    app: str = "pathcast", settings: Mapping[str, str] | None = None, *, remote: str | None = None
) -> SparkSession:
    """The running Spark session, or a new local one; with `remote`, a Spark Connect session.

    `settings` are Spark's own and override the defaults here. They cannot change a running session: other values than
    it has raise an error. `remote` is an address (`sc://host:15002`), or `local[2]` to start a server on this machine;
    without it, the environment variable `SPARK_REMOTE` applies.
    """
    asked = dict(settings or {})
    active = running()
    if active is not None:
        _refuse_changes(active, asked)
        return active
    builder = SparkSession.builder.appName(app)
    if remote is not None:
        builder = builder.remote(remote)
    # This interpreter has Pathcast installed; `python3` on the PATH may be another.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    address = remote if remote is not None else os.environ.get("SPARK_REMOTE")
    if starts_jvm(address):
        os.environ["JAVA_HOME"] = str(find_java().home)
        # Set before the JVM starts, otherwise it complains about a host name that resolves to a loopback address.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        given = {*_defaults_file(), *(["spark.master"] if address is not None else [])}
        asked = {key: value for key, value in LOCAL_SETTINGS.items() if key not in given} | asked
    for key, value in asked.items():
        builder = builder.config(key, value)
    try:
        with _interrupts_held(), spared_from_sigterm(), warnings.catch_warnings():
            if address is not None and address.startswith("local"):  # the server was started with all settings
                warnings.filterwarnings("ignore", "Failed to set", UserWarning)
            return builder.getOrCreate()
    except (OSError, PySparkException, Py4JError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise PipelineError(f"Spark did not start: {reason}; `pathcast doctor` shows what is missing") from error


def running() -> SparkSession | None:
    """The session of this thread, or the one that another thread started."""
    active = SparkSession.getActiveSession()
    if active is None and SparkContext._active_spark_context is not None:
        return SparkSession.builder.getOrCreate()
    return active


def starts_jvm(address: str | None) -> bool:
    """Whether PySpark will start a JVM in this program, given the address of a Connect server if there is one.

    It does not for a program that spark-submit started, nor for a Connect server elsewhere; it does for `local[2]`,
    a Connect server in this program.
    """
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return False
    if address is not None:
        return address.startswith("local")
    return "SPARK_CONNECT_MODE_ENABLED" not in os.environ


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Delay Ctrl-C, and SIGTERM if it has a handler, until the JVM answers.

    Otherwise PySpark loses a JVM that is still starting, and the JVM would never end.
    """
    if current_thread() is not main_thread():  # handlers run in the main thread
        yield
        return
    waiting: list[int] = []

    def hold(number: int, _: FrameType | None) -> None:
        waiting.append(number)

    handlers = {int(number): signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    held = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in held:
        signal.signal(number, hold)
    try:
        yield
    finally:
        for number, handler in held.items():
            if signal.getsignal(number) is hold:  # otherwise PySpark has installed its own, which cancels jobs
                signal.signal(number, handler)
    for number in waiting:
        held[number](number, None)


def _refuse_changes(active: SparkSession, asked: Mapping[str, str]) -> None:
    for key, value in asked.items():
        has = active.conf.get(key, None)
        if has != value:
            raise PipelineError(
                f"a Spark session is already running with {key}={has}, not {value}; "
                "stop it first, or use spark.conf.set for settings that can change"
            )


def _defaults_file() -> set[str]:
    """The keys that the user's spark-defaults.conf sets."""
    home, folder = os.environ.get("SPARK_HOME"), os.environ.get("SPARK_CONF_DIR")
    if folder is None and home is None:
        return set()
    file = Path(folder or f"{home}/conf") / "spark-defaults.conf"
    if not file.is_file():
        return set()
    lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
    return {line.replace("=", " ").split()[0] for line in lines if line and not line.startswith("#")}
