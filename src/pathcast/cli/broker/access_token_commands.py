"""`pathcast token`: access tokens of a broker; add, list, revoke."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from pathcast.errors import PathcastError

from ..match_command import Format

app = typer.Typer(help="Access tokens of a broker: add, list, revoke.", no_args_is_help=True)

_File = Annotated[Path, typer.Option("--file", help="The tokens file: `tokens.file` of broker.toml.")]
_FILE = Path("tokens.json")


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="The user of the token, and the subscriber of its subscriptions.")],
    scope: Annotated[
        list[str],
        typer.Option(
            help="A scope of the token: publish:FEED, read:FEED, subscribe:NAME, with * for all names; administer; * "
            "for everything. May be repeated."
        ),
    ],
    tenant: Annotated[str, typer.Option(help="The tenant whose subscriptions the token sees.")] = "default",
    days: Annotated[float | None, typer.Option(help="The token expires after this number of days.")] = None,
    file: _File = _FILE,
) -> None:
    """Make a token and print it. It is shown this once: the file holds a hash of it.

    Example: pathcast token add ada --scope publish:news --scope read:news --days 90 --file tokens.json
    """
    from pathcast.broker import add_token

    for what, given in (("name", name), ("tenant", tenant)):
        _check_name(what, given)
    if days is not None and not 0 < days <= 36_500:
        raise PathcastError(f"--days must be above 0 and at most 36500, got {days:g}")
    expires = None if days is None else datetime.now(UTC) + timedelta(days=days)
    text, record = add_token(file, tenant, name, scope, expires)
    typer.echo(text)
    typer.echo(f"added token {record.id} of {tenant}/{name} to {file}; keep the line above secret", err=True)


@app.command("list")
def list_tokens(
    file: _File = _FILE,
    output_format: Annotated[
        Format, typer.Option("--format", help="Output format: text for people, or json, one object per line.")
    ] = Format.text,
) -> None:
    """List the tokens of a file: id, tenant, name, scopes, expiry; never the tokens themselves.

    Example: pathcast token list --file /var/lib/pathcast/tokens.json
    """
    from pathcast.broker import read_tokens

    now = datetime.now(UTC)
    for each in read_tokens(file):
        if output_format is Format.json:
            expires = None if each.expires is None else each.expires.isoformat()
            row = {"id": each.id, "tenant": each.tenant, "name": each.name, "scopes": list(each.scopes)}
            typer.echo(json.dumps({**row, "expires": expires, "valid": each.valid_at(now)}))
            continue
        if each.expires is None:
            until = "does not expire"
        else:
            until = f"{'expires' if each.valid_at(now) else 'expired'} {each.expires:%Y-%m-%d %H:%M} UTC"
        typer.echo(f"{each.id}  {each.tenant}/{each.name}  {' '.join(each.scopes)}  {until}")


@app.command()
def revoke(
    token: Annotated[str, typer.Argument(metavar="ID|NAME", help="A token's id, or the name of its user.")],
    file: _File = _FILE,
) -> None:
    """Revoke a token, or all tokens of a name; a running server notices within two seconds.

    Exit status 0: revoked; 2: no such token, or the file cannot be read or written.

    Example: pathcast token revoke ada --file tokens.json
    """
    from pathcast.broker import revoke_tokens

    removed = revoke_tokens(file, token)
    if not removed:
        raise PathcastError(f"{file} has no token with id or name {token!r}; see pathcast token list")
    for each in removed:
        typer.echo(f"revoked {each.id} of {each.tenant}/{each.name}")


def _check_name(what: str, name: str) -> None:
    from pathcast.broker import is_name

    if not is_name(name):
        raise PathcastError(
            f"invalid {what} {name[:140]!r}; use 1 to 128 letters, digits or _ . ~ @ -, the first a letter, digit or _"
        )
