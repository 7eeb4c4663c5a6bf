"""`pathcast publish`, `subscribe`, `replay`: a broker's clients on the command line.

Exit status of `publish`: 0 when every document was accepted, 1 when one was not or none was found, 2 for bad arguments
or a broker that does not answer.
"""

import base64
import json
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..arguments.document_sources import SplitOption, entries, path_of_entries
from ..arguments.shared_arguments import Entities, NamespacesOption, namespaces_of, printable, refuse
from ..match_command import Format, document_batches, document_sources, progress

if TYPE_CHECKING:
    from pathcast.client import Client, Delivery, Gap, Subscription
    from pathcast.errors import PathcastError

UrlArgument = Annotated[str, typer.Argument(metavar="URL", help="The broker, such as http://127.0.0.1:8080.")]
TokenOption = Annotated[str | None, typer.Option(envvar="PATHCAST_TOKEN", help="The token, if the broker needs one.")]
PatienceOption = Annotated[
    float, typer.Option(metavar="SECONDS", min=0, help="Seconds to retry while the broker does not answer.")
]
FormatOption = Annotated[
    Format, typer.Option("--format", help="Output format: text for people, or json, one object per line.")
]


def publish(
    url: UrlArgument,
    feed: Annotated[str, typer.Argument(metavar="FEED", help="The feed.")],
    documents: Annotated[
        list[str],
        typer.Argument(metavar="FILE…", help="XML files, .gz too; folders of them; - reads one document from stdin."),
    ],
    keep_invalid: Annotated[
        bool, typer.Option("--keep-invalid", help="Store unreadable documents as dead letters.")
    ] = False,
    schema: Annotated[
        str | None, typer.Option(metavar="NAME", help="The documents' schema, one that the feed's mediator maps.")
    ] = None,
    output_format: FormatOption = Format.text,
    token: TokenOption = None,
    patience: PatienceOption = 30.0,
    split: SplitOption = None,
    namespaces: Annotated[
        list[str] | None, typer.Option(metavar="PREFIX=URI…|ignore", help="Namespace prefixes of --split.")
    ] = None,
) -> None:
    """Publish documents to a feed of a broker; they are durable when the command ends.

    With --split, entries are published in groups, in their order; a group is durable before the next one is sent.

    Exit status 0: every document was accepted; 1: one was not, or none was found; 2: bad arguments, or no answer.

    Example: pathcast publish http://127.0.0.1:8080 news stories/ breaking.xml

    Example: pathcast publish http://127.0.0.1:8080 papers pubmed.xml.gz --split /PubmedArticleSet/PubmedArticle
    """
    from pathcast.documents import Limits
    from pathcast.errors import PathcastError

    path = path_of_entries(split, namespaces or [])
    sources, failed = document_sources(documents, None if path else Limits().size)
    if not sources:
        typer.echo("error: no documents found, so nothing was published", err=True)
        raise typer.Exit(1)
    count = total = 0
    with _client(url, token, patience) as client, progress("publishing", None if path else len(sources)) as advance:
        for batch in document_batches(entries(sources, path, Limits(), Entities.expand)):
            documents_ = [source.document for source in batch if isinstance(source.document, Path | bytes)]
            published = iter(
                client.publish(feed, documents_, keep_invalid=keep_invalid, schema=schema, errors="return")
            )
            total += len(batch)
            for source in batch:
                document = source.document
                result = document if isinstance(document, PathcastError) else next(published)
                row: dict[str, Any] = {"document": source.name}
                if isinstance(result, PathcastError):
                    failed += 1
                    typer.echo(f"error: {printable(source.name)}: {result}", err=True)
                    row |= {"error": result.reason, "line": result.line, "column": result.column}
                else:
                    count += 1
                    row |= {"sequence": result.sequence, "duplicate": result.duplicate}
                if output_format is Format.json:
                    typer.echo(json.dumps(row))
                advance()
    if output_format is Format.text:
        typer.echo(f"published {count:,} of {total:,} documents to feed {feed}")
    if failed:
        raise typer.Exit(1)


def subscribe(
    url: UrlArgument,
    xpath: Annotated[str, typer.Argument(metavar="XPATH", help="The expression.")],
    feeds: Annotated[list[str] | None, typer.Option("--feed", help="Only this feed; may be repeated.")] = None,
    start: Annotated[
        str, typer.Option("--from", metavar="now|SEQUENCE|TIME", help="The first document, such as 1 for the oldest.")
    ] = "now",
    bodies: Annotated[bool, typer.Option("--bodies", help="Also print the documents.")] = False,
    count: Annotated[int | None, typer.Option(min=1, help="End after this many documents.")] = None,
    id: Annotated[str | None, typer.Option(help="Create a permanent subscription with this id.")] = None,
    namespaces: NamespacesOption = None,
    output_format: FormatOption = Format.text,
    token: TokenOption = None,
    patience: PatienceOption = 30.0,
) -> None:
    """Print the documents that match an expression, as they are published, until Ctrl-C.

    Without --id the subscription is removed at the end. After a lost connection, the output continues where it stopped.

    Exit status 0: --count documents came, or the subscription was removed; 2: bad arguments, or no answer; 130: Ctrl-C.

    Example: pathcast subscribe http://127.0.0.1:8080 '//title' --feed news --from 1 --bodies
    """
    from pathcast.client import Delivery

    prefixes = namespaces_of(namespaces or [])
    if prefixes == "ignore":
        refuse("a broker does not support --namespaces ignore; give PREFIX=URI")
    begin = _begin_of(start)
    name = id or f"command-{secrets.token_hex(8)}"
    with _client(url, token, patience) as client:
        if id is not None:
            _check_unused(client, id)
        try:
            made: Subscription = client.subscribe(name, xpath, feeds or (), namespaces=prefixes, start=begin)
            with client.events(name, after=made.valid_from - 1, bodies=bodies) as events:
                left = count
                for event in events:
                    _show(event, as_json=output_format is Format.json)
                    if left is not None and isinstance(event, Delivery):
                        left -= 1
                        if not left:
                            break
        finally:
            if id is None:
                _remove(client, name)


