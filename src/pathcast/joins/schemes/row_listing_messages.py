"""Row listings: which rows satisfy a query's ranges, and messages that list rows for one subscription.

The form of these messages is in `reserved_message_attributes.py`: one attribute `+T`, `~T` or `-T` per table, each a
table of rows with their numbers first.
"""

from collections.abc import Iterable, Mapping, Sequence

from pathcast.messages import Interval, Message, Points, Scalar, Value

from ..query.join_graph_schema import Row
from ..server.row_multisets import Bag
from .reserved_message_attributes import CHANGE, COME, GO, ROW, TO


def passes(bag: Bag, ranges: Mapping[str, Interval], row: Row) -> bool:
    """Whether a row satisfies all ranges on its table."""
    return all(row[bag.columns.index(column)] in interval for column, interval in ranges.items())


def changed_columns(bag: Bag, old: Row, new: Row) -> list[str]:
    """The columns in which two versions of a row differ (1 and 1.0 do)."""
    columns = zip(bag.columns, old, new, strict=True)
    return [name for name, one, other in columns if one != other or type(one) is not type(other)]


def come(table: str, columns: Sequence[str], rows: Iterable[tuple[int, Row]]) -> tuple[str, Points]:
    """New rows, as an attribute and its value; rows ascend by their numbers here and below."""
    return COME + table, Points((ROW, *columns), tuple((number, *row) for number, row in rows))


def change(table: str, columns: Sequence[str], number: int, values: Sequence[Scalar]) -> tuple[str, Points]:
    """A row with changed columns."""
    return CHANGE + table, Points((ROW, *columns), ((number, *values),))


def go(table: str, numbers: Iterable[int]) -> tuple[str, Points]:
    """Removed rows."""
    return GO + table, Points((ROW,), tuple((number,) for number in numbers))


class Listing:
    """The rows that one subscription gains and loses, by table."""

    def __init__(self) -> None:
        self._attributes: dict[str, Value] = {}

    def come(self, table: str, columns: Sequence[str], rows: Iterable[tuple[int, Row]]) -> None:
        self.add(come(table, columns, sorted(rows)))

    def go(self, table: str, numbers: Iterable[int]) -> None:
        self.add(go(table, sorted(numbers)))

    def add(self, listed: tuple[str, Points]) -> None:
        """Add rows of a table, unless there are none."""
        name, points = listed
        if len(points):
            self._attributes[name] = points

    def message(self, subscription: int) -> Message:
        """The listing as a message to a subscription."""
        return Message({TO: subscription, **self._attributes})
