"""Queries: subscriptions in the one form that the server uses.

A query is a connected part of the join graph and a range for each of some columns (§2.2 of the select-join paper):
`select(…)` builds one in Python, `sql_parser.py` from SQL. Both collect equations between columns, and ranges, in a
`QueryDraft`.

Equations are closed under transitivity: a cycle of equal columns provides all its edges, and a range on a join column
applies to every column that equals it. Every equation must follow from declared edges.

Invariant: `edges` connect `tables` and imply exactly the equations of the query. `ranges` are not empty, unless the
query is `empty`: then no row can ever satisfy it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pathcast.errors import MessageError, QueryError, SchemaError
from pathcast.messages import Interval, Scalar

from .join_graph_schema import Draft, Edge, Schema
from .order_preserving_key_encoding import kind_of

Column: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class Query:
    """A select-join: tables, the edges that join them, ranges by table and column, and the columns of its rows."""

    text: str
    tables: tuple[str, ...]
    edges: tuple[Edge, ...]
    ranges: Mapping[str, Mapping[str, Interval]]
    output: tuple[tuple[str, Column], ...]
    empty: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of its rows."""
        return tuple(name for name, _ in self.output)

    def edges_of(self, table: str) -> list[Edge]:
        """Its edges at a table."""
        return [edge for edge in self.edges if table in edge.tables]

    def __str__(self) -> str:
        return self.text


class Classes:
    """Classes of columns that are equal by the given equations."""

    def __init__(self, equations: Iterable[tuple[Column, Column]] = ()) -> None:
        self._parent: dict[Column, Column] = {}
        for one, other in equations:
            self.equate(one, other)

    def root(self, column: Column) -> Column:
        while (above := self._parent.get(column, column)) != column:
            column = above
        return column

    def equate(self, one: Column, other: Column) -> None:
        self._parent[self.root(one)] = self.root(other)

    def same(self, one: Column, other: Column) -> bool:
        return self.root(one) == self.root(other)


@dataclass(frozen=True)
class Equation:
    """Two columns that must be equal, and the words of the query that demand it."""

    one: Column
    other: Column
    words: str = ""
    at: int | None = None


