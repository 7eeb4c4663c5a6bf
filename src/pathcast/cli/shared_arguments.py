"""What commands share: subscriptions and namespaces as arguments, leaving with a reason, printable text."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Literal, NoReturn

import typer


class Entities(StrEnum):
    """What becomes of documents whose DOCTYPE declares entities."""

    refuse = "refuse"
    expand = "expand"


SubscriptionsArgument = Annotated[
    str | None,  # as it was typed: a path would lose the second slash of //a//b
    typer.Argument(
        metavar="SUBSCRIPTIONS",
        help="A file (one XPath per line, whose id is the line number, # begins a comment; or .csv or .parquet with a "
        "column xpath), or the folder of an index. Omit it with -e.",
    ),
]
ExpressionsOption = Annotated[
    list[str] | None,
    typer.Option("-e", "--expression", metavar="XPATH", help="A subscription in place of a file; may be repeated."),
]
SkipInvalidOption = Annotated[
    bool, typer.Option("--skip-invalid", help="Report invalid subscriptions and go on without them.")
]
NamespacesOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PREFIX=URI…|ignore",
        help="Prefixes of the subscriptions, or ignore; may be repeated. An index has its own.",
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
