"""`pathcast run`: a pipeline from a TOML file, batch or stream, with one line per batch and a clean stop.

Exit status: 0 the pipeline completed, 1 it failed while running or a dry run found invalid subscriptions, 2 the file or
an argument is wrong, 130 stopped by Ctrl-C, 143 by SIGTERM. A stopped stream continues from its checkpoint when it is
run again.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from .arguments.shared_arguments import refuse
from .exit_on_signal import Stop, Work, stopped_by_signals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pathcast.spark.pipeline import AnyReport, Pipeline

FAILED = 1
CONNECT_PORT = 15002
_MASTER = re.compile(r"local(\[(\*|\d+)(,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|(spark|k8s)://.+|yarn")


def run(
    file: Annotated[
        Path,
        typer.Argument(metavar="PIPELINE.TOML", help="A pipeline; see docs/reference/pipeline-file.md for the keys."),
    ],
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Check the file and the subscriptions, print the plan, and exit."),
    ] = False,
    publish: Annotated[
        bool,
        typer.Option(
            "--publish",
            help="Only compile and publish the table of subscriptions and, with joins.versions, the subscriptions to "
            "joins; a running stream picks them up. Small tables need no Spark.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print each report as one line of JSON.")] = False,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Run on this Spark master, such as local[4] or spark://host:7077.")
    ] = None,
    remote: Annotated[
        str | None, typer.Option(metavar="URL", help="Run on this Spark Connect server, such as sc://host:15002.")
    ] = None,
) -> None:
    """Run a pipeline that reads documents and writes deliveries, as a batch or a stream.

    Exit status 0: the pipeline completed; 1: it failed, or --dry-run found invalid subscriptions; 2: invalid file or
    arguments.

    Exit status 130: stopped by Ctrl-C; 143: stopped by SIGTERM.

    Example: pathcast run pipeline.toml --dry-run
    """
    from pathcast.spark.pipeline import check_outputs, plan, read_pipeline

    if master is not None and remote is not None:
        refuse(f"--master {master} and --remote {remote} cannot be combined; give only one of them")
    if master is not None and not _MASTER.fullmatch(master):
        refuse(
            f"--master {master} is not a Spark master; use local[4], local[*], spark://host:7077, k8s://host:443 "
            "or yarn"
        )
    if remote is not None and not remote.startswith(("sc://", "local")):
        refuse(f"--remote {remote} is not a Spark Connect URL; use sc://host:15002, or local[2] to start a server here")
    pipeline = read_pipeline(file)
    table, joins = pipeline.subscriptions.table, pipeline.joins
    if publish and table is None and (joins is None or joins.versions is None or joins.subscriptions is None):
        refuse(f"{file} has nothing to publish; set subscriptions.table, or joins.subscriptions and joins.versions")
    lines = list(plan(pipeline))
    if not publish:
        check_outputs(pipeline)
    if dry_run:
        _tell_plan(pipeline, lines)
        return
    _publish_joins(pipeline)
    published = table is None or _publish_small(pipeline)
    if publish and published:
        return  # needs no Spark
    if remote is not None:
        _must_answer(remote)
    settings = {**pipeline.spark, **({"spark.master": master} if master is not None else {})}
    _run(pipeline, settings, remote, published=published, publish=publish, as_json=as_json)


def _run(
    pipeline: "Pipeline",
    settings: dict[str, str],
    remote: str | None,
    *,
    published: bool,
    publish: bool,
    as_json: bool,
) -> None:
    """Run a pipeline in a thread, and exit when it completes, gets a signal, fails, or loses its JVM."""
    from pathcast.spark import session  # first: its error explains how to install Spark
    from pathcast.spark.pipeline import compile_table, until_stopped
    from pathcast.spark.pipeline import run as run_pipeline
    from pathcast.spark.sessions import how_it_ended, running, silence

    stop = Stop()
    started = False

    def work() -> bool:
        """Run the pipeline; return whether it completed."""
        nonlocal started
        ours = running() is None  # otherwise its creator, such as spark-submit, stops it
        if ours:
            typer.echo("starting Spark …", err=True)
        with _session(lambda: session(pipeline.name, settings, remote=remote), ours) as spark:
            started = True
            stopping = silence if ours else lambda: None
            if not published:
                report = until_stopped(spark, lambda: compile_table(spark, pipeline), stop, stopping)
                if report is None:
                    return False
                typer.echo(report, err=True)
            if publish or stop.is_set():
                return publish
            tell = _tell_json if as_json else typer.echo
            return run_pipeline(spark, pipeline, tell, stop, stopping)

    working = Work(work)
    with stopped_by_signals(stop):
        working.wait(until=how_it_ended)
    if working.result:
        return
    if stop.is_set():  # errors after a stop come from processes that are ending as well
        typer.echo(
            "stopped" + ("; run the pipeline again to continue" if pipeline.stream is not None else ""), err=True
        )
        _exit(128 + stop.number)
    if working.error is not None and not started:
        raise working.error
    _leave(working.error, pipeline)


def _leave(error: BaseException | None, pipeline: "Pipeline") -> NoReturn:
    """Print why a run failed; `error` is None if its JVM ended first."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from pathcast.errors import PathcastError
    from pathcast.spark.sessions import how_it_ended, is_lost

    ended = how_it_ended(patience=10 if error is not None and is_lost(error) else 0)
    if ended:
        batch = "remove the output of the pipeline and run the pipeline again"
        again = batch if pipeline.stream is None else "the checkpoint is intact: run the pipeline again to continue"
        memory = 'if this happens again, increase the memory, such as "spark.driver.memory" = "4g" under [spark]'
        reason = f"Spark's JVM ended unexpectedly ({ended}); {again}; {memory}"
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


def _tell_json(report: "AnyReport") -> None:
    typer.echo(json.dumps(asdict(report)))


def _publish_joins(pipeline: "Pipeline") -> None:
    """Publish the subscriptions to joins, if the pipeline has a file of them and versions."""
    from pathcast.errors import PathcastError
    from pathcast.spark.joins import publish_file

    try:
        report = "" if pipeline.joins is None else publish_file(pipeline.joins)
    except PathcastError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(FAILED) from None
    if report:
        typer.echo(report, err=True)


def _tell_plan(pipeline: "Pipeline", lines: list[tuple[str, str]]) -> None:
    """Print the plan, and the problems of the subscriptions."""
    problems: list[str] = []
    if pipeline.subscriptions.table is not None:
        if find_spec("pyspark") is None:
            summary = 'not checked: Spark is not installed; to install it: pip install "pathcast[spark]"'
        else:
            from pathcast.spark.pipeline import check_table

            summary, problems = check_table(pipeline)
        lines = [*lines, ("subscriptions", summary)]
    width = max(len(heading) for heading, _ in lines)
    for heading, text in lines:
        typer.echo(f"{heading:<{width}}  {text}")
    if problems:
        typer.echo("\n".join(problems), err=True)
        raise typer.Exit(FAILED)


def _publish_small(pipeline: "Pipeline") -> bool:
    """Publish a small table of subscriptions without Spark; return whether that was possible."""
    from pathcast.errors import PathcastError
    from pathcast.spark import session as _  # noqa: F401 — first: its error explains how to install Spark
    from pathcast.spark.pipeline import publish_small

    try:
        report = publish_small(pipeline)
    except PathcastError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(FAILED) from None
    if report is not None:
        typer.echo(report, err=True)
    return report is not None


def _must_answer(remote: str) -> None:
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
