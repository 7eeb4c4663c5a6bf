"""Clients: the contents that a subscriber keeps, and the query rows that follow from them.

A client reads only the messages that its filters match; so a network, a test or a plain loop may pass it any messages.
It keeps the content of one semijoin (or selection) per table, or, where join results are sent, the results. `rows()`
joins the contents along the query's edges.

Invariant: after the messages of an event, in order, `rows()` is the query's answer on the server's tables. Receiving an
arrival twice changes nothing: rows have numbers.
Cost: a message takes time proportional to its rows; `rows()` is a hash join, cached until a message changes something.
"""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from pathcast.errors import MessageError
from pathcast.messages import Message, Points, Scalar, Value

from ..query.join_graph_schema import Edge, Row, Schema
from ..query.join_subscription import Subscription
from ..query.select_join_query import Query
from ..schemes.join_result_schemes import representatives
from ..schemes.reserved_message_attributes import (
    ARRIVE,
    CHANGE,
    COME,
    DEPART,
    FORM,
    FORMS,
    GO,
    KIND,
    LEAVE,
    PATCH,
    RESULTS,
    ROW,
    TO,
    WITHDRAW,
    row_attribute,
)
from ..schemes.semijoin_templates import Form, read_forms, subscription_filters

_V = TypeVar("_V")


class Client:
    """The subscriber's side of one subscription.

    >>> schema = pathcast.joins.Schema({"Stocks": "symbol string, per float"})
    >>> server = pathcast.joins.JoinServer(schema)
    >>> client = pathcast.joins.Client(schema, server.subscribe("select * from Stocks where per > 45"))
    >>> [client.receive(message) for message in server.insert("Stocks", {"symbol": "GOOG", "per": 50})]
    [True]
    >>> client.rows()
    [('GOOG', 50)]
    """

    def __init__(self, schema: Schema, subscription: Subscription) -> None:
        self._schema = schema.internal
        self.id = subscription.id
        self.query: Query = subscription.query
        self.columns = self.query.columns
        self.filters = subscription.filters
        self._forms: dict[int, Form] = dict(subscription.forms)
        self._results: _Results | None = None
        if subscription.signature is not None:
            self._results = _Results(self._schema, self.query)
        self._tables: dict[str, dict[int, Row]] = {table: {} for table in self.query.tables}
        self._rows: list[Row] | None = None
        self.receive(subscription.initial)

    def receive(self, message: Message) -> bool:
        """Apply a message if it is for this client; return whether it was.

        `MessageError` when it is for this client and malformed; the client is then unchanged.
        """
        if not any(one.matches(message) for one in self.filters):
            return False
        self._rows = None
        if FORM not in message:
            self._read_listing(message)
        elif self._results is not None:
            self._results.read(message)
        else:
            self._read_change(message)
        return True

    def content(self, table: str) -> dict[int, Row]:
        """The rows of a base table that the client keeps, by number."""
        return dict(self._tables[table])

    # Messages to a group.

    def _read_change(self, message: Message) -> None:
        form = self._forms[_number(message[FORM])]
        rows, columns = self._tables[form.base], self._schema.columns[form.base]
        values = {name: _scalar(message[name]) for name in columns if name in message}
        kind = message[KIND]
        if kind == WITHDRAW:
            self._withdraw(form, values)
            return
        number = _number(message.get(ROW))
        if kind == PATCH:
            self._patch(form.base, number, values)
        elif kind in {DEPART, LEAVE}:
            rows.pop(number, None)
        else:
            rows[number] = tuple(_found(values, name) for name in columns)

    def _withdraw(self, form: Form, values: Mapping[str, Scalar]) -> None:
        rows, columns = self._tables[form.base], self._schema.columns[form.base]
        places = [columns.index(column) for column in form.join]
        value = [_found(values, name) for name in form.join]
        for lost in [one for one, row in rows.items() if [row[place] for place in places] == value]:
            del rows[lost]

    def _patch(self, table: str, number: int, values: Mapping[str, Scalar]) -> None:
        row = self._tables[table].get(number)
        if row is not None:
            columns = self._schema.columns[table]
            self._tables[table][number] = tuple(values.get(name, one) for name, one in zip(columns, row, strict=True))

    # Messages to this subscription alone.

    def _read_listing(self, message: Message) -> None:
        lists = {name: listed for name, listed in message.items() if name not in {TO, FORMS}}
        results = self._results
        for name, listed in lists.items():
            results.check_list(name, listed) if results is not None else self._check_list(name, listed)
        forms = message.get(FORMS)
        if forms is not None:
            self._forms = read_forms(self.query, forms)
            self.filters = subscription_filters(self.id, self.query, self._forms)
        for name, listed in lists.items():
            assert isinstance(listed, Points), "checked"
            results.read_list(name, listed) if results is not None else self._read_list(name, listed)

    def _check_list(self, name: str, listed: Value) -> None:
        mark, table = name[:1], name[1:]
        if mark not in {COME, CHANGE, GO} or table not in self._tables:
            raise MessageError(
                f"the message is damaged: '{name}' is not a table of the query; request the message again"
            )
        listed = _rows(name, listed)
        columns = self._schema.columns[table]
        fits = {
            COME: listed.axes == (ROW, *columns),
            CHANGE: listed.axes[:1] == (ROW,) and set(listed.axes[1:]) <= set(columns),
            GO: listed.axes == (ROW,),
        }
        if listed.pairs or not fits[mark]:
            raise MessageError(
                f"the message is damaged: the rows under '{name}' have unexpected columns: {', '.join(listed.axes)}; "
                "request the message again"
            )
        for row in listed.rows:
            _number(row[0])

    def _read_list(self, name: str, listed: Points) -> None:
        mark, table = name[:1], name[1:]
        for first, *values in listed.rows:
            number = _number(first)
            if mark == COME:
                self._tables[table][number] = tuple(values)
            elif mark == CHANGE:
                self._patch(table, number, dict(zip(listed.axes[1:], values, strict=True)))
            else:
                self._tables[table].pop(number, None)

    # Rows.

    def rows(self) -> list[Row]:
        """The query's rows, in no particular order; `columns` has their names."""
        if self._rows is None:
            self._rows = self._results.rows() if self._results is not None else list(self._joined())
        return list(self._rows)

    def _joined(self) -> Iterator[Row]:
        tables = self.query.tables
        places = [(tables.index(t), self._schema.columns[t].index(c)) for _, (t, c) in self.query.output]
        for combined in _join(self._schema, self.query, self._tables):
            by_table = [combined[table] for table in tables]
            yield tuple(by_table[table][column] for table, column in places)


