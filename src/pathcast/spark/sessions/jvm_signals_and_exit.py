"""The JVM that PySpark started for this program: it ignores SIGTERM, and its end is detected.

Terminals, `timeout` and service managers send signals to a whole process group. PySpark makes its JVM ignore SIGINT, so
that Python can end Spark in an orderly way; `spared_from_sigterm` makes the JVM ignore SIGTERM as well. The JVM still
ends
with the program: it ends when its standard input does.

PySpark has no option for this: it sets `preexec_fn` itself. But because it does, Python's hooks for forks run in the
child before Java starts, and one of these hooks is ours.

Not done: a JVM that spark-submit started, which is the parent of this program.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext

_starting = Event()


def _ignore_sigterm() -> None:
    if _starting.is_set():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


os.register_at_fork(after_in_child=_ignore_sigterm)


@contextmanager
def spared_from_sigterm() -> Iterator[None]:
    """A JVM that PySpark starts inside the block ignores SIGTERM."""
    _starting.set()
    try:
        yield
    finally:
        _starting.clear()


def how_it_ended(patience: float = 0) -> str:
    """How the JVM of this program ended, such as `killed by SIGKILL`; empty while it runs, or if there is none."""
    process = getattr(SparkContext._gateway, "proc", None)
    if not isinstance(process, subprocess.Popen):
        return ""
    try:
        status = process.wait(patience)
    except subprocess.TimeoutExpired:
        return ""
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


def is_lost(error: BaseException) -> bool:
    """Whether an error means that the JVM no longer answers."""
    # Py4J raises its base class if an answer breaks off, and a subclass for errors inside the JVM.
    if isinstance(error, (ConnectionRefusedError, ConnectionResetError, Py4JNetworkError)) or type(error) is Py4JError:
        return True
    return error.__cause__ is not None and is_lost(error.__cause__)


def silence() -> None:
    """Silence the JVM: it reports work that is cancelled on purpose as errors, in its log and on stderr."""
    jvm: Any = SparkContext._jvm
    if jvm is not None:
        log4j = jvm.org.apache.logging.log4j
        log4j.core.config.Configurator.setAllLevels("", log4j.Level.OFF)
        # Scala prints stack traces of tasks that come too late for a pool of threads. And Java prints a stack overflow
        # of a stream's thread: Spark searches the text of a Python error with a regular expression that recurses once
        # per character. Larger stacks for all threads would make short jobs an eighth slower.
        jvm.java.lang.System.setErr(jvm.java.io.PrintStream(jvm.java.io.OutputStream.nullOutputStream()))


def keep_quiet_about_its_end() -> None:
    """Keep PySpark's accumulator server from printing a traceback when the JVM, its only client, ends."""
    server: Any = getattr(SparkContext._active_spark_context, "_accumulatorServer", None)
    if server is None:
        return
    report = server.handle_error

    def handle_error(request: Any, address: Any) -> None:
        if not isinstance(sys.exception(), (EOFError, ConnectionError)):
            report(request, address)

    server.handle_error = handle_error
