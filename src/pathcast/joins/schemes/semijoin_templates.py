"""Forms of semijoins: the common properties of a group, with their filters and encoding.

A form R^S (§4 of the select-join paper) is a base table R, a filtering table S, the edge that joins them, and the
attributes of S that are tested, the *axes*. A range on a join column needs no axis: the base tuple is tested for it,
and the filtering tuple has the same value. A *selection* is a form without filtering table.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pathcast.errors import MessageError
from pathcast.messages import Filter, Interval, Points, Scalar, Value

from ..query.join_graph_schema import Edge
from ..query.select_join_query import Query
from .reserved_message_attributes import semijoin_filters, unicast

_AXES = ("number", "table", "edge", "axes")


@dataclass(frozen=True)
class Form:
    """The common properties of a group of semijoins; `edge` is None for a selection."""

    base: str
    edge: Edge | None = None
    axes: tuple[str, ...] = ()

    @property
    def filtering(self) -> str | None:
        """The filtering table."""
        return self.edge.other(self.base) if self.edge else None

    @property
    def join(self) -> tuple[str, ...]:
        """The join columns of the base table."""
        return self.edge.columns_of(self.base) if self.edge else ()

    def __str__(self) -> str:
        return f"{self.base}^{self.filtering}" if self.edge else self.base

    def ranges(self, query: Query) -> dict[str, Interval]:
        """A query's ranges on the filtering axes."""
        return {axis: query.ranges[self.filtering][axis] for axis in self.axes} if self.filtering else {}


def subscription_filters(id: int, query: Query, forms: Mapping[int, Form]) -> tuple[Filter, ...]:
    """The filters of a subscription with semijoins of these forms."""
    found = [unicast(id)]
    for number, form in forms.items():
        found += semijoin_filters(number, query.ranges[form.base], form.ranges(query) if form.edge else None)
    return tuple(found)


def write_forms(forms: Mapping[int, Form]) -> Points:
    """Forms as the value of an attribute."""
    rows = [
        (number, form.base, form.edge.number if form.edge else None, ",".join(form.axes))
        for number, form in forms.items()
    ]
    return Points.of(_AXES, rows)


def read_forms(query: Query, value: Value) -> dict[int, Form]:
    """The forms that an attribute lists for a query; `MessageError` when they do not fit the query."""
    if not isinstance(value, Points) or value.axes != _AXES or value.pairs:
        raise MessageError("the message is damaged: the list of semijoins is missing; request the message again")
    found: dict[int, Form] = {}
    for number, table, edge, axes in value.rows:
        form = _form(query, table, edge, axes)
        if form is None or type(number) is not int or number in found:
            wrong = "does not fit the query" if form is None or type(number) is not int else "occurs twice"
            raise MessageError(
                f"the message is damaged: semijoin {number!r:.60} of table {table!r:.60} {wrong}; request the "
                "message again"
            )
        found[number] = form
    if sorted(form.base for form in found.values()) != sorted(query.tables):
        raise MessageError(
            f"the message is damaged: expected one semijoin for each of the tables {', '.join(query.tables)}; "
            "request the message again"
        )
    return found


def _form(query: Query, table: Scalar, number: Scalar, axes: Scalar) -> Form | None:
    """A form of a query's semijoins, as it is written; None when the query has no such."""
    names = tuple(axes.split(",")) if isinstance(axes, str) and axes else ()
    if table not in query.tables or not isinstance(table, str):
        return None
    if number is None:
        return Form(table) if not names else None
    edge = next((edge for edge in query.edges_of(table) if edge.number == number), None)
    if edge is None or not set(names) <= set(query.ranges[edge.other(table)]):
        return None
    return Form(table, edge, names)
