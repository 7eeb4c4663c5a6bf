"""`enum-j`, `ref-j`, `ref-j+`: schemes that send join results (§2.3 of the select-join paper).

All subscriptions over the same tables and edges have one *signature*. An event's new join results are those of the
changed tuple with the other tables; `ref-j` injects each as a message, `ref-j+` those that some subscription wants,
`enum-j` sends each subscription its own. A departure names rows by their numbers and carries no payload.

Columns that the signature's edges make equal are sent once, under the name of the first.

Invariant: a client's results are those of its query. Every update is a departure and an arrival, under a new number.
Cost: the number of results of the event, times the search for the subscriptions that want each.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any

from pathcast.messages import Filter, Message, Points, Value

from ..index.semijoin_index_protocol import Ends, Ids, SemijoinIndex
from ..query.join_graph_schema import Edge
from ..query.order_preserving_key_encoding import Kind
from ..query.select_join_query import Classes, Column, Query
from ..server.row_multisets import Bag
from ..server.sorted_row_views import View
from .reserved_message_attributes import (
    ARRIVE,
    DEPART,
    FORM,
    GO,
    KIND,
    RESULTS,
    ROW,
    TO,
    result_filters,
    row_attribute,
    unicast,
)
from .row_listing_messages import passes
from .semijoin_group_deltas import IndexMaker
from .semijoin_scheme import Change, Version

# The numbers of the rows of a join result, by table.
Numbers = dict[str, int]


def representatives(
    columns: Mapping[str, Sequence[str]], tables: Sequence[str], edges: Sequence[Edge]
) -> dict[str, str]:
    """For each column of some tables, the attribute that represents it: the first column that equals it."""
    classes = Classes(pair for edge in edges for pair in edge.pairs())
    found: dict[Column, str] = {}
    names: dict[str, str] = {}
    for table in sorted(tables):
        for column in columns[table]:
            root = classes.root((table, column))
            names[f"{table}.{column}"] = found.setdefault(root, f"{table}.{column}")
    return names


class Signature:
    """All subscriptions over the same tables and edges."""

    def __init__(self, number: int, query: Query, bags: Mapping[str, Bag]) -> None:
        self.number = number
        self.tables = tuple(sorted(query.tables))
        self.edges = tuple(sorted(query.edges, key=lambda edge: edge.number))
        self.bags = {table: bags[table] for table in self.tables}
        self.represent = representatives(bags[self.tables[0]].schema.columns, self.tables, self.edges)
        self.attributes = sorted(set(self.represent.values()))
        self.panels: dict[tuple[Column, ...], tuple[SemijoinIndex, list[Kind]]] = {}
        self._views = {
            (edge.number, table): self.bags[table].view(edge.columns_of(table), (), self)
            for edge in self.edges
            for table in edge.tables
        }

    def close(self) -> None:
        """Release the views."""
        for bag in self.bags.values():
            bag.release(self)

    # Subscriptions.

    def add(self, id: int, query: Query, index: IndexMaker) -> None:
        """Add a subscription."""
        axes = _axes(query)
        panel, kinds = self._panel(axes, index)
        ends = [kind.ends(query.ranges[t][c]) for kind, (t, c) in zip(kinds, axes, strict=True)]
        panel.add(id, [one for one in ends if one is not None], [])

    def _panel(self, axes: tuple[Column, ...], index: IndexMaker) -> tuple[SemijoinIndex, list[Kind]]:
        if axes not in self.panels:
            kinds = [kind for t, c in axes if (kind := self.bags[t].schema.kind(t, c)) is not None]
            self.panels[axes] = (index(kinds, ()), kinds)
        return self.panels[axes]

    def add_many(self, ids: Ids, keys: Mapping[Column, Ends], index: IndexMaker) -> None:
        """Add a batch of subscriptions."""
        axes = tuple(sorted(keys))
        panel, _ = self._panel(axes, index)
        panel.add_many(ids, [keys[axis] for axis in axes], [])

    def remove(self, id: int, query: Query) -> None:
        """Forget a subscription."""
        axes = _axes(query)
        self.panels[axes][0].remove(id)
        if not len(self.panels[axes][0]):
            del self.panels[axes]

    def wanting(self, result: Numbers) -> list[int]:
        """The subscriptions whose ranges contain a result."""
        return sorted(id for index, at in self._placed(result) for id in index.selected(at).tolist())

    def wanted(self, result: Numbers) -> bool:
        """Whether there is such a subscription; does not list them."""
        return any(index.compare(None, at, None)[1] for index, at in self._placed(result))

    def _placed(self, result: Numbers) -> Iterator[tuple[SemijoinIndex, Any]]:
        """The panels, each with a result's point in it; none where it has a NULL, which no range contains."""
        for axes, (index, kinds) in self.panels.items():
            values = [self.value(result, table, column) for table, column in axes]
            if all(value is not None for value in values):
                keys = tuple(kind.key(value) for kind, value in zip(kinds, values, strict=True))
                yield index, keys[0] if len(keys) == 1 else keys

    # Results.

    def value(self, result: Numbers, table: str, column: str) -> Any:
        """A column of a result."""
        bag = self.bags[table]
        return bag.rows[result[table]][bag.columns.index(column)]

    def results(self, table: str, number: int) -> Iterator[Numbers]:
        """The join results that have a certain row of a table."""
        yield from self._extended({table: number}, self._order(table))

    def _order(self, first: str) -> list[tuple[str, list[Edge]]]:
        """The other tables, each with the edges that join it to the first or to those before it."""
        reached, order = {first}, []
        while len(reached) < len(self.tables):
            table = next(
                t
                for t in self.tables
                if t not in reached and any(t in e.tables and e.other(t) in reached for e in self.edges)
            )
            order.append((table, [e for e in self.edges if table in e.tables and e.other(table) in reached]))
            reached.add(table)
        return order

    def _extended(
        self,
        result: Numbers,
        order: Sequence[tuple[str, list[Edge]]],
        passing: Mapping[str, Container[int]] | None = None,
    ) -> Iterator[Numbers]:
        """The extensions of a partial result by one more table, restricted to the rows that pass, if given."""
        if not order:
            yield result
            return
        table, edges = order[0]
        for number in self._joining(result, table, edges):
            if passing is None or number in passing[table]:
                yield from self._extended({**result, table: number}, order[1:], passing)

    def _joining(self, result: Numbers, table: str, edges: Sequence[Edge]) -> Iterator[int]:
        """The rows of a table that join a partial result along all of some edges."""
        first, *others = edges
        for number in self._views[first.number, table].run(self._join_value(result, table, first)).rows:
            row = self.bags[table].rows[number]
            if all(
                self._views[edge.number, table].join_value(row) == self._join_value(result, table, edge)
                for edge in others
            ):
                yield number

    def _join_value(self, result: Numbers, table: str, edge: Edge) -> tuple[Any, ...]:
        other = edge.other(table)
        view: View = self._views[edge.number, other]
        return view.join_value(self.bags[other].rows[result[other]])

    def content(self, query: Query) -> list[Numbers]:
        """The current results of a query; only rows in its ranges are joined."""
        first = self.tables[0]
        passing = {
            table: {number for number, row in bag if passes(bag, query.ranges[table], row)}
            for table, bag in self.bags.items()
        }
        order = self._order(first)
        return [
            result for number in sorted(passing[first]) for result in self._extended({first: number}, order, passing)
        ]

    def row(self, result: Numbers, attributes: Sequence[str]) -> list[Any]:
        """Attributes of a result."""
        return [self.value(result, *attribute.split(".")) for attribute in attributes]


