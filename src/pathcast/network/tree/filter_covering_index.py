"""A table of filters: finds the filters that match a message, that cover a filter, or that a filter covers.

Each filter has one access predicate, which a matching message must satisfy: the rarest of its equalities, as a pair of
attribute and value, or an attribute if it has no equality; filters without either are always checked. An access
predicate leads to groups, one per signature, each a set of points (`filter_point_index.py`). A message is looked up by
its attributes and values, so the cost depends on the message and its matches, not on the number of filters.

Invariant: `match` returns exactly the entries whose filters match. `covering` and `covered` are sound but incomplete,
which costs traffic but never a delivery. So covering as found need not be transitive: a filter may cover a second, the
second a third, and the first not the third; `covered_in_turn` includes the third.
Cost: one or two dictionary look-ups per attribute; then the groups found, as in `filter_point_index.py`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from pathcast.errors import MessageError
from pathcast.kernels import Floats, Int32s
from pathcast.messages import Filter, Points, Value

from ..content_addressable.filter_point_index import PointSet, Rows
from ..content_addressable.filter_point_transformation import Probe, Region, Shaped, Signature

Access: TypeAlias = tuple[object, ...]
_ALWAYS: Access = ()


class Group:
    """The filters of one signature."""

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self.points = PointSet(signature.width)
        self._columns = signature.columns()
        self.filters: dict[int, Filter] = {}
        # Functions that create the filters of entries which were added by coordinates, each from an entry on.
        self.makers: list[tuple[Rows, Callable[[int], Filter]]] = []

    def filter(self, entry: int) -> Filter:
        """The filter of an entry, created if the entry was added by coordinates."""
        known = self.filters.get(entry)
        if known is not None:
            return known
        return next(make for entries, make in self.makers if entry in entries)(entry)

    def match(self, probe: Probe) -> Rows:
        """Rows whose filters match."""
        message, signature = probe.message, self.signature
        for name, value in signature.equal:
            found = message.get(name)
            if isinstance(found, Points) or found != value or found is None:
                return _NONE
        if not all(term.matches(message) for term in signature.rest):
            return _NONE
        regions = [(at, probe.region(slot)) for at, slot in zip(self._columns, signature.slots, strict=True)]
        if any(not len(region.most) and not region.negated for _, region in regions):
            return _NONE
        loose = not signature.exact
        rows = self.points.inside(regions, loose=loose)
        if len(rows) and (loose or not all(region.sharp for _, region in regions)):
            entries = self.points.entries[rows].tolist()
            rows = rows[[self.filter(entry).matches(message) for entry in entries]]
        return rows

    def implied(self, other: Shaped) -> Region | None:
        """The region of points of this group that can cover a filter: bounds per column; None if it is empty."""
        if self.signature == other.signature:
            return Region(np.array([other.point]))
        mine, theirs = self.signature, other.signature
        pairs = dict(theirs.equal)
        if any(name not in pairs or pairs[name] != value for name, value in mine.equal):
            return None
        bounds: list[float] = []
        for slot in mine.slots:
            found = [
                other.point[at : at + 2 * len(have.axes)]
                for at, have in zip(theirs.columns(), theirs.slots, strict=True)
                if (have.kind, have.names, have.axes) == (slot.kind, slot.names, slot.axes)
            ]
            if len(found) == 1:
                bounds += found[0]
            elif not found and (slot.kind != "in" or slot.names[0] not in pairs):
                return None
            else:
                bounds += [np.inf] * (2 * len(slot.axes))
        return Region(np.array([bounds]).reshape(1, -1))

    def within(self, other: Shaped) -> Rows:
        """A superset of the rows of filters that another covers, directly or through other filters.

        Whichever way a filter is covered, the tightest of its ranges on a value is not wider. With several other terms
        of a kind about the same attributes, any may be the reason, so they are used only where there is one.
        """
        mine, theirs = _slots(self.signature), _slots(other.signature)
        least = [-np.inf] * self.signature.width
        several: list[tuple[list[int], Floats]] = []
        for kind in mine.keys() & theirs.keys():
            places, others = mine[kind], theirs[kind]
            if kind[0] == "in":
                if kind[1][0] in dict(self.signature.equal):
                    continue
            elif len(places) > 1 or len(others) > 1 or places[0][0] != others[0][0]:
                continue
            elif kind[0] == "no" and not other.signature.exact:
                continue  # perhaps an empty box, which every box contains
            first, width = places[0][1], 2 * len(places[0][0])
            tightest = np.max([other.point[at : at + width] for _, at in others], axis=0)
            if len(places) == 1:
                least[first : first + width] = tightest
            else:
                several.append(([at for _, at in places], tightest))
        rows = self.points.above(least)
        for columns, tightest in several:
            for end in (0, 1):
                part = self.points.columns[rows][:, [at + end for at in columns]]
                rows = rows[part.max(axis=1) >= tightest[end]]
        return rows


_NONE: Rows = np.zeros(0, np.int64)


class FilterTable:
    """Entries: a filter and a target each, under a number that the owner assigns."""

    def __init__(self) -> None:
        self._access: dict[Access, dict[Signature, Group]] = {}
        self._groups: dict[Signature, tuple[Access, Group]] = {}
        self._of: dict[int, Group] = {}

    def __len__(self) -> int:
        return len(self._of)

    def __contains__(self, entry: int) -> bool:
        return entry in self._of

    def filter(self, entry: int) -> Filter:
        """The filter of an entry."""
        return self._of[entry].filters[entry]

    def target(self, entry: int) -> int:
        """The target of an entry."""
        points = self._of[entry].points
        return int(points.targets[points.row(entry)])

    def entries(self) -> list[int]:
        """All entries, in order of insertion."""
        return list(self._of)

    def add(self, entry: int, shaped: Shaped, target: int = 0) -> None:
        """Add a filter."""
        self.add_many([entry], [shaped], target)

    def add_many(self, entries: Sequence[int], shaped: Sequence[Shaped], target: int = 0) -> None:
        """Add filters under new numbers, all with one target."""
        grouped: dict[Signature, list[int]] = {}
        for at, one in enumerate(shaped):
            grouped.setdefault(one.signature, []).append(at)
        for signature, places in grouped.items():
            group = self._group(signature)
            numbers = [entries[at] for at in places]
            group.points.add(numbers, [shaped[at].point for at in places], target)
            for number, at in zip(numbers, places, strict=True):
                group.filters[number] = shaped[at].filter
                self._of[number] = group

    def add_rows(
        self,
        entries: Rows,
        signature: Signature,
        points: Floats,
        target: int = 0,
        filter_of: Callable[[int], Filter] | None = None,
    ) -> None:
        """Add many exact filters of one signature by their points alone.

        An entry may have filters of several signatures; it cannot be removed, and covers nothing. `filter_of` creates
        the filter of an entry, for messages whose values have equal coordinates.
        """
        if not signature.exact:
            raise MessageError("filters with inexact coordinates cannot be added by their points alone; use add_many")
        group = self._group(signature)
        group.points.add(entries, points, target)
        if filter_of is not None:
            group.makers.append((entries, filter_of))

    def remove(self, entry: int) -> None:
        """Remove an entry."""
        group = self._of.pop(entry)
        del group.filters[entry]
        group.points.remove(entry)
        if not len(group.points):
            access, _ = self._groups.pop(group.signature)
            del self._access[access][group.signature]
            if not self._access[access]:
                del self._access[access]

    def match(self, probe: Probe) -> tuple[Rows, Int32s]:
        """The entries that match and their targets."""
        found = [(group.points, rows) for group in self._reached(probe.message) if len(rows := group.match(probe))]
        if not found:
            return _NONE, np.zeros(0, np.int32)
        entries = np.concatenate([points.entries[rows] for points, rows in found])
        return entries, np.concatenate([points.targets[rows] for points, rows in found])

    def targets(self, probe: Probe) -> list[int]:
        """The distinct targets of entries that match."""
        found: list[int] = np.unique(self.match(probe)[1]).tolist()
        return found

    def covering(self, shaped: Shaped) -> Iterator[int]:
        """Entries whose filters cover this one."""
        for group in self._reached_by(shaped):
            bounds = group.implied(shaped)
            if bounds is None:
                continue
            rows = group.points.inside([(0, bounds)], loose=True)
            yield from self._confirmed(group, rows, shaped, wider=True)

    def covered(self, shaped: Shaped) -> Iterator[int]:
        """Entries whose filters this one covers."""
        for group in self._demanding(shaped.signature):
            same = group.signature == shaped.signature
            rows = group.points.above(shaped.point) if same else group.within(shaped)
            yield from self._confirmed(group, rows, shaped, wider=False)

    def covered_in_turn(self, shaped: Shaped) -> Iterator[int]:
        """A superset of the entries that this filter covers, directly or through other filters."""
        for group in self._demanding(shaped.signature):
            rows = group.within(shaped)
            yield from group.points.entries[rows].tolist()

    def _demanding(self, mine: Signature) -> list[Group]:
        """The groups whose filters require everything that filters of a signature require."""
        return [group for theirs, (_, group) in self._groups.items() if theirs == mine or _may_imply(theirs, mine)]

    def _confirmed(self, group: Group, rows: Rows, shaped: Shaped, *, wider: bool) -> Iterator[int]:
        """Entries of rows; filters whose coordinates are not exact are checked one by one."""
        entries = group.points.entries[rows].tolist()
        if group.signature == shaped.signature and shaped.signature.exact:
            yield from entries
            return
        for entry in entries:
            one = group.filters[entry]
            if one.covers(shaped.filter) if wider else shaped.filter.covers(one):
                yield entry

    def _group(self, signature: Signature) -> Group:
        if signature not in self._groups:
            access = min(_accesses(signature), key=lambda one: len(self._access.get(one, ())))
            group = Group(signature)
            self._groups[signature] = access, group
            self._access.setdefault(access, {})[signature] = group
        return self._groups[signature][1]

    def _reached(self, message: Mapping[str, Value]) -> Iterator[Group]:
        """The groups that a message may match."""
        for name, value in message.items():
            if not isinstance(value, Points) and value is not None:
                yield from self._access.get((name, value), {}).values()
            yield from self._access.get((name,), {}).values()
        yield from self._access.get(_ALWAYS, {}).values()

    def _reached_by(self, shaped: Shaped) -> Iterator[Group]:
        """The groups with filters that may cover a filter."""
        signature = shaped.signature
        yield from self._behind(signature.equal)
        names = {name for name, _ in signature.equal} | {name for slot in signature.slots for name in slot.names}
        names |= {term.attribute for term in signature.rest}
        yield from self._behind((name,) for name in sorted(names))
        yield from self._behind([_ALWAYS])

    def _behind(self, accesses: Iterable[Access]) -> Iterator[Group]:
        for access in accesses:
            yield from list(self._access.get(access, {}).values())


def _accesses(signature: Signature) -> list[Access]:
    """The possible access predicates of a signature: pairs first, then attributes, then none."""
    if signature.equal:
        return list(signature.equal)
    names = {name for slot in signature.slots if slot.kind != "no" for name in slot.names}
    names |= {term.attribute for term in signature.rest}
    return [(name,) for name in sorted(names)] or [_ALWAYS]


def _may_imply(theirs: Signature, mine: Signature) -> bool:
    """Whether a filter of mine may cover filters of a signature: they require everything that mine requires."""
    pairs = dict(theirs.equal)
    if any(name not in pairs or pairs[name] != value for name, value in mine.equal):
        return False
    terms = {(slot.kind, slot.names) for slot in theirs.slots} | {("in", (name,)) for name in pairs}
    return all((slot.kind, slot.names) in terms for slot in mine.slots)


def _slots(signature: Signature) -> dict[tuple[str, tuple[str, ...]], list[tuple[tuple[str, ...], int]]]:
    """Slots by kind and attributes: the axes and first column of each."""
    found: dict[tuple[str, tuple[str, ...]], list[tuple[tuple[str, ...], int]]] = {}
    for slot, at in zip(signature.slots, signature.columns(), strict=True):
        found.setdefault((slot.kind, slot.names), []).append((slot.axes, at))
    return found