def replay(
    url: UrlArgument,
    id: Annotated[str, typer.Argument(metavar="ID", help="The subscription.")],
    start: Annotated[
        str | None,
        typer.Argument(metavar="SEQUENCE|TIME|now", help="The first document to deliver again, or now to skip all."),
    ] = None,
    dead_letters: Annotated[
        bool,
        typer.Option("--dead-letters", help="Deliver the dead letters again, instead of all documents from START on."),
    ] = False,
    output_format: FormatOption = Format.text,
    token: TokenOption = None,
    patience: PatienceOption = 30.0,
) -> None:
    """Deliver documents again: move the cursor of a subscription, or make its dead letters due again.

    Exit status 0: done, even if there was no dead letter; 2: bad arguments, no such subscription, documents that were
    trimmed, no answer.

    Example: pathcast replay http://127.0.0.1:8080 titles 4711

    Example: pathcast replay http://127.0.0.1:8080 titles 2031-05-14T08:00:00Z

    Example: pathcast replay http://127.0.0.1:8080 titles --dead-letters
    """
    if dead_letters:
        if start is not None:
            refuse(f"--dead-letters and the starting point {start!r} cannot be combined; omit one of them")
        _revive(url, id, token, patience, as_json=output_format is Format.json)
        return
    if start is None:
        refuse("no starting point given; give a sequence, a time, now, or --dead-letters")
    with _client(url, token, patience) as client:
        status = client.replay(id, _begin_of(start))
    if output_format is Format.json:
        typer.echo(json.dumps({"id": id, "from": status.cursor + 1, "head": status.head}))
    else:
        typer.echo(f"{id}: delivers from {status.cursor + 1} again; head {status.head}")


def _revive(url: str, id: str, token: str | None, patience: float, *, as_json: bool) -> None:
    with _client(url, token, patience) as client:
        revived = client.revive(id)
    if as_json:
        typer.echo(json.dumps({"id": id, "replayed": revived.replayed, "trimmed": revived.trimmed}))
    else:
        typer.echo(f"{id}: dead letters to deliver again: {revived.replayed}; trimmed: {revived.trimmed}")


def _begin_of(start: str) -> int | str:
    return int(start) if start.isascii() and start.isdigit() else start


@contextmanager
def _client(url: str, token: str | None, patience: float) -> "Iterator[Client]":
    from pathcast.client import connect

    told = False

    def waiting(error: "PathcastError", _: float) -> None:
        nonlocal told
        if not told:
            typer.echo(f"note: {error}; retrying for up to {patience:g} s", err=True)
        told = True

    with connect(url, token, patience=patience, on_retry=waiting) as client:
        yield client


def _check_unused(client: "Client", id: str) -> None:
    """A command must not change a subscription that somebody else made."""
    from pathcast.client import BrokerError

    try:
        client.subscription(id)
    except BrokerError as error:
        if error.status != 404:
            raise
    else:
        refuse(f"subscription {id!r} already exists; choose another --id, or omit --id")


def _remove(client: "Client", id: str) -> None:
    """Remove a temporary subscription, which may not have come to exist."""
    from pathcast.client import BrokerError, UnreachableError

    try:
        client.unsubscribe(id)
    except BrokerError as error:
        if error.status != 404 and sys.exc_info()[1] is None:
            raise
    except UnreachableError:
        typer.echo(f"note: cannot remove subscription {id}; delete it with DELETE /v1/subscriptions/{id}", err=True)


def _show(event: "Delivery | Gap", *, as_json: bool) -> None:
    from pathcast.client import Gap

    if isinstance(event, Gap):
        if as_json:
            typer.echo(json.dumps({"gap": {"from": event.begin, "to": event.end, "reason": event.reason}}))
        else:
            typer.echo(f"gap: documents {event.begin} to {event.end} ({event.reason})", err=True)
    elif as_json:
        row: dict[str, Any] = {"sequence": event.sequence, "feed": event.feed, "time": event.time.isoformat()}
        if event.body is not None:
            try:
                row["body"] = event.body.decode()
            except UnicodeDecodeError:
                row["body_base64"] = base64.b64encode(event.body).decode()
        typer.echo(json.dumps(row))
    else:
        typer.echo(f"{event.sequence}  {event.feed}")
        if event.body is not None:
            typer.echo(event.body)
