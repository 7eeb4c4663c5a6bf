"""Operands: what recursive descent has read but not yet used, with its position in the expression."""

from dataclasses import dataclass, field

from ..tree_pattern import Axis, Condition


@dataclass(slots=True)
class Path:
    """A path as written; `loose` if it ends in `//.`, which selects every node below."""

    absolute: bool
    begin: int
    end: int = 0
    steps: list[tuple[Axis, str, list[Condition]]] = field(default_factory=list)
    loose: bool = False


@dataclass(frozen=True, slots=True)
class LiteralValue:
    """A string or a number as written."""

    value: str | float
    text: str
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Truth:
    """A condition with its position in the expression."""

    condition: Condition
    begin: int
    end: int


Operand = Path | LiteralValue | Truth
