"""`pathcast demo`: a pipeline on Spark with all parts of Pathcast, killed midway, and a proof that nothing was lost.

    documents/ ── mediation ─┬─ 15 routers ──────▶ deliveries/, links/, dead-letters/
     five schemas            └─ rows ── joins ───▶ messages/, dead-changes/

    a broker, beside it: curl, then reports ──▶ log ──▶ subscribers

Inputs: synthetic_market.py, publisher_schemas.py, pipeline_inputs.py. Course of events: stream_crash_scenario.py,
broker_scenario.py. Check of the output: delivery_check.py.

Everything is written to one folder, together with a description of its files (ABOUT.txt). A later demo replaces the
folder only if it finds that description.
"""

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from .delivery_check import Line
    from .overlay_traffic_drawing import OverlayTraffic
    from .synthetic_market import Market

# Sized so that the demo takes less than two minutes on two cores.
DOCUMENTS, SUBSCRIPTIONS, READERS, INVESTORS = 30_000, 6_000, 150, 100
# Documents per file, and so per micro-batch: planning and commits take as long for 50 documents as for 5,000.
# At least 6 files, so that the demo has a beginning, a middle and an end.
FILE_DOCUMENTS, FILES = 5_000, 6
# Seconds for which the broker may be away.
_PATIENCE = 120

ABOUT = """The output of `pathcast demo`:

documents/         Parquet: document (a number), publisher, xml; each file is one micro-batch
mediator/          the global schema, and how each publisher's schema maps to it
subscriptions.csv  id, router, xpath, subscriber
newcomers.csv      the same, for subscribers that joined while the stream ran
overlay/           the routers with their subscriptions, one folder per version
market.toml        two tables, and where documents contain their rows
investors.csv      subscriber, query: standing joins of the two tables
pipeline.toml      what was run: pathcast run pipeline.toml
checkpoint/        progress of the stream, the version that each micro-batch used, and the joined tables
deliveries/        Parquet: document, router, subscriber; one row per document and subscriber
links/             Parquet: sender, router, messages, bytes, annotations, patterns, skipped, unread; per micro-batch
dead-letters/      Parquet: the documents that could not be read, and why
messages/          Parquet: messages to the subscribers of joins; sequence identifies the document and row
dead-changes/      Parquet: the documents whose rows could not be extracted, and why
overlay.png        the routers, the total traffic of their links, and what annotations saved
overlay.svg        the same
run.log            what the stream printed
broker/            the data of the broker: pathcast serve --data broker, pathcast log verify broker/log
broker.log         the errors of the broker

The next demo replaces this folder.
"""


