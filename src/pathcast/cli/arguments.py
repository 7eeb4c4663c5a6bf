"""What commands share: subscriptions and namespaces as arguments, what to say when they are wrong, printable text."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

if TYPE_CHECKING:
    from pathcast.matching import Matcher, Subscriptions

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
        return Subscriptions.read(file, namespaces=namespaces)
    except (PathcastError, ValueError) as error:
        reason = str(error)
        refuse(reason if str(file) in reason.partition("\n")[0] else f"{file}: {reason}")


def open_folder(folder: Path, namespaces: Iterable[str]) -> "Matcher":
    """The matcher of an index; of a folder with versions, as pipelines have it, the newest."""
    from pathcast.errors import PathcastError
    from pathcast.matching import open_index
    from pathcast.spark.versions import is_versioned, latest, version_folder

    if namespaces:
        refuse(f"--namespaces: the index {folder} was made with namespaces of its own; leave the option out")
    try:
        return open_index(version_folder(folder, latest(folder)) if is_versioned(folder) else folder)
    except PathcastError as error:
        refuse(f"{folder}: {error}")
