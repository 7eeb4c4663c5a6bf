"""Contents: which rows a query's ranges let pass, and messages that list rows for one subscription.

The form of these messages is in `words.py`: an attribute `+T`, `~T` or `-T` a table, each a table of rows with their
numbers first.
"""

from collections.abc import Iterable, Mapping, Sequence

from ..messages import Interval, Message, Points, Value
from .bags import Bag
from .schema import Row
from .words import CHANGE, COME, GO, ROW, TO


def passes(bag: Bag, ranges: Mapping[str, Interval], row: Row) -> bool:
    """Whether a row satisfies all ranges on its table."""
    return all(row[bag.columns.index(column)] in interval for column, interval in ranges.items())


def changed_columns(bag: Bag, old: Row, new: Row) -> list[str]:
    """The columns in which two versions of a row differ (1 and 1.0 do)."""
    columns = zip(bag.columns, old, new, strict=True)
    return [name for name, one, other in columns if one != other or type(one) is not type(other)]


class Listing:
    """What one event does to one subscription: rows that come, change and go, by table."""

    def __init__(self) -> None:
        self._attributes: dict[str, list[tuple[object, ...]]] = {}
        self._axes: dict[str, tuple[str, ...]] = {}

    def come(self, table: str, columns: Sequence[str], rows: Iterable[tuple[int, Row]]) -> None:
        self._list(COME + table, (ROW, *columns), [(number, *row) for number, row in rows])

    def change(self, table: str, columns: Sequence[str], number: int, values: Sequence[object]) -> None:
        self._list(CHANGE + table, (ROW, *columns), [(number, *values)])

    def go(self, table: str, numbers: Iterable[int]) -> None:
        self._list(GO + table, (ROW,), [(number,) for number in numbers])

    def _list(self, name: str, axes: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
        if rows:
            self._axes[name] = axes
            self._attributes.setdefault(name, []).extend(rows)

    def __bool__(self) -> bool:
        return bool(self._attributes)

    def message(self, subscription: int) -> Message:
        """The listing as a message to a subscription."""
        listed: dict[str, Value] = {
            name: Points.of(self._axes[name], sorted(rows, key=lambda row: row[0]))  # type: ignore[arg-type, return-value]
            for name, rows in self._attributes.items()
        }
        return Message({TO: subscription, **listed})
