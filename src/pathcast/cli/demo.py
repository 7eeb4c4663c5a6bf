"""`pathcast demo`: a stream of made-up news on Spark, killed in the middle, and the proof that nothing was lost.

    documents/ ──────────┐                  ┌─▶ deliveries/    one row per document and subscriber
                         ├─ pathcast run ───┤
    subscriptions.csv ─▶ index/             └─▶ dead-letters/  one row per document that can't be read

1. The stream runs as a user would run it: `pathcast run pipeline.toml`, in a process of its own.
2. After a third of the documents, newcomers' subscriptions are published as a new version of the index.
3. After two thirds, in the midst of a micro-batch, all processes of the stream are killed; then it is started again.
4. What it has delivered is compared with what a single process says (demo_proof.py).

Everything is written to one folder, together with a note on what is what; that note is also how a later demo knows
that the folder is its own to replace. No process is left behind, however the demo ends.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from pathcast.matching import Subscriptions
    from pathcast.spark.pipeline_file import Stream
    from pathcast.spark.run import Report

    from .demo_proof import Line

# Sized so that the demo takes about two minutes on two cores.
DOCUMENTS = 20_000
SUBSCRIPTIONS = 100_000
SUBSCRIBERS = 200
# Documents a file, and so a micro-batch; there are at least 6, so that the demo has a beginning, a middle and an end.
FILE_DOCUMENTS, FILES = 1_000, 6
# How long the stream may go without finishing a micro-batch before the demo gives it up, in seconds.
PATIENCE = 180

ABOUT = """What `pathcast demo` wrote here:

documents/         Parquet: document (a number), xml; a file is a micro-batch
subscriptions.csv  id, xpath, subscriber
newcomers.csv      the same, of those who came while the stream ran
index/             the compiled subscriptions, a folder per version
pipeline.toml      what was run: pathcast run pipeline.toml
checkpoint/        how far the stream is, and which version each micro-batch used
deliveries/        Parquet: document, subscriber; one row for each subscriber that a document goes to
dead-letters/      Parquet: the documents that could not be read, and why
run.log            what the stream printed

The folder is replaced by the next demo.
"""

PIPELINE = """# What the demo runs: new documents go to those who want them.
[source]
format = "parquet"
path = "documents"
schema = "document long, xml binary"
options = { maxFilesPerTrigger = 1 }

[subscriptions]
index = "index"

[deliveries]
path = "deliveries"
columns = ["document"]

[dead_letters]
path = "dead-letters"

