"""A result: one run of one experiment, with all that is needed to report it without the experiment."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .claims import Verdict
from .result_rows import Rows


@dataclass(frozen=True)
class JudgedClaim:
    """A claim beside what was measured."""

    statement: str
    source: str
    verdict: Verdict
    measured: str


@dataclass(frozen=True)
class Result:
    """Rows and where they come from. `changes` are the parameters that differ from the scale's own; `plots` maps the
    name of a plot to its title; `checks` counts how often each statement about the answers was found to hold.
    """

    experiment: str
    title: str
    method: str
    scale: str
    seed: int
    parameters: Mapping[str, str]
    changes: tuple[str, ...]
    date: str
    seconds: float
    machine: Mapping[str, str]
    checks: Mapping[str, int]
    notes: tuple[str, ...]
    claims: tuple[JudgedClaim, ...]
    plots: Mapping[str, str]
    show: Mapping[str, str]
    rows: Rows

    @property
    def key(self) -> tuple[str, str]:
        """What a later result replaces: the same experiment at the same scale."""
        return self.experiment, self.scale

    @property
    def footer(self) -> str:
        """The small print under a plot."""
        return f"{self.experiment} · scale {self.scale} · {self.date[:10]} · {self.machine.get('processor', '')}"

    def to_record(self) -> dict[str, Any]:
        """Everything but the rows, as plain data."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "rows"}
        return {**fields, "claims": [dataclasses.asdict(claim) for claim in self.claims]}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], rows: Rows) -> "Result":
        """The inverse of `to_record`."""
        claims = tuple(JudgedClaim(**{**claim, "verdict": Verdict(claim["verdict"])}) for claim in record["claims"])
        lists = {"changes": tuple(record["changes"]), "notes": tuple(record["notes"])}
        return cls(**{**record, **lists, "claims": claims, "rows": rows})
