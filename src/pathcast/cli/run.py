"""`pathcast run`: a pipeline from a TOML file, batch or stream, with a line per batch and a clean stop.

Exit status: 0 the pipeline came to its end, 1 it failed while it ran or a dry run found invalid subscriptions, 2 the
file or an argument is wrong, 130 stopped by Ctrl-C, 143 by SIGTERM. A stream that was stopped goes on where it was when
it is run again.
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

from .shared_arguments import refuse
from .signals import Stop, Work, stopped_by_signals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pathcast.spark.pipeline import AnyReport, Pipeline

FAILED = 1
CONNECT_PORT = 15002
_MASTER = re.compile(r"local(\[(\*|\d+)(,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|(spark|k8s)://.+|yarn")


def run(
    file: Annotated[
        Path,
        typer.Argument(metavar="PIPELINE.TOML", help="The pipeline; docs/reference/pipeline-file.md has every key."),
    ],
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Check the file and the subscriptions, print the plan, start nothing."),
    ] = False,
    publish: Annotated[
        bool,
        typer.Option(
            "--publish",
            help="Only compile the table of subscriptions and publish it, and the file of subscriptions to joins where "
            "these have versions; a stream that runs takes them up. Small tables need no Spark.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print reports as JSON, a line each.")] = False,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="A Spark master, such as local[4] or spark://host:7077.")
    ] = None,
    remote: Annotated[
        str | None, typer.Option(metavar="URL", help="A Spark Connect server, such as sc://host:15002.")
    ] = None,
) -> None:
    """Run a pipeline: documents in, deliveries out, as a batch or a stream.

    Exit status 0: it came to its end; 1: it failed, or --dry-run found invalid subscriptions; 2: the file or an
    argument is wrong.

    130: stopped by Ctrl-C; 143: by SIGTERM.

    Example: pathcast run pipeline.toml --dry-run
    """
    from pathcast.spark.pipeline import check_outputs, plan, read_pipeline

    if master is not None and remote is not None:
        refuse("give --master or --remote, not both")
    if master is not None and not _MASTER.fullmatch(master):
        refuse(f"--master {master}: give local[4], local[*], spark://host:7077, k8s://host:443 or yarn")
    if remote is not None and not remote.startswith(("sc://", "local")):
        refuse(f"--remote {remote}: give sc://host:15002, or local[2] for a server that is started here")
    pipeline = read_pipeline(file)
    table, joins = pipeline.subscriptions.table, pipeline.joins
    if publish and table is None and (joins is None or joins.versions is None or joins.subscriptions is None):
        refuse(f"{file}: there is no subscriptions.table to publish, nor joins.subscriptions with joins.versions")
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
    """Run a pipeline in a thread, and leave as it ends: by itself, by a signal, by an error, or without its JVM."""
    from pathcast.spark import session  # first, since it says how to install Spark
    from pathcast.spark.pipeline import compile_table, until_stopped
    from pathcast.spark.pipeline import run as run_pipeline
    from pathcast.spark.sessions import how_it_ended, running, silence

    stop = Stop()
    started = False

    def work() -> bool:
        """Whether the pipeline came to its end."""
        nonlocal started
        ours = running() is None  # otherwise it is left to whoever made it, such as spark-submit
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
    if stop.is_set():  # errors on the way are of processes that were told to end, too
        typer.echo("stopped" + ("; run it again to go on" if pipeline.stream is not None else ""), err=True)
        _exit(128 + stop.number)
    if working.error is not None and not started:
        raise working.error
    _leave(working.error, pipeline)


def _leave(error: BaseException | None, pipeline: "Pipeline") -> NoReturn:
    """Print why a run failed; without an error, its JVM ended first."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from pathcast.errors import PathcastError
    from pathcast.spark.sessions import how_it_ended, is_lost

    ended = how_it_ended(patience=10 if error is not None and is_lost(error) else 0)
    if ended:
        stream, batch = "the checkpoint is intact: run it again to go on", "remove its output and run it again"
        again = stream if pipeline.stream is not None else batch
        memory = 'if it happens again, give it more memory, such as "spark.driver.memory" = "4g" under [spark]'
        reason = f"the JVM of Spark ended unexpectedly ({ended}); {again}; {memory}"
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
    """Leave; without waiting for PySpark's threads and exit hooks where these would wait for a JVM that is gone."""
    from pathcast.spark.sessions import how_it_ended

    if how_it_ended():
        with suppress(OSError):
            sys.stdout.flush()
        os._exit(status)
    raise typer.Exit(status)


def _tell_json(report: "AnyReport") -> None:
    typer.echo(json.dumps(asdict(report)))


def _publish_joins(pipeline: "Pipeline") -> None:
    """Publish the subscriptions to joins, where the pipeline has a file of them and versions."""
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
    """Print the plan, and what is wrong with the subscriptions."""
    problems: list[str] = []
    if pipeline.subscriptions.table is not None:
        if find_spec("pyspark") is None:
            summary = "not checked: Spark is not installed"
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
    """Publish a small table of subscriptions without Spark; whether that was possible."""
    from pathcast.errors import PathcastError
    from pathcast.spark import session as _  # noqa: F401 — first, since it says how to install Spark
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
    """Leave if nobody listens at a Spark Connect server's address: PySpark would try again for minutes, in silence."""
    from socket import create_connection
    from urllib.parse import urlsplit

    if not remote.startswith("sc://"):
        return
    try:
        address = urlsplit(remote)
        place = address.hostname or "", address.port or CONNECT_PORT
        create_connection(place, timeout=10).close()
    except ValueError as error:
        refuse(f"--remote {remote}: {error}")
    except OSError as error:
        reason = f"no Spark Connect server answers at {place[0]}:{place[1]}: {error.strerror or error}"
        typer.echo(f"error: --remote {remote}: {reason}", err=True)
        raise typer.Exit(FAILED) from None


@contextmanager
def _session(start: "Callable[[], SparkSession]", ours: bool) -> Iterator["SparkSession"]:
    """A session, which ends with the block if it is ours."""
    from pathcast.spark.sessions import how_it_ended, keep_quiet_about_its_end

    spark = start()
    keep_quiet_about_its_end()
    try:
        yield spark
    finally:
        if ours and not how_it_ended():
            spark.stop()
