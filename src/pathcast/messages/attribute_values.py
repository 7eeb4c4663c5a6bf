"""Values of messages: the values that an attribute may have, and when two values can be compared.

A scalar is None (SQL's NULL), a whole number of 64 bits, a float, a string, a date, a timestamp without time zone, or
bytes. A `Points` value is a small table: named axes and rows of scalars. It carries values that a scalar cannot: a
descriptive skyline, neighbours of a point, or rows of a table.

Invariant: values of one family are totally ordered (no NaN, no mixture of dates and timestamps); values of different
families are never equal, smaller or larger.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from math import isnan
from typing import Final, TypeAlias

from pathcast.errors import MessageError

Scalar: TypeAlias = int | float | str | date | datetime | bytes | None
Value: TypeAlias = "Scalar | Points"

NUMBER: Final = "number"
_FAMILIES: dict[type, str] = {
    int: NUMBER,
    float: NUMBER,
    str: "string",
    datetime: "timestamp",
    date: "date",
    bytes: "bytes",
}
_TYPES = f"None, {', '.join(kind.__name__ for kind in _FAMILIES)}"
_WORD = 1 << 63


@dataclass(frozen=True, slots=True)
class Points:
    """Rows of scalars over named axes. With `pairs`, a row has two numbers per axis: X and Y of a skyline point.

    A skyline point (X, Y) stands for all ranges that begin at X or before and end at Y or after.
    """

    axes: tuple[str, ...]
    rows: tuple[tuple[Scalar, ...], ...]
    pairs: bool = False

    @classmethod
    def of(cls, axes: Iterable[str], rows: Iterable[Sequence[Scalar]], *, pairs: bool = False) -> "Points":
        """Points from any sequences, checked."""
        points = cls(tuple(axes), tuple(tuple(row) for row in rows), pairs)
        width = len(points.axes) * (2 if pairs else 1)
        for row in points.rows:
            if len(row) != width:
                axes = ", ".join(points.axes)
                what = f"the point {row!r:.60} has {len(row)} coordinates, expected {width}"
                raise MessageError(f"{what}; give {'two' if pairs else 'one'} for each of the axes {axes:.60}")
            for one in row:
                check_scalar(one)
        return points

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        return f"[{'; '.join(self._row(row) for row in self.rows)}]"

    def _row(self, row: tuple[Scalar, ...]) -> str:
        if not self.pairs:
            return ", ".join(shown(one) for one in row)
        ends = zip(row[::2], row[1::2], strict=True)
        return ", ".join(shown(low) if low == high else f"{shown(low)}…{shown(high)}" for low, high in ends)


def family(value: Scalar) -> str | None:
    """The family within which a value can be compared; None for NULL."""
    return None if value is None else _FAMILIES[type(value)]


def check_scalar(value: object) -> None:
    """Raise `MessageError` unless the value is a valid scalar."""
    kind = type(value)
    if value is None or kind is bytes or kind is date:
        return
    if kind is int:
        if not -_WORD <= value < _WORD:  # type: ignore[operator]
            bits = value.bit_length()  # type: ignore[attr-defined]
            shown = f"{value}" if bits < 256 else f"of {bits:,} bits"
            raise MessageError(f"number {shown} does not fit in 64 bits; use a float or a string")
    elif kind is float:
        if isnan(value):  # type: ignore[arg-type]
            raise MessageError("NaN is not allowed in a message, because NaN cannot be compared; use None")
    elif kind is str:
        try:
            value.encode()  # type: ignore[attr-defined]
        except UnicodeEncodeError:
            raise MessageError(f"string {value!r:.60} contains a lone surrogate; remove it") from None
    elif kind is datetime:
        if value.tzinfo is not None:  # type: ignore[attr-defined]
            raise MessageError(f"timestamp {value} has a time zone; convert it to UTC and remove the time zone")
    else:
        raise MessageError(
            f"a message cannot contain {value!r:.60}: its type {kind.__name__} is not supported; use {_TYPES}"
        )


def check_value(value: object) -> None:
    """Raise `MessageError` unless the value is a valid scalar or `Points`."""
    if not isinstance(value, Points):
        check_scalar(value)


def shown(value: Value) -> str:
    """A value as text, for people."""
    if value is None:
        return "null"
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, date):
        return f"{'timestamp' if isinstance(value, datetime) else 'date'} '{value}'"
    return str(value)
