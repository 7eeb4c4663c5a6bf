"""`pathcast demo`: the main job end to end on Spark in local mode, on made-up news.

    documents (Parquet) ─┐
                         ├─ match_documents ─ deliver ──────▶ deliveries/    one row per document and subscriber
    subscriptions (CSV) ─┘                  └ dead_letters ─▶ dead-letters/  one row per document that can't be read

Everything is written to one folder, together with a note on what is what; that note is also how a later demo knows
that the folder is its own to replace. Some documents are damaged on purpose: a pipeline must live with them.
"""

import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from rich.console import Console
    from rich.progress import Progress

# Sized so that the demo takes about a minute on two cores.
DOCUMENTS = 5_000
SUBSCRIPTIONS = 200
SUBSCRIBERS = 50
# The share of documents that a subscription matches: some 10 deliveries a document with the numbers above.
MATCH_RATE = 0.05
# One document in so many is cut short, the first of them early, so that a small demo has one too.
DAMAGED_EVERY, FIRST_DAMAGED = 250, 10
# Documents per Spark task: small enough for the progress bar to move, large enough to hide what a task costs by itself.
TASK_DOCUMENTS = 50
WRITE_ROWS = 500

ABOUT = """What `pathcast demo` wrote here:

documents/         Parquet: document (a number), xml
subscriptions.csv  id, xpath, subscriber
index/             the compiled subscriptions: pathcast.open_index("index")
deliveries/        Parquet: document, subscriber; one row for each subscriber that a document goes to
dead-letters/      Parquet: document, xml, error; the documents that could not be read, and why

The folder is replaced by the next demo.
"""


class Outcome(NamedTuple):
    """What the closing table says."""

    documents: int
    subscriptions: int
    deliveries: int
    unreadable: int
    seconds: float


def demo(
    documents: Annotated[int, typer.Option(min=1, help="How many news documents to make up.")] = DOCUMENTS,
    subscriptions: Annotated[int, typer.Option(min=1, help="How many XPath subscriptions.")] = SUBSCRIPTIONS,
    subscribers: Annotated[int, typer.Option(min=1, help="How many subscribers share them.")] = SUBSCRIBERS,
    output: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("pathcast-demo"),
    seed: Annotated[int, typer.Option(help="The same seed gives the same documents and subscriptions.")] = 0,
) -> None:
    """Run the whole pipeline on made-up news with Spark on this machine, and show what came out.

    Example: pathcast demo --documents 500 --output /tmp/demo
    """
    from rich.console import Console

    console = Console(highlight=False)
    prepare(output)
    spark = _start_spark(console)
    try:
        with _progress(console) as progress:
            write_documents(output / "documents", documents, seed, progress)
            write_index(output, subscriptions, subscribers, seed)
            outcome = run(spark, output, documents, subscriptions, progress)
    finally:
        spark.stop()
    _print(outcome, output, console)


