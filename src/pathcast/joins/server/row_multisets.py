"""Multisets: the rows of a table, duplicates included, and sorted views of them.

Every row has its own number as long as it exists, so that messages can name it and clients can drop the right one of
two equal rows. A view (`sorted_row_views.py`) exists for each pair of join columns and selection attributes in use, and
its users share it.

Invariant: every view holds exactly the rows of the bag (except those with a NULL on its axes).
Cost: a change takes one dict operation, and one insertion per view.
"""

from collections.abc import Iterator, Sequence

from ..query.join_graph_schema import Row, Schema
from .sorted_row_views import View


class Bag:
    """One table's rows by number."""

    def __init__(self, schema: Schema, table: str) -> None:
        self.schema = schema
        self.table = table
        self.columns = schema.columns[table]
        self.rows: dict[int, Row] = {}
        self._numbers: dict[Row, list[int]] = {}
        self._views: dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[View, list[object]]] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[int, Row]]:
        return iter(self.rows.items())

    def number_of(self, row: Row) -> int | None:
        """The number of the newest row that equals this one; None when there is none."""
        found = self._numbers.get(row)
        return found[-1] if found else None

    def count(self, row: Row) -> int:
        """The number of rows equal to this one."""
        return len(self._numbers.get(row, ()))

    def insert(self, number: int, row: Row) -> None:
        self.take(number, row)
        for view, _ in self._views.values():
            view.insert(number, row)

    def delete(self, number: int) -> Row:
        row = self.rows.pop(number)
        numbers = self._numbers[row]
        if numbers[-1] == number:  # the newest, as `number_of` returns it
            numbers.pop()
        else:
            numbers.remove(number)
        if not numbers:
            del self._numbers[row]
        for view, _ in self._views.values():
            view.delete(number, row)
        return row

    def take(self, number: int, row: Row) -> None:
        """Add a row, but not to views: the caller updates them (`View.put`)."""
        self.rows[number] = row
        self._numbers.setdefault(row, []).append(number)

    def give(self, row: Row) -> int | None:
        """Remove the newest row that equals this one, but not from views; its number, None when there is none."""
        numbers = self._numbers.get(row)
        if not numbers:
            return None
        number = numbers.pop()
        if not numbers:
            del self._numbers[row]
        del self.rows[number]
        return number

    def clear(self) -> None:
        """Remove all rows."""
        self.rows.clear()
        self._numbers.clear()
        for view, _ in self._views.values():
            view.runs.clear()

    def places(self, columns: Sequence[str]) -> list[int]:
        """The positions of columns in a row."""
        return [self.columns.index(column) for column in columns]

    def view(self, join: Sequence[str], axes: Sequence[str], user: object) -> View:
        """The view on these join columns and axes, kept until its last user releases it."""
        name = (tuple(join), tuple(axes))
        known = self._views.get(name)
        if known is None:
            kinds = [self.schema.kind(self.table, axis) for axis in axes]
            assert None not in kinds, "a subscription's constants have settled the kind of an axis"
            view = View(self.places(join), self.places(axes), [kind for kind in kinds if kind is not None])
            for number, row in self.rows.items():
                view.insert(number, row)
            known = self._views[name] = (view, [])
        known[1].append(user)
        return known[0]

    def views(self) -> dict[tuple[tuple[str, ...], tuple[str, ...]], View]:
        """The views in use, by join columns and axes."""
        return {name: view for name, (view, _) in self._views.items()}

    def release(self, user: object) -> None:
        """Release a user's views."""
        for name, (_, users) in list(self._views.items()):
            users[:] = [one for one in users if one is not user]
            if not users:
                del self._views[name]
