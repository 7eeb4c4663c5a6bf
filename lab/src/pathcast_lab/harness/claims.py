"""Claims: what a paper says or what we aim at, and the judge that sets it beside the measured rows.

A claim is judged to one of three states. *Not measurable* is honest where the rows cannot decide: the scale is too
small, a rival is missing, the difference drowns in noise. A judge need not look out for missing rows itself: asking
`Rows` for one that is not there ends in that state, with the reason.
"""

from collections.abc import Callable
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
    """A verdict and the measured figures it rests on, in words."""

    verdict: Verdict
    measured: str


def judged(holds: bool | None, measured: str) -> Judgement:
    """A judgement from a truth value; `None` says that these rows cannot decide."""
    if holds is None:
        return Judgement(Verdict.NOT_MEASURABLE, measured)
    return Judgement(Verdict.HELD if holds else Verdict.NOT_HELD, measured)


@dataclass(frozen=True)
class Claim:
    """A statement, who makes it (`source`: a paper and its section, or "target"), and how to judge it."""

    statement: str
    source: str
    judge: Callable[[Rows], Judgement]

    def judge_rows(self, rows: Rows) -> Judgement:
        """What these rows say about the claim."""
        try:
            return self.judge(rows)
        except MissingRowError as missing:
            return Judgement(Verdict.NOT_MEASURABLE, str(missing))
