"""`pathcast match`: which subscriptions do these documents match?

Documents are read and matched in batches that fit in memory, and each batch is printed before the next is read. For a
document that cannot be read, the output has a row with the reason; the other documents are still matched.

Exit status: 0 when every document was read, 1 when one was not or none was found, 2 for bad arguments or subscriptions.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .arguments.document_sources import Source, SplitOption, entries, path_of_entries
from .arguments.shared_arguments import (
    Entities,
    EntitiesOption,
    ExpressionsOption,
    NamespacesOption,
    SkipInvalidOption,
    SubscriptionsArgument,
    printable,
    refuse,
)
from .arguments.subscription_sources import chosen_subscriptions

if TYPE_CHECKING:
    from pathcast.documents import Folder, Limits
    from pathcast.errors import PathcastError
    from pathcast.matching import Matches, Subscriptions

    from .arguments.subscription_sources import ChosenSubscriptions

    MatchMany = Callable[[list[Path | bytes]], Iterable[Matches | PathcastError]]

_USAGE = "usage: pathcast match SUBSCRIPTIONS DOCUMENT…, or pathcast match -e XPATH DOCUMENT…"

BATCH_DOCUMENTS = 256
BATCH_BYTES = 32 << 20
SHOWN = 10


class Format(StrEnum):
    """How matches are printed."""

    text = "text"
    json = "json"


def match(
    subscriptions: SubscriptionsArgument = None,
    documents: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DOCUMENT…",
            help="XML files; .gz files are decompressed. A folder stands for all *.xml and *.xml.gz files in it and in "
            "its subfolders; - reads one document from stdin.",
        ),
    ] = None,
    expressions: ExpressionsOption = None,
    file: Annotated[
        str | None,
        typer.Option("-f", "--file", metavar="FILE", help="The same as SUBSCRIPTIONS, but can be combined with -e."),
    ] = None,
    engine: Annotated[str | None, typer.Option(metavar="NAME", help="The matching engine.")] = None,
    output_format: Annotated[
        Format,
        typer.Option("--format", help="Output format: text for people, or json, one object per line and document."),
    ] = Format.text,
    namespaces: NamespacesOption = None,
    entities: EntitiesOption = Entities.refuse,
    mapping: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Match documents of another schema through this mapping (pathcast mediate)."),
    ] = None,
    show_all: Annotated[bool, typer.Option("--all", help=f"Print all matches, not only {SHOWN} per document.")] = False,
    skip_invalid: SkipInvalidOption = False,
    split: SplitOption = None,
) -> None:
    """Match documents against subscriptions; print the ids of the subscriptions that each document matches.

    With -e or -f, all arguments are documents.

    Exit status 0: every document was read; 1: one was not, or none was found; 2: invalid arguments or subscriptions.

    Example: pathcast match subscriptions.txt stories/ breaking.xml

    Example: pathcast match -e //title -e //body/p stories/

    Example: pathcast match subscriptions.csv stories/ --format json > matches.jsonl

    Example: pathcast match subscriptions.txt annex/ --mapping annex.toml

    Example: pathcast match index/ stories/

    Example: pathcast match subscriptions.txt feed.xml.gz --split /feed/entry

    Example: cat story.xml | pathcast match subscriptions.txt - --namespaces f=http://example.org/f
    """
    from pathcast.documents import Limits

    limits = Limits()
    if expressions or file is not None:
        subscriptions, documents = file, [subscriptions, *(documents or [])] if subscriptions is not None else []
    elif subscriptions is None:
        refuse(f"no subscriptions given; {_USAGE}")
    chosen = chosen_subscriptions(
        subscriptions, expressions or [], namespaces or [], skip_invalid=skip_invalid, entities=entities
    )
    if not documents:
        refuse(f"no documents given; {_USAGE}")
    if "" in documents:
        refuse("the name of a document is empty; give a file, a folder or -")
    match_many = _compile(chosen, engine, limits, entities, mapping)
    path = path_of_entries(split, namespaces or [])
    sources, unread = document_sources(documents, None if path else limits.size)
    if not sources:
        typer.echo(
            "error: no documents found, so nothing was matched; give XML files, or folders that contain some", err=True
        )
        raise typer.Exit(1)
    if output_format is Format.json:
        row: Callable[[str, Matches | PathcastError], str] = _json_row
    else:
        row = _TextRow(chosen.subscriptions, None if show_all else SHOWN)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files may hold anything
    with progress("matching", None if path else len(sources)) as advance:
        for name, found in _matched(match_many, entries(sources, path, limits, entities)):
            unread += isinstance(found, Exception)
            sys.stdout.write(row(name, found))
            advance()
    sys.stdout.flush()
    if unread:
        raise typer.Exit(1)


def _matched(match_many: "MatchMany", sources: Iterable[Source]) -> Iterator[tuple[str, "Matches | PathcastError"]]:
    for batch in document_batches(sources):
        found = iter(match_many([source.document for source in batch if isinstance(source.document, Path | bytes)]))
        for name, document in batch:
            yield name, document if isinstance(document, Exception) else next(found)


def document_sources(arguments: Iterable[str], largest: int | None) -> tuple[list[Source], int]:
    """The documents that the arguments name, in their order, and how many folders could not be listed.

    From stdin, reads at most one byte more than the size limit; without one, leaves reading to the caller.
    """
    from pathcast.documents import list_folder

    sources: list[Source] = []
    unread = 0
    for argument in arguments:
        if argument == "-":
            stdin = sys.stdin.buffer
            sources.append(Source("-", stdin if largest is None else stdin.read(largest + 1)))
        elif Path(argument).is_dir():
            folder = list_folder(argument)
            for error in folder.unreadable:
                typer.echo(
                    f"error: cannot read folder {error.filename}: {error.strerror}; check its permissions", err=True
                )
            unread += len(folder.unreadable)
            if not folder.documents and not folder.unreadable:
                typer.echo(f"note: {_no_documents(argument, folder)}", err=True)
            sources += (Source(str(file), file) for file in folder.documents)
        else:
            sources.append(Source(argument, Path(argument)))
    return sources, unread


def _no_documents(name: str, folder: "Folder") -> str:
    """Describe which files a folder without documents holds."""
    from pathcast.documents import ENDINGS

    looked_for = " and ".join(f"*{ending}" for ending in ENDINGS)
    most = sorted(folder.others.items(), key=lambda other: (-other[1], other[0]))[:5]
    found = ", ".join(f"{count:,} {what}" for what, count in most) or "no other files"
    return f"no documents in {printable(name)} or its subfolders: looked for {looked_for}, found {found}"


def document_batches(sources: Iterable[Source]) -> Iterator[list[Source]]:
    """Group the sources so that each group fits in memory."""
    batch: list[Source] = []
    size = 0
    for source in sources:
        more = _size(source)
        if batch and (len(batch) == BATCH_DOCUMENTS or size + more > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(source)
        size += more
    if batch:
        yield batch


def _size(source: Source) -> int:
    from pathcast.documents import content_bound

    if isinstance(source.document, Path):
        return content_bound(source.document, BATCH_BYTES)
    return len(source.document) if isinstance(source.document, bytes) else 0


# Output.


def _json_row(name: str, found: "Matches | PathcastError") -> str:
    if isinstance(found, Exception):
        return json.dumps({"document": name, "error": str(found)}) + "\n"
    return json.dumps({"document": name, "matches": found.ids.tolist()}) + "\n"


class _TextRow:
    """A document's name and number of matches, then its first matches: id, XPath, subscriber."""

    def __init__(self, subscriptions: "Subscriptions", shown: int | None) -> None:
        self._subscriptions = subscriptions
        self._shown = shown

    def __call__(self, name: str, found: "Matches | PathcastError") -> str:
        name = printable(name)
        if isinstance(found, Exception):
            return f"{name}: error: {found}\n"
        count = len(found)
        lines = [f"{name}: {'no match' if count == 0 else '1 match' if count == 1 else f'{count:,} matches'}"]
        shown = [self._subscriptions[number] for number in found.ids[: self._shown].tolist()]
        width = max((len(printable(one.xpath)) for one in shown if one.subscriber), default=0)
        for one in shown:
            line = f"  {one.id:>10}  {printable(one.xpath)}"
            if one.subscriber:
                line = f"{line:<{14 + width}}  {printable(one.subscriber)}"
            lines.append(line)
        if left := count - len(shown):
            lines.append(f"  {'…':>10}  and {left:,} more (--all shows them)")
        return "\n".join(lines) + "\n"