class QueryDraft:
    """A query under construction: equations and ranges on columns of some tables."""

    def __init__(self, schema: Schema, tables: Sequence[str], text: str) -> None:
        self.schema = schema
        self.tables = tuple(tables)
        self.text = text
        self.kinds = Draft(schema)
        self.equations: list[Equation] = []
        self.ranges: list[tuple[Column, Interval]] = []

    def refuse(self, reason: str, at: int | None = None, words: str = "", supported: str | None = None) -> QueryError:
        """An error that points at a place of the text."""
        column = None if at is None else at + 1
        return QueryError(reason, column=column, expression=self.text, offending=words, supported=supported)

    def range(self, column: Column, interval: Interval, at: int | None = None, words: str = "") -> None:
        """Demand a range of a column, whose ends must be of its kind."""
        ends = [end for end in (interval.low, interval.high) if end is not None]
        reasons = [self.kinds.constant(*column, end) for end in ends] if ends else [self.kinds.unbounded(*column)]
        for reason in reasons:
            if reason is not None:
                raise self.refuse(reason, at, words)
        self.ranges.append((column, interval))

    def finish(self, output: Sequence[tuple[str, Column]]) -> Query:
        """The query; the caller decides whether to keep the kinds that its constants settle (`kinds.settle`)."""
        classes = Classes((one.one, one.other) for one in self.equations)
        edges = tuple(edge for edge in self.schema.edges if self._implied(edge, classes))
        declared = Classes(pair for edge in edges for pair in edge.pairs())
        for equation in self.equations:
            if not declared.same(equation.one, equation.other):
                raise self._undeclared(equation)
        self._connect(edges)
        ranges = self._ranges(classes)
        empty = any(self._nothing((t, c), one) for t, columns in ranges.items() for c, one in columns.items())
        return Query(self.text, self.tables, edges, ranges, tuple(output), empty)

    def _implied(self, edge: Edge, classes: Classes) -> bool:
        return set(edge.tables) <= set(self.tables) and all(classes.same(*pair) for pair in edge.pairs())

    def _undeclared(self, equation: Equation) -> QueryError:
        tables = {equation.one[0], equation.other[0]}
        known = [str(edge) for edge in self.schema.edges if set(edge.tables) == tables]
        (t, a), (u, b) = equation.one, equation.other
        reason = f"the schema declares no join {t}.{a} = {u}.{b}; use a declared join, or add this one to the schema"
        others = "; ".join(map(str, self.schema.edges)) or "no joins, because the schema declares none"
        return self.refuse(reason, equation.at, equation.words, "; ".join(known) or others)

    def _connect(self, edges: Sequence[Edge]) -> None:
        reached = {self.tables[0]}
        for _ in self.tables:
            reached |= {table for edge in edges if reached & set(edge.tables) for table in edge.tables}
        apart = [table for table in self.tables if table not in reached]
        if apart:
            at = self.text.lower().find(apart[0].lower())
            raise self.refuse(
                f"no join connects '{apart[0]}' with '{self.tables[0]}'; add a join condition or remove a table",
                at if at >= 0 else None,
                apart[0],
                "; ".join(str(edge) for edge in self.schema.edges_of(apart[0]))
                or f"no joins of '{apart[0]}', because the schema declares none",
            )

    def _ranges(self, classes: Classes) -> dict[str, dict[str, Interval]]:
        """The ranges by table and column; a range applies to all columns that equal the one it was written for."""
        found: dict[str, dict[str, Interval]] = {table: {} for table in self.tables}
        for column, interval in self.ranges:
            for table in self.tables:
                for name in self.schema.columns[table]:
                    if classes.same(column, (table, name)):
                        before = found[table].get(name)
                        found[table][name] = interval if before is None else before & interval
        return found

    def _nothing(self, column: Column, interval: Interval) -> bool:
        kind = self.kinds.kind(*column)
        assert kind is not None
        return kind.ends(interval) is None


@dataclass(frozen=True)
class Selection:
    """A select-join written in Python; `select` makes one."""

    tables: tuple[str, ...]
    where: Mapping[str, Any]
    on: tuple[str, ...] | None

    def resolve(self, schema: Schema) -> tuple[Query, Draft]:
        """The query, and the kinds that its constants settle."""
        text = str(self)
        draft = QueryDraft(schema, self.tables, text)
        for table in self.tables:
            if table not in schema.columns:
                raise draft.refuse(f"unknown table '{table}'; use one of {', '.join(schema.columns)}")
        if len(set(self.tables)) < len(self.tables):
            twice = max(self.tables, key=self.tables.count)
            raise draft.refuse(f"'{twice}' is joined with itself, which is not supported; name each table once")
        draft.equations += [Equation(*pair, str(edge)) for edge in self._edges(schema, draft) for pair in edge.pairs()]
        for name, wanted in self.where.items():
            draft.range(_column(draft, name), _interval(draft, name, wanted))
        return draft.finish(_merged(draft)), draft.kinds

    def column(self, schema: Schema, name: str) -> Column:
        """The column of its tables that a name refers to."""
        draft = QueryDraft(schema, self.tables, str(self))
        draft.equations += [Equation(*pair) for edge in self._edges(schema, draft) for pair in edge.pairs()]
        return _column(draft, name)

    def _edges(self, schema: Schema, draft: QueryDraft) -> list[Edge]:
        if self.on is None:
            return [edge for edge in schema.edges if set(edge.tables) <= set(self.tables)]
        edges = []
        for join in self.on:
            try:
                asked = Schema(schema.columns, [join]).edges[0]
            except SchemaError as error:
                raise draft.refuse(f"invalid join in `on`: {error.reason}") from None
            wanted = {frozenset(pair) for pair in asked.pairs()}
            found = [edge for edge in schema.edges if {frozenset(pair) for pair in edge.pairs()} == wanted]
            if not found:
                raise draft.refuse(
                    f"the schema declares no join {join}; use a declared join, or add this one to the schema",
                    supported="; ".join(map(str, schema.edges)) or "no joins, because the schema declares none",
                )
            edges += found
        return edges

    def __str__(self) -> str:
        ranges = [f"{name} {one if isinstance(one, Interval) else repr(one)}" for name, one in self.where.items()]
        return " join ".join(self.tables) + (" where " + " and ".join(ranges) if ranges else "")


