"""The corpus: cases as data, one theme per file in `tests/cases`.

A `Case` is a pattern, a document and whether they match; a `Refusal` is a text that is not a pattern, with the column
and the text that the error must point at. `tests/README.md` lists the fields. Unknown fields are rejected, so that
a misspelt field cannot change a case.
"""

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

CASES = Path(__file__).parent / "cases"

Namespaces = Mapping[str, str] | Literal["ignore"] | None
"""Prefix → URI, `"ignore"` for local names alone, or None."""


@dataclass(frozen=True)
class Case:
    theme: str
    name: str
    pattern: str
    document: bytes
    expected: bool
    why: str
    namespaces: Namespaces = None

    @property
    def id(self) -> str:
        return f"{self.theme}: {self.name}"


@dataclass(frozen=True)
class Refusal:
    theme: str
    name: str
    pattern: str
    column: int
    offending: str
    why: str
    namespaces: Namespaces = None

    @property
    def id(self) -> str:
        return f"{self.theme}: {self.name}"


@functools.cache
def cases() -> tuple[Case, ...]:
    """Every case of the corpus, file by file."""
    return tuple(_case(theme, dict(row)) for theme, row in _rows("case"))


@functools.cache
def refusals() -> tuple[Refusal, ...]:
    """Every text that must be rejected as a pattern."""
    return tuple(Refusal(theme=theme, **row) for theme, row in _rows("refusal"))


def _rows(kind: str) -> list[tuple[str, dict[str, Any]]]:
    rows = []
    for path in sorted(CASES.glob("*.toml")):
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        if unknown := tables.keys() - {"case", "refusal"}:
            raise ValueError(f"{path.name}: unknown tables {sorted(unknown)}")
        rows += [(path.stem, row) for row in tables.get(kind, ())]
    return rows


def _case(theme: str, row: dict[str, Any]) -> Case:
    """A row of data as a case: `copies` and `wrapped` build a large document, `encoding` turns it into bytes."""
    document: str = row.pop("document") * row.pop("copies", 1)
    if wrapped := row.pop("wrapped", None):
        name, times = wrapped["name"], wrapped["times"]
        document = f"<{name}>" * times + document + f"</{name}>" * times
    return Case(theme=theme, document=document.encode(row.pop("encoding", "utf-8")), **row)
