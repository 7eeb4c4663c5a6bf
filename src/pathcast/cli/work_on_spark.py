"""Work of a command on Spark: the session, signals, the end of its JVM, and what the command says about each.

Exit status: 0 the work is complete, 1 it failed, 130 stopped by Ctrl-C, 143 by SIGTERM.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import typer

from .arguments.shared_arguments import refuse
from .exit_on_signal import Stop, Work, stopped_by_signals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAILED = 1
CONNECT_PORT = 15002
_MASTER = re.compile(r"local(\[(\*|\d+)(,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|(spark|k8s)://.+|yarn")


class Advice(NamedTuple):
    """What to do if the JVM ended, also if that happens again, and after a stop."""

    again: str
    memory: str
    after_stop: str


def check_spark_address(master: str | None, remote: str | None) -> None:
    """Exit if the options --master and --remote cannot be used."""
    if master is not None and remote is not None:
        refuse(f"--master {master} and --remote {remote} cannot be combined; give only one of them")
    if master is not None and not _MASTER.fullmatch(master):
        refuse(
            f"--master {master} is not a Spark master; use local[4], local[*], spark://host:7077, k8s://host:443 "
            "or yarn"
        )
    if remote is not None and not remote.startswith(("sc://", "local")):
        refuse(f"--remote {remote} is not a Spark Connect URL; use sc://host:15002, or local[2] to start a server here")


def run_on_spark(
    name: str,
    settings: dict[str, str],
    remote: str | None,
    work: "Callable[[SparkSession, Stop, Callable[[], None]], bool]",
    advice: Advice,
) -> None:
    """Do work in a thread, and exit when it completes, gets a signal, fails, or loses its JVM.

    `work` gets the session, what a signal sets, and what to call before it cancels jobs for that reason; it returns
    whether it completed.
    """
    from pathcast.spark import session  # first: its error explains how to install Spark
    from pathcast.spark.sessions import how_it_ended, running, silence

    stop = Stop()
    started = False

    def do() -> bool:
        nonlocal started
        ours = running() is None  # otherwise its creator, such as spark-submit, stops it
        if ours:
            typer.echo("starting Spark …", err=True)
        with _session(lambda: session(name, settings, remote=remote), ours) as spark:
            started = True
            return work(spark, stop, silence if ours else lambda: None)

    working = Work(do)
    with stopped_by_signals(stop):
        working.wait(until=how_it_ended)
    if working.result:
        return
    if stop.is_set():  # errors after a stop come from processes that are ending as well
        typer.echo(f"stopped{advice.after_stop}", err=True)
        _exit(128 + stop.number)
    if working.error is not None and not started:
        raise working.error
    _leave(working.error, advice)


def _leave(error: BaseException | None, advice: Advice) -> NoReturn:
    """Print why the work failed; `error` is None if its JVM ended first."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from pathcast.errors import PathcastError
    from pathcast.spark.sessions import how_it_ended, is_lost

    ended = how_it_ended(patience=10 if error is not None and is_lost(error) else 0)
    if ended:
        reason = f"Spark's JVM ended unexpectedly ({ended}); {advice.again}; if this happens again, {advice.memory}"
    elif isinstance(error, PathcastError):
        reason = str(error)
    elif error is not None and (isinstance(error, (PySparkException, Py4JError)) or is_lost(error)):
        reason = f"Spark failed: {str(error).strip().partition(chr(10))[0] or type(error).__name__}"
    else:
        assert error is not None
        raise error
    typer.echo(f"error: {reason}", err=True)
    _exit(FAILED)


def _exit(status: int) -> NoReturn:
    """Exit; if the JVM has ended, skip PySpark's threads and exit hooks, which would wait for it."""
    from pathcast.spark.sessions import how_it_ended

    if how_it_ended():
        with suppress(OSError):
            sys.stdout.flush()
        os._exit(status)
    raise typer.Exit(status)


@contextmanager
def _session(start: "Callable[[], SparkSession]", ours: bool) -> Iterator["SparkSession"]:
    """A session; stop it at the end of the block if this command created it."""
    from pathcast.spark.sessions import how_it_ended, keep_quiet_about_its_end

    spark = start()
    keep_quiet_about_its_end()
    try:
        yield spark
    finally:
        if ours and not how_it_ended():
            spark.stop()


def must_answer(remote: str) -> None:
    """Exit if no Spark Connect server listens at the address: PySpark would silently retry for minutes."""
    from socket import create_connection
    from urllib.parse import urlsplit

    if not remote.startswith("sc://"):
        return
    try:
        address = urlsplit(remote)
        place = address.hostname or "", address.port or CONNECT_PORT
        create_connection(place, timeout=10).close()
    except ValueError as error:
        refuse(f"invalid --remote {remote}: {error}; use a URL such as sc://host:{CONNECT_PORT}")
    except OSError as error:
        reason = f"no Spark Connect server answers at {place[0]}:{place[1]}: {error.strerror or error}"
        typer.echo(
            f"error: cannot connect to --remote {remote}: {reason}; start the server, or correct the URL", err=True
        )
        raise typer.Exit(FAILED) from None
