"""The JVM of a session: its loss is detected, and it ignores SIGTERM."""

import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext

from pathcast.errors import PipelineError
from pathcast.spark.sessions.jvm_signals_and_exit import how_it_ended, is_lost, silence, spared_from_sigterm


def test_a_jvm_that_runs_has_not_ended(spark):
    assert how_it_ended() == ""


@pytest.mark.parametrize(
    ("program", "how"),
    [
        ("import os; os.kill(os.getpid(), 9)", "killed by SIGKILL"),
        ("raise SystemExit(3)", "exit status 3"),
    ],
)
def test_how_a_jvm_ended_is_told(monkeypatch, program, how):
    process = subprocess.Popen([sys.executable, "-c", program])
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))
    assert how_it_ended(patience=500) == how


def test_a_program_without_a_jvm_of_its_own_has_none_that_ended(monkeypatch):
    monkeypatch.setattr(SparkContext, "_gateway", None)
    assert how_it_ended() == ""
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=None))  # spark-submit's
    assert how_it_ended() == ""


def test_lost_connections_are_told_from_other_errors():
    failure = PipelineError("the batch failed")
    failure.__cause__ = Py4JNetworkError("Answer from Java side is empty")
    for error in (ConnectionRefusedError(), Py4JError("o1.isActive"), failure):
        assert is_lost(error)
    other = Py4JJavaError.__new__(Py4JJavaError)
    for error in (BrokenPipeError(), PipelineError("no"), other):
        assert not is_lost(error)


def test_what_starts_within_the_block_as_pyspark_starts_java_ignores_sigterm():
    program = "import signal; print(signal.getsignal(signal.SIGTERM) == signal.SIG_IGN)"

    def said() -> str:
        command = [sys.executable, "-c", program]
        return subprocess.run(command, preexec_fn=os.getpid, capture_output=True, text=True, check=True).stdout

    with spared_from_sigterm():
        assert said() == "True\n"
    assert said() == "False\n"
    assert signal.getsignal(signal.SIGTERM) != signal.SIG_IGN


def test_a_jvm_that_is_silenced_prints_no_stack_traces(spark):
    jvm = spark._jvm
    system, before = jvm.java.lang.System, jvm.java.lang.System.err
    printed = jvm.java.io.ByteArrayOutputStream()
    system.setErr(jvm.java.io.PrintStream(printed, True))
    try:
        jvm.java.lang.Throwable("heard").printStackTrace()
        silence()
        jvm.java.lang.Throwable("not heard").printStackTrace()
    finally:
        system.setErr(before)
        jvm.org.apache.logging.log4j.core.config.Configurator.reconfigure()
    assert "Throwable: heard" in printed.toString()
    assert "not heard" not in printed.toString()
