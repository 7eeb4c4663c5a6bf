"""`pathcast backfill`: matching that a broker leaves to Spark.

Exit status: 0 the broker has no such work left, 1 it failed, 2 an argument is wrong, 130 stopped by Ctrl-C, 143 by
SIGTERM. However it ended, it continues when it is run again.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .exit_on_signal import Stop
from .work_on_spark import Advice, check_spark_address, must_answer, run_on_spark

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from pathcast.spark.log import Round


def backfill(
    url: Annotated[str, typer.Argument(metavar="URL", help="The broker's address; several, separated by commas.")],
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file with a token that has the scope administer.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The folder of the log, where workers see it.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for more work, until stopped.")] = False,
    every: Annotated[float, typer.Option(metavar="SECONDS", min=0.01, help="How often to ask for work.")] = 0.2,
    as_json: Annotated[bool, typer.Option("--json", help="Print each round as one line of JSON.")] = False,
    master: Annotated[str | None, typer.Option(metavar="URL", help="Run on this Spark master.")] = None,
    remote: Annotated[str | None, typer.Option(metavar="URL", help="Run on this Spark Connect server.")] = None,
) -> None:
    """Match what a broker leaves to Spark: long histories of subscriptions, and feeds with "matching": "spark".

    The command may be killed and run again at any moment.

    Example: pathcast backfill http://127.0.0.1:8080 --follow
    """
    check_spark_address(master, remote)
    from pathcast.spark.log import parse_log_options, run_backfill
    from pathcast.spark.pipeline import until_stopped

    if remote is not None:
        must_answer(remote)
    given = {"url": url, "tokenFile": token_file, "folder": folder}
    options = parse_log_options({name: str(value) for name, value in given.items() if value is not None})

    def work(spark: "SparkSession", stop: Stop, stopping: "Callable[[], None]") -> bool:
        tell = _tell_json if as_json else typer.echo

        def serve() -> bool:
            run_backfill(spark, options, tell, stop, every=every if follow else None)
            return not stop.is_set()

        return bool(until_stopped(spark, serve, stop, stopping))

    advice = Advice(
        "run the command again to continue", "give Spark more memory", "; run the command again to continue"
    )
    settings = {} if master is None else {"spark.master": master}
    run_on_spark("pathcast backfill", settings, remote, work, advice)


def _tell_json(done: "Round") -> None:
    typer.echo(json.dumps(asdict(done)))