[stream]
checkpoint = "checkpoint"
trigger = "available-now"
"""


def demo(
    documents: Annotated[int, typer.Option(min=FILES, help="How many news documents to make up.")] = DOCUMENTS,
    subscriptions: Annotated[int, typer.Option(min=20, help="How many XPath subscriptions.")] = SUBSCRIPTIONS,
    subscribers: Annotated[int, typer.Option(min=1, help="How many subscribers share them.")] = SUBSCRIBERS,
    output: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("pathcast-demo"),
    seed: Annotated[int, typer.Option(help="The same seed gives the same documents and subscriptions.")] = 0,
) -> None:
    """Stream made-up news on Spark, kill it in the middle, and prove that nothing was lost.

    Exit status 0: all is as it must be; 1: it is not; 130: stopped by Ctrl-C.

    Example: pathcast demo --documents 2000 --subscriptions 10000 --output /tmp/demo
    """
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    prepare(output)
    begin = time.perf_counter()
    try:
        with _progress(console) as progress:
            known = make_up(output, documents, subscriptions, subscribers, seed, progress, console)
            show = Show(output, known, documents, progress, console)
            killed, seconds = show.run()
            lines = compare(output, show.versions, progress)
    except KeyboardInterrupt:
        console.print("stopped")
        raise typer.Exit(130) from None
    _print(lines, killed, documents / seconds, time.perf_counter() - begin, output, console)
    if not all(line.right for line in lines):
        raise typer.Exit(1)


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
        (folder / "pipeline.toml").write_text(PIPELINE, encoding="utf-8")
    except OSError as error:
        raise PipelineError(f"cannot write to {folder}: {error.strerror}; give another --output") from error


def make_up(
    folder: Path,
    documents: int,
    subscriptions: int,
    subscribers: int,
    seed: int,
    progress: "Progress",
    console: "Console",
) -> "Subscriptions":
    """Write documents and subscriptions, and publish the first version of the index."""
    from pathcast.matching import Subscriptions
    from pathcast.spark import publish

    from .demo_news import write_news, write_subscriptions

    files = max(FILES, documents // FILE_DOCUMENTS)
    console.print(f"Making up {documents:,} documents and {subscriptions:,} subscriptions of {subscribers:,} readers …")
    bar = progress.add_task("made up", total=documents)
    write_news(folder / "documents", documents, files, seed, lambda count: progress.advance(bar, count))
    file = folder / "subscriptions.csv"
    write_subscriptions(file, folder / "newcomers.csv", subscriptions, subscribers, documents, seed)
    known = Subscriptions.read(file)
    publish(known.compile(), folder / "index")
    return known


class Show:
    """The stream, started, disturbed, and started again."""

    def __init__(
        self, folder: Path, known: "Subscriptions", documents: int, progress: "Progress", console: "Console"
    ) -> None:
        from pathcast.spark.pipeline_file import read_pipeline

        stream = read_pipeline(folder / "pipeline.toml").stream
        assert stream is not None
        self.stream: Stream = stream
        self.folder = folder
        self.known = known
        self.documents = documents
        self.console = console
        self._progress = progress
        self._bar = progress.add_task("streamed", total=documents)
        self._reports: dict[int, Report] = {}  # all, in their order; the stream itself keeps the last ones

    def run(self) -> tuple[int, float]:
        """Run it all; the number of the micro-batch in which the stream was killed, and the seconds it took."""
        from pathcast.spark import latest
        from pathcast.spark.java import find_java

        begin = time.perf_counter()
        self.console.print(f"Starting the stream, pathcast run pipeline.toml, on Java {find_java().version} …")
        with self._started() as running:
            self._follow(running, lambda: self._done() >= self.documents / 3)
            self._let_newcomers_in()
            newest = latest(self.folder / "index")
            self._follow(
                running,
                lambda: (
                    self._done() >= self.documents * 2 / 3
                    and newest in self.versions.values()
                    and self._under_way() is not None
                ),
            )
            killed = self._under_way()
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
        if killed is None:
            self._fail("the stream was too quick to be killed in the midst of a micro-batch")
        self.console.print(
            f"Killed all processes of the stream in the midst of micro-batch {killed}; starting it again …"
        )
        with self._started() as running:
            self._follow(running, lambda: running.poll() is not None)
        if running.returncode != 0:
            self._fail(f"the stream ended with status {running.returncode}")
        return int(killed or 0), time.perf_counter() - begin

    def _let_newcomers_in(self) -> None:
        from pathcast.spark import publish

        from .demo_news import NEWCOMERS, add_newcomers

        before = len(self.known)
        add_newcomers(self.known, self.folder / "newcomers.csv")
        version = publish(self.known.compile(), self.folder / "index")
        more = len(self.known) - before
        self.console.print(f"{NEWCOMERS} newcomers with {more:,} subscriptions: index version {version} is published")

    @contextmanager
    def _started(self) -> Iterator["subprocess.Popen[bytes]"]:
        """The stream in a process group of its own, none of which outlives the block."""
        program = "import sys; sys.argv[0] = 'pathcast'; from pathcast.cli.app import main; main()"
        with (self.folder / "run.log").open("ab") as log:
            running = subprocess.Popen(
                [sys.executable, "-c", program, "run", str((self.folder / "pipeline.toml").absolute())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                yield running
            finally:
                if running.poll() is None:
                    os.killpg(running.pid, signal.SIGKILL)
                    running.wait()

    def _follow(self, running: "subprocess.Popen[bytes]", until: Callable[[], bool]) -> None:
        """Tell what the stream does until a condition holds; an end before that is a failure."""
        last = time.perf_counter()
        while True:
            ended = running.poll() is not None
            if self._tell():
                last = time.perf_counter()
            if until():
                break
            if ended:
                self._fail(f"the stream ended with status {running.returncode}")
            if time.perf_counter() - last > PATIENCE:
                self._fail(f"the stream has not finished a micro-batch for {PATIENCE} s")
            time.sleep(0.05)
        self._tell()

    @property
    def versions(self) -> dict[int, int]:
        """The version of the index that each micro-batch was matched with."""
        return {batch: report.version for batch, report in self._reports.items() if report.version is not None}

    def _tell(self) -> bool:
        """Take up the reports that have come, and say whether there were any."""
        from pathcast.spark.run import reports_of

        fresh = [report for report in reports_of(self.stream) if report.batch not in self._reports]
        for report in fresh:
            assert report.batch is not None
            self._reports[report.batch] = report
            self._progress.advance(self._bar, report.documents)
            if not self.console.is_terminal:
                self.console.print(f"  {report}")
        return bool(fresh)

    def _done(self) -> int:
        return sum(report.documents for report in self._reports.values())

    def _under_way(self) -> int | None:
        """The micro-batch that is pinned to a version and not done yet."""
        from pathcast.spark.run import pins_of

        pinned = [int(file.name) for file in pins_of(self.stream).glob("*/*") if file.name.isdecimal()]
        return max(pinned) if pinned and max(pinned) > max(self._reports, default=-1) else None

    def _fail(self, reason: str) -> None:
        from pathcast.errors import PipelineError

        log = (self.folder / "run.log").read_text(encoding="utf-8", errors="replace").splitlines()
        said = "".join(f"\n  {line[:200]}" for line in log[-8:])
        raise PipelineError(f"{reason}; the last lines of {self.folder / 'run.log'}:{said}")


def compare(folder: Path, versions: dict[int, int], progress: "Progress") -> "list[Line]":
    """What was delivered against what a single process says; `versions` is batch → version."""
    from .demo_proof import prove

    bar = progress.add_task("compared", total=None)
    lines = list(prove(folder, versions))
    progress.update(bar, total=1, completed=1)
    return lines


def _progress(console: "Console") -> "Progress":
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<10}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, disable=not console.is_terminal)


def _print(lines: "list[Line]", killed: int, speed: float, seconds: float, folder: Path, console: "Console") -> None:
    from rich.table import Table

    table = Table("", "expected", "found", "lost", "twice", "wrong")
    for column in table.columns[1:]:
        column.justify = "right"
    for line in lines:
        numbers = (line.expected, line.found, line.lost, line.twice, line.wrong)
        table.add_row(line.what, *(f"{number:,}" for number in numbers), style=None if line.right else "bold red")
    console.print(table)
    if all(line.right for line in lines):
        console.print(f"Nothing was lost and nothing came twice, though the stream was killed in micro-batch {killed}.")
    else:
        console.print("Something is wrong: please report it.", style="bold red")
    console.print(f"{speed:,.0f} documents a second, both starts of Spark included; {seconds:.0f} s in all.")
    console.print(f"Output: {folder.absolute()} (ABOUT.txt says what is what)")
