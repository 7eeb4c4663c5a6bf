"""The session: Spark in local mode with settings that start fast, stay quiet and suit documents.

A session that runs already, one that spark-submit started and one behind a Spark Connect server elsewhere are taken as
they are: whoever made them knew why. Every JVM that a session starts, a local Connect server's too, runs on the Java
that java_installation.py finds. A setting that stands in `spark-defaults.conf` or is given to `session` wins over ours.

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
from .jvm_process import spared_from_sigterm

_LOGGING = Path(__file__).with_name("log4j2.properties")

LOCAL_SETTINGS = {
    # All cores that the process may use; Java counts them with affinity and containers' limits in mind.
    "spark.master": "local[*]",
    # Driver and workers talk through this address only: no name to look up, nothing open to the network.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # The web page takes a port, collides with a second session's, and is open to the machine's other users.
    "spark.ui.enabled": "false",
    # Spark's own progress bar overwrites lines of the terminal that are not its own.
    "spark.ui.showConsoleProgress": "false",
    # 200 partitions are meant for clusters. In a stream each is a task, and a state store, per micro-batch.
    "spark.sql.shuffle.partitions": "4",
    # Rows per Arrow batch handed to Python. Spark's 10,000 suit narrow rows; documents are a few kB to a few MB each,
    # and a worker holds a batch twice.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "500",
    # What streams remember (standing joins) lies in RocksDB; a checkpoint writes down what has changed of it, not all.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Workers are forks of a process that has Pathcast loaded: each is there a second earlier.
    "spark.python.daemon.module": "pathcast.spark.sessions.worker_daemon",
    # A worker that dies in native code leaves a Python traceback instead of "worker exited unexpectedly".
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
    # Warnings that a user can act on, not those of every start (log4j2.properties says which).
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
}


def session(
    app: str = "pathcast", settings: Mapping[str, str] | None = None, *, remote: str | None = None
) -> SparkSession:
    """The Spark session that runs, or a new local one, or with `remote` one of Spark Connect.

    `settings` are Spark's own and win over the defaults here. With a session already running they can't be changed:
    asking for other values than it has is an error. `remote` is an address (`sc://host:15002`), or `local[2]` for a
    server that is started here; without it, the environment variable `SPARK_REMOTE` counts.
    """
    asked = dict(settings or {})
    active = running()
    if active is not None:
        _refuse_changes(active, asked)
        return active
    builder = SparkSession.builder.appName(app)
    if remote is not None:
        builder = builder.remote(remote)
    # The interpreter that imported Pathcast is the one that has it; `python3` on the PATH may be any.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    address = remote if remote is not None else os.environ.get("SPARK_REMOTE")
    if starts_jvm(address):
        os.environ["JAVA_HOME"] = str(find_java().home)
        # Said before the JVM starts, or it complains about a host name that resolves to a loopback address.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        given = {*_defaults_file(), *(["spark.master"] if address is not None else [])}
        asked = {key: value for key, value in LOCAL_SETTINGS.items() if key not in given} | asked
    for key, value in asked.items():
        builder = builder.config(key, value)
    try:
        with _interrupts_held(), spared_from_sigterm(), warnings.catch_warnings():
            if address is not None and address.startswith("local"):  # the server has been started with all of them
                warnings.filterwarnings("ignore", "Failed to set", UserWarning)
            return builder.getOrCreate()
    except (OSError, PySparkException, Py4JError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise PipelineError(f"Spark did not start: {reason}; `pathcast doctor` says what is missing") from error


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
    """Let Ctrl-C, and a SIGTERM that has a handler, wait until the JVM answers.

    PySpark forgets a JVM that is still starting, and it would never end.
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
            if signal.getsignal(number) is hold:  # otherwise PySpark has put its own, which cancels jobs
                signal.signal(number, handler)
    for number in waiting:
        held[number](number, None)


def _refuse_changes(active: SparkSession, asked: Mapping[str, str]) -> None:
    for key, value in asked.items():
        has = active.conf.get(key, None)
        if has != value:
            raise PipelineError(
                f"a Spark session is running with {key}={has}, so it can't be had with {value}; "
                "stop it first, or set what can be changed with spark.conf.set"
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
