"""Rows: the measurements of an experiment, one mapping from columns to plain values per point.

A column holds text, numbers, bools or None, so that the same rows can be written to Parquet, CSV and Markdown. Rows
keep the order in which the experiment yielded them; columns are in the order of their first appearance.

A judge of a claim asks for rows by value. If a run has no such row (a rival was left out, a scale is too small), the
query raises `MissingRowError`, and the claim is not measurable.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import overload

Value = str | int | float | bool | None
Row = Mapping[str, Value]


class MissingRowError(LookupError):
    """No row, or more than one, has the wanted values."""


class Rows(Sequence[Row]):
    """An immutable sequence of rows, with the queries that judges and plots need."""

    def __init__(self, rows: Iterable[Mapping[str, object]]) -> None:
        self._rows: tuple[Row, ...] = tuple({name: _plain(name, value) for name, value in row.items()} for row in rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> "Rows": ...
    def __getitem__(self, index: int | slice) -> "Row | Rows":
        return Rows(self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns, in order of first appearance."""
        return tuple(dict.fromkeys(name for row in self._rows for name in row))

    def where(self, **values: Value) -> "Rows":
        """The rows that have all these values."""
        wanted = values.items()
        return Rows(row for row in self._rows if all(name in row and row[name] == value for name, value in wanted))

    def one(self, **values: Value) -> Row:
        """The only row that has these values."""
        found = self.where(**values)
        if len(found) != 1:
            wanted = ", ".join(f"{name} = {value}" for name, value in values.items())
            raise MissingRowError(f"{len(found):,} rows have {wanted}, expected 1" if found else f"no row has {wanted}")
        return found[0]

    def number(self, column: str, **values: Value) -> float:
        """The number in this column of the only row that has these values."""
        return number_in(self.one(**values), column)

    def numbers(self, column: str) -> list[float]:
        """All numbers of a column; rows without one are left out."""
        values = (row.get(column) for row in self._rows)
        return [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]

    def distinct(self, column: str) -> list[Value]:
        """The different values of a column, in order of first appearance."""
        return list(dict.fromkeys(row[column] for row in self._rows if column in row))


def number_in(row: Row, column: str) -> float:
    """The number in this column of a row."""
    value = row.get(column)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MissingRowError(f"no number in column {column!r}, got {value!r}")
    return value


def _plain(name: str, value: object) -> Value:
    import numpy as np

    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"column {name!r} holds a {type(value).__name__}; use str, int, float, bool or None")
