"""`pathcast serve`: a broker to publish to and subscribe at."""

from pathlib import Path
from typing import Annotated

import typer


def serve(
    settings: Annotated[
        Path | None,
        typer.Argument(
            metavar="[BROKER.TOML]", help="The broker's settings; docs/reference/broker-file.md has the keys."
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="The folder of the broker's data, created if it is missing.  [default: pathcast-data]"),
    ] = None,
    host: Annotated[str | None, typer.Option(help="The address to listen on.  [default: 127.0.0.1]")] = None,
    port: Annotated[
        int | None,
        typer.Option(help="The port to listen on; 0 chooses a free one.  [default: 8080]", min=0, max=65_535),
    ] = None,
) -> None:
    """Serve a broker: publish XML documents and subscribe to them over HTTP.

    Options replace the settings of the file. On a loopback address the broker needs no tokens; any other address needs
    tokens and TLS.
    """
    from pathcast.extras import extra

    with extra("broker"):
        from pathcast.broker import read_settings
        from pathcast.broker import serve as run

    checked = read_settings(settings, data=data, host=host, port=port)

    def started(address: str) -> None:
        typer.echo(f"serving {address}, log in {checked.log_place()}; Ctrl-C stops")
        typer.echo(f"  look       {address}/ in a browser")
        token = "" if checked.tokens.file is None else " -H 'Authorization: Bearer TOKEN'"
        curl = f"curl{token} {address}/v1"
        typer.echo(f"  publish    {curl}/feeds/news/documents --data-binary '<nitf><title/></nitf>'")
        typer.echo(f'  subscribe  {curl}/subscriptions/titles -X PUT -d \'{{"xpath": "//title"}}\'')
        typer.echo(f"  receive    {curl}/subscriptions/titles/events -N")

    def standing_by(address: str, active: str) -> None:
        typer.echo(f"standing by at {address}, the active broker is {active}; Ctrl-C stops")

    run(checked, started, standing_by)
