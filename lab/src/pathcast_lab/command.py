"""`pathcast experiment`: list the experiments, run them, publish their results, and name those that are stale.

Exit status: 0 when every experiment ran (whatever the verdicts of its claims), 1 when one failed, 2 for a wrong
argument, 130 after Ctrl-C, 143 after SIGTERM. An experiment that fails or is interrupted leaves earlier results
untouched.
"""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from pathcast_lab.harness import Experiment, Result

app = typer.Typer(no_args_is_help=True, help="Measure, judge the claims, and publish the results.")

VERDICT_STYLES = {"held": "green", "not held": "red", "not measurable": "yellow"}


class Scale(StrEnum):
    """The scale of a measurement."""

    small = "small"
    paper = "paper"


@app.command("list")
def list_experiments() -> None:
    """Name every experiment, what it measures, its claims and its parameters."""
    from rich.console import Console

    from pathcast_lab.harness import as_dict, as_text, experiments

    console = Console(highlight=False)
    for experiment in experiments():
        console.print(f"[bold]{experiment.name}[/bold]  {experiment.title}", soft_wrap=True)
        for claim in experiment.claims:
            console.print(f"    claim ({claim.source}): {claim.statement}", soft_wrap=True, markup=False)
        if experiment.rivals:
            named = ", ".join(experiment.rivals)
            console.print(f"    accepts --rival NAME=PATH: {named}", soft_wrap=True, markup=False)
        for scale, parameters in experiment.parameters.items():
            values = " ".join(f"{name}={as_text(value)}" for name, value in as_dict(parameters).items())
            console.print(f"    --scale {scale}: {values}", soft_wrap=True, markup=False, style="dim")


@app.command(
    epilog="Examples: pathcast experiment run reading --set documents=100 --output /tmp/results; "
    "pathcast experiment run gpx --scale paper --resume"
)
def run(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME…",
            help="Experiments; a name may contain * and ?, or be that of a page of results, such as gpx or roxsum.",
        ),
    ],
    scale: Annotated[
        Scale, typer.Option(help="small: under two minutes each; paper: the papers' sizes.")
    ] = Scale.small,
    output: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for results. Default: results/ of the checkout, which git ignores."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Makes the generated workloads repeatable.")] = 0,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a parameter; may be repeated.")
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Skip experiments with a result of the same scale, seed, parameters and code; not with --rival.",
        ),
    ] = False,
    rival: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=PATH", help="A program to compare with (see the laboratory's README); may be repeated."
        ),
    ] = None,
) -> None:
    """Run experiments: check the answers, measure, judge the claims, and write rows, plots and a record.

    After an interruption, run the same command with --resume.
    """
    from rich.console import Console

    from pathcast.errors import PathcastError
    from pathcast_lab.harness import (
        ParameterError,
        RivalError,
        UnknownExperimentError,
        changed,
        default_output,
        find,
        measured_before,
        named_rivals,
    )

    errors = Console(stderr=True, highlight=False)
    wanted = changes or []
    folder = output if output is not None else default_output()
    try:
        chosen = find(names)
        for experiment in chosen:
            changed(experiment.parameters[scale], wanted)
        rivals = named_rivals(rival or [], {name for one in chosen for name in one.rivals})
    except (UnknownExperimentError, ParameterError, RivalError) as error:
        errors.print(f"error: {error}", style="red", markup=False, soft_wrap=True)
        raise typer.Exit(2) from None
    if folder.exists() and not folder.is_dir():
        errors.print(
            f"error: {folder} is not a folder; choose another path with --output",
            style="red",
            markup=False,
            soft_wrap=True,
        )
        raise typer.Exit(2)

    failed = False
    for number, experiment in enumerate(chosen):
        alone = not rivals.keys() & set(experiment.rivals)
        if resume and alone and (before := measured_before(experiment, folder, scale.value, seed, wanted)):
            Console(highlight=False).print(
                f"[bold]{experiment.name}[/bold]  measured before, with the same parameters and code → {before}",
                soft_wrap=True,
            )
            continue
        try:
            result, where = _run_watched(experiment, scale, folder, seed, wanted, rivals, errors, (number, len(chosen)))
        except KeyboardInterrupt:
            errors.print(f"{experiment.name}: interrupted; earlier results are unchanged", soft_wrap=True)
            raise
        except (PathcastError, OSError) as error:
            errors.print(f"{experiment.name}: {error}", style="red", markup=False, soft_wrap=True)
            failed = True
        except (ValueError, ArithmeticError) as error:
            if not wanted:
                raise
            given = f"cannot be measured with --set {' --set '.join(wanted)}: {error}"
            errors.print(f"{experiment.name}: {given}", style="red", markup=False, soft_wrap=True)
            failed = True
        else:
            _print_result(result, where)
    if failed:
        raise typer.Exit(1)


