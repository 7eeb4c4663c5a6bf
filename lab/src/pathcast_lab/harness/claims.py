"""Claims: statements of a paper or targets of ours, each with a judge that compares it with the measured rows.

A claim gets one of three verdicts. *Not measurable* means that the rows cannot decide: the scale is too small, a rival
is missing, or the difference is within noise. A judge need not check for missing rows: asking `Rows` for a row that
does not exist gives this verdict, with the reason.

A claim that names no place on an axis is judged at every place, and holds only if it holds at each of them (`every`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from .result_rows import MissingRowError, Rows


class Verdict(StrEnum):
    """The three states of a claim after a run."""

    HELD = "held"
    NOT_HELD = "not held"
    NOT_MEASURABLE = "not measurable"


@dataclass(frozen=True)
class Judgement:
    """A verdict, and the measured figures that support it, as text."""

    verdict: Verdict
    measured: str


def judged(holds: bool | None, measured: str) -> Judgement:
    """A judgement from a bool; None means that these rows cannot decide."""
    if holds is None:
        return Judgement(Verdict.NOT_MEASURABLE, measured)
    return Judgement(Verdict.HELD if holds else Verdict.NOT_HELD, measured)


def every(
    found: Mapping[str, float],
    shown: str,
    *,
    least: float | None = None,
    most: float | None = None,
    undecided: tuple[float, float] | None = None,
) -> Judgement:
    """Judge a figure at every place: it must be at least `least` and at most `most`, wherever it was measured.

    `found` maps a place to the figure there, `shown` is the format of a figure. Figures strictly within `undecided` are
    noise: they decide nothing. The judgement names the worst and the best place.
    """
    if not found:
        raise MissingRowError("the run has no rows for this claim")

    def holds(value: float) -> bool | None:
        if undecided is not None and undecided[0] < value < undecided[1]:
            return None
        return (least is None or value >= least) and (most is None or value <= most)

    def distance(where: str) -> float:
        """The distance of a figure from the nearest bound; negative outside the bounds."""
        sides = [found[where] - least] if least is not None else []
        return min([*sides, most - found[where]] if most is not None else sides)

    verdicts = [holds(value) for value in found.values()]
    outcome = False if False in verdicts else None if None in verdicts else True
    ordered = sorted(found, key=distance)
    figures = [shown.format(found[where]) for where in (ordered[0], ordered[-1])]
    said = [f"{figure} {where}".rstrip() for figure, where in zip(figures, (ordered[0], ordered[-1]), strict=True)]
    if len(found) == 1:
        return judged(outcome, said[0])
    return judged(
        outcome, f"{figures[0]} everywhere" if figures[0] == figures[1] else f"worst {said[0]}; best {said[1]}"
    )


@dataclass(frozen=True)
class Claim:
    """A statement, who makes it (`source`: a paper and its section, or "target"), and how to judge it.

    `expected` is the number or figure that the source gives, in few words. `reason` says in one sentence why the claim
    does not hold in our setting, or makes that sentence from what was measured; the report shows it only where the
    verdict is "not held".
    """

    statement: str
    source: str
    judge: Callable[[Rows], Judgement]
    expected: str = ""
    reason: str | Callable[[Rows], str] = ""

    def reason_on(self, rows: Rows) -> str:
        """The reason that these rows give; empty if they lack a row that it needs."""
        if isinstance(self.reason, str):
            return self.reason
        try:
            return self.reason(rows)
        except MissingRowError:
            return ""

    def judge_rows(self, rows: Rows) -> Judgement:
        """The judgement of the claim on these rows."""
        try:
            return self.judge(rows)
        except MissingRowError as missing:
            return Judgement(Verdict.NOT_MEASURABLE, str(missing))
