"""A content-based network: forwarding tables with covering, built by announcing filters to neighbours (appendix A).

The overlay is a tree. A node has a table of filters, each with the neighbour that announced it, or LOCAL. To a
neighbour in the direction of a publisher (an *uplink*) it announces the filters of all others, except filters that
another announced filter covers; so a table has, per neighbour, the widest filters of that side.

    told(u) ⊂ filters from neighbours other than u, and each of these filters is covered by one of told(u)

That holds after every change: a new filter is announced unless covered, and replaces the filters that it covers; when a
filter is removed, the filters that it covered are checked again, and so are the filters that those cover. Hence every
node on the way forwards a message that matches a filter.

Locality: a node reads its own table and the message or announcement that it processes.
Cost: matching as in `filter_covering_index.py`; per node, a change looks up the filters that cover it and, if it is
announced, the filters that it covers.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..content_addressable.filter_point_index import maximal
from ..content_addressable.filter_point_transformation import Probe, Shaped
from ..content_addressable.zone_boxes import Box
from .filter_covering_index import FilterTable

LOCAL = -1


@dataclass
class Announcement:
    """An announcement to a neighbour: filters that are added, and filters that are dropped."""

    target: int
    added: dict[int, Shaped] = field(default_factory=dict)
    dropped: set[int] = field(default_factory=set)

    def add(self, number: int, shaped: Shaped) -> None:
        if number in self.dropped:
            self.dropped.remove(number)
        else:
            self.added[number] = shaped

    def drop(self, number: int) -> None:
        if number in self.added:
            del self.added[number]
        else:
            self.dropped.add(number)

    def __bool__(self) -> bool:
        return bool(self.added or self.dropped)


@dataclass
class Step:
    """The result of routing a message at a node: local registrations that match, and neighbours that get a copy."""

    local: list[int]
    forwards: list[tuple[int, tuple[Box, ...]]]


class ContentNode:
    """The state of one node. Filters have numbers, the same at all nodes (as a hash of their content would be)."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.table = FilterTable()
        self.told: dict[int, FilterTable] = {}
        self._entries: dict[tuple[int, int], int] = {}
        self._filters: dict[int, tuple[int, Shaped]] = {}
        self._sources: dict[int, set[int]] = {}
        self._registered: dict[int, list[int]] = {}
        self._heard: Counter[int] = Counter()
        self._next = 0

    # Messages.

    def step(self, probe: Probe, header: tuple[Box, ...], came: int | None) -> Step:
        """Route a message that came from a neighbour, or from a local publisher (None)."""
        entries, targets = self.table.match(probe)
        here = entries[targets == LOCAL].tolist()
        local = [one for entry in here for one in self._registered[self._filters[entry][0]]]
        others = [one for one in np.unique(targets).tolist() if one not in {LOCAL, came}]
        return Step(local, [(one, ()) for one in others])

    def reaches(self, target: int) -> bool:
        """Whether a node is still a neighbour: the links of a tree never change."""
        return True

    @property
    def outgoing(self) -> set[int]:
        """Neighbours that may get messages."""
        return set(self._heard) - {LOCAL}

    @property
    def serves(self) -> bool:
        """Whether a subscriber has registered here."""
        return bool(self._registered)

    # Subscriptions.

    def register(self, wanted: int, shaped: Shaped, registration: int) -> list[Announcement]:
        """Add a subscriber's filter; return the announcements."""
        return self.register_many([(wanted, shaped, registration)])

    def register_many(self, rows: Sequence[tuple[int, Shaped, int]]) -> list[Announcement]:
        """Add many filters of subscribers at once; return the announcements."""
        fresh: dict[int, Shaped] = {}
        for wanted, shaped, registration in rows:
            if wanted not in self._registered:
                self._registered[wanted] = []
                fresh[wanted] = shaped
            self._registered[wanted].append(registration)
        return self.hear(LOCAL, fresh, set())

    def unregister(self, wanted: int, registration: int) -> list[Announcement]:
        """Remove a subscriber's filter; return the announcements."""
        self._registered[wanted].remove(registration)
        if self._registered[wanted]:
            return []
        del self._registered[wanted]
        return self.hear(LOCAL, {}, {wanted})

    def hear(self, source: int, added: dict[int, Shaped], dropped: set[int]) -> list[Announcement]:
        """Add and drop filters of a neighbour (or LOCAL); return the announcements to others."""
        self._take(source, added)
        gone = {wanted: self._forget(source, wanted) for wanted in sorted(dropped)}
        wide = widest(added)
        said = []
        for uplink in self.told:
            if uplink != source:
                announcement = Announcement(uplink)
                self._tell(announcement, wide)
                for wanted, shaped in gone.items():
                    self._withdraw(announcement, wanted, shaped)
                if announcement:
                    said.append(announcement)
        return said

    def open(self, uplink: int) -> list[Announcement]:
        """Make a neighbour an uplink; return the announcement of this side's filters to it."""
        if uplink in self.told:
            return []
        self.told[uplink] = FilterTable()
        others = {
            wanted: shaped
            for (wanted, source), entry in self._entries.items()
            if source != uplink
            for _, shaped in (self._filters[entry],)
        }
        wide = dict(widest(others))
        self.told[uplink].add_many(list(wide), list(wide.values()))
        return [Announcement(uplink, wide)] if wide else []

    def _take(self, source: int, added: dict[int, Shaped]) -> None:
        fresh = {wanted: one for wanted, one in added.items() if (wanted, source) not in self._entries}
        entries = range(self._next, self._next + len(fresh))
        self._next += len(fresh)
        self.table.add_many(entries, list(fresh.values()), source)
        if fresh:
            self._heard[source] += len(fresh)
        for entry, (wanted, shaped) in zip(entries, fresh.items(), strict=True):
            self._entries[wanted, source] = entry
            self._filters[entry] = wanted, shaped
            self._sources.setdefault(wanted, set()).add(source)

    def _forget(self, source: int, wanted: int) -> Shaped:
        entry = self._entries.pop((wanted, source))
        _, shaped = self._filters.pop(entry)
        self.table.remove(entry)
        self._heard[source] -= 1
        if not self._heard[source]:
            del self._heard[source]
        self._sources[wanted].discard(source)
        if not self._sources[wanted]:
            del self._sources[wanted]
        return shaped

    def _tell(self, announcement: Announcement, filters: Iterable[tuple[int, Shaped]]) -> None:
        told = self.told[announcement.target]
        for wanted, shaped in filters:
            if wanted in told or next(told.covering(shaped), None) is not None:
                continue
            for other in list(told.covered(shaped)):
                announcement.drop(other)
                told.remove(other)
            told.add(wanted, shaped)
            announcement.add(wanted, shaped)

    def _withdraw(self, announcement: Announcement, wanted: int, shaped: Shaped) -> None:
        """Withdraw a filter that a side has dropped: unless another side wants it, announce filters that it covered."""
        uplink = announcement.target
        told = self.told[uplink]
        if wanted not in told or self._sources.get(wanted, set()) - {uplink}:
            return
        told.remove(wanted)
        announcement.drop(wanted)
        bare = {}
        for entry in self.table.covered_in_turn(shaped):
            number, one = self._filters[entry]
            if self._sources[number] - {uplink}:
                bare[number] = one
        self._tell(announcement, widest(bare))


def widest(filters: dict[int, Shaped]) -> list[tuple[int, Shaped]]:
    """Filters without those that others of the same signature cover, the widest first."""
    if len(filters) < 2:
        return list(filters.items())
    grouped: dict[object, list[tuple[int, Shaped]]] = {}
    for pair in filters.items():
        grouped.setdefault(pair[1].signature, []).append(pair)
    found: list[tuple[int, Shaped]] = []
    for pairs in grouped.values():
        points = np.array([one.point for _, one in pairs], np.float64).reshape(len(pairs), -1)
        order = np.argsort(np.clip(points, -1e300, 1e300).sum(axis=1), kind="stable").tolist()
        kept = maximal(points) if pairs[0][1].signature.exact else np.ones(len(pairs), bool)
        found += [pairs[at] for at in order if kept[at]]
    return found