@app.command(epilog="Example: pathcast experiment report 'gpx-*'")
def report(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME…", help="Experiments whose results to publish. Default: none."),
    ] = None,
    results: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the results. Default: results/ of the checkout.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the pages. Default: docs/results of the checkout.")
    ] = None,
) -> None:
    """Write the pages again from the published records; with names, publish the results of these experiments first."""
    from rich.console import Console

    from pathcast.errors import PathcastError
    from pathcast_lab.harness import UnknownExperimentError, default_output, default_publication, find
    from pathcast_lab.harness.publishing.published_records import publish
    from pathcast_lab.harness.result_archive import load_all

    errors = Console(stderr=True, highlight=False)
    source = results if results is not None else default_output()
    folder = output if output is not None else default_publication()
    try:
        found = [(one, load_all(source, one.name)) for one in find(names or [])]
        missing = [one.name for one, those in found if not those and one.name in (names or [])]
        if not missing:
            publish(found, folder)
    except UnknownExperimentError as error:
        errors.print(f"error: {error}", style="red", markup=False, soft_wrap=True)
        raise typer.Exit(2) from None
    except (PathcastError, OSError) as error:
        errors.print(f"error: {error}", style="red", markup=False, soft_wrap=True)
        raise typer.Exit(1) from None
    if missing:
        advice = f"run: pathcast experiment run {missing[0]}"
        errors.print(f"error: no result of {', '.join(missing)} in {source}; {advice}", style="red", soft_wrap=True)
        raise typer.Exit(1)
    Console(highlight=False).print(
        f"new results: {sum(len(those) for _, those in found)}; pages → {folder}", soft_wrap=True
    )


@app.command()
def stale(
    published: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of pages and records. Default: docs/results of the checkout."),
    ] = None,
) -> None:
    """Name the published figures whose code has changed since they were measured."""
    from rich.console import Console

    from pathcast_lab.harness import default_publication
    from pathcast_lab.harness.publishing.markdown_report import shown_scales
    from pathcast_lab.harness.publishing.published_records import load_records, refresh

    console = Console(highlight=False)
    records = shown_scales(refresh(load_records(published if published is not None else default_publication())))
    for record in records:
        if record.changed:
            console.print(
                f"{record.experiment}  scale {record.scale}, measured with version {record.version}", soft_wrap=True
            )
    old, without = sum(bool(record.changed) for record in records), sum(record.changed is None for record in records)
    console.print(
        f"{old} of {len(records)} figures are stale; {without} were measured before code versions were recorded",
        soft_wrap=True,
    )


class ProgressDisplay:
    """Shows the stage that an experiment is in."""

    def __init__(self, progress: "Progress", name: str) -> None:
        self._progress = progress
        self._name = name
        self._task: TaskID | None = None

    def begin(self, stage: str, steps: int | None) -> None:
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task(f"{self._name}: {stage}", total=steps)
        self._progress.refresh()

    def advance(self) -> None:
        if self._task is not None:
            self._progress.advance(self._task)
            self._progress.refresh()


def _run_watched(
    experiment: "Experiment",
    scale: Scale,
    output: Path,
    seed: int,
    changes: list[str],
    rivals: dict[str, str],
    errors: "Console",
    place: tuple[int, int],
) -> tuple["Result", Path]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from pathcast_lab.harness import run_experiment

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TimeElapsedColumn())
    # No redrawing thread: it would take interpreter time from the rival that is being timed.
    with Progress(
        *columns, console=errors, transient=True, auto_refresh=False, disable=not errors.is_terminal
    ) as progress:
        done, of = place
        if of > 1:
            progress.add_task(f"{done} of {of} experiments done", total=of, completed=done)
        display = ProgressDisplay(progress, experiment.name)
        return run_experiment(
            experiment,
            output=output,
            scale=scale.value,
            seed=seed,
            changes=changes,
            observer=display,
            rivals=rivals,
        )


def _print_result(result: "Result", where: Path) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    console.print(Text(f"{result.experiment}  ", style="bold") + Text(result.title, style="not bold"), soft_wrap=True)
    for claim in result.claims:
        verdict = Text(f"  {claim.verdict:<15}", style=VERDICT_STYLES[claim.verdict])
        console.print(verdict + Text(f"{claim.statement}: measured {claim.measured}", style="default"), soft_wrap=True)
    for note in result.notes:
        console.print(Text(f"  note           {note}"), soft_wrap=True)
    rows = f"  {len(result.rows)} rows in {result.seconds:.1f} s → {where}"
    console.print(Text(rows), soft_wrap=True)
