"""`pathcast demo`: all of Pathcast in one pipeline on Spark, killed in the middle, and the proof that nothing was lost.

    documents/ ── mediation ─┬─ 15 routers ──────▶ deliveries/, links/, dead-letters/
     five schemas            └─ rows ── joins ───▶ messages/, dead-changes/

What is made up: market.py, publisher_schemas.py, pipeline_inputs.py. What happens: crash_story.py. Whether it is right:
delivery_check.py.

Everything is written to one folder, together with a note on what is what; that note is also how a later demo knows
that the folder is its own to replace.
"""

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from pathcast.transmission import Ledger

    from .delivery_check import Line
    from .market import Market

# Sized so that the demo takes less than two minutes on two cores.
DOCUMENTS, SUBSCRIPTIONS, READERS, INVESTORS = 6_000, 6_000, 150, 100
# Documents a file, and so a micro-batch; there are at least 6, so that the demo has a beginning, a middle and an end.
FILE_DOCUMENTS, FILES = 500, 6

ABOUT = """What `pathcast demo` wrote here:

documents/         Parquet: document (a number), publisher, xml; a file is a micro-batch
mediator/          the schema that subscribers speak, and how each publisher's maps to it
subscriptions.csv  id, router, xpath, subscriber
newcomers.csv      the same, of those who came while the stream ran
overlay/           the routers with their subscriptions, a folder per version
market.toml        two tables, and where their rows stand in documents
investors.csv      subscriber, query: standing joins of the two tables
pipeline.toml      what was run: pathcast run pipeline.toml
checkpoint/        how far the stream is, which version each micro-batch used, and the tables that are joined
deliveries/        Parquet: document, router, subscriber; one row for each subscriber that a document goes to
links/             Parquet: sender, router, messages, bytes, annotations; what each link carried in a micro-batch
dead-letters/      Parquet: the documents that could not be read, and why
messages/          Parquet: what the subscribers of joins are told; sequence says of which document and row
dead-changes/      Parquet: the documents whose rows could not be cut out, and why
overlay.png        the routers, and what their links carried in all
overlay.svg        the same
run.log            what the stream printed

The folder is replaced by the next demo.
"""


def demo(
    documents: Annotated[int, typer.Option(min=FILES, help="How many documents to make up.")] = DOCUMENTS,
    subscriptions: Annotated[int, typer.Option(min=20, help="How many XPath subscriptions.")] = SUBSCRIPTIONS,
    readers: Annotated[int, typer.Option(min=1, help="How many readers share them.")] = READERS,
    investors: Annotated[int, typer.Option(min=1, help="How many standing joins.")] = INVESTORS,
    output: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("pathcast-demo"),
    seed: Annotated[int, typer.Option(help="The same seed gives the same documents and subscriptions.")] = 0,
) -> None:
    """Stream made-up market reports on Spark, kill the stream in the middle, and prove that nothing was lost.

    Reports of five publishers, each with a schema of its own, go through 15 routers to their readers.

    Stocks and reviews are cut out of them and joined for investors. docs/guides/demo.md tells what is to be seen.

    Exit status 0: all is as it must be; 1: it is not; 130: stopped by Ctrl-C; 143: by SIGTERM.

    Example: pathcast demo --documents 2000 --output /tmp/demo
    """
    from rich.console import Console

    from .crash_story import Story
    from .market import Market
    from .pipeline_inputs import let_newcomers_in, make_up

    console = Console(highlight=False, soft_wrap=True)
    prepare(output)
    begin = time.perf_counter()
    market = Market(seed)
    files = max(FILES, documents // FILE_DOCUMENTS)
    try:
        with _progress(console) as progress:
            console.print(f"Making up {documents:,} reports, {subscriptions:,} subscriptions and {investors:,} joins …")
            bar = progress.add_task("made up", total=documents)
            wanted = subscriptions, readers, investors
            later = make_up(output, market, documents, files, wanted, lambda count: progress.advance(bar, count))
            story = Story(output, files, progress, console)
            killed = story.run(lambda: let_newcomers_in(output, later))
            lines, ledger = examine(output, market, documents, story.versions, progress)
    except KeyboardInterrupt:
        console.print("stopped")
        raise
    _print(lines, ledger, killed, time.perf_counter() - begin, output, console)
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
    except OSError as error:
        raise PipelineError(f"cannot write to {folder}: {error.strerror}; give another --output") from error


def examine(
    folder: Path, market: "Market", documents: int, versions: dict[int, int], progress: "Progress"
) -> "tuple[list[Line], Ledger]":
    """What came out against what a single process says, and the picture."""
    from .delivery_check import check
    from .overlay_picture import draw

    bar = progress.add_task("checked", total=None)
    lines = list(check(folder, market, documents, versions))
    ledger = draw(folder)
    progress.update(bar, total=1, completed=1)
    return lines, ledger


def _progress(console: "Console") -> "Progress":
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<10}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, disable=not console.is_terminal)


def _print(
    lines: "list[Line]", ledger: "Ledger", killed: str, seconds: float, folder: Path, console: "Console"
) -> None:
    from rich.table import Table

    from pathcast.transmission import shown_bytes

    table = Table("", "expected", "found", "lost", "twice", "wrong")
    for column in table.columns[1:]:
        column.justify = "right"
    for line in lines:
        numbers = (line.expected, line.found, line.lost, line.twice, line.wrong)
        table.add_row(line.what, *(f"{number:,}" for number in numbers), style=None if line.right else "bold red")
    console.print(table)
    if all(line.right for line in lines):
        console.print(f"Nothing was lost and nothing came twice, though the stream was killed in {killed}.")
    else:
        console.print("Something is wrong: please report it.", style="bold red")
    carried = f"{ledger.total_messages():,} messages, {shown_bytes(ledger.total_bytes())}"
    console.print(f"Between routers: {carried}. {seconds:.0f} s in all.")
    picture = folder.absolute() / "overlay.svg"
    drawn = str(picture) if picture.exists() else 'none without matplotlib: pip install "pathcast[plots]"'
    console.print(f"Picture: {drawn}", markup=False)
    console.print(f"Output: {folder.absolute()} (ABOUT.txt says what is what)")
