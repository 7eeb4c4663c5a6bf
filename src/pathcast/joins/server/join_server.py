"""The server: tables, standing queries over them, and for each change the messages that keep all clients up to date.

    server = JoinServer(schema, scheme="ref-sj-clu+")
    subscription = server.subscribe("select * from Stocks natural join Reviews where per > 45")
    for message in server.insert("Stocks", {"symbol": "GOOG", "per": 52.1, "name": "Alphabet"}): …

A change is checked, then passed to the scheme, then applied, then passed to the scheme again: the tuples that a new row
exposes depend on the tables before the change, those that an old row withdraws on the tables after it
(`semijoin_group_deltas.py` has the proof).

Invariant: a call that raises changes nothing. Messages must be delivered in order; the registered filters alone decide
who receives a message.
Cost: a change takes a few look-ups per group with its table, plus the cost of index and scheme.
Not thread-safe.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pathcast.errors import ChangeError, QueryError
from pathcast.messages import Interval, Message

from ..index.clustered_semijoin_index import stabbing_index
from ..index.scan_index import ScanIndex
from ..query.columnar_subscription_registry import Batch, Registry, read_batch
from ..query.join_graph_schema import Draft, Row, Schema
from ..query.join_subscription import Subscription
from ..query.payload_table_split import Split
from ..query.select_join_query import Column, Query, Selection
from ..query.semijoin_decomposition_optimizer import Statistics, preferences
from ..query.sql_parser import read_sql
from ..schemes.join_result_schemes import ResultScheme
from ..schemes.reserved_message_attributes import TO
from ..schemes.row_listing_messages import changed_columns
from ..schemes.scheme_registry import DEFAULT, make_scheme
from ..schemes.semijoin_group_deltas import Group, IndexMaker
from ..schemes.semijoin_scheme import Change, SemijoinScheme, Version
from ..schemes.semijoin_templates import Form, subscription_filters
from .decomposition_migration import ESTIMATES, Decompositions, Regrouping
from .row_multisets import Bag

_INDEXES: dict[str, IndexMaker] = {"stabbing": stabbing_index, "scan": ScanIndex}


class Step(NamedTuple):
    """A checked change of a stored table: the old row and the new row."""

    table: str
    old: Row | None
    new: Row | None


class JoinServer:
    """Tables and the subscriptions to joins of them.

    scheme: one of Table 1 of the paper (`scheme_registry.SCHEMES`). index: how exposed subscriptions are found
    ("stabbing", or "scan" of all subscriptions). axes: how many filtering attributes a semijoin tests; None for all
    (skyline envelopes), 1 for the first only, which sends some more tuples and keeps messages small (appendix C).
    filtered_by: for each table, the neighbours that should filter it, the preferred one first, where a query has them;
    by default, costs decide. regroup_every: the number of changes after which decompositions are reconsidered, if set;
    regroup_by: the cost estimate, "model" or "simulation".

    >>> server = pathcast.joins.JoinServer(pathcast.joins.Schema({"Stocks": "symbol string, per float"}))
    >>> subscription = server.subscribe("select * from Stocks where per > 45")
    >>> (message,) = server.insert("Stocks", {"symbol": "GOOG", "per": 50})
    >>> any(each.matches(message) for each in subscription.filters)
    True
    """

    def __init__(
        self,
        schema: Schema,
        scheme: str = DEFAULT,
        *,
        index: str = "stabbing",
        axes: int | None = None,
        filtered_by: Mapping[str, str | Sequence[str]] | None = None,
        regroup_every: int | None = None,
        regroup_by: str = "model",
    ) -> None:
        if index not in _INDEXES:
            raise QueryError(f"unknown index '{index}'; use one of {', '.join(_INDEXES)}")
        if not isinstance(schema, Schema):
            raise QueryError(f"schema must be Schema(…), got {schema!r}")
        numbers: dict[str, object] = {"axes": axes, "regroup_every": regroup_every}
        for name, number in numbers.items():
            if number is not None and (not isinstance(number, int) or isinstance(number, bool) or number < 1):
                raise QueryError(f"{name} must be an int of at least 1, or None, got {number!r}")
        _check_estimate(regroup_by, "regroup_by")
        self.schema = schema
        self.scheme = scheme
        self._inside = schema.internal
        self.bags = {table: Bag(self._inside, table) for table in self._inside.columns}
        self._index = _INDEXES[index]
        self._scheme = make_scheme(scheme, self.bags, self._index, axes)
        self.statistics = Statistics(self._inside, self.bags)
        self.subscriptions = Registry(self._member)
        self._decompositions = Decompositions(
            self.statistics, self.subscriptions, self._index, preferences(self._inside, filtered_by or {})
        )
        self._next_subscription = self._next_row = 1
        self._regroup_every, self._regroup_by = regroup_every, regroup_by
        self._changes = 0

    # Subscriptions.

    def subscribe(self, query: str | Selection, subscriber: Any = None, *, id: int | None = None) -> Subscription:
        """Register a standing query, in SQL or made by `select`; `id`: an unused id, by default the next one."""
        if isinstance(query, str):
            declared, draft = read_sql(query, self.schema)
        elif isinstance(query, Selection):
            declared, draft = query.resolve(self.schema)
        else:
            raise QueryError(f"a subscription must be SQL or select(…), got {query!r:.80}")
        id = self._new_id(id)
        draft.settle()
        resolved = self.schema.inside.query(declared) if self.schema.inside else declared
        self._next_subscription = max(self._next_subscription, id + 1)
        subscription = self._registered(id, subscriber, resolved)
        self.subscriptions.add(subscription)
        subscription.take_initial()
        return subscription

    def _new_id(self, wanted: object, count: int = 1) -> int:
        """The first of `count` new ids: the wanted one, or the next."""
        if wanted is None:
            return self._next_subscription
        if not isinstance(wanted, int) or wanted < 1:
            raise QueryError(f"subscription id must be an int of at least 1, got {wanted!r}")
        taken = next((id for id in range(wanted, wanted + count) if id in self.subscriptions), None)
        if taken is not None:
            raise QueryError(f"subscription id {taken} is already in use; choose another, or omit the id")
        return wanted

    def _registered(self, id: int, subscriber: Any, query: Query) -> Subscription:
        scheme = self._scheme
        if query.empty:
            signature = 0 if isinstance(scheme, ResultScheme) else None
            return Subscription(id, subscriber, query, (), Message({TO: id}), {}, signature)
        if isinstance(scheme, ResultScheme):
            return self._described(id, subscriber, query, {}, scheme.add(id, query), None)
        choice = self._decompositions.choose(query)
        return self._described(id, subscriber, query, scheme.add(id, query, choice), None, choice)

    def _described(
        self, id: int, subscriber: Any, query: Query, forms: Mapping[int, Form], signature: int | None, choice: Any
    ) -> Subscription:
        """A subscription that the scheme knows, as an object; its initial content is computed on access."""
        scheme = self._scheme
        if isinstance(scheme, ResultScheme):
            initial = partial(scheme.initial, id, query)
            return Subscription(id, subscriber, query, scheme.filters(id, query), initial, forms, signature, choice)
        filters = subscription_filters(id, query, forms)
        return Subscription(
            id, subscriber, query, filters, partial(scheme.initial, id, query, forms), forms, signature, choice
        )

    def subscribe_many(
        self, query: Selection, ranges: Mapping[str, tuple[Any, Any]], *, first: int | None = None
    ) -> range:
        """Register many subscriptions to the same tables that differ in their ranges on numbers; return their ids.

        ranges: for each column, as in `select`, the low ends of all and the high ends of all (both included). Only the
        numbers of a subscription are stored: `server.subscriptions[id]` makes the object, with its content at the time
        of the call. first: the id of the first subscription, by default the next one.
        """
        batch, keys, draft = read_batch(self.schema, self._next_subscription, query, ranges)
        batch.first = self._new_id(first, batch.count)
        draft.settle()
        return self._take_up(batch, keys)

    def _take_up(self, batch: Batch, keys: Mapping[Column, Any]) -> range:
        ids = np.arange(batch.first, batch.first + batch.count)
        ranges = {table: {c: Interval() for t, c in keys if t == table} for table in batch.query.tables}
        ranged = replace(batch.query, ranges=ranges)
        if isinstance(self._scheme, ResultScheme):
            batch.signature = self._scheme.add_many(ids, ranged, keys)
        else:
            batch.choice = self._decompositions.choose(ranged)
            batch.forms = self._scheme.add_many(ids, ranged, keys, batch.choice)
        self.subscriptions.batches.append(batch)
        self._next_subscription = max(self._next_subscription, batch.first + batch.count)
        return range(batch.first, batch.first + batch.count)

    def _member(self, batch: Batch, id: int) -> Subscription:
        return self._described(id, None, batch.query_of(id), batch.forms, batch.signature, batch.choice)

    def unsubscribe(self, subscription: Subscription | int) -> None:
        """Remove a subscription; `QueryError` when it does not exist."""
        id = subscription.id if isinstance(subscription, Subscription) else subscription
        known = self.subscriptions.get(id)
        if known is None:
            raise QueryError(
                f"unknown subscription id {id}: the subscription was never added or has been removed; give the id "
                "of an existing subscription"
            )
        self.subscriptions.remove(id)
        if known.query.empty:
            return
        if isinstance(self._scheme, ResultScheme):
            self._scheme.remove(id, known.query)
        else:
            self._scheme.remove(id, known.query, known.forms.values())

    def contents(self, subscription: Subscription) -> dict[str, dict[int, Row]]:
        """The rows that a client of this subscription keeps now, by base table; only for semijoin schemes."""
        if isinstance(self._scheme, ResultScheme):
            raise QueryError(
                f"scheme '{self.scheme}' sends join results, not tables; use a semijoin scheme, such as 'ref-sj-clu+'"
            )
        forms = subscription.forms.values()
        return {form.base: dict(self._scheme.content(subscription.query, form)) for form in forms}

    # Changes.

    def insert(self, table: str, row: Mapping[str, Any]) -> list[Message]:
        """Insert a row; return the messages to deliver."""
        return self.apply([("insert", table, row)])

    def delete(self, table: str, row: Mapping[str, Any]) -> list[Message]:
        """Delete one row that equals this one; return the messages to deliver."""
        return self.apply([("delete", table, row)])

    def update(self, table: str, row: Mapping[str, Any], values: Mapping[str, Any]) -> list[Message]:
        """Give one row that equals `row` new values in some columns, as one event; return the messages to deliver."""
        return self.apply([("update", table, row, values)])

    def apply(self, changes: Iterable[tuple[Any, ...]]) -> list[Message]:
        """Apply changes in order, or none of them if one is invalid.

        A change is `("insert", table, row)`, `("delete", table, row)` or `("update", table, row, values)`.
        """
        draft = Draft(self.schema)
        steps = self._checked(draft, changes)
        draft.settle()
        messages: list[Message] = []
        for step in steps:
            for kept in self._kept(step):
                messages += self._make(kept)
                self._changes += 1
        if self._regroup_every and self._changes >= self._regroup_every:
            self._changes = 0
            messages += self.regroup(by=self._regroup_by).messages
        return messages

    def _checked(self, draft: Draft, changes: Iterable[tuple[Any, ...]]) -> list[Step]:
        """The changes as rows; each is checked against the tables after the changes before it."""
        steps: list[Step] = []
        extra: Counter[tuple[str, Row]] = Counter()
        for index, change in enumerate(changes):
            try:
                steps.append(self._possible(_step(draft, change), extra))
            except ChangeError as error:
                error.index = index
                raise
        return steps

    def _possible(self, step: Step, extra: Counter[tuple[str, Row]]) -> Step:
        """A step whose old row exists, given how often the steps before it inserted and deleted rows."""
        if step.old is not None:
            if self._count(step.table, step.old) + extra[step.table, step.old] < 1:
                raise ChangeError(
                    f"table '{step.table}' has no row {step.old!r:.200}; give the current values of all columns"
                )
            extra[step.table, step.old] -= 1
        if step.new is not None:
            extra[step.table, step.new] += 1
        return step

    def _split(self, table: str) -> Split | None:
        """How a table's payload is stored separately, if it is."""
        return self.schema.inside.splits.get(table) if self.schema.inside else None

    def _count(self, table: str, row: Row) -> int:
        split = self._split(table)
        return self.bags[table].count(split.rows(row)[0] if split else row)

    def _kept(self, step: Step) -> list[Step]:
        """A change of a declared table as changes of the tables that store it.

        A payload is inserted before the first row that refers to it, and deleted after the last.
        """
        split = self._split(step.table)
        if split is None:
            return [step]
        old = split.rows(step.old) if step.old is not None else None
        new = split.rows(step.new) if step.new is not None else None
        steps: list[Step] = []
        if new and not self.bags[split.payload_table].count(new[1]):
            steps.append(Step(split.payload_table, None, new[1]))
        steps.append(Step(step.table, old[0] if old else None, new[0] if new else None))
        if old and (new is None or new[1] != old[1]) and self._references(step.table, old[0][-1]) == 1:
            steps.append(Step(split.payload_table, old[1], None))
        return steps

    def _references(self, table: str, key: Any) -> int:
        """The number of rows of a table that refer to a payload."""
        view = self.statistics.payload_view(table)
        return len(view.run((key,)))

    def make(self, step: Step, number: int) -> list[Message]:
        """Apply a checked change of a stored table; a new row that needs a number gets `number`.

        For callers that keep tables in parts (`value_partitioned_join.py`).
        """
        self._next_row = number
        return self._make(step)

    def keep_groups(self, wanted: Callable[[Form], bool]) -> None:
        """Keep only semijoins of some forms, and no statistics: this server handles a part of a join."""
        if not isinstance(self._scheme, SemijoinScheme):
            raise QueryError(f"scheme '{self.scheme}' has no semijoins; use a semijoin scheme, such as 'ref-sj-clu+'")
        for bag in self.bags.values():
            bag.release(self.statistics)
        for form in [form for form in self._scheme.groups if not wanted(form)]:
            self._scheme.close(form)

    def groups(self) -> list[Group]:
        """The groups of semijoins; none where join results are sent."""
        return list(self._scheme.groups.values()) if isinstance(self._scheme, SemijoinScheme) else []

    def _make(self, step: Step) -> list[Message]:
        bag = self.bags[step.table]
        if step.old is not None and step.new is not None and not changed_columns(bag, step.old, step.new):
            return []
        old = new = None
        if step.old is not None:
            number = bag.number_of(step.old)
            assert number is not None
            old = Version(number, bag.rows[number])
        if step.new is not None:
            new = Version(self._number(step, old), step.new)
        change = Change(step.table, old, new)
        self._scheme.before(change)
        if old:
            bag.delete(old.number)
        if new:
            bag.insert(new.number, new.row)
            self.statistics.note(step.table, new.number)
        return self._scheme.after(change)

    def _number(self, step: Step, old: Version | None) -> int:
        """The number of a new row: that of the row it replaces, if it is a new version of it."""
        if old is not None and step.new is not None and self._scheme.keeps_numbers:
            bag = self.bags[step.table]
            changed = changed_columns(bag, old.row, step.new)
            if not self._inside.join_columns(step.table).intersection(changed):
                return old.number
        self._next_row += 1
        return self._next_row - 1

    # Decomposition.

    def drift(self, *, by: str = "model") -> float:
        """The cost of the decompositions in use by current statistics, as a multiple of the best ones."""
        _check_estimate(by)
        scheme = self._decomposed_scheme()
        return 1.0 if scheme is None else self._decompositions.drift(self._decompositions.costs(by, scheme))

    def regroup(self, *, by: str = "model", force: bool = False, beyond: float = 1.1) -> Regrouping:
        """Choose new decompositions if the present ones cost more than `beyond` times the best; return who moved.

        by: "model", the parametric cost model, or "simulation", which replays recent rows. The filters of subscriptions
        that move change: register them again.
        """
        _check_estimate(by)
        scheme = self._decomposed_scheme()
        if scheme is None:
            return Regrouping([], [])
        return self._decompositions.regroup(scheme, by, force=force, beyond=beyond)

    def _decomposed_scheme(self) -> SemijoinScheme | None:
        """The scheme, if it decomposes anything."""
        scheme = self._scheme
        return scheme if isinstance(scheme, SemijoinScheme) and not scheme.relaxed else None

    def __len__(self) -> int:
        """The number of subscriptions."""
        return len(self.subscriptions)


