"""Select with payload: large columns stored apart, so that a selection is sent as a join (appendix I of the paper).

    Schema({"Products": "id, rating, photo"}, payloads={"Products": "photo"})

A user sees the table as it is declared. Internally there are two: `Products(id, rating, photo_of)` and
`Products_payload(of, photo)`, joined on a hash of the payload. A payload is one row as long as some row refers to
it. A query over the table joins both. An event that changes a rating but not the photo changes only the first table,
and the semijoin of the payload sends the photo only to clients that do not have it.

Invariant: the inner join of the two tables is the declared table, as a bag: each row refers to exactly one payload,
and equal payloads have equal hashes (128 bits; collisions are assumed not to occur).
"""

from base64 import b85encode
from collections.abc import Iterator, Mapping, MutableMapping
from hashlib import blake2b

from pathcast.errors import SchemaError
from pathcast.messages import Interval, Message

from .join_graph_schema import Edge, Row, Schema
from .order_preserving_key_encoding import Kind
from .select_join_query import Query

_REFERENCE, _KEY = "{}_of", "of"
_WORD = 2.0**63


class Split:
    """How one declared table is stored as two."""

    def __init__(self, table: str, columns: tuple[str, ...], payload: tuple[str, ...]) -> None:
        self.table = table
        self.columns = columns
        self.payload = payload
        self.kept = tuple(column for column in columns if column not in payload)
        self.payload_table = f"{table}_payload"
        self.reference = _REFERENCE.format(payload[0])

    def rows(self, row: Row) -> tuple[Row, Row]:
        """A declared row as a row of each of the two tables."""
        values = dict(zip(self.columns, row, strict=True))
        payload = tuple(values[column] for column in self.payload)
        key = payload_key(payload)
        return (*(values[column] for column in self.kept), key), (key, *payload)

    def place(self, column: str) -> tuple[str, str]:
        """The internal table and column that store a declared column."""
        return (self.payload_table if column in self.payload else self.table), column


def payload_key(payload: Row) -> str:
    """A hash of a payload's content; equal numbers, such as 1 and 1.0, have equal hashes."""
    plain = [int(one) if isinstance(one, float) and one.is_integer() and abs(one) < _WORD else one for one in payload]
    data = Message({str(at): value for at, value in enumerate(plain)}).encode()
    return b85encode(blake2b(data, digest_size=16).digest()).decode()


class SplitSchema:
    """The declared tables with payloads, and the schema inside."""

    def __init__(self, declared: Schema, payloads: Mapping[str, tuple[str, ...]]) -> None:
        self.splits: dict[str, Split] = {}
        for table, columns in payloads.items():
            self.splits[table] = self._split(declared, table, columns)
        tables: dict[str, Mapping[str, str | None]] = {}
        for table, names in declared.columns.items():
            split = self.splits.get(table)
            kinds = {name: kind.name if (kind := declared.kind(table, name)) else None for name in names}
            if split is None:
                tables[table] = kinds
                continue
            tables[table] = {**{name: kinds[name] for name in split.kept}, split.reference: "string"}
            tables[split.payload_table] = {_KEY: "string", **{name: kinds[name] for name in split.payload}}
        joins = [str(edge) for edge in declared.edges]
        joins += [f"{one.table}.{one.reference} = {one.payload_table}.{_KEY}" for one in self.splits.values()]
        self.schema = Schema(tables, joins)

    @staticmethod
    def _split(declared: Schema, table: str, columns: tuple[str, ...]) -> Split:
        if not columns:
            raise SchemaError(f"the payload of '{table}' has no columns; name at least one, such as 'photo, text'")
        for column in columns:
            declared.place(table, column)
            if column in declared.join_columns(table):
                raise SchemaError(f"{table}.{column} is a join column and cannot be payload; remove it from payloads")
        split = Split(table, declared.columns[table], columns)
        if split.payload_table in declared.columns or split.reference in split.columns:
            raise SchemaError(
                f"the names '{split.payload_table}' and '{split.reference}' are reserved for the payload of '{table}'; "
                "rename your table or column"
            )
        if _KEY in columns:
            raise SchemaError(
                f"the payload of '{table}' cannot have a column named '{_KEY}', a reserved name; rename the column"
            )
        if len(set(columns)) < len(columns):
            raise SchemaError(f"the payload of '{table}' names a column twice: {', '.join(columns)}; remove one")
        return split

    def place(self, table: str, column: str) -> tuple[str, str]:
        """The internal table and column that store a declared column."""
        split = self.splits.get(table)
        return split.place(column) if split else (table, column)

    def query(self, query: Query) -> Query:
        """A query over declared tables as a query over the internal ones."""
        tables = list(query.tables)
        edges: list[Edge] = [self.schema.edges[edge.number] for edge in query.edges]
        for split in self.splits.values():
            if split.table in query.tables:
                tables.append(split.payload_table)
                edges += self.schema.edges_of(split.payload_table)
        ranges: dict[str, dict[str, Interval]] = {table: {} for table in tables}
        for table, columns in query.ranges.items():
            for column, interval in columns.items():
                at, name = self.place(table, column)
                ranges[at][name] = interval
        output = tuple((name, self.place(*column)) for name, column in query.output)
        return Query(query.text, tuple(tables), tuple(edges), ranges, output, query.empty)


class PlacedKinds(MutableMapping[tuple[str, str], Kind]):
    """Kinds of declared columns, kept where the columns are kept."""

    def __init__(self, inside: SplitSchema) -> None:
        self._inside = inside

    def __getitem__(self, column: tuple[str, str]) -> Kind:
        kind = self._inside.schema.kind(*self._inside.place(*column))
        if kind is None:
            raise KeyError(column)
        return kind

    def __setitem__(self, column: tuple[str, str], kind: Kind) -> None:
        self._inside.schema.settle({self._inside.place(*column): kind})

    def __delitem__(self, column: tuple[str, str]) -> None:
        raise KeyError(column)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(())

    def __len__(self) -> int:
        return 0
