"""`pathcast explain`: why does this document match that subscription, or why not?

Exit status: 0 when the document matches, 1 when it does not, 2 when the question cannot be answered (invalid input).
With several `-e`, all must match for status 0.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .arguments.shared_arguments import (
    Entities,
    EntitiesOption,
    ExpressionsOption,
    NamespacesOption,
    SkipInvalidOption,
    SubscriptionsArgument,
    refuse,
)
from .arguments.subscription_sources import chosen_subscriptions

if TYPE_CHECKING:
    from rich.console import Console

    from pathcast.documents import Document
    from pathcast.matching.explain import Explanation


_USAGE = "usage: pathcast explain SUBSCRIPTIONS ID DOCUMENT, or pathcast explain -e XPATH DOCUMENT"


def explain(
    subscriptions: SubscriptionsArgument = None,
    id: Annotated[str | None, typer.Argument(metavar="ID", help="The subscription's id. Omit with -e.")] = None,
    document: Annotated[str | None, typer.Argument(metavar="DOCUMENT", help="An XML file, or - for stdin.")] = None,
    expressions: ExpressionsOption = None,
    namespaces: NamespacesOption = None,
    entities: EntitiesOption = Entities.refuse,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole explanation as one JSON object.")] = False,
    skip_invalid: SkipInvalidOption = False,
) -> None:
    """Show why a document matches a subscription, or why it does not.

    For a match: the elements that satisfy each step, and each predicate with the value found.

    For a miss: the first step or predicate that nothing satisfies, and the nearest value or element.

    Exit status 0: the document matches; 1: it does not; 2: invalid arguments, subscriptions or document.

    Example: pathcast explain subscriptions.txt 3 story.xml

    Example: pathcast explain -e //body/p story.xml

    Example: cat story.xml | pathcast explain index/ 3 - --json
    """
    from pathcast.matching.explain import explain as explained

    if expressions:
        if subscriptions is None:
            refuse(f"no document given; {_USAGE}")
        if id is not None:
            count = 2 + (document is not None)
            refuse(
                f"-e takes one document as the only argument, got {count} arguments; "
                "usage: pathcast explain -e XPATH DOCUMENT"
            )
        subscriptions, document = None, subscriptions
    elif subscriptions is None:
        refuse(f"no subscriptions given; {_USAGE}")
    chosen = chosen_subscriptions(subscriptions, expressions or [], namespaces or [], skip_invalid=skip_invalid)
    ids = [one.id for one in chosen.subscriptions] if expressions else [_id(id)]
    if document is None:
        refuse(f"no document given; {_USAGE}")
    read = _document(document, entities)
    matches = True
    for number in ids:
        try:
            explanation = explained(read, chosen.subscriptions, number)
        except KeyError as error:
            refuse(f"{subscriptions}: {error.args[0]}")
        _print(explanation, as_json=as_json)
        matches = matches and explanation.matches
    if not matches:
        raise typer.Exit(1)


def _id(given: str | None) -> int:
    if given is None:
        refuse(f"no ID and no document given; {_USAGE}")
    if not (given.isascii() and given.isdecimal()):
        refuse(f"ID must be a number, got {given!r}; {_USAGE}")
    return int(given)


def _document(name: str, entities: Entities) -> "Document":
    """Read the document; from stdin at most one byte more than the size limit."""
    from pathcast.documents import Limits, read
    from pathcast.errors import PathcastError

    limits = Limits()
    try:
        given = sys.stdin.buffer.read(limits.size + 1) if name == "-" else Path(name)
        return read(given, limits=limits, entities=entities.value)
    except PathcastError as error:
        reason = str(error)
        refuse(reason if name in reason else f"{name}: {reason}")


def _print(explanation: "Explanation", *, as_json: bool) -> None:
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # names and values may hold anything
    if as_json:
        typer.echo(json.dumps(explanation.as_dict()))
    elif not sys.stdout.isatty():
        typer.echo(str(explanation))
    else:
        from rich.console import Console

        _print_coloured(explanation, Console())


def _print_coloured(explanation: "Explanation", console: "Console") -> None:
    from rich.text import Text

    from pathcast.matching.explain import lines

    styles = {"match": "bold green", "miss": "bold red", "plain": "dim", "yes": "green", "no": "red"}
    for line, tone in lines(explanation):
        text = Text(line)
        if tone in {"yes", "no"}:
            text.highlight_regex("[✓✗]", styles[tone])
            text.highlight_regex(r"line \d+, column \d+", "cyan")
        else:
            text.stylize(styles[tone])
        console.print(text, soft_wrap=True)
