"""A run: the context that an experiment's function gets besides its parameters.

A run has the seed, the rivals that the user named and the data, reports progress, collects notes for the report, and
checks answers. No time without a checked answer: the harness accepts a row only after a check has passed, and a failed
check ends the run before anything is written.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from pathcast.errors import PathcastError

from .external_data_folder import data_folder

T = TypeVar("T")


class CheckError(PathcastError):
    """Rivals disagree, or an answer is wrong: the times would compare different things."""


class Observer(Protocol):
    """Follows a run, such as a progress display."""

    def begin(self, stage: str, steps: int | None) -> None:
        """A stage begins, of this many steps if that is known."""

    def advance(self) -> None:
        """One step of the stage is done."""


class Nobody:
    """The observer of a run in a pipe or a test."""

    def begin(self, stage: str, steps: int | None) -> None: ...

    def advance(self) -> None: ...


class Run:
    """One execution of one experiment."""

    def __init__(
        self,
        *,
        scale: str,
        seed: int,
        observer: Observer | None = None,
        data: Path | None = None,
        rivals: Mapping[str, str] | None = None,
    ) -> None:
        self.scale = scale
        self.seed = seed
        self.rivals = dict(rivals or {})
        self.data = data if data is not None else data_folder()
        self.notes: list[str] = []
        self.checks: dict[str, int] = {}
        self._observer = observer if observer is not None else Nobody()

    # progress

    def begin(self, stage: str, steps: int | None = None) -> None:
        """Tell the observer that a stage begins."""
        self._observer.begin(stage, steps)

    def advance(self) -> None:
        """Tell the observer that a step of the stage is done."""
        self._observer.advance()

    def steps(self, stage: str, items: Sequence[T]) -> Iterator[T]:
        """The items, one step of a stage each."""
        self.begin(stage, len(items))
        for item in items:
            yield item
            self.advance()

    # text of the report besides the rows

    def note(self, text: str) -> None:
        """A remark for the report: what was left out, extrapolated or delegated."""
        if text not in self.notes:
            self.notes.append(text)

    # answers

    def check(self, statement: str, holds: bool, found: str = "") -> None:
        """Record that a statement about the answers holds, or end the run."""
        if not holds:
            raise CheckError(f"check failed: {statement}" + (f": {found}" if found else ""))
        self.checks[statement] = self.checks.get(statement, 0) + 1

    def check_equal(self, statement: str, answers: Mapping[str, object]) -> None:
        """Record that all rivals give the same answer as the first, or end the run and name the one that does not."""
        if len(answers) < 2:
            raise ValueError(f"check_equal needs at least two answers, got {len(answers)}")
        (first, expected), *others = answers.items()
        for name, answer in others:
            same = _same(expected, answer)
            found = "" if same else f"{first} gives {_brief(expected)}, {name} {_brief(answer)}"
            self.check(statement, same, found)


def _same(one: object, other: object) -> bool:
    import numpy as np

    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(np.asarray(one), np.asarray(other))
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _brief(answer: object, width: int = 200) -> str:
    text = " ".join(repr(answer).split())
    return text if len(text) <= width else text[:width] + "…"
