"""SQL to queries: parses the subset of `select` for select-joins with sqlglot; errors point at the words.

    select * from A natural join B join C on B.x = C.y where A.v between 1 and 5 and C.w >= 'm'

Tables are joined by `natural join`, `join … on`, `join … using`, or commas and equations in `where`; conditions are
comparisons of a column with a constant and `between`, joined by `and`; `on` may have them, too. Names are not case
sensitive. Unsupported words are rejected from the tokens, before sqlglot parses, because a token knows its position.

Invariant: an accepted query has the answer that a database gives; a test compares with DuckDB.
Not done: projections, self-joins, outer joins, `or`, `not`, `in`, expressions, NULL tests.
"""

from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from math import ceil, copysign, floor, inf
from typing import Any, TypeAlias

from pathcast.errors import MessageError
from pathcast.extras import extra
from pathcast.messages import Interval, Scalar

from .join_graph_schema import Draft, Schema
from .order_preserving_key_encoding import DATE, INT, TIMESTAMP
from .select_join_query import Column, Equation, Query, QueryDraft, named

with extra("joins"):
    from sqlglot import Token, TokenType, exp, parse_one, tokenize
    from sqlglot.errors import SqlglotError

SUPPORTED = (
    "select * from tables with natural join, join … on, join … using; where with =, <, <=, >, >=, between; "
    "'and' between conditions"
)
_T = TokenType
# Formatted as a table: one line per word would hide how small the language is.
_ALLOWED = {
    _T.SELECT, _T.STAR, _T.FROM, _T.NATURAL, _T.JOIN, _T.INNER, _T.ON, _T.USING, _T.WHERE, _T.AND, _T.BETWEEN, _T.EQ,
    _T.LT, _T.LTE, _T.GT, _T.GTE, _T.NUMBER, _T.STRING, _T.VAR, _T.IDENTIFIER, _T.DOT, _T.COMMA, _T.L_PAREN, _T.R_PAREN,
    _T.DATE, _T.TIMESTAMP, _T.ALIAS, _T.DASH, _T.SEMICOLON,
}  # fmt: skip
_COMPARISONS: dict[type[exp.Expr], str] = {exp.EQ: "=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
# A number with a decimal point is a `Decimal` until its column is known.
Constant: TypeAlias = Scalar | Decimal
_SHAPE = "'select * from …'"
_TURNED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def read_sql(text: str, schema: Schema) -> tuple[Query, Draft]:
    """The query of some SQL, and the kinds that its constants settle."""
    reading = _Reading(text, schema)
    try:
        return reading.query()
    except RecursionError:
        raise reading.draft.refuse(
            "parentheses are nested too deeply to parse; remove redundant parentheses", supported=SUPPORTED
        ) from None


class _Reading:
    """The parse of one text."""

    def __init__(self, text: str, schema: Schema) -> None:
        self.schema = schema
        self.draft = QueryDraft(schema, (), text)
        self.aliases: dict[str, str] = {}
        # The columns that an unqualified name (in lower case) refers to: several until a natural join or `using` merges
        # them.
        self.visible: dict[str, list[Column]] = {}
        self.output: list[Column] = []

    def query(self) -> tuple[Query, Draft]:
        tree = self._parsed()
        self._check_shape(tree)
        source: Any = tree.args.get("from_") or tree.args.get("from")
        self._show(self._table(source.this), ())
        for join in tree.args.get("joins") or ():
            self._join(join)
        where = tree.args.get("where")
        for condition in _conjunction(where.this) if where else ():
            self._condition(condition)
        return self.draft.finish(named(self.output)), self.draft.kinds

    def _parsed(self) -> exp.Expr:
        text = self.draft.text
        try:
            tokens = tokenize(text)
        except SqlglotError as error:
            raise self.draft.refuse(f"malformed SQL: {error}", supported=SUPPORTED) from None
        names = {name.lower() for table, columns in self.schema.columns.items() for name in (table, *columns)}
        if not tokens:
            raise self.draft.refuse("the query is empty", supported=SUPPORTED)
        for token in tokens:
            if token.token_type not in _ALLOWED and token.text.lower() not in names:
                raise self._refuse(f"'{token.text}' is not supported", token)
        try:
            return parse_one(text)
        except SqlglotError as error:
            raise self._unparsed(error, tokens) from None

    def _unparsed(self, error: SqlglotError, tokens: list[Token]) -> Exception:
        details = getattr(error, "errors", None) or [{}]
        column, line = details[0].get("col"), details[0].get("line")
        for token in tokens:
            if (token.line, token.col) == (line, column):
                return self._refuse(f"unexpected '{token.text}'", token)
        return self.draft.refuse("the query is incomplete or not SQL", supported=SUPPORTED)

    def _refuse(self, reason: str, token: Token) -> Exception:
        words = self.draft.text[token.start : token.end + 1]
        return self.draft.refuse(reason, token.start, words, SUPPORTED)

    def _refuse_node(self, reason: str, node: exp.Expr, supported: str | None = SUPPORTED) -> Exception:
        start, words = self._place(node)
        return self.draft.refuse(reason, start, words, supported)

    def _place(self, node: exp.Expr) -> tuple[int | None, str]:
        """The position of a part of the query: from its first name to its last."""
        metas = [one.meta for one in node.find_all(exp.Identifier) if "start" in one.meta]
        if not metas:
            return None, ""
        start, end = min(one["start"] for one in metas), max(one["end"] for one in metas)
        return start, self.draft.text[start : end + 1]

    def _check_shape(self, tree: exp.Expr) -> None:
        if not isinstance(tree, exp.Select) or not (tree.args.get("from_") or tree.args.get("from")):
            raise self._refuse_node(f"expected {_SHAPE}, got {self.draft.text!r:.60}", tree)
        given = {name for name, value in tree.args.items() if value}
        other = given - {"expressions", "from_", "from", "joins", "where"}
        if other:
            raise self._refuse_node(
                f"'{min(other).rstrip('_')}' is not supported; use only select, from, join and where", tree
            )
        for one in tree.expressions:
            if not isinstance(one, exp.Star) or any(one.args.values()):
                raise self._refuse_node(f"'{one.sql()}' cannot be selected; select whole rows", one, "select *")
        if len(tree.expressions) != 1:
            raise self._refuse_node(f"'*' is selected {len(tree.expressions)} times; select it once", tree, "select *")

    # Tables.

    def _table(self, node: exp.Expr) -> str:
        if not isinstance(node, exp.Table) or node.args.get("db") or node.args.get("joins"):
            raise self._refuse_node(f"expected the name of a table, got '{node.sql()}'", node)
        table = _find(node.name, self.schema.columns)
        if table is None:
            raise self._refuse_node(
                f"unknown table '{node.name}'", node.this, f"tables {', '.join(self.schema.columns)}"
            )
        alias = node.alias_or_name.lower()
        if table in self.draft.tables:
            raise self._refuse_node(f"'{table}' is joined with itself, which is not supported", node, "each table once")
        if alias in self.aliases:
            raise self._refuse_node(
                f"two tables are named '{alias}'; give one of them another alias",
                node,
                "a different name for each table",
            )
        self.aliases[alias] = table
        self.draft.tables += (table,)
        return table

    def _join(self, join: exp.Join) -> None:
        given = {name for name, value in join.args.items() if value}
        if given - {"this", "on", "using", "method", "kind"} or str(join.args.get("kind") or "INNER") != "INNER":
            raise self._refuse_node(f"'{join.sql()}' is not supported", join)
        natural = str(join.args.get("method") or "") == "NATURAL"
        table = self._table(join.this)
        merged: list[str] = []
        if natural:
            merged = [name for name in self.schema.columns[table] if name.lower() in self.visible]
            if not merged:
                raise self._refuse_node(
                    f"'{table}' shares no column with the tables before it; use join … on", join.this
                )
        for name in join.args.get("using") or ():
            found = _find(name.name, self.schema.columns[table])
            if found is None or found.lower() not in self.visible:
                raise self._refuse_node(f"'{name.name}' is not a column on both sides of the join; use join … on", name)
            merged.append(found)
        for name in merged:
            known = self.visible[name.lower()]
            if len(known) > 1:
                names = " or ".join(f"{t}.{c}" for t, c in known)
                raise self._refuse_node(
                    f"'{name}' is ambiguous on the left of the join: {names}; use join … on", join.this
                )
            place = self._place(join.this)
            self.draft.equations.append(Equation(known[0], (table, name), place[1], place[0]))
        self._show(table, merged)
        for condition in _conjunction(join.args["on"]) if join.args.get("on") else ():
            self._condition(condition)

    def _show(self, table: str, merged: tuple[str, ...] | list[str]) -> None:
        for name in self.schema.columns[table]:
            if name not in merged:
                self.visible.setdefault(name.lower(), []).append((table, name))
                self.output.append((table, name))

    # Conditions.

    def _condition(self, node: exp.Expr) -> None:
        if isinstance(node, exp.Between):
            column = self._column(node.this)
            low, high = (self._constant(node.args[end], column) for end in ("low", "high"))
            self._range(column, "=", low, high, node)
            return
        operator = _COMPARISONS.get(type(node))
        if operator is None:
            raise self._refuse_node(f"'{node.sql()}' is not supported", node)
        left, right = node.this, node.expression
        if isinstance(left, exp.Column) and isinstance(right, exp.Column):
            if operator != "=":
                raise self._refuse_node(f"two columns cannot be compared with '{operator}'; use '='", node)
            one, other = self._column(left), self._column(right)
            if one == other:
                raise self._refuse_node(f"'{node.sql()}' compares a column with itself; remove the condition", node)
            start, words = self._place(node)
            self.draft.equations.append(Equation(one, other, words, start))
            return
        if not isinstance(left, exp.Column) and not isinstance(right, exp.Column):
            raise self._refuse_node(f"'{node.sql()}' does not compare a column; write a column alone on one side", node)
        if not isinstance(left, exp.Column):
            left, right, operator = right, left, _TURNED[operator]
        column = self._column(left)
        value = self._constant(right, column)
        low = value if operator[0] in "=>" else None
        high = value if operator[0] in "=<" else None
        self._range(column, operator, low, high, node)

    def _range(self, column: Column, operator: str, low: Constant, high: Constant, node: exp.Expr) -> None:
        """Add a range; a fractional end among ints is rounded inwards and then included."""
        first = _whole(ceil(low)) if isinstance(low, Decimal) else low
        last = _whole(floor(high)) if isinstance(high, Decimal) else high
        interval = Interval(first, last, operator == ">" and first == low, operator == "<" and last == high)
        self.draft.range(column, interval, *self._place(node))

    def _column(self, node: exp.Expr) -> Column:
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            raise self._refuse_node(f"'{node.sql()}' is not a column; compare a column with constants", node)
        if not node.table:
            known = self.visible.get(node.name.lower())
            if known is None:
                columns = ", ".join(f"{t}.{c}" for t, c in self.output)
                raise self._refuse_node(f"no table of the query has a column '{node.name}'", node, f"columns {columns}")
            if len(known) > 1:
                names = " or ".join(f"{t}.{c}" for t, c in known)
                raise self._refuse_node(f"'{node.name}' is ambiguous", node, names)
            return known[0]
        table = self.aliases.get(node.table.lower())
        if table is None:
            raise self._refuse_node(
                f"no table or alias '{node.table}' in the from clause", node, ", ".join(self.aliases)
            )
        name = _find(node.name, self.schema.columns[table])
        if name is None:
            columns = ", ".join(self.schema.columns[table])
            raise self._refuse_node(f"table '{table}' has no column '{node.name}'", node, f"columns {columns}")
        return table, name

    def _constant(self, node: exp.Expr, column: Column) -> Constant:
        """A constant as its column compares it; a `Decimal` stays where ints are compared and no float is exact."""
        try:
            value = _literal(node)
        except ValueError as error:
            raise self._refuse_node(f"{error}", node.parent or node) from None
        if isinstance(value, int | Decimal):
            value = self._as_number(value, column)
        if isinstance(value, Decimal):
            return value
        if isinstance(value, str | date):
            try:
                value = self._as_date(value, column)
            except ValueError:
                raise self._refuse_node(
                    f"'{value!s}' is not a {self._kind_name(column)}",
                    node.parent or node,
                    "2026-01-31, 2026-01-31 12:30:00",
                ) from None
        try:
            Interval(value, value)
        except MessageError as error:
            raise self._refuse_node(error.reason, node.parent or node) from None
        return value

    def _as_number(self, value: int | Decimal, column: Column) -> int | float | Decimal:
        """A number as databases compare it: the nearest float among floats, itself among ints."""
        if isinstance(value, int) and (abs(value) >= 1 << 63 or float(value) == value):
            return value
        if self.draft.kinds.kind(*column) is not INT:
            return float(value)
        # A float with a fraction lies between the same two ints.
        return value if isinstance(value, int) or float(value).is_integer() else float(value)

    def _kind_name(self, column: Column) -> str:
        kind = self.draft.kinds.kind(*column)
        return kind.name if kind else "date"

    def _as_date(self, value: str | date, column: Column) -> Scalar:
        """Text and dates converted to the column's kind, if that is date or timestamp."""
        kind = self.draft.kinds.kind(*column)
        if kind is DATE and isinstance(value, str):
            return date.fromisoformat(value)
        if kind is TIMESTAMP and isinstance(value, str):
            return datetime.fromisoformat(value)
        if kind is TIMESTAMP and not isinstance(value, str | datetime):
            return datetime.combine(value, time())
        return value


def _conjunction(node: exp.Expr) -> Iterator[exp.Expr]:
    """The conditions that `and` combines, without their parentheses. No recursion: a query may have thousands."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, exp.And):
            waiting += [one.expression, one.this]
        elif isinstance(one, exp.Paren):
            waiting.append(one.this)
        else:
            yield one


def _literal(node: exp.Expr) -> Constant:
    """A constant; `ValueError` with the reason otherwise."""
    if isinstance(node, exp.Neg):
        value = _literal(node.this)
        if isinstance(value, Decimal):
            return value.copy_negate()
        if isinstance(value, int | float):
            return -value
        raise ValueError(f"'{node.sql()}' is not a number; write a number such as -45 or -4.5")
    if isinstance(node, exp.Paren):
        return _literal(node.this)
    if isinstance(node, exp.Literal):
        if node.is_string:
            return str(node.this)
        return _number(str(node.this))
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.this.is_string:
        text = str(node.this.this)
        try:
            return date.fromisoformat(text) if node.to.is_type("date") else _timestamp(node, text)
        except ValueError:
            raise ValueError(
                f"'{text}' is not a valid date or timestamp; write date '2026-01-31' or timestamp '2026-01-31 12:30:00'"
            ) from None
    raise ValueError(f"'{node.sql()}' is not a constant; give a number, a string, a date or a timestamp")


def _number(text: str) -> int | float | Decimal:
    """A number, a float if it is written with an exponent; `ValueError` with the reason otherwise."""
    if text.isdigit():
        return int(text)
    try:
        return float(text) if "e" in text.lower() else Decimal(text)
    except (ValueError, InvalidOperation):
        raise ValueError(f"'{text}' is not a number; write a number such as 45 or 4.5") from None


def _whole(number: int) -> int | float:
    """A whole number; infinite if it exceeds the ints that a column can hold."""
    return number if -(1 << 63) <= number < 1 << 63 else copysign(inf, number)


def _timestamp(node: exp.Cast, text: str) -> datetime:
    if not node.to.is_type("timestamp"):
        raise ValueError
    return datetime.fromisoformat(text)


def _find(name: str, names: Any) -> str | None:
    """The declared spelling of a name; case is ignored."""
    return next((one for one in names if one.lower() == name.lower()), None)
