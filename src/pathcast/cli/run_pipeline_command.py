"""`pathcast run`: a pipeline from a TOML file, batch or stream, with one line per batch and a clean stop.

Exit status: 0 the pipeline completed, 1 it failed while running or a dry run found invalid subscriptions, 2 the file or
an argument is wrong, 130 stopped by Ctrl-C, 143 by SIGTERM. A stopped stream continues from its checkpoint when it is
run again.
"""

import json
from collections.abc import Callable
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .arguments.shared_arguments import refuse
from .exit_on_signal import Stop
from .work_on_spark import FAILED, Advice, check_spark_address, must_answer, run_on_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pathcast.spark.pipeline import AnyReport, Pipeline


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

    check_spark_address(master, remote)
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
        must_answer(remote)
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
    """Run a pipeline, and exit when it completes, gets a signal, fails, or loses its JVM."""
    from pathcast.spark.pipeline import compile_table, until_stopped
    from pathcast.spark.pipeline import run as run_pipeline

    def work(spark: "SparkSession", stop: Stop, stopping: Callable[[], None]) -> bool:
        """Run the pipeline; return whether it completed."""
        if not published:
            report = until_stopped(spark, lambda: compile_table(spark, pipeline), stop, stopping)
            if report is None:
                return False
            typer.echo(report, err=True)
        if publish or stop.is_set():
            return publish
        tell = _tell_json if as_json else typer.echo
        return run_pipeline(spark, pipeline, tell, stop, stopping)

    batch = "remove the output of the pipeline and run the pipeline again"
    again = batch if pipeline.stream is None else "the checkpoint is intact: run the pipeline again to continue"
    after_stop = "; run the pipeline again to continue" if pipeline.stream is not None else ""
    advice = Advice(again, 'increase the memory, such as "spark.driver.memory" = "4g" under [spark]', after_stop)
    run_on_spark(pipeline.name, settings, remote, work, advice)


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
