"""Semijoin schemes: one semijoin per base table keeps a client up to date (§3, §4 of the select-join paper).

`semijoin_group_deltas.py` computes the effect of an event on a group; a scheme turns it into messages: `ref-sj-*` into
messages to a whole group with a descriptive skyline (`group_message_semijoin_scheme.py`), `enum-sj` into messages to
each subscription (`per_subscription_semijoin_scheme.py`). `rel-sel` is the same with selections only: every tuple in
the ranges is sent, and the client joins.

Why a client is correct: its content of base table R is σ(R) ⋉ σ(S) for some neighbour S. The content includes the R
tuple of every row of the join, since that row has a joining S tuple that satisfies its ranges. Conversely, the client
checks all edges, and all contents satisfy their ranges. So the join of the contents is the join of the tables,
whatever S was chosen for each R, reciprocal or not.

Invariant: between events, the client's content of every semijoin equals the server's (`content`).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pathcast.messages import Message

from ..index.semijoin_index_protocol import Ends, Ids
from ..query.join_graph_schema import Edge, Row
from ..query.select_join_query import Column, Query
from ..server.row_multisets import Bag
from .row_listing_messages import Listing, passes
from .semijoin_group_deltas import FilterEvent, Group, IndexMaker
from .semijoin_templates import Form

Choice = Mapping[str, Edge | None]


class Version(NamedTuple):
    """A row with its number."""

    number: int
    row: Row


class Change(NamedTuple):
    """One event: a row is inserted, deleted or replaced. With the same number for both, it is a new version."""

    table: str
    old: Version | None
    new: Version | None

    @property
    def same_row(self) -> bool:
        """Whether a row stays and has a new version."""
        return self.old is not None and self.new is not None and self.old.number == self.new.number


class SemijoinScheme(ABC):
    """Groups of semijoins, and events at their tables."""

    # Whether a row that is updated without a change of its join attributes keeps its number.
    keeps_numbers = True
    # Whether no table is filtered by a neighbour, so that there is nothing to decompose.
    relaxed = False

    def __init__(self, bags: Mapping[str, Bag], index: IndexMaker, *, axes: int | None = None) -> None:
        self.bags = bags
        self._index = index
        self._most_axes = axes
        self.groups: dict[Form, Group] = {}
        # A form keeps its number when its last subscription leaves: filters name it.
        self.numbers: dict[Form, int] = {}
        self._concerned: dict[str, tuple[list[Group], list[Group]]] = {}

    # Subscriptions.

    def forms(self, query: Query, choice: Choice) -> list[Form]:
        """The form of each base table's semijoin, given the edge that was chosen for it."""
        return [self.form(query, table, choice[table]) for table in query.tables]

    def form(self, query: Query, table: str, edge: Edge | None) -> Form:
        """The form of a base table's semijoin: its axes are the filtering attributes with a range that do not join."""
        if edge is None:
            return Form(table)
        other = edge.other(table)
        ranged = sorted(set(query.ranges[other]) - set(edge.columns_of(other)))
        return Form(table, edge, tuple(ranged[: self._most_axes]))

    def add(self, id: int, query: Query, choice: Choice) -> dict[int, Form]:
        """Add a subscription; return its forms by number."""
        found: dict[int, Form] = {}
        for form in self.forms(query, choice):
            group = self._group(form)
            group.add(id, query.ranges[form.base], form.ranges(query))
            found[group.number] = form
        return found

    def add_many(self, ids: Ids, query: Query, keys: Mapping[Column, Ends], choice: Choice) -> dict[int, Form]:
        """Add a batch of subscriptions, with ranges on the columns that the keys name; their forms by number."""
        found: dict[int, Form] = {}
        for form in self.forms(query, choice):
            group = self._group(form)
            base = {column: ends for (table, column), ends in keys.items() if table == form.base}
            group.add_many(ids, base, {axis: keys[form.filtering or "", axis] for axis in form.axes})
            found[group.number] = form
        return found

    def remove(self, id: int, query: Query, forms: Iterable[Form]) -> None:
        """Remove a subscription's semijoins of these forms."""
        for form in forms:
            group = self.groups[form]
            group.remove(id, query.ranges[form.base])
            if not len(group):
                self.close(form)

    def close(self, form: Form) -> None:
        """Drop a form and its group."""
        self.groups.pop(form).close()
        self._concerned = {}

    def _group(self, form: Form) -> Group:
        group = self.groups.get(form)
        if group is None:
            number = self.numbers.setdefault(form, len(self.numbers) + 1)
            group = self.groups[form] = Group(form, number, self.bags, self._index)
            self._concerned = {}
        return group

    def content(self, query: Query, form: Form) -> list[tuple[int, Row]]:
        """The current rows of a subscription's semijoin."""
        bag, group = self.bags[form.base], self.groups[form]
        ranges = query.ranges[form.base]
        ends = group.filter_ends(form.ranges(query))
        return [(number, row) for number, row in bag if passes(bag, ranges, row) and group.lets_through(ends, row)]

    def initial(self, id: int, query: Query, forms: Mapping[int, Form]) -> Message:
        """The contents at the time of subscribing."""
        listing = Listing()
        for form in forms.values():
            listing.come(form.base, self.bags[form.base].columns, self.content(query, form))
        return listing.message(id)

    # Events.

    def before(self, change: Change) -> None:
        """Process an event before the tables change: find the tuples that the new row exposes."""
        self.begin()
        if change.new is None:
            return
        for group in self._at(change.table)[0]:
            event = group.filter_event(change.new.row)
            if event is not None:
                self.expose(group, event)

    def after(self, change: Change) -> list[Message]:
        """Process it after the change: find the tuples that the old row withdraws, and who has the row itself."""
        filtered, based = self._at(change.table)
        if change.old is not None:
            for group in filtered:
                event = group.filter_event(change.old.row)
                if event is not None:
                    self.withdraw(group, event)
        for group in based:
            self._base_event(group, change)
        return self.finish()

    def _at(self, table: str) -> tuple[list[Group], list[Group]]:
        """The groups that a table filters, and those of which it is the base."""
        found = self._concerned.get(table)
        if found is None:
            groups = self.groups.items()
            found = self._concerned[table] = (
                [group for form, group in groups if form.filtering == table],
                [group for form, group in groups if form.base == table],
            )
        return found

    def _base_event(self, group: Group, change: Change) -> None:
        if change.same_row and change.old and change.new:
            self.replace(group, change.old, change.new)
            return
        if change.old:
            self.depart(group, change.old)
        if change.new:
            self.arrive(group, change.new)

    @abstractmethod
    def begin(self) -> None:
        """Begin an event."""

    @abstractmethod
    def expose(self, group: Group, event: FilterEvent) -> None:
        """A filtering tuple was inserted."""

    @abstractmethod
    def withdraw(self, group: Group, event: FilterEvent) -> None:
        """A filtering tuple was deleted."""

    @abstractmethod
    def arrive(self, group: Group, new: Version) -> None:
        """A base tuple was inserted."""

    @abstractmethod
    def depart(self, group: Group, old: Version) -> None:
        """A base tuple was deleted."""

    @abstractmethod
    def replace(self, group: Group, old: Version, new: Version) -> None:
        """A base tuple has a new version, with the same join attributes."""

    @abstractmethod
    def finish(self) -> list[Message]:
        """The event's messages."""