def _check_estimate(by: str, name: str = "by") -> None:
    if by not in ESTIMATES:
        raise QueryError(f"{name} must be {' or '.join(map(repr, ESTIMATES))}, got {by!r}")


def _step(draft: Draft, change: Any) -> Step:
    if not isinstance(change, tuple) or len(change) < 3:
        raise ChangeError(f"a change must be a tuple such as ('insert', table, row), got {change!r:.80}")
    verb, table, row, *more = change
    if not isinstance(table, str):
        raise ChangeError(f"the table name in a change must be a string, got {table!r:.80}")
    if not isinstance(row, Mapping) or not all(isinstance(one, Mapping) for one in more):
        raise ChangeError(f"a row must map columns to values, such as {{'per': 46.5}}, got {change[2:]!r:.80}")
    if verb == "insert" and not more:
        return Step(table, None, draft.row(table, row))
    if verb == "delete" and not more:
        return Step(table, draft.row(table, row), None)
    if verb == "update" and len(more) == 1:
        old = draft.row(table, row)
        return Step(table, old, draft.row(table, {**row, **more[0]}))
    raise wrong_change(verb)


def wrong_change(verb: object) -> ChangeError:
    """The error of a change with an unknown verb, or with new values where there must be none, or the reverse."""
    known = {
        "insert": "an insert with new values",
        "delete": "a delete with new values",
        "update": "an update without new values",
    }
    wrong = known.get(verb) if isinstance(verb, str) else None
    return ChangeError(
        "a change must be an insert or a delete without new values, or an update with new values, "
        f"got {wrong or repr(verb)}"
    )