def _join(schema: Schema, query: Query, contents: Mapping[str, Mapping[int, Row]]) -> list[dict[str, Row]]:
    """All combinations of one row per table that agree along all edges: one hash join per table."""
    first, *waiting = query.tables
    found = [{first: row} for row in contents[first].values()]
    reached = {first}
    while waiting:
        table = next(t for t in waiting if any(edge.other(t) in reached for edge in query.edges_of(t)))
        waiting.remove(table)
        edges = [edge for edge in query.edges_of(table) if edge.other(table) in reached]
        reached.add(table)
        mine = [place for edge in edges for place in _places(schema, edge, table)]
        by_value: dict[tuple[Scalar, ...], list[Row]] = {}
        for row in contents[table].values():
            by_value.setdefault(tuple(row[place] for place in mine), []).append(row)
        theirs = [(edge.other(table), _places(schema, edge, edge.other(table))) for edge in edges]
        found = [
            {**one, table: row}
            for one in found
            for row in by_value.get(tuple(one[t][place] for t, places in theirs for place in places), ())
        ]
    return found


def _places(schema: Schema, edge: Edge, table: str) -> list[int]:
    return [schema.columns[table].index(column) for column in edge.columns_of(table)]


class _Results:
    """The join results of a client that receives results instead of rows."""

    def __init__(self, schema: Schema, query: Query) -> None:
        self._tables = sorted(query.tables)
        self._numbers = [row_attribute(table) for table in self._tables]
        represent = representatives(schema.columns, query.tables, query.edges)
        self._output = [represent[f"{table}.{column}"] for _, (table, column) in query.output]
        self._results: dict[tuple[int, ...], Row] = {}

    def read(self, message: Message) -> None:
        numbers = tuple(_number(message.get(name)) for name in self._numbers)
        if message.get(KIND) == ARRIVE:
            self._results[numbers] = tuple(_scalar(_found(message, name)) for name in self._output)
        else:
            self._results.pop(numbers, None)

    def check_list(self, name: str, listed: Value) -> None:
        known = name == RESULTS or name.removeprefix(GO) in self._tables
        if not known:
            raise MessageError(
                f"the message is damaged: '{name}' is not a table of the query; request the message again"
            )
        listed = _rows(name, listed)
        if listed.pairs:
            raise MessageError(
                f"the message is damaged: '{name}' has ranges instead of rows; request the message again"
            )
        wanted = {*self._numbers, *self._output} if name == RESULTS else {ROW}
        if not wanted <= set(listed.axes) or len(set(listed.axes)) < len(listed.axes):
            raise MessageError(
                f"the message is damaged: the rows under '{name}' have unexpected columns: {', '.join(listed.axes)}; "
                "request the message again"
            )
        places = [listed.axes.index(one) for one in (self._numbers if name == RESULTS else [ROW])]
        for row in listed.rows:
            for place in places:
                _number(row[place])

    def read_list(self, name: str, listed: Points) -> None:
        if name == RESULTS:
            numbers = [listed.axes.index(one) for one in self._numbers]
            output = [listed.axes.index(one) for one in self._output]
            for row in listed.rows:
                self._results[tuple(_number(row[at]) for at in numbers)] = tuple(row[at] for at in output)
            return
        at = self._tables.index(name.removeprefix(GO))
        gone = {row[listed.axes.index(ROW)] for row in listed.rows}
        for numbers_of in [one for one in self._results if one[at] in gone]:
            del self._results[numbers_of]

    def rows(self) -> list[Row]:
        return list(self._results.values())


def _rows(name: str, listed: Value) -> Points:
    if not isinstance(listed, Points):
        raise MessageError(
            f"the message is damaged: '{name}' must be a list of rows, got {type(listed).__name__}; "
            "request the message again"
        )
    return listed


def _number(value: Value) -> int:
    if type(value) is not int:
        raise MessageError(
            f"the message is damaged: a row or semijoin number must be an int, got {value!r:.60}; request the "
            "message again"
        )
    return value


def _scalar(value: Value) -> Scalar:
    if isinstance(value, Points):
        raise MessageError("the message is damaged: a list is in place of a column value; request the message again")
    return value


def _found(values: Mapping[str, _V], name: str) -> _V:
    if name not in values:
        raise MessageError(f"the message is damaged: '{name}' is missing; request the message again")
    return values[name]
