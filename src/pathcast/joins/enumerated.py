"""`enum-sj`: the changes of each affected subscription's semijoins, sent to it alone (§3.1 of the select-join paper).

Cost: as many messages as subscriptions are affected by an event, each with all that the event changes for it.
"""

from ..messages import Message
from .contents import Listing, changed_columns
from .groups import FilterEvent, Group
from .index import Ids
from .schema import Row
from .semijoins import SemijoinScheme, Version


class EnumeratedSemijoins(SemijoinScheme):
    """A message a subscription and event."""

    def begin(self) -> None:
        self._listings: dict[int, Listing] = {}

    def _listing(self, id: int) -> Listing:
        return self._listings.setdefault(id, Listing())

    def expose(self, group: Group, event: FilterEvent) -> None:
        for id, rows in self._exposed(group, event):
            self._listing(id).come(group.form.base, group.base.columns, rows)

    def withdraw(self, group: Group, event: FilterEvent) -> None:
        for id, rows in self._exposed(group, event):
            self._listing(id).go(group.form.base, [number for number, _ in rows])

    def _exposed(self, group: Group, event: FilterEvent) -> list[tuple[int, list[tuple[int, Row]]]]:
        """The exposed subscriptions, each with the base rows that it selects."""
        rows = [(number, group.base.rows[number]) for number in group.joined_rows(event)]
        selecting: dict[int, list[tuple[int, Row]]] = {}
        exposed = set(group.exposed(event))
        for number, row in rows if exposed else ():
            for index, at in group.placed(row):
                for id in _common(index.selected(at), exposed):
                    selecting.setdefault(id, []).append((number, row))
        return sorted(selecting.items())

    def arrive(self, group: Group, new: Version) -> None:
        for id in group.affected(new.row):
            self._listing(id).come(group.form.base, group.base.columns, [(new.number, new.row)])

    def depart(self, group: Group, old: Version) -> None:
        for id in group.affected(old.row):
            self._listing(id).go(group.form.base, [old.number])

    def replace(self, group: Group, old: Version, new: Version) -> None:
        before, after = set(group.affected(old.row)), set(group.affected(new.row))
        columns = group.base.columns
        changed = group.base.places(changed_columns(group.base, old.row, new.row))
        for id in sorted(before & after):
            self._listing(id).change(
                group.form.base, [columns[at] for at in changed], new.number, [new.row[at] for at in changed]
            )
        for id in sorted(before - after):
            self._listing(id).go(group.form.base, [old.number])
        for id in sorted(after - before):
            self._listing(id).come(group.form.base, columns, [(new.number, new.row)])

    def finish(self) -> list[Message]:
        return [listing.message(id) for id, listing in sorted(self._listings.items()) if listing]


def _common(ids: Ids, wanted: set[int]) -> list[int]:
    return [id for id in ids.tolist() if id in wanted]
