"""`pathcast log`: verify, export and import the log of a broker.

`verify` and `export` read a log as it is when they begin, also while a broker appends to it. `import` makes a new log;
its folder appears when the import is complete.

Exit status: 0; 1 when `verify` finds problems; 2 for invalid arguments and files.
"""

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from ..arguments.shared_arguments import refuse

if TYPE_CHECKING:
    from pathcast.log import SqliteLog, TransferredLog

app = typer.Typer(no_args_is_help=True, help="Verify, export and import the log of a broker.")

_SHOWN = 20
LogFolder = Annotated[Path, typer.Argument(metavar="LOG", help="The folder of a log.")]


@app.command(epilog="Example: pathcast log verify data/log")
def verify(
    log: LogFolder,
    show_all: Annotated[bool, typer.Option("--all", help=f"Print all problems, not only {_SHOWN}.")] = False,
) -> None:
    """Read a whole log and report every problem: damaged or missing records, an unreadable checkpoint.

    Exit status 0: no problems; 1: some; 2: this is no log.
    """
    from pathcast.log import verify as verified

    with _opened(log) as opened, _progress("verifying") as advance:
        total = opened.head + 1 - opened.first
        report = verified(opened, progress=lambda done: advance(done, total))
    checkpoint = "no checkpoint" if report.checkpoint is None else f"checkpoint of {report.checkpoint}"
    typer.echo(f"{log}: {_range(report.first, report.head)}, {report.bytes} bytes, {checkpoint}")
    shown = report.problems if show_all else report.problems[:_SHOWN]
    for problem in shown:
        typer.echo(f"  {problem}")
    if len(shown) < len(report.problems):
        typer.echo(f"  and {len(report.problems) - len(shown)} more; --all prints them")
    if report.problems:
        raise typer.Exit(1)
    typer.echo("no problems")


@app.command(epilog="Example: pathcast log export data/log | zstd > log.zst")
def export(
    log: LogFolder,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to FILE, which must not exist.")
    ] = None,
) -> None:
    """Write a log, its records and its checkpoint, to stdout or a file, to import it elsewhere or to keep it."""
    from pathcast.log import export_log

    if output is None and sys.stdout.isatty():
        refuse("an export is binary; redirect the output, or give --output FILE")
    with _opened(log) as opened, _created(output) as target, _progress("exporting") as advance:
        exported = export_log(opened, target, progress=advance)
    _note("exported", exported)


@app.command("import", epilog="Example: zstd -dc log.zst | pathcast log import - data/log")
def import_(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="An export of a log, or - for stdin.")],
    log: Annotated[Path, typer.Argument(metavar="LOG", help="The folder of the new log: missing, or empty.")],
) -> None:
    """Make a log from an export, with the same sequences and times."""
    from pathcast.log import SqliteLog, import_log
    from pathcast.store import flush

    if log.exists() and (not log.is_dir() or next(log.iterdir(), None) is not None):
        refuse(f"{log} already exists; import into a new folder")
    if str(source) != "-" and not source.is_file():
        reason = "this is a folder; give a file" if source.is_dir() else "no such file; check the path"
        refuse(f"cannot import {source}: {reason}")
    log = log.absolute()
    unfinished = log.with_name(f"{log.name}.importing")
    if unfinished.exists():
        refuse(
            f"{unfinished} belongs to another import; wait until it ends, or remove it if the import was interrupted"
        )
    try:
        with (
            closing(SqliteLog(unfinished)) as new,
            nullcontext(sys.stdin.buffer) if str(source) == "-" else source.open("rb") as stream,
            _progress("importing") as advance,
        ):
            imported = import_log(new, stream, progress=advance)
        (unfinished / ".lock").unlink()
        unfinished.replace(log)
        flush(log.parent)
    except OSError as error:
        refuse(f"cannot import {source} into {log}: {error.strerror}; import into another folder")
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    _note("imported", imported)


def _opened(folder: Path) -> "closing[SqliteLog]":
    from pathcast.log import SqliteLog

    if not folder.is_dir():
        reason = "this is a file; give the folder of a log" if folder.exists() else "no such folder; check the path"
        refuse(f"cannot open the log {folder}: {reason}")
    return closing(SqliteLog(folder, read_only=True))


@contextmanager
def _created(output: Path | None) -> Iterator[BinaryIO]:
    """The output, which is removed if it stays incomplete."""
    if output is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        target = output.open("xb")
    except FileExistsError:
        refuse(f"{output} already exists; give another --output")
    except OSError as error:
        refuse(f"cannot write {output}: {error.strerror}; give another --output")
    try:
        with target:
            yield target
    except OSError as error:
        output.unlink()
        refuse(f"cannot write {output}: {error.strerror}; give another --output")
    except BaseException:
        output.unlink()
        raise


def _note(what: str, log: "TransferredLog") -> None:
    checkpoint = "no checkpoint" if log.checkpoint is None else f"the checkpoint of {log.checkpoint}"
    typer.echo(f"{what} {_range(log.first, log.head)}, and {checkpoint}", err=True)


def _range(first: int, head: int) -> str:
    return f"records {first} to {head}" if first <= head else f"no records before {first}"


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], object]]:
    """A progress bar on a terminal, nothing in a pipe; yields a function that takes the number done, and of all."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
