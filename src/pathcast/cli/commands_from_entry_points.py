"""Commands of other installed packages, found through the entry point `pathcast.commands`.

The laboratory provides `pathcast experiment` this way, so that the product never imports the laboratory. Without the
laboratory the command still exists and explains how to install it.
"""

from importlib.metadata import entry_points

import typer

GROUP = "pathcast.commands"
MISSING = "the laboratory is not installed; run this in a checkout of Pathcast: pip install -e lab"


def add_installed_commands(app: typer.Typer) -> None:
    """Add every command that an installed package offers."""
    offered = {entry.name: entry for entry in entry_points(group=GROUP)}
    for name, entry in sorted(offered.items()):
        app.add_typer(entry.load(), name=name)
    if "experiment" not in offered:
        app.command("experiment", context_settings={"ignore_unknown_options": True, "allow_extra_args": True})(
            _explain_experiment
        )


def _explain_experiment() -> None:
    """Run the papers' experiments (needs the laboratory)."""
    typer.echo(f"error: {MISSING}", err=True)
    raise typer.Exit(2)