def select(*tables: str, where: Mapping[str, Any] | None = None, on: Iterable[str] | None = None) -> Selection:
    """A select-join without SQL: `select("Stocks", "Reviews", where={"per": (45, 70), "rating": (6, None)})`.

    where: for each column (`table.column` where the name is ambiguous), a pair of ends (both included, None for no
    end), an `Interval`, or a single value. on: declared joins to use; None for all joins between the tables.
    """
    if not tables or not all(isinstance(table, str) for table in tables):
        raise QueryError(f"select takes one or more table names as strings, such as select('Stocks'), got {tables!r}")
    ranges: object = {} if where is None else where
    if not isinstance(ranges, Mapping) or not all(isinstance(name, str) for name in ranges):
        raise QueryError(f"where must map columns to ranges, such as {{'per': (45, 70)}}, got {where!r}")
    if isinstance(on, str) or not (on is None or isinstance(on, Iterable)):
        raise QueryError(f"on must be a list of joins, such as ['A.x = B.y'], got {on!r}")
    return Selection(tables, dict(ranges), None if on is None else tuple(on))


def _column(draft: QueryDraft, name: str) -> Column:
    table, _, column = name.rpartition(".")
    found = [(t, column) for t in draft.tables if column in draft.schema.columns[t] and table in {"", t}]
    if not found:
        columns = ", ".join(f"{t}.{c}" for t in draft.tables for c in draft.schema.columns[t])
        raise draft.refuse(f"no table of the query has a column '{name}'", supported=f"columns {columns}")
    classes = Classes((one.one, one.other) for one in draft.equations)
    if not all(classes.same(found[0], other) for other in found):
        raise draft.refuse(f"'{name}' is ambiguous: write {' or '.join(f'{t}.{c}' for t, c in found)}")
    return found[0]


def _interval(draft: QueryDraft, name: str, wanted: Any) -> Interval:
    if isinstance(wanted, Interval):
        return wanted
    ends: tuple[Scalar, Scalar] = wanted if isinstance(wanted, tuple) and len(wanted) == 2 else (wanted, wanted)
    if wanted is None:
        raise draft.refuse(f"'{name}' cannot be compared with NULL (None); give a value or a pair (low, high)")
    try:
        for end in ends:
            if end is not None:
                kind_of(end)
        return Interval(*ends)
    except KeyError:
        raise draft.refuse(
            f"'{name}' cannot be compared with {wanted!r}; give a value of the column's kind or a pair (low, high)"
        ) from None
    except MessageError as error:
        raise draft.refuse(f"invalid condition on '{name}': {error.reason}") from None


def _merged(draft: QueryDraft) -> list[tuple[str, Column]]:
    """All columns, equal columns of one name once; a name that occurs twice is qualified by its table."""
    classes = Classes((one.one, one.other) for one in draft.equations)
    kept: list[Column] = []
    for table in draft.tables:
        for name in draft.schema.columns[table]:
            if not any(c == name and classes.same((t, c), (table, name)) for t, c in kept):
                kept.append((table, name))
    return named(kept)


def named(columns: Sequence[Column]) -> list[tuple[str, Column]]:
    """Columns with their names; a name that occurs twice is qualified by its table."""
    names = [column for _, column in columns]
    return [(c if names.count(c) == 1 else f"{t}.{c}", (t, c)) for t, c in columns]