@contextmanager
def progress(verb: str, documents: int | None) -> Iterator[Callable[[], None]]:
    """A progress bar on stderr, unless rows go to the terminal: then the rows show the progress."""
    if not sys.stderr.isatty() or sys.stdout.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(verb), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(verb, total=documents)
        yield lambda: bar.advance(task)


# Compilation, and checks of the arguments for it.


def _compile(
    chosen: "ChosenSubscriptions",
    engine: str | None,
    limits: "Limits",
    entities: Entities,
    mapping: Path | None,
) -> "MatchMany":
    """A function that matches a group of documents and returns matches or an error for each."""
    from pathcast.matching import engines

    known = engines()
    if engine is not None and engine not in known:
        refuse(f"unknown engine {engine} for --engine; use one of {', '.join(known)}")
    if mapping is None:
        matcher = chosen.matcher
        if matcher is None or engine not in (None, matcher.engine_name):
            matcher = chosen.subscriptions.compile(engine, limits=limits, entities=entities.value)
        return partial(matcher.match_many, errors="return")
    from pathcast.mediation import Mapping, Mediator

    found = Mapping.open(mapping)
    mediator = Mediator(found.local)  # no mapping is derived here, so any schema can be the global one
    mediator.add(found)
    mediated = mediator.compile(chosen.subscriptions, engine=engine, limits=limits, entities=entities.value)
    return partial(mediated.match_many, schemas=found.name, errors="return")
