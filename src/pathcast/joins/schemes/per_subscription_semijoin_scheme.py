"""`enum-sj`: the changes of each affected subscription's semijoins, sent to it alone (§3.1 of the select-join paper).

Content that several subscriptions share is encoded once.

Invariant: an event reports each new, changed or removed row to a subscription at most once, since the subscription has
one semijoin per base table.
Cost: one message per affected subscription and event, with all changes of the event for this subscription.
"""

from collections.abc import Callable, Iterable, Iterator

from pathcast.messages import Message, Points, Value

from .reserved_message_attributes import TO
from .row_listing_messages import change, changed_columns, come, go
from .semijoin_group_deltas import FilterEvent, Group
from .semijoin_scheme import SemijoinScheme, Version

_Listed = tuple[str, Points]


class EnumeratedSemijoins(SemijoinScheme):
    """One message per subscription and event."""

    def begin(self) -> None:
        self._told: dict[int, dict[str, Value]] = {}

    def _tell(self, ids: Iterable[int], listed: _Listed) -> None:
        name, points = listed
        told = self._told
        for id in ids:
            if id in told:
                told[id][name] = points
            else:
                told[id] = {TO: id, name: points}

    def expose(self, group: Group, event: FilterEvent) -> None:
        base = group.base
        self._each(group, event, lambda rows: come(base.table, base.columns, [(n, base.rows[n]) for n in rows]))

    def withdraw(self, group: Group, event: FilterEvent) -> None:
        self._each(group, event, lambda rows: go(group.base.table, rows))

    def _each(self, group: Group, event: FilterEvent, listed: Callable[[tuple[int, ...]], _Listed]) -> None:
        """Report to every exposed subscription the base rows that it selects; most select the same rows."""
        written: dict[tuple[int, ...], _Listed] = {}
        for id, rows in group.exposed_contents(event):
            if rows not in written:
                written[rows] = listed(rows)
            self._tell((id,), written[rows])

    def arrive(self, group: Group, new: Version) -> None:
        self._tell(group.affected(new.row), come(group.base.table, group.base.columns, [(new.number, new.row)]))

    def depart(self, group: Group, old: Version) -> None:
        self._tell(group.affected(old.row), go(group.base.table, [old.number]))

    def replace(self, group: Group, old: Version, new: Version) -> None:
        before, after = set(group.affected(old.row)), set(group.affected(new.row))
        table, columns = group.base.table, group.base.columns
        changed = changed_columns(group.base, old.row, new.row)
        values = [new.row[place] for place in group.base.places(changed)]
        self._tell(before & after, change(table, changed, new.number, values))
        self._tell(before - after, go(table, [old.number]))
        self._tell(after - before, come(table, columns, [(new.number, new.row)]))

    def finish(self) -> list[Message]:
        return list(self._written())

    def _written(self) -> Iterator[Message]:
        nothing: frozenset[str] = frozenset()
        for id in sorted(self._told):
            yield Message.trusted(self._told[id], nothing)