class ResultScheme(ABC):
    """Signatures, and events at their tables."""

    keeps_numbers = False

    def __init__(self, bags: Mapping[str, Bag], index: IndexMaker) -> None:
        self.bags = bags
        self._index = index
        self.signatures: dict[tuple[Any, ...], Signature] = {}
        self._next = 1
        self._messages: list[Message] = []

    def add(self, id: int, query: Query) -> int:
        """Add a subscription; return the number of its signature."""
        signature = self._signature(query)
        signature.add(id, query, self._index)
        return signature.number

    def add_many(self, ids: Ids, query: Query, keys: Mapping[Column, Ends]) -> int:
        """Add a batch of subscriptions; return the number of their signature."""
        signature = self._signature(query)
        signature.add_many(ids, keys, self._index)
        return signature.number

    def _signature(self, query: Query) -> Signature:
        name = _name(query)
        signature = self.signatures.get(name)
        if signature is None:
            signature = self.signatures[name] = Signature(self._next, query, self.bags)
            self._next += 1
        return signature

    def remove(self, id: int, query: Query) -> None:
        """Forget a subscription."""
        signature = self.signatures[_name(query)]
        signature.remove(id, query)
        if not signature.panels:
            signature.close()
            del self.signatures[_name(query)]

    def filters(self, id: int, query: Query) -> tuple[Filter, ...]:
        """The filters that a subscription registers."""
        signature = self.signatures[_name(query)]
        return (unicast(id), *result_filters(signature.number, query.ranges, signature.represent))

    def initial(self, id: int, query: Query) -> Message:
        """The results at the time of subscribing."""
        signature = self.signatures[_name(query)]
        found = signature.content(query)
        return Message({TO: id, RESULTS: listed(signature, found)} if found else {TO: id})

    def before(self, change: Change) -> None:
        """Find the results of the old row while it exists."""
        self._messages = []
        if change.old:
            self._each(change.table, change.old, self.depart)

    def after(self, change: Change) -> list[Message]:
        """Find the results of the new row once it exists."""
        if change.new:
            self._each(change.table, change.new, self.arrive)
        return self._messages

    def _each(self, table: str, version: Version, tell: Callable[[Signature, str, int, list[Numbers]], None]) -> None:
        for signature in self.signatures.values():
            if table in signature.tables:
                found = list(signature.results(table, version.number))
                if found:
                    tell(signature, table, version.number, found)

    @abstractmethod
    def arrive(self, signature: Signature, table: str, number: int, results: list[Numbers]) -> None:
        """Report the new results of an inserted row."""

    @abstractmethod
    def depart(self, signature: Signature, table: str, number: int, results: list[Numbers]) -> None:
        """Report the removed results of a deleted row."""


