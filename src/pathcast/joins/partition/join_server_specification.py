"""Standing joins as a description: a schema, a scheme and the subscriptions, to be sent to the workers that run them.

`changed` adds and removes subscriptions and returns a new description. Ids are not reused, and forms keep their
numbers, so that filters of one description remain valid for the messages of the next.

Invariant: `server()` returns the same server on every machine: subscriptions have the same ids, forms the same
numbers. So every kind must be declared: a kind that one server learns from its first row is unknown to the others.
"""

import copy
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from pathcast.errors import QueryError, SchemaError

from ..query.join_graph_schema import Schema
from ..query.select_join_query import Selection
from ..schemes.scheme_registry import DEFAULT
from ..schemes.semijoin_scheme import SemijoinScheme
from ..schemes.semijoin_templates import Form
from ..server.join_server import JoinServer

Query = str | Selection
Queries = Mapping[Any, Query | Iterable[Query]] | Iterable[Query]
Ranges = Mapping[str, tuple[Any, Any]]


class SingleSubscription(NamedTuple):
    """One subscription."""

    id: int
    subscriber: Any
    query: Query


class SubscriptionSeries(NamedTuple):
    """Subscriptions that differ in their ranges: ids from `first` on, except the removed ones (`gone`)."""

    first: int
    query: Selection
    ranges: Ranges
    gone: frozenset[int] = frozenset()

    @property
    def size(self) -> int:
        """The number of subscriptions, removed ones included."""
        return len(next(iter(self.ranges.values()))[0])

    @property
    def ids(self) -> range:
        """The ids, removed ones included."""
        return range(self.first, self.first + self.size)

    def part(self, begin: int, end: int) -> "SubscriptionSeries":
        """The subscriptions between two places."""
        ranges = {name: (low[begin:end], high[begin:end]) for name, (low, high) in self.ranges.items()}
        ids = range(self.first + begin, self.first + end)
        return SubscriptionSeries(
            self.first + begin, self.query, ranges, frozenset(id for id in self.gone if id in ids)
        )


