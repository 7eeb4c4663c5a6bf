"""What commands share: subscriptions and namespaces as arguments, what to say when they are wrong, printable text."""

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

if TYPE_CHECKING:
    from pathcast.errors import PathcastError
    from pathcast.matching import Matcher, Subscriptions


class Entities(StrEnum):
    """What becomes of documents whose DOCTYPE declares entities."""

    refuse = "refuse"
    expand = "expand"


SubscriptionsArgument = Annotated[
    Path,
    typer.Argument(
        metavar="SUBSCRIPTIONS",
        help="A file (one XPath a line, its id is the line's number; or .csv or .parquet with a column xpath), "
        "or the folder of an index.",
    ),
]
NamespacesOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PREFIX=URI…|ignore",
        help="Prefixes of a file's subscriptions, or ignore; may be repeated. An index has its own.",
    ),
]
EntitiesOption = Annotated[
    Entities,
    typer.Option(help="Documents whose DOCTYPE declares entities: refuse them, or expand internal ones."),
]


def refuse(reason: str) -> NoReturn:
    """Leave with a reason and status 2."""
    typer.echo(f"error: {reason}", err=True)
    raise typer.Exit(2)


def printable(text: str) -> str:
    """Text without characters that would act on the terminal."""
    return "".join(character if character.isprintable() else "·" for character in text)


def namespaces_of(options: Iterable[str]) -> dict[str, str] | Literal["ignore"] | None:
    """What `--namespaces` says, given as often as one likes."""
    parts = [part for option in options for part in option.split()]
    if parts == ["ignore"]:
        return "ignore"
    prefixes: dict[str, str] = {}
    for part in parts:
        prefix, equals, uri = part.partition("=")
        if not (prefix and equals and uri):
            refuse(f"--namespaces {part}: give PREFIX=URI, or ignore alone")
        if prefixes.setdefault(prefix, uri) != uri:
            refuse(f"--namespaces {part}: the prefix {prefix} already stands for {prefixes[prefix]}")
    return prefixes or None


def load_subscriptions(file: Path, namespaces: dict[str, str] | Literal["ignore"] | None) -> "Subscriptions":
    """The subscriptions of a file."""
    from pathcast.errors import PathcastError
    from pathcast.matching import Subscriptions

    if not file.exists():  # a pipe will do
        refuse(f"{file}: there is no such file with subscriptions")
    try:
        subscriptions = Subscriptions.read(file, namespaces=namespaces)
    except PathcastError as error:
        refuse(_named(file, _for_the_command_line(error)))
    except ValueError as error:
        refuse(_named(file, str(error)))
    if not len(subscriptions):
        typer.echo(f"note: no subscriptions in {printable(str(file))}", err=True)
    return subscriptions


def _named(file: Path, reason: str) -> str:
    return reason if str(file) in reason.partition("\n")[0] else f"{file}: {reason}"


def _for_the_command_line(error: "PathcastError") -> str:
    """What a file of subscriptions has wrong, with the options that mend it."""
    from pathcast.errors import PatternError

    if isinstance(error, PatternError):
        if (error.expression or "").lstrip().startswith("<"):
            return "this is XML; give subscriptions first, then documents"
        if error.offending.endswith(":"):
            error.supported = (
                f"prefixes given with --namespaces {error.offending[:-1]}=http://…, or --namespaces ignore"
            )
    return str(error)


def open_folder(folder: Path, namespaces: Iterable[str], entities: Entities = Entities.refuse) -> "Matcher":
    """The matcher of an index; of a folder with versions, as pipelines have it, the newest."""
    from pathcast.errors import PathcastError
    from pathcast.matching import open_index
    from pathcast.spark.versions import is_versioned, latest, version_folder
    from pathcast.store.snapshot import MANIFEST

    if namespaces:
        refuse(f"--namespaces: the index {folder} was made with namespaces of its own; leave the option out")
    versioned = is_versioned(folder)
    if not versioned and not (folder / MANIFEST).exists():
        refuse(f"{folder}: there is no index in this folder; give a file with subscriptions, or an index")
    try:
        return open_index(version_folder(folder, latest(folder)) if versioned else folder, entities=entities.value)
    except PathcastError as error:
        refuse(f"{folder}: {error}")