class ReformulatedResults(ResultScheme):
    """`ref-j`, and with `wanted` `ref-j+`: one message per result."""

    def __init__(self, bags: Mapping[str, Bag], index: IndexMaker, *, wanted: bool) -> None:
        super().__init__(bags, index)
        self._wanted = wanted

    def arrive(self, signature: Signature, table: str, number: int, results: list[Numbers]) -> None:
        joined = {f"{table}.{column}" for edge in signature.edges for pair in edge.pairs() for table, column in pair}
        light = self._ranged(signature) | {signature.represent[name] for name in joined}
        payload = [attribute for attribute in signature.attributes if attribute not in light]
        self._tell(signature, ARRIVE, signature.attributes, payload, results)

    def depart(self, signature: Signature, table: str, number: int, results: list[Numbers]) -> None:
        self._tell(signature, DEPART, sorted(self._ranged(signature)), [], results)

    @staticmethod
    def _ranged(signature: Signature) -> set[str]:
        return {signature.represent[f"{table}.{column}"] for axes in signature.panels for table, column in axes}

    def _tell(
        self, signature: Signature, kind: str, attributes: Sequence[str], payload: Sequence[str], results: list[Numbers]
    ) -> None:
        for result in results:
            if self._wanted and not signature.wanted(result):
                continue
            values: dict[str, Value] = dict(zip(attributes, signature.row(result, attributes), strict=True))
            numbers: dict[str, Value] = {row_attribute(table): result[table] for table in signature.tables}
            self._messages.append(Message({FORM: signature.number, KIND: kind, **numbers, **values}, payload))


class EnumeratedResults(ResultScheme):
    """`enum-j`: one message per subscription, with its results. Each result is encoded once for all subscriptions."""

    def arrive(self, signature: Signature, table: str, number: int, results: list[Numbers]) -> None:
        axes, rows = _tabulated(signature, results)
        wanted: dict[int, list[tuple[Any, ...]]] = {}
        for result, row in rows:
            for id in signature.wanting(result):
                wanted.setdefault(id, []).append(row)
        for id, found in sorted(wanted.items()):
            self._messages.append(Message.trusted({TO: id, RESULTS: Points(axes, tuple(found))}, frozenset()))

    def depart(self, signature: Signature, table: str, number: int, results: list[Numbers]) -> None:
        gone = Points((ROW,), ((number,),))
        for id in sorted({id for result in results for id in signature.wanting(result)}):
            self._messages.append(Message.trusted({TO: id, GO + table: gone}, frozenset()))


def listed(signature: Signature, results: Sequence[Numbers]) -> Points:
    """Results as a table: numbers of rows, then attributes."""
    axes, rows = _tabulated(signature, results)
    return Points(axes, tuple(row for _, row in rows))


def _tabulated(
    signature: Signature, results: Sequence[Numbers]
) -> tuple[tuple[str, ...], list[tuple[Numbers, tuple[Any, ...]]]]:
    """The axes of a table of results, and each result with its row, in the order of the numbers of their rows."""
    tables, attributes = signature.tables, signature.attributes
    ordered = sorted(results, key=lambda result: [result[table] for table in tables])
    rows = [(result, (*(result[table] for table in tables), *signature.row(result, attributes))) for result in ordered]
    return (*(row_attribute(table) for table in tables), *attributes), rows


def _axes(query: Query) -> tuple[Column, ...]:
    """The columns that a query has ranges on."""
    return tuple(sorted((table, column) for table, ranges in query.ranges.items() for column in ranges))


def _name(query: Query) -> tuple[Any, ...]:
    return tuple(sorted(query.tables)), tuple(sorted(edge.number for edge in query.edges))
