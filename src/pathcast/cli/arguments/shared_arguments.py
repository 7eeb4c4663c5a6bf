"""Shared by commands: arguments for subscriptions and namespaces, exit with a reason, printable text."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Literal, NoReturn

import typer


class Entities(StrEnum):
    """How to treat documents whose DOCTYPE declares entities."""

    refuse = "refuse"
    expand = "expand"


SubscriptionsArgument = Annotated[
    str | None,  # as typed: a Path would lose the second slash of //a//b
    typer.Argument(
        metavar="SUBSCRIPTIONS",
        help="A text file (one XPath per line, its id is the line number, # starts a comment), a .csv or .parquet file "
        "with a column xpath, or the folder of an index. Omit with -e.",
    ),
]
ExpressionsOption = Annotated[
    list[str] | None,
    typer.Option("-e", "--expression", metavar="XPATH", help="A subscription, instead of a file; may be repeated."),
]
SkipInvalidOption = Annotated[
    bool, typer.Option("--skip-invalid", help="Report invalid subscriptions and continue without them.")
]
NamespacesOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PREFIX=URI…|ignore",
        help="Namespace prefixes of the subscriptions, or ignore; may be repeated. Not with an index.",
    ),
]
EntitiesOption = Annotated[
    Entities,
    typer.Option(help="If the DOCTYPE declares entities: reject the document ('refuse'), or expand internal ones."),
]


def refuse(reason: str) -> NoReturn:
    """Print the reason and exit with status 2."""
    typer.echo(f"error: {reason}", err=True)
    raise typer.Exit(2)


def printable(text: str) -> str:
    """Replace characters that would control the terminal."""
    return "".join(character if character.isprintable() else "·" for character in text)


def namespaces_of(options: Iterable[str]) -> dict[str, str] | Literal["ignore"] | None:
    """Parse `--namespaces`, which may be repeated."""
    parts = [part for option in options for part in option.split()]
    if parts == ["ignore"]:
        return "ignore"
    prefixes: dict[str, str] = {}
    for part in parts:
        prefix, equals, uri = part.partition("=")
        if not (prefix and equals and uri):
            refuse(f"invalid --namespaces {part}: expected PREFIX=URI, or the word ignore alone")
        if prefixes.setdefault(prefix, uri) != uri:
            refuse(
                f"--namespaces {part}: the prefix {prefix} already stands for {prefixes[prefix]}; give each prefix once"
            )
    return prefixes or None
