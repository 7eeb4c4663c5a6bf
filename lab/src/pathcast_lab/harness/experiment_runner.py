"""The harness: run an experiment, judge its claims, store the result.

Nothing is written before the last row is measured and every check has passed, so an experiment that fails or is
interrupted leaves earlier results untouched.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

from pathcast.errors import PathcastError

from .experiment_parameters import as_dict, as_text, changed
from .experiment_registry import Experiment
from .experiment_result import JudgedClaim, Result
from .external_data_folder import CHECKOUT
from .machine_description import is_busy, machine
from .result_archive import ArchiveError, load, store
from .result_rows import Row, Rows
from .run_context import CheckError, Observer, Run
from .source_version import code_version, source_hash


def default_output(checkout: Path = CHECKOUT) -> Path:
    """`results` in the checkout that Pathcast runs from, which git ignores; otherwise in the current folder."""
    return checkout / "results" if _is_checkout(checkout) else Path("pathcast-results")


def default_publication(checkout: Path = CHECKOUT) -> Path:
    """`docs/results` of the checkout; otherwise a folder beside the results."""
    return checkout / "docs" / "results" if _is_checkout(checkout) else Path("pathcast-report")


def _is_checkout(folder: Path) -> bool:
    return (folder / "pyproject.toml").is_file()


def perform(
    experiment: Experiment,
    *,
    scale: str = "small",
    seed: int = 0,
    changes: Iterable[str] = (),
    observer: Observer | None = None,
    rivals: Mapping[str, str] | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Result:
    """Measure and judge; nothing is written. Of `rivals` (name to path) the experiment gets those that it knows."""
    changes = tuple(changes)
    parameters = changed(experiment.parameters[scale], changes)
    known = {name: path for name, path in (rivals or {}).items() if name in experiment.rivals}
    run = Run(scale=scale, seed=seed, observer=observer, rivals=known)
    where = machine()
    version, sources = code_version(), source_hash(experiment.measure.__module__)
    if is_busy():
        run.note("Other work kept the machine busy when this run began.")
    begin = perf_counter()
    rows = Rows(_checked(run, experiment.measure(run, parameters)))
    seconds = perf_counter() - begin
    judged = [(claim, claim.judge_rows(rows)) for claim in experiment.claims]
    return Result(
        experiment=experiment.name,
        title=experiment.title,
        method=experiment.method,
        scale=scale,
        seed=seed,
        parameters={name: as_text(value) for name, value in as_dict(parameters).items()},
        changes=changes,
        date=now().strftime("%Y-%m-%d %H:%M UTC"),
        seconds=seconds,
        machine=where,
        checks=dict(run.checks),
        notes=tuple(run.notes),
        claims=tuple(
            JudgedClaim(claim.statement, claim.source, it.verdict, it.measured, claim.expected, claim.reason_on(rows))
            for claim, it in judged
        ),
        version=version,
        sources=sources,
        show=dict(experiment.show),
        rows=rows,
    )


def measured_before(experiment: Experiment, output: Path, scale: str, seed: int, changes: Iterable[str]) -> Path | None:
    """The folder with a result of the same experiment, scale, seed, parameters and code; None if there is none.

    A result that cannot be read does not count.
    """
    folder = output / experiment.name / scale
    try:
        result = load(folder)
    except ArchiveError:
        return None
    parameters = as_dict(changed(experiment.parameters[scale], tuple(changes)))
    same = (
        result.seed == seed
        and result.parameters == {name: as_text(value) for name, value in parameters.items()}
        and result.sources == source_hash(experiment.measure.__module__)
    )
    return folder if same else None


def run_experiment(
    experiment: Experiment,
    *,
    output: Path,
    scale: str = "small",
    seed: int = 0,
    changes: Iterable[str] = (),
    observer: Observer | None = None,
    rivals: Mapping[str, str] | None = None,
) -> tuple[Result, Path]:
    """Perform an experiment and store its result; return the folder of the result."""
    if experiment.plots and find_spec("matplotlib") is None:
        raise PathcastError("plots need matplotlib, which is not installed; run: pip install matplotlib")
    result = perform(experiment, scale=scale, seed=seed, changes=changes, observer=observer, rivals=rivals)
    return result, store(result, experiment.plots, output)


def _checked(run: Run, rows: Iterable[Row]) -> Iterable[Row]:
    for row in rows:
        if not run.checks:
            raise CheckError(
                "the experiment yielded a row before it checked an answer; call run.check or run.check_equal first"
            )
        yield row
