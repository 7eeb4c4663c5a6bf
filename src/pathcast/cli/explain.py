"""`pathcast explain`: why does this document match that subscription, or why not?

Exit status: 0 when the document matches, 1 when it does not, 2 for whatever keeps the question from being answered.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .arguments import (
    Entities,
    EntitiesOption,
    NamespacesOption,
    SubscriptionsArgument,
    load_subscriptions,
    namespaces_of,
    open_folder,
    refuse,
)

if TYPE_CHECKING:
    from rich.console import Console

    from pathcast.documents import Document
    from pathcast.matching import Subscriptions
    from pathcast.matching.explain import Explanation


def explain(
    subscriptions: SubscriptionsArgument,
    id: Annotated[int, typer.Argument(metavar="ID", help="The subscription's id.")],
    document: Annotated[Path, typer.Argument(metavar="DOCUMENT", help="An XML file, or - for stdin.")],
    namespaces: NamespacesOption = None,
    entities: EntitiesOption = Entities.refuse,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object with everything that was found.")
    ] = False,
) -> None:
    """Show why a document matches a subscription, or what keeps it from matching.

    For a match: the elements that satisfy each step, and each predicate with the value found.

    For a miss: the first step or predicate that nothing satisfies, and the value or element that comes nearest.

    Exit status 0: it matches; 1: it does not; 2: bad arguments, subscriptions or document.

    Example: pathcast explain subscriptions.txt 3 story.xml

    Example: cat story.xml | pathcast explain index/ 3 - --json
    """
    from pathcast.matching.explain import explain as explained

    loaded = _subscriptions(subscriptions, namespaces or [])
    try:
        explanation = explained(_document(document, entities), loaded, id)
    except KeyError as error:
        refuse(f"{subscriptions}: {error.args[0]}")
    _print(explanation, as_json=as_json)
    if not explanation.matches:
        raise typer.Exit(1)


def _subscriptions(path: Path, namespaces: list[str]) -> "Subscriptions":
    """The subscriptions of a file or an index."""
    if path.is_dir():
        return open_folder(path, namespaces).subscriptions
    return load_subscriptions(path, namespaces_of(namespaces))


def _document(path: Path, entities: Entities) -> "Document":
    """The document, read; of stdin no more than it takes to refuse it."""
    from pathcast.documents import Limits, read
    from pathcast.errors import PathcastError

    limits = Limits()
    try:
        given = sys.stdin.buffer.read(limits.size + 1) if str(path) == "-" else path
        return read(given, limits=limits, entities=entities.value)
    except PathcastError as error:
        reason = str(error)
        refuse(reason if str(path) in reason else f"{path}: {reason}")


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

    from pathcast.matching.explain.printing import lines

    styles = {"match": "bold green", "miss": "bold red", "plain": "dim", "yes": "green", "no": "red"}
    for line, tone in lines(explanation):
        text = Text(line)
        if tone in {"yes", "no"}:
            text.highlight_regex("[✓✗]", styles[tone])
            text.highlight_regex(r"line \d+, column \d+", "cyan")
        else:
            text.stylize(styles[tone])
        console.print(text, soft_wrap=True)
