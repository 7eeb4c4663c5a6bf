"""`pathcast generate`: write documents and subscriptions that are drawn from a schema.

The same arguments write the same bytes. Nothing that exists is overwritten without `--force`; a file of subscriptions
appears only when it is complete. Exit status: 0 when all was written, 1 when it could not be written, 2 for arguments
that are wrong or cannot be met.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from pathcast.documents.schema import Schema

app = typer.Typer(no_args_is_help=True, help="Write generated documents or subscriptions, repeatable by their seed.")


class Text(StrEnum):
    """What stands in texts and free attributes."""

    integers = "integers"
    words = "words"


class Operator(StrEnum):
    """How a value predicate compares."""

    equal = "="
    at_most = "<="
    at_least = ">="


class Target(StrEnum):
    """What a value predicate looks at."""

    attribute = "attribute"
    text = "text"


Dtd = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", exists=True, dir_okay=False, help="A DTD; by default the news schema that comes with Pathcast."
    ),
]
Root = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The root element, where the DTD leaves a choice.", show_default=False),
]
Seed = Annotated[int, typer.Option(help="Same seed, same output. Share it so that predicates fit the documents.")]
Largest = Annotated[int, typer.Option(min=1, help="Values are 1..max, with max drawn per attribute from 1..LARGEST.")]
Style = Annotated[Text, typer.Option("--text", help="Values as integers, or readable words as in news.")]
Force = Annotated[bool, typer.Option("--force", help="Write although something is there; same names are replaced.")]


@app.command(epilog="Example: pathcast generate documents news/ --count 1000 --text words --seed 7")
def documents(
    output: Annotated[Path, typer.Argument(metavar="OUTPUT_DIR", help="A new or empty folder.", show_default=False)],
    count: Annotated[int, typer.Option("--count", "-n", min=0, help="How many documents.")] = 200,
    dtd: Dtd = None,
    root: Root = None,
    seed: Seed = 0,
    max_levels: Annotated[
        int, typer.Option(min=1, help="Levels below the root down to which optional parts appear.")
    ] = 6,
    max_repeats: Annotated[int, typer.Option(min=1, help="Most repetitions of a part that may repeat.")] = 3,
    attribute_probability: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Of optional attributes.", show_default="drawn per attribute"),
    ] = None,
    largest: Largest = 20,
    text: Style = Text.integers,
    max_elements: Annotated[
        int, typer.Option(min=1, help="A document beyond it is finished as shortly as its schema allows.")
    ] = 10_000,
    start: Annotated[
        int, typer.Option(min=0, help="Number before the first document, to make a collection in parts.")
    ] = 0,
    force: Force = False,
) -> None:
    """Write documents that are valid against a DTD, as document-000001.xml and so on."""
    from pathcast.workloads import generate_documents

    if output.exists() and not output.is_dir():
        _refuse(f"{output} is not a folder")
    if not force and output.is_dir() and any(output.iterdir()):
        _refuse(f"{output} is not empty; --force writes into it all the same")
    size = 0
    with _errors_as_messages(), _progress("documents", count) as advance:
        drawn = generate_documents(
            _schema(dtd, root),
            count,
            seed=seed,
            max_levels=max_levels,
            max_repeats=max_repeats,
            attribute_probability=attribute_probability,
            largest=largest,
            text=text.value,
            max_elements=max_elements,
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
    output: Annotated[
        Path,
        typer.Argument(
            metavar="OUTPUT_FILE",
            help="A name that ends in .txt (one XPath a line), .csv, .parquet, .txt.gz or .csv.gz.",
            show_default=False,
        ),
    ],
    count: Annotated[int, typer.Option("--count", "-n", min=0, help="How many subscriptions.")] = 1000,
    dtd: Dtd = None,
    root: Root = None,
    seed: Seed = 0,
    max_depth: Annotated[int, typer.Option(min=1, help="Levels of the schema that a path goes down.")] = 6,
    min_depth: Annotated[
        int | None, typer.Option(min=1, help="Draw each path's depth from here to the maximum.", show_default=False)
    ] = None,
    wildcard: Annotated[float, typer.Option(min=0, max=1, help="Probability that a step is *.")] = 0.2,
    descendant: Annotated[float, typer.Option(min=0, max=1, help="Probability that a // starts at a step.")] = 0.2,
    skew: Annotated[float, typer.Option(min=0, help="Zipf's exponent for the choice of a child; 0 is uniform.")] = 0,
    predicates: Annotated[int, typer.Option(min=0, help="Value predicates per subscription, at random steps.")] = 0,
    predicate_probability: Annotated[
        float, typer.Option(min=0, max=1, help="Instead: of a predicate for each attribute and text of a step.")
    ] = 0,
    operator: Annotated[list[Operator] | None, typer.Option(help="May be repeated.", show_default="all")] = None,
    predicate_target: Annotated[list[Target] | None, typer.Option(help="May be repeated.", show_default="both")] = None,
    nested: Annotated[int, typer.Option(min=0, help="Nested paths per subscription.")] = 0,
    nested_probability: Annotated[
        float, typer.Option(min=0, max=1, help="Instead: of a nested path at each step.")
    ] = 0,
    distinct: Annotated[bool, typer.Option("--distinct", help="No two alike.")] = False,
    match_rate: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Mean share of documents that one matches, 0.01 for 1 %.", show_default=False),
    ] = None,
    sample: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="Documents (*.xml) to measure the match rate on; by default 200 generated ones.",
        ),
    ] = None,
    largest: Largest = 20,
    text: Style = Text.integers,
    readers: Annotated[
        int, typer.Option(min=0, help="Give each to one of so many subscribers, reader-001 and so on.")
    ] = 0,
    force: Force = False,
) -> None:
    """Write XPath subscriptions, drawn by a random walk over a DTD."""
    from pathcast.cli.subscription_files import UnknownFormatError, writer_for
    from pathcast.workloads import assign_subscribers, generate_subscriptions

    try:
        write = writer_for(output, with_subscribers=readers > 0)
    except UnknownFormatError as error:
        _refuse(str(error))
    if output.is_dir():
        _refuse(f"{output} is a folder")
    if output.exists() and not force:
        _refuse(f"{output} exists; --force replaces it")
    with _errors_as_messages(), _progress("subscriptions", count) as advance:
        drawn = generate_subscriptions(
            _schema(dtd, root),
            count,
            seed=seed,
            max_depth=max_depth,
            min_depth=min_depth,
            wildcard=wildcard,
            descendant=descendant,
            skew=skew,
            predicates=predicates,
            predicate_probability=predicate_probability,
            operators=[choice.value for choice in operator or Operator],
            predicate_targets=[choice.value for choice in predicate_target or Target],
            nested=nested,
            nested_probability=nested_probability,
            distinct=distinct,
            match_rate=match_rate,
            documents=None if sample is None else (file.read_bytes() for file in sorted(sample.glob("*.xml"))),
            largest=largest,
            text=text.value,
            progress=advance,
        )
        output.parent.mkdir(parents=True, exist_ok=True)
        write(drawn, assign_subscribers(count, readers=readers, seed=seed) if readers else None)
    _say(f"{count:,} subscriptions in {output}")


def _schema(dtd: Path | None, root: str | None) -> "Schema":
    from pathcast.workloads import news_schema, schema_from_dtd

    if dtd is not None:
        return schema_from_dtd(dtd, root=root)
    return news_schema() if root is None else news_schema().with_root(root)


def _refuse(reason: str) -> NoReturn:
    typer.echo(f"error: {reason}", err=True)
    raise typer.Exit(2)


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
        _refuse(str(error))
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
