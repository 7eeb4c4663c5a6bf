"""Schemas: tables, their columns and kinds, and the join graph whose edges subscriptions may join along.

    Schema({"Stocks": "symbol, per, name", "Reviews": "symbol string, rating float, text"},
           joins=["Stocks.symbol = Reviews.symbol"])

A column without a declared kind takes the kind of its first value or constant (numbers become floats),
together with all columns that it joins. An edge may have several columns (`A.x = B.x and A.y = B.y`); the graph may
have cycles, and several edges between two tables. `payloads` names large columns that are stored separately
(`payload_table_split.py`).

Invariant: columns that an edge joins hold one family of values. Kinds settle once and never change. The kinds of a
`Draft` become part of the schema only by `settle`, so that a rejected change or subscription leaves no trace.
"""

import re
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pathcast.errors import ChangeError, SchemaError
from pathcast.messages import Scalar

from .order_preserving_key_encoding import KIND_NAMES, Kind, kind_named, kind_of

if TYPE_CHECKING:
    from .payload_table_split import SplitSchema

Row: TypeAlias = tuple[Scalar, ...]
_NAME = re.compile(r"[^\W\d]\w*")
_EQUATION = re.compile(r"\s*(\w+)\.(\w+)\s*=\s*(\w+)\.(\w+)\s*")


@dataclass(frozen=True)
class Edge:
    """A way to join two tables: these columns of one equal those of the other, in this order."""

    number: int
    tables: tuple[str, str]
    columns: tuple[tuple[str, ...], tuple[str, ...]]

    def columns_of(self, table: str) -> tuple[str, ...]:
        """The join columns of one of its tables."""
        return self.columns[self.tables.index(table)]

    def other(self, table: str) -> str:
        """The table at its other end."""
        return self.tables[1 - self.tables.index(table)]

    def pairs(self) -> list[tuple[tuple[str, str], tuple[str, str]]]:
        """The equations, as pairs of (table, column)."""
        (one, other), (left, right) = self.tables, self.columns
        return [((one, a), (other, b)) for a, b in zip(left, right, strict=True)]

    def __str__(self) -> str:
        return " and ".join(f"{t}.{a} = {u}.{b}" for (t, a), (u, b) in self.pairs())