@dataclass(frozen=True)
class StandingJoins:
    """Subscriptions to joins over a schema.

    subscriptions: queries, or queries by subscriber; their ids are 1, 2, 3, … in this order. batches: further
    subscriptions with ranges as arrays, as for `JoinServer.subscribe_many`.
    """

    schema: Schema
    subscriptions: Queries = ()
    scheme: str = DEFAULT
    batches: Iterable[tuple[Selection, Ranges]] = ()
    axes: int | None = None
    asked: Sequence[SingleSubscription] = field(init=False, default=())
    many: tuple[SubscriptionSeries, ...] = field(init=False, default=())
    next_id: int = field(init=False, default=1)
    numbers: Mapping[Form, int] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        if self.schema.inside:
            raise SchemaError("standing joins do not support separate payloads; declare the schema without `payloads=`")
        self._take_up(self.subscriptions, self.batches)
        self._set(subscriptions=(), batches=())
        for table, columns in self.schema.columns.items():
            for column in columns:
                if self.schema.kind(table, column) is None:
                    raise SchemaError(
                        f"{table}.{column} has no kind (type), which standing joins need; declare it in the schema, "
                        f"such as '{column} float'"
                    )

    def changed(
        self, add: Queries = (), remove: Iterable[int] = (), batches: Iterable[tuple[Selection, Ranges]] = ()
    ) -> "StandingJoins":
        """A description without the subscriptions of some ids, and with new ones, which get the next ids."""
        leaving = set(remove)
        for id in leaving:
            if id not in self:
                raise QueryError(
                    f"unknown subscription id {id} in remove: the subscription was never added or has been removed; "
                    "give the id of an existing subscription"
                )
        other = copy.copy(self)
        other._set(
            asked=tuple(one for one in self.asked if one.id not in leaving),
            many=tuple(each._replace(gone=each.gone | leaving.intersection(each.ids)) for each in self.many),
        )
        other._set(many=tuple(each for each in other.many if len(each.gone) < each.size))
        other._take_up(add, batches)
        return other

    def since(self, first: int) -> "StandingJoins":
        """Only the subscriptions with ids from `first` on."""
        return self.only(
            self.asked[self._place(first) :],
            [each.part(max(0, first - each.first), each.size) for each in self.many if first < each.first + each.size],
        )

    def only(self, asked: Iterable[SingleSubscription], many: Iterable[SubscriptionSeries]) -> "StandingJoins":
        """Some of the subscriptions, under the same ids and numbers of forms."""
        other = copy.copy(self)
        other._set(asked=tuple(asked), many=tuple(many))
        return other

    @classmethod
    def restored(
        cls,
        schema: Schema,
        scheme: str,
        axes: int | None,
        asked: Sequence[SingleSubscription],
        many: tuple[SubscriptionSeries, ...],
        next_id: int,
        numbers: Mapping[Form, int],
    ) -> "StandingJoins":
        """A description from its stored parts (join_server_specification_snapshot.py)."""
        made = cls(schema, scheme=scheme, axes=axes)
        made._set(asked=asked, many=many, next_id=next_id, numbers=numbers)
        return made

    def _take_up(self, queries: Queries, batches: Iterable[tuple[Selection, Ranges]]) -> None:
        asked = [
            SingleSubscription(id, subscriber, query)
            for id, (subscriber, query) in enumerate(_listed(queries), self.next_id)
        ]
        next_id = self.next_id + len(asked)
        many: list[SubscriptionSeries] = []
        for query, ranges in batches:
            given = {name: (np.asarray(low), np.asarray(high)) for name, (low, high) in ranges.items()}
            many.append(SubscriptionSeries(next_id, query, given))
            next_id += many[-1].size if given else 0
        # No form depends on other subscriptions, so a server with the new ones alone numbers their forms.
        scheme = self.only(asked, many).server()._scheme
        if not isinstance(scheme, SemijoinScheme):
            raise QueryError(
                f"scheme '{self.scheme}' sends join results; standing joins need a semijoin scheme, such as "
                "'ref-sj-clu+'"
            )
        self._set(asked=(*self.asked, *asked), many=(*self.many, *many), next_id=next_id, numbers=dict(scheme.numbers))

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def _place(self, id: int) -> int:
        """The place of the first single subscription with this id or a larger one; ids ascend."""
        return bisect_left(self.asked, id, key=attrgetter("id"))

    def __contains__(self, id: object) -> bool:
        if not isinstance(id, int | np.integer):
            return False
        at = self._place(int(id))
        single = at < len(self.asked) and self.asked[at].id == id
        return single or any(id in each.ids and id not in each.gone for each in self.many)

    def __iter__(self) -> Iterator[int]:
        """The ids of all subscriptions."""
        yield from (one.id for one in self.asked)
        for each in self.many:
            yield from (id for id in each.ids if id not in each.gone)

    def server(self) -> JoinServer:
        """A server with these subscriptions and empty tables."""
        server = JoinServer(self.schema, self.scheme, axes=self.axes)
        if isinstance(server._scheme, SemijoinScheme):
            server._scheme.numbers.update(self.numbers)
        for id, subscriber, query in self.asked:
            server.subscribe(query, subscriber, id=id)
        for first, query, ranges, gone in self.many:
            server.subscribe_many(query, ranges, first=first)
            for id in sorted(gone):
                server.unsubscribe(id)
        return server


def _listed(given: Queries) -> Iterable[tuple[Any, Query]]:
    if isinstance(given, str | Selection):
        raise QueryError(f"subscriptions must be a list of queries or {{subscriber: queries}}, got {given!r:.80}")
    if not isinstance(given, Mapping):
        return ((None, query) for query in given)
    return (
        (subscriber, query)
        for subscriber, queries in given.items()
        for query in ([queries] if isinstance(queries, str | Selection) else queries)
    )
