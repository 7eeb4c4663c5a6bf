"""Standing joins as a description: a schema, a scheme and the subscriptions, to be sent to whoever runs them.

Invariant: `server()` gives the same server wherever it is called: subscriptions have the same ids, forms the same
numbers. For that every kind must be known: what a server learns from the first row that it sees, others don't know.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import QueryError, SchemaError
from .query import Selection
from .schema import Schema
from .schemes import DEFAULT
from .semijoins import SemijoinScheme
from .server import JoinServer

Query = str | Selection


@dataclass(frozen=True)
class StandingJoins:
    """Subscriptions to joins over a schema.

    subscriptions: queries, or queries by subscriber; their ids are 1, 2, 3, … in this order. batches: after them many
    with ranges as arrays, as `JoinServer.subscribe_many` takes them.
    """

    schema: Schema
    subscriptions: Mapping[Any, Query | Iterable[Query]] | Iterable[Query] = ()
    scheme: str = DEFAULT
    batches: Iterable[tuple[Selection, Mapping[str, tuple[Any, Any]]]] = ()
    axes: int | None = None
    asked: tuple[tuple[Any, Query], ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "asked", tuple(_asked(self.subscriptions)))
        object.__setattr__(self, "subscriptions", ())
        object.__setattr__(self, "batches", tuple(self.batches))
        if self.schema.inside:
            raise SchemaError("payloads kept apart belong to all join values at once; declare the schema without them")
        server = self.server()
        if not isinstance(server._scheme, SemijoinScheme):
            raise QueryError(f"'{self.scheme}' sends join results, which several join values make together")
        for table, columns in self.schema.columns.items():
            for column in columns:
                if self.schema.kind(table, column) is None:
                    raise SchemaError(f"{table}.{column}: declare its kind; workers don't learn it from one another")

    def server(self) -> JoinServer:
        """A server with these subscriptions and empty tables."""
        server = JoinServer(self.schema, self.scheme, axes=self.axes)
        for subscriber, query in self.asked:
            server.subscribe(query, subscriber)
        for query, ranges in self.batches:
            server.subscribe_many(query, ranges)
        return server


def _asked(given: Mapping[Any, Query | Iterable[Query]] | Iterable[Query]) -> Iterable[tuple[Any, Query]]:
    if isinstance(given, str | Selection):
        raise QueryError("subscriptions are several queries: a list, or a mapping of subscribers to theirs")
    if not isinstance(given, Mapping):
        return ((None, query) for query in given)
    return (
        (subscriber, query)
        for subscriber, queries in given.items()
        for query in ([queries] if isinstance(queries, str | Selection) else queries)
    )
