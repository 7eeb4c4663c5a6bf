from importlib.metadata import EntryPoint, entry_points

import pytest
import typer
from typer.testing import CliRunner

from pathcast.cli import commands_from_entry_points as installed_commands
from pathcast.cli.commands_from_entry_points import add_installed_commands


def app_with(offered: list[EntryPoint], monkeypatch: pytest.MonkeyPatch) -> typer.Typer:
    def entry_points(*, group: str) -> list[EntryPoint]:
        return offered if group == "pathcast.commands" else []

    monkeypatch.setattr(installed_commands, "entry_points", entry_points)
    app = typer.Typer()
    app.command("match")(lambda: None)
    add_installed_commands(app)
    return app


@pytest.mark.parametrize("arguments", [[], ["list"], ["run", "reading", "--set", "documents=5"]])
def test_without_the_laboratory_the_command_explains_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    result = CliRunner().invoke(app_with([], monkeypatch), ["experiment", *arguments])
    assert result.exit_code == 2
    assert result.stderr == (
        "error: the laboratory is not installed; run this in a checkout of Pathcast: pip install -e lab\n"
    )
    assert result.stdout == ""


def test_without_the_laboratory_help_still_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    result = CliRunner().invoke(app_with([], monkeypatch), ["--help"])
    assert "experiment" in result.stdout


def test_an_installed_package_adds_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    offered = EntryPoint("invent", "pathcast.cli.generate_command:app", "pathcast.commands")
    result = CliRunner().invoke(app_with([offered], monkeypatch), ["invent", "--help"])
    assert result.exit_code == 0
    assert "subscriptions" in result.stdout


def test_the_laboratorys_entry_point_leads_to_its_command() -> None:
    [experiment] = entry_points(group="pathcast.commands", name="experiment")
    assert experiment.value == "pathcast_lab.command:app"
    assert isinstance(experiment.load(), typer.Typer)
