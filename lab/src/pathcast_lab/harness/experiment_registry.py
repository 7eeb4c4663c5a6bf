"""Experiments and their registry.

An experiment is a function from parameters to rows, with claims that are judged on its rows, and plots of its rows. The
decorator registers it:

    @experiment("reading", title="How fast documents are read", small=Reading(), paper=Reading(documents=5_000), …)
    def reading(run: Run, parameters: Reading) -> Iterator[Row]:
        '''How it is measured: this text appears in the report.'''

An experiment is in a file `*_experiments.py` of one of the folders beside this one. The registry imports these files,
and no others, on first use: to add an experiment, add a file.

Invariant: these files import heavy packages inside their functions only, so importing all of them costs some 0.1 s.
"""

import difflib
import fnmatch
import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pathcast.errors import PathcastError

from .claims import Claim
from .publishing.plot_declarations import Plot
from .publishing.result_page_definitions import PAGES
from .result_rows import Row
from .run_context import Run

P = TypeVar("P")
Measure = Callable[[Run, P], Iterable[Row]]

SCALES = ("small", "paper")
LABORATORY = Path(__file__).parents[1]


class UnknownExperimentError(PathcastError):
    """No experiment has this name; `near` holds the names that resemble it."""

    def __init__(self, reason: str, *, near: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.near = tuple(near)


@dataclass(frozen=True)
class Experiment:
    """An experiment: its function, parameters, claims and plots.

    `show` maps the columns of the report's table to their headings; without it the table has all columns. `rivals` are
    the names of the rivals that `--rival NAME=PATH` adds to a run.
    """

    name: str
    title: str
    measure: Measure[Any]
    parameters: Mapping[str, Any]
    claims: Sequence[Claim] = ()
    plots: Sequence[Plot] = ()
    show: Mapping[str, str] = field(default_factory=dict)
    rivals: Sequence[str] = ()

    @property
    def method(self) -> str:
        """The method of measurement in words: the docstring of the function."""
        return inspect.getdoc(self.measure) or ""


_registry: dict[str, Experiment] = {}


def experiment(
    name: str,
    *,
    title: str,
    small: P,
    paper: P,
    claims: Sequence[Claim] = (),
    plots: Sequence[Plot] = (),
    show: Mapping[str, str] | None = None,
    rivals: Sequence[str] = (),
) -> Callable[[Measure[P]], Measure[P]]:
    """Register the decorated function as an experiment."""

    def register(measure: Measure[P]) -> Measure[P]:
        if name in _registry and _registry[name].measure is not measure:
            raise ValueError(f"two experiments are named '{name}'; rename one")
        scales = {"small": small, "paper": paper}
        shown = dict(show or {})
        _registry[name] = Experiment(name, title, measure, scales, tuple(claims), tuple(plots), shown, tuple(rivals))
        return measure

    return register


def experiments() -> list[Experiment]:
    """All experiments, by name."""
    for file in sorted(LABORATORY.glob("*/*_experiments.py")):
        importlib.import_module(f"{LABORATORY.name}.{file.parent.name}.{file.stem}")
    return [_registry[name] for name in sorted(_registry)]


def find(names: Iterable[str]) -> list[Experiment]:
    """The experiments with these names, in this order and each once; a name may contain `*` and `?`.

    The name of a page of results, such as that of a paper, stands for all experiments of the page.
    """
    known = {one.name: one for one in experiments()}
    patterns = {page.name: page.experiments for page in PAGES}
    found: dict[str, Experiment] = {}
    for name in names:
        matching = fnmatch.filter(known, name) or [
            match for pattern in patterns.get(name, ()) for match in fnmatch.filter(known, pattern)
        ]
        if not matching:
            near = difflib.get_close_matches(name, patterns, n=1, cutoff=0.8)
            near += difflib.get_close_matches(name, known, n=5, cutoff=0.4)
            advice = (
                f"; did you mean {', '.join(near)}?" if near else f"; the experiments are {', '.join(known) or 'none'}"
            )
            raise UnknownExperimentError(f"unknown experiment '{name}'{advice}", near=near)
        found.update((match, known[match]) for match in matching)
    return list(found.values())