class Schema:
    """Tables and the edges of their join graph.

    >>> schema = pathcast.joins.Schema({"R": "b, a float", "S": "b, c float"}, joins=["R.b = S.b"])
    >>> schema.columns["S"]
    ('b', 'c')
    """

    def __init__(
        self,
        tables: Mapping[str, str | Mapping[str, str | None] | Iterable[str]],
        joins: Iterable[str] = (),
        payloads: Mapping[str, str | Iterable[str]] | None = None,
    ) -> None:
        self.columns: dict[str, tuple[str, ...]] = {}
        self._kinds: MutableMapping[tuple[str, str], Kind] = {}
        for table, columns in tables.items():
            self._add_table(table, columns)
        if not self.columns:
            raise SchemaError(
                "the schema has no tables; give at least one, such as {'Stocks': 'symbol string, per float'}"
            )
        self.edges: tuple[Edge, ...] = ()
        self._joined: dict[str, frozenset[str]] = {}
        for join in _texts(joins, "joins must be a list, such as ['A.x = B.y']"):
            self._add_edge(join)
        self.inside: SplitSchema | None = None
        if payloads:
            from . import payload_table_split as apart

            self.inside = apart.SplitSchema(self, {table: _names(columns) for table, columns in payloads.items()})
            self._kinds = apart.PlacedKinds(self.inside)

    @property
    def internal(self) -> "Schema":
        """The schema of the tables as they are stored, with separate payloads (`payload_table_split.py`)."""
        return self.inside.schema if self.inside else self

    def _add_table(self, table: str, columns: str | Mapping[str, str | None] | Iterable[str]) -> None:
        _check_name(table, "a table")
        if any(table.lower() == one.lower() for one in self.columns):
            raise SchemaError(f"two tables are named '{table}' (case is ignored); rename one of them")
        if isinstance(columns, Mapping):
            declared = list(columns.items())
        else:
            parts = (
                columns.split(",")
                if isinstance(columns, str)
                else _texts(columns, f"the columns of '{table}' must be given as 'name kind, …'")
            )
            declared = [_declared(part, table) for part in parts]
        if not declared:
            raise SchemaError(f"table '{table}' has no columns; give them as 'name kind, …'")
        names: list[str] = []
        for column, kind in declared:
            _check_name(column, f"a column of '{table}'")
            if any(column.lower() == one.lower() for one in names):
                raise SchemaError(f"table '{table}' has two columns '{column}' (case is ignored); rename one of them")
            names.append(column)
            if kind is not None:
                self._kinds[table, column] = _kind(kind, table, column)
        self.columns[table] = tuple(names)

    def _add_edge(self, join: str) -> None:
        pairs: list[tuple[str, str, str, str]] = []
        for part in re.split(r"\band\b", join, flags=re.IGNORECASE):
            equation = _EQUATION.fullmatch(part)
            if equation is None:
                raise SchemaError(f"a join must read 'A.x = B.y' or 'A.x = B.y and A.z = B.w', got '{join}'")
            pairs.append(equation.groups())  # type: ignore[arg-type]
        one, other = pairs[0][0], pairs[0][2]
        turned = [pair if pair[0] == one else (*pair[2:], *pair[:2]) for pair in pairs]
        if one == other:
            raise SchemaError(f"'{join}' joins '{one}' with itself; declare a second table instead")
        for left, a, right, b in turned:
            if (left, right) != (one, other):
                raise SchemaError(f"'{join}' names more than two tables; declare one join per pair of tables")
            for table, column in ((left, a), (right, b)):
                self.place(table, column)
        edge = Edge(
            len(self.edges), (one, other), (tuple(pair[1] for pair in turned), tuple(pair[3] for pair in turned))
        )
        for known in self.edges:
            if set(edge.pairs()) <= {*known.pairs(), *(pair[::-1] for pair in known.pairs())}:
                raise SchemaError(f"the join '{join}' is already declared, by '{known}'; remove one of the two")
        self.edges += (edge,)
        for table in edge.tables:
            self._joined[table] = self._joined.get(table, frozenset()).union(edge.columns_of(table))
        self._agree(edge)

    def _agree(self, edge: Edge) -> None:
        for one, other in edge.pairs():
            draft = Draft(self)
            kinds = [kind for kind in (draft.kind(*one), draft.kind(*other)) if kind is not None]
            if len({kind.family for kind in kinds}) > 1:
                names = [f"{t}.{c} ({k.name})" for (t, c), k in zip((one, other), kinds, strict=True)]
                raise SchemaError(
                    f"{names[0]} and {names[1]} cannot be joined, because their kinds differ; declare the same kind "
                    "for both"
                )
            for kind in kinds:
                if not kind.ordered:
                    raise SchemaError(
                        f"'{edge}' joins columns of bytes, which is not supported; join columns of another kind"
                    )
                draft.learn(*one, kind)
                draft.learn(*other, kind)
            draft.settle()

    def place(self, table: str, column: str) -> int:
        """The position of a column in its table's rows."""
        if table not in self.columns:
            raise SchemaError(f"unknown table '{table}'; use one of {', '.join(self.columns)}")
        if column not in self.columns[table]:
            raise SchemaError(f"table '{table}' has no column '{column}'; use one of {', '.join(self.columns[table])}")
        return self.columns[table].index(column)

    def kind(self, table: str, column: str) -> Kind | None:
        """The kind of a column, once it is known."""
        return self._kinds.get((table, column))

    def settle(self, kinds: Mapping[tuple[str, str], Kind]) -> None:
        """Fix the kinds of columns."""
        self._kinds.update(kinds)

    def edges_of(self, table: str) -> list[Edge]:
        """The edges at a table."""
        return [edge for edge in self.edges if table in edge.tables]

    def join_columns(self, table: str) -> frozenset[str]:
        """The columns that some edge joins; they must not be NULL."""
        return self._joined.get(table, frozenset())

    def __str__(self) -> str:
        return "; ".join(f"{table}({', '.join(columns)})" for table, columns in self.columns.items())


