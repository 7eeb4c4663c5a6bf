"""`pathcast generate`: write documents and subscriptions that are drawn from a schema.

The same arguments write the same bytes. Nothing that exists is overwritten without `--force`; a file of subscriptions
appears only when it is complete. Exit status: 0 when all was written, 1 when it could not be written, 2 for arguments
that are wrong or cannot be met.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from . import generate_options as options
from .shared_arguments import refuse

if TYPE_CHECKING:
    from pathcast.documents.schema import Schema

    from .subscription_writer import Writer

app = typer.Typer(no_args_is_help=True, help="Write generated documents or subscriptions, repeatable by their seed.")


@app.command(epilog="Example: pathcast generate documents news/ --count 1000 --text words --seed 7")
def documents(
    output: options.Folder,
    count: options.Documents = 200,
    dtd: options.Dtd = None,
    root: options.Root = None,
    seed: options.Seed = 0,
    max_levels: options.MaxLevels = 6,
    max_repeats: options.MaxRepeats = 3,
    attribute_probability: options.AttributeProbability = None,
    largest: options.Largest = 20,
    text: options.Style = options.Text.integers,
    max_elements: options.MaxElements = 10_000,
    start: options.Start = 0,
    force: options.Force = False,
) -> None:
    """Write documents that are valid against a DTD, as document-000001.xml and so on."""
    from pathcast.workloads import DocumentOptions, generate_documents

    if output.exists() and not output.is_dir():
        refuse(f"{output} is not a folder")
    if not force and output.is_dir() and any(output.iterdir()):
        refuse(f"{output} is not empty; --force writes into it all the same")
    size = 0
    with _errors_as_messages(), _progress("documents", count) as advance:
        drawn = generate_documents(
            _schema(dtd, root),
            count,
            DocumentOptions(
                max_levels=max_levels,
                max_repeats=max_repeats,
                attribute_probability=attribute_probability,
                max_elements=max_elements,
            ),
            seed=seed,
            largest=largest,
            text=text.value,
            start=start,
        )
        output.mkdir(parents=True, exist_ok=True)
        for number, document in enumerate(drawn, start + 1):
            (output / f"document-{number:06}.xml").write_bytes(document)
            size += len(document)
            advance(number - start)
    _say(f"{count:,} documents, {size / max(1, count) / 1000:.1f} KB on average, in {output}")


@app.command(
    epilog="Example: pathcast generate subscriptions news.csv.gz --count 100000 --distinct --predicates 1 --readers 500"
)
def subscriptions(
    output: options.File,
    count: options.Subscriptions = 1000,
    dtd: options.Dtd = None,
    root: options.Root = None,
    seed: options.Seed = 0,
    max_depth: options.MaxDepth = 6,
    min_depth: options.MinDepth = None,
    wildcard: options.Wildcard = 0.2,
    descendant: options.Descendant = 0.2,
    skew: options.Skew = 0,
    predicates: options.Predicates = 0,
    predicate_probability: options.PredicateProbability = 0,
    operator: options.Operators = None,
    predicate_target: options.Targets = None,
    nested: options.Nested = 0,
    nested_probability: options.NestedProbability = 0,
    distinct: options.Distinct = False,
    match_rate: options.MatchRate = None,
    sample: options.Sample = None,
    largest: options.Largest = 20,
    text: options.Style = options.Text.integers,
    readers: options.Readers = 0,
    force: options.Force = False,
) -> None:
    """Write XPath subscriptions, drawn by a random walk over a DTD."""
    from pathcast.workloads import SubscriptionOptions, assign_subscribers, generate_subscriptions

    if sample is not None and match_rate is None:
        refuse("--sample: documents to measure a match rate on; give --match-rate as well")
    write = _writer(output, with_subscribers=readers > 0, force=force)
    with _errors_as_messages(), _progress("subscriptions", count) as advance:
        drawn = generate_subscriptions(
            _schema(dtd, root),
            count,
            SubscriptionOptions(
                max_depth=max_depth,
                min_depth=min_depth,
                wildcard=wildcard,
                descendant=descendant,
                skew=skew,
                predicates=predicates,
                predicate_probability=predicate_probability,
                operators=[choice.value for choice in operator or options.Operator],
                predicate_targets=[choice.value for choice in predicate_target or options.Target],
                nested=nested,
                nested_probability=nested_probability,
                distinct=distinct,
                match_rate=match_rate,
            ),
            seed=seed,
            documents=None if sample is None else _contents(sample),
            largest=largest,
            text=text.value,
            progress=advance,
        )
        output.parent.mkdir(parents=True, exist_ok=True)
        write(drawn, assign_subscribers(count, readers=readers, seed=seed) if readers else None)
    _say(f"{count:,} subscriptions in {output}")


def _contents(folder: Path) -> Iterator[bytes]:
    """The documents of a folder."""
    from pathcast.documents import Limits, content, list_folder

    return (content(file, Limits())[0] for file in list_folder(folder).documents)


def _writer(output: Path, *, with_subscribers: bool, force: bool) -> "Writer":
    """What writes subscriptions to a file, if it may be written."""
    from pathcast.cli.subscription_writer import UnknownFormatError, writer_for

    try:
        write = writer_for(output, with_subscribers=with_subscribers)
    except UnknownFormatError as error:
        refuse(str(error))
    if output.is_dir():
        refuse(f"{output} is a folder")
    if output.exists() and not force:
        refuse(f"{output} exists; --force replaces it")
    return write


def _schema(dtd: Path | None, root: str | None) -> "Schema":
    from pathcast.errors import PathcastError
    from pathcast.workloads import news_schema, schema_from_dtd

    if dtd is not None:
        try:
            return schema_from_dtd(dtd, root=root)
        except PathcastError as error:
            refuse(f"{dtd}: {error}")
    return news_schema() if root is None else news_schema().with_root(root)


def _say(sentence: str) -> None:
    """A closing word for who sits at a terminal."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    if console.is_terminal:
        console.print(sentence, soft_wrap=True, markup=False)


@contextmanager
def _errors_as_messages() -> Iterator[None]:
    from pathcast.errors import PathcastError

    try:
        yield
    except (PathcastError, ValueError) as error:
        refuse(str(error))
    except OSError as error:
        typer.echo(f"error: cannot write {error.filename}: {error.strerror}", err=True)
        raise typer.Exit(1) from error


@contextmanager
def _progress(what: str, total: int) -> Iterator[Callable[[int], object]]:
    """A progress bar on a terminal, silence in a pipe; yields what to call with the number done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)
