"""The outcome of a run: a record, a result with its rows, and a published record.

A record has everything but figures: parameters, machine, code version, checks and verdicts. A result adds the rows,
which stay outside the repository. A published record has the points of one chart instead, so that pages and plots can
be generated again without the rows.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from .claims import Verdict
from .publishing.chart_data import Chart
from .result_rows import Rows


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with its verdict and measured figures. `reason` is the claim's own, whatever the verdict."""

    statement: str
    source: str
    verdict: Verdict
    measured: str
    expected: str = ""
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Record:
    """Where figures come from. `changes` are the parameters that differ from the scale's own; `checks` counts how often
    each statement about the answers held. `version` is that of the code, `sources` the hash of the sources
    that the experiment exercises; both are None for results that were measured before these were recorded.
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
    version: str | None = None
    sources: str | None = None

    @property
    def key(self) -> tuple[str, str]:
        """The key under which a later record replaces this one: experiment and scale."""
        return self.experiment, self.scale

    @property
    def footer(self) -> str:
        """The small print under a plot."""
        version = f" · {self.version}" if self.version else ""
        return f"{self.experiment} · scale {self.scale} · {self.date[:10]}{version}"

    def to_record(self) -> dict[str, Any]:
        """The record as plain data."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(Record)}
        return {**fields, "claims": [dataclasses.asdict(claim) for claim in self.claims]}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], **more: Any) -> Self:
        """The inverse of `to_record`; `more` are the fields of a subclass."""
        claims = tuple(JudgedClaim(**{**claim, "verdict": Verdict(claim["verdict"])}) for claim in record["claims"])
        lists = {"changes": tuple(record["changes"]), "notes": tuple(record["notes"])}
        return cls(**{**record, **lists, "claims": claims, **more})


@dataclass(frozen=True, kw_only=True)
class Result(Record):
    """A record with its rows. `show` maps the columns of the table of rows to their headings."""

    show: Mapping[str, str]
    rows: Rows


@dataclass(frozen=True, kw_only=True)
class Published(Record):
    """A record with the chart of its figure. `changed` says whether the sources differed from those measured when the
    pages were last written; None where the record has no hash.
    """

    chart: Chart | None = None
    changed: bool | None = None