def prepare(folder: Path) -> None:
    """An empty folder to write to; one that is not a demo's own is left alone."""
    from pathcast.errors import PipelineError

    note = folder / "ABOUT.txt"
    if folder.exists() and not folder.is_dir():
        raise PipelineError(f"{folder} is a file; give another --output")
    if folder.is_dir() and any(folder.iterdir()):
        if not note.is_file() or note.read_text(encoding="utf-8") != ABOUT:
            raise PipelineError(f"{folder} holds files that no demo wrote; give another --output")
        shutil.rmtree(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        note.write_text(ABOUT, encoding="utf-8")
    except OSError as error:
        raise PipelineError(f"cannot write to {folder}: {error.strerror}; give another --output") from error


def write_documents(folder: Path, count: int, seed: int, progress: "Progress") -> None:
    """Make up news, some of it damaged, and write it as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from pathcast.workloads import generate_documents, news_schema

    folder.mkdir()
    schema = pa.schema([("document", pa.int64()), ("xml", pa.binary())])
    bar = progress.add_task("documents", total=count)
    made = damage(generate_documents(news_schema(), count, seed=seed))
    with pq.ParquetWriter(folder / "documents.parquet", schema, compression="zstd") as writer:
        for first in range(0, count, WRITE_ROWS):
            rows = [xml for _, xml in zip(range(min(WRITE_ROWS, count - first)), made, strict=False)]
            writer.write_batch(pa.record_batch([range(first + 1, first + 1 + len(rows)), rows], schema=schema))
            progress.advance(bar, len(rows))


def damage(documents: Iterator[bytes]) -> Iterator[bytes]:
    """Cut one document in `DAMAGED_EVERY` short, as a broken connection would."""
    for number, xml in enumerate(documents, 1):
        yield xml[: len(xml) // 2] if number % DAMAGED_EVERY == FIRST_DAMAGED else xml


def write_index(folder: Path, count: int, subscribers: int, seed: int) -> None:
    """Make up subscriptions, write them as CSV, and compile them from there, as a user would."""
    import csv

    from pathcast import Subscriptions
    from pathcast.workloads import assign_subscribers, generate_subscriptions, news_schema

    file = folder / "subscriptions.csv"
    paths = generate_subscriptions(
        news_schema(), count, seed=seed, predicate_probability=0.1, nested_probability=0.1, match_rate=MATCH_RATE
    )
    names = assign_subscribers(count, readers=subscribers, seed=seed)
    with file.open("w", newline="", encoding="utf-8") as target:
        writer = csv.writer(target)
        writer.writerow(["id", "xpath", "subscriber"])
        writer.writerows(zip(range(1, count + 1), paths, names, strict=True))
    Subscriptions.read(file).compile().save(folder / "index")


def run(spark: "SparkSession", folder: Path, documents: int, subscriptions: int, progress: "Progress") -> Outcome:
    """Match, deliver, set aside what could not be read."""
    from pathcast.spark import dead_letters, deliver, match_documents

    start = time.perf_counter()
    news = spark.read.parquet(str(folder / "documents")).repartition(-(-documents // TASK_DOCUMENTS))
    matched = match_documents(news, folder / "index", by="subscriber").persist()
    deliveries = deliver(matched).select("document", "subscriber")
    watch(spark, "match", progress, matched.count)
    watch(spark, "deliver", progress, lambda: write(deliveries, folder / "deliveries"))
    watch(spark, "dead letters", progress, lambda: write(dead_letters(matched), folder / "dead-letters"))
    seconds = time.perf_counter() - start
    matched.unpersist()
    return Outcome(documents, subscriptions, rows(folder / "deliveries"), rows(folder / "dead-letters"), seconds)


def write(frame: "DataFrame", folder: Path) -> None:
    """Parquet, in as many files as there are cores."""
    frame.coalesce(frame.sparkSession.sparkContext.defaultParallelism).write.parquet(str(folder))


def rows(folder: Path) -> int:
    """The number of rows in a folder of Parquet files, from their footers."""
    import pyarrow.dataset as ds

    count: int = ds.dataset(folder, format="parquet").count_rows()
    return count


def watch(spark: "SparkSession", name: str, progress: "Progress", action: Callable[[], object]) -> None:
    """Run a Spark action while a bar follows its tasks; interrupting stops the action too.

    The main thread only waits: an interrupt in the midst of a call to the JVM would break the connection to it.
    """
    from pyspark import InheritableThread

    failures: list[BaseException] = []
    context = spark.sparkContext
    bar = progress.add_task(name, total=None)

    def act() -> None:
        try:
            context.setJobGroup(name, name, interruptOnCancel=True)
            action()
        except BaseException as error:  # noqa: BLE001 — raised again by the thread that waits
            failures.append(error)

    def follow() -> None:
        while acting.is_alive():
            acting.join(0.2)
            done, total = tasks(spark, name)
            progress.update(bar, completed=done, total=total or None)

    acting: Thread = InheritableThread(target=act, daemon=True)
    following: Thread = InheritableThread(target=follow, daemon=True)
    acting.start()
    following.start()
    try:
        following.join()
    except KeyboardInterrupt:
        context.cancelJobGroup(name)
        raise
    if failures:
        raise failures[0]
    progress.update(bar, completed=1, total=1)


def tasks(spark: "SparkSession", group: str) -> tuple[int, int]:
    """Finished tasks, and all that Spark has planned so far, of a job group."""
    tracker = spark.sparkContext.statusTracker()
    jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group))
    numbers = {stage for job in jobs if job is not None for stage in job.stageIds}
    stages = [stage for stage in map(tracker.getStageInfo, numbers) if stage is not None]
    return sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)


def _start_spark(console: "Console") -> "SparkSession":
    from pathcast.spark import session
    from pathcast.spark.java import find_java

    console.print(f"Starting Spark on Java {find_java().version} …")
    start = time.perf_counter()
    spark = session("pathcast demo")
    # PySpark's own handler talks to the JVM from wherever the interrupt finds it; `watch` knows better.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    console.print(f"Spark {spark.version} is up after {time.perf_counter() - start:.1f} s")
    return spark


def _progress(console: "Console") -> "Progress":
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<18}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, disable=not console.is_terminal)


def _print(outcome: Outcome, folder: Path, console: "Console") -> None:
    from rich.table import Table

    table = Table(show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_row("documents", f"{outcome.documents:,}")
    table.add_row("subscriptions", f"{outcome.subscriptions:,}")
    table.add_row("deliveries", f"{outcome.deliveries:,}")
    table.add_row("unreadable documents", f"{outcome.unreadable:,}")
    table.add_row("documents a second", f"{outcome.documents / outcome.seconds:,.0f}")
    console.print(table)
    console.print(f"Output: {folder.absolute()} (ABOUT.txt says what is what)", soft_wrap=True)