class Draft:
    """The kinds that a change or a subscription would settle."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._learnt: dict[tuple[str, str], Kind] = {}

    def kind(self, table: str, column: str) -> Kind | None:
        """The kind of a column: settled, or learnt in this draft."""
        return self.schema.kind(table, column) or self._learnt.get((table, column))

    def learn(self, table: str, column: str, kind: Kind) -> None:
        """Give a kind to a column that has none, and to all columns that join it."""
        waiting = [(table, column)]
        while waiting:
            at = waiting.pop()
            if self.kind(*at) is None:
                self._learnt[at] = kind
                pairs = [pair for edge in self.schema.edges for pair in edge.pairs() if at in pair]
                waiting += [one if other == at else other for one, other in pairs]

    def constant(self, table: str, column: str, value: Scalar) -> str | None:
        """Why a constant cannot be compared with a column; None when it can."""
        kind = self.kind(table, column)
        if kind is None:
            kind = kind_of(value)
            self.learn(table, column, kind)
        if not kind.ordered:
            return f"{table}.{column} holds bytes, which cannot be compared; remove the condition"
        if kind.family != kind_of(value).family:
            other = kind_of(value).family
            return f"{table}.{column} is of kind {kind.name} and cannot be compared with a {other}; give {kind.noun}"
        return None

    def unbounded(self, table: str, column: str) -> str | None:
        """Why a column cannot have a range without ends, which contains all values but NULL; None when it can."""
        kind = self.kind(table, column)
        if kind is None:
            return (
                f"{table}.{column} has no kind, and a range without ends does not imply one; declare its kind in the "
                f"schema, such as '{column} float'"
            )
        return None if kind.ordered else f"{table}.{column} holds bytes, which cannot be compared; remove the condition"

    def row(self, table: str, given: Mapping[str, Any]) -> Row:
        """A row as a tuple, checked against its table."""
        columns = self.schema.columns.get(table)
        if columns is None:
            raise ChangeError(f"unknown table '{table}'; use one of {', '.join(self.schema.columns)}")
        unknown = [name for name in given if name not in columns]
        if unknown:
            raise ChangeError(f"table '{table}' has no column '{unknown[0]}'; use one of {', '.join(columns)}")
        missing = [name for name in columns if name not in given]
        if missing:
            raise ChangeError(
                f"the row for table '{table}' lacks column '{missing[0]}'; give a value, or None (null in JSON) "
                "for NULL"
            )
        joined = self.schema.join_columns(table)
        for column in columns:
            value = given[column]
            if value is None:
                if column in joined:
                    raise ChangeError(f"{table}.{column} is a join column and must not be NULL; give a value")
                continue
            self._check(table, column, value)
        return tuple(given[column] for column in columns)

    def _check(self, table: str, column: str, value: Any) -> None:
        kind = self.kind(table, column)
        if kind is None:
            try:
                kind = kind_of(value)
            except KeyError:
                raise ChangeError(
                    f"the value of column {table}.{column} has the unsupported type {type(value).__name__}; use "
                    "one of the kinds "
                    f"{', '.join(KIND_NAMES)}"
                ) from None
        reason = kind.check(value)
        if reason is None and not kind.ordered and column in self.schema.join_columns(table):
            reason = "a join column must not hold bytes; declare another kind"
        if reason is not None:
            raise ChangeError(f"invalid value of column {table}.{column}: {reason}")
        self.learn(table, column, kind)

    def settle(self) -> None:
        """Store the learnt kinds in the schema."""
        self.schema.settle(self._learnt)
        self._learnt = {}


def _declared(part: str, table: str) -> tuple[str, str | None]:
    words = part.split()
    if len(words) not in {1, 2}:
        raise SchemaError(f"a column of table '{table}' must read 'name' or 'name kind', got '{part.strip()}'")
    return words[0], words[1] if len(words) == 2 else None


def _check_name(name: str, what: str) -> None:
    if type(name) is not str or _NAME.fullmatch(name) is None:
        raise SchemaError(f"the name of {what} must consist of letters, digits and _, got {name!r}")


def _kind(name: str, table: str, column: str) -> Kind:
    try:
        return kind_named(name)
    except (KeyError, AttributeError):  # not a string
        raise SchemaError(
            f"column {table}.{column} has the unknown kind '{name}'; use one of {', '.join(KIND_NAMES)}"
        ) from None


def _names(columns: str | Iterable[str]) -> tuple[str, ...]:
    shape = "payloads must be columns, such as 'photo, text'"
    given = columns.split(",") if isinstance(columns, str) else _texts(columns, shape)
    return tuple(one.strip() for one in given)


def _texts(given: Any, shape: str) -> list[str]:
    """A list of strings from a file or a program; `shape` describes it in the error."""
    if isinstance(given, Iterable) and not isinstance(given, str):
        texts = list(given)
        if all(isinstance(one, str) for one in texts):
            return texts
    raise SchemaError(f"{shape}, got {given!r:.60}")