def demo(
    documents: Annotated[int, typer.Option(min=FILES, help="Number of documents.")] = DOCUMENTS,
    subscriptions: Annotated[int, typer.Option(min=20, help="Number of XPath subscriptions.")] = SUBSCRIPTIONS,
    readers: Annotated[int, typer.Option(min=1, help="Number of readers that own the subscriptions.")] = READERS,
    investors: Annotated[int, typer.Option(min=1, help="Number of standing joins.")] = INVESTORS,
    output: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("pathcast-demo"),
    seed: Annotated[int, typer.Option(help="The same seed gives the same documents and subscriptions.")] = 0,
) -> None:
    """Stream generated market reports on Spark, kill the stream midway, and prove that nothing was lost.

    Reports of five publishers, each with a schema of its own, pass through 15 routers to their readers.

    Beside the stream a broker runs, for which two curl lines are printed. It is killed and recovered at the end.

    Stocks and reviews are extracted from the reports and joined for investors. See docs/guides/demo.md.

    Exit status 0: the output is correct; 1: it is not; 130: stopped by Ctrl-C; 143: stopped by SIGTERM.

    Example: pathcast demo --documents 2000 --output /tmp/demo
    """
    from rich.console import Console

    from pathcast.extras import extra

    from .broker_scenario import BrokerStory, DemoBroker, curl_lines
    from .pipeline_inputs import let_newcomers_in, make_up
    from .stream_crash_scenario import Story
    from .synthetic_market import Market
    from .workbench_story import WorkbenchStory

    with extra("broker"):
        from pathcast.client import connect

    console = Console(highlight=False, soft_wrap=True)
    prepare(output)
    begin = time.perf_counter()
    market = Market(seed)
    files = max(FILES, documents // FILE_DOCUMENTS)
    try:
        with DemoBroker(output) as broker, _progress(console) as progress:
            console.print(
                f"Generating {documents:,} reports, {subscriptions:,} subscriptions and {investors:,} joins …"
            )
            bar = progress.add_task("generated", total=documents)
            wanted = subscriptions, readers, investors
            later = make_up(output, market, documents, files, wanted, lambda count: progress.advance(bar, count))
            broker.wait()
            receive, publish = curl_lines(broker.address)
            console.print(f"A broker runs, too. {broker.address}/overlay tells this story while it runs.", markup=False)
            console.print("Try the broker from other terminals, until the demo ends:", markup=False)
            console.print(f"  {receive}\n  {publish}", markup=False)
            with connect(broker.address, patience=_PATIENCE) as client:
                told = WorkbenchStory(client, output)
                told.begin(documents, subscriptions)
                story = Story(output, files, progress, console, told.tell)
                killed = story.run(lambda: let_newcomers_in(output, later))
                lines, traffic = examine(output, market, documents, story.versions, progress)
                told.check(lines)
                console.print("Publishing through the broker, killing it meanwhile, and starting it again …")
                broker_story = BrokerStory(broker, market)
                of_broker = broker_story.run()
                told.check_broker(of_broker, broker_story.before)
                lines += of_broker
    except KeyboardInterrupt:
        console.print("stopped")
        raise
    _print(lines, traffic, killed, broker_story.before, time.perf_counter() - begin, output, console)
    if not all(line.right for line in lines):
        raise typer.Exit(1)


def prepare(folder: Path) -> None:
    """Create an empty folder to write to; raise an error if it holds files of others."""
    from pathcast.errors import PipelineError

    note = folder / "ABOUT.txt"
    if folder.exists() and not folder.is_dir():
        raise PipelineError(f"{folder} is a file; give a folder as --output")
    if folder.is_dir() and any(folder.iterdir()):
        if not note.is_file() or note.read_text(encoding="utf-8") != ABOUT:
            raise PipelineError(
                f"the folder {folder} is not empty and was not written by a demo; give another --output"
            )
        shutil.rmtree(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        note.write_text(ABOUT, encoding="utf-8")
    except OSError as error:
        raise PipelineError(f"cannot write to {folder}: {error.strerror}; give another --output") from error


def examine(
    folder: Path, market: "Market", documents: int, versions: dict[int, int], progress: "Progress"
) -> "tuple[list[Line], OverlayTraffic]":
    """Compare the output with that of a single process, and draw the picture."""
    from .delivery_check import check
    from .overlay_traffic_drawing import draw

    bar = progress.add_task("checked", total=None)
    lines = list(check(folder, market, documents, versions))
    traffic = draw(folder)
    progress.update(bar, total=1, completed=1)
    return lines, traffic


def _progress(console: "Console") -> "Progress":
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<10}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, disable=not console.is_terminal)


def _print(
    lines: "list[Line]",
    traffic: "OverlayTraffic",
    killed: str,
    confirmed: int,
    seconds: float,
    folder: Path,
    console: "Console",
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
        console.print(f"Nothing was lost or duplicated, although the stream was killed during {killed},")
        console.print(f"and the broker after {confirmed:,} reports were published.")
    else:
        console.print("The output is wrong: please report this as a bug.", style="bold red")
    carried = f"{traffic.total('messages'):,} messages, {shown_bytes(traffic.total('bytes'))}"
    console.print(f"Between routers: {carried}. {traffic.saved}")
    console.print(f"{seconds:.0f} s in all.")
    picture = folder.absolute() / "overlay.svg"
    drawn = str(picture) if picture.exists() else 'not drawn, matplotlib is missing: pip install "pathcast[plots]"'
    console.print(f"Picture: {drawn}", markup=False)
    console.print(f"Output: {folder.absolute()} (described in ABOUT.txt)")
    console.print(f"Pages: pathcast serve --data {folder / 'broker'}, then open /overlay at its address.", markup=False)
