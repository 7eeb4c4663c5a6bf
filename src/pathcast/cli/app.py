"""The command line: wires the commands together and turns Pathcast's errors into one clean message.

Importing this file imports the commands' arguments, not their dependencies: heavy modules load when a command runs, so
that `--help` and shell completion answer at once.

Exit status 2 means bad arguments or any other `PathcastError`. Output errors (output_errors.py), Ctrl-C and SIGTERM
(exit_on_signal.py) have their own statuses, and commands may define more.
"""

import sys
from typing import Annotated

import typer

from pathcast.errors import PathcastError

from . import generate_command, mediation_commands
from .backfill_command import backfill
from .broker import access_token_commands, broker_log_commands
from .broker.broker_client_commands import publish, replay, subscribe
from .broker.serve_broker_command import serve
from .commands_from_entry_points import add_installed_commands
from .demo import demo
from .doctor_command import doctor
from .exit_on_signal import terminable
from .explain_command import explain
from .match_command import match
from .output_errors import open_what_is_closed, output_that_may_end
from .renew_untrusted_index_command import renew
from .run_pipeline_command import run
from .standing_joins_command import joins

app = typer.Typer(
    name="pathcast",
    help="Deliver XML documents and table changes to the subscribers whose standing queries match.",
    epilog="First steps: pathcast doctor, pathcast demo, pathcast match --help",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    # A traceback means a bug in Pathcast; the plain one is easier to report.
    pretty_exceptions_enable=False,
)
app.command()(match)
app.command()(explain)
app.command()(renew)
app.command()(joins)
app.command()(run)
app.command()(backfill)
app.command()(serve)
app.add_typer(access_token_commands.app, name="token")
app.command()(publish)
app.command()(subscribe)
app.command()(replay)
app.add_typer(generate_command.app, name="generate")
app.add_typer(mediation_commands.app, name="mediate")
app.add_typer(broker_log_commands.app, name="log")
app.command()(demo)
app.command()(doctor)
add_installed_commands(app)


def main() -> None:
    """Run `pathcast`."""
    open_what_is_closed()
    with terminable(), output_that_may_end():
        try:
            app()
        except PathcastError as error:
            typer.echo(f"error: {error}", err=True)
            sys.exit(2)


def _print_version(wanted: bool) -> None:
    if wanted:
        from pathcast import __version__

        typer.echo(f"pathcast {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass
