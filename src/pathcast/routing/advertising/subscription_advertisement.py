"""Advertisements: a router advertises to a neighbour the subscriptions on its side of their link.

The sender of an advertisement is the *downstream* router of the link: the receiver sends documents to it. An
advertisement has aggregated subscriptions and the information derived for annotations (§4): the simple aggregates with
the wildcards to bind, data patterns with their frequencies, and the values that structure annotations must carry.
Annotations refer to their numbers and to the advertisement's version.

The sender keeps the tables of §5: the entries behind each aggregate (T_agg), those behind each simple aggregate with
their bindings (T_sagg), and those that contain each data pattern (T_pat).

Invariant: a document that matches an entry of the sender with a target other than the receiver matches an aggregate
that covers the entry. An entry contains a data pattern only by parts that it always requires.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pathcast.kernels import AnyArray, Int32s, Int64s
from pathcast.patterns import Pattern
from pathcast.store import offsets_of

from ..annotations.advertised_annotation_hints import ChangingDerived
from ..annotations.data_pattern_occurrences import DataPatterns
from ..annotations.document_annotations import Bound, Mask, is_short
from ..table.needed_document_values import Needs
from ..table.ruled_out_entries_and_targets_kernels import expire_behind, list_behind, mark_alone, mark_behind
from .subscriptions_by_wildcard_bindings import Simple, StoredSimple

MOST_REMEMBERED = 1 << 12


class EntriesBehind:
    """For each number (of an aggregate or a data pattern) the entries behind it.

    With `data`, numbers are those of its patterns. If a pattern is absent, so are all that contain it: patterns of an
    entry that are contained in another pattern of the entry can be ignored.
    """

    def __init__(self, entries: Iterable[Sequence[int] | Int32s], data: DataPatterns | None = None) -> None:
        self._data = data
        columns = [np.asarray(each, dtype=np.int32).reshape(-1) for each in entries]
        self._offsets = offsets_of([len(each) for each in columns])
        self._entries = np.concatenate(columns) if columns else np.zeros(0, dtype=np.int32)
        self._over: tuple[Int32s, Int32s] | None = None
        self._is_single = False

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def mark(self, numbers: Mask, among: Int32s, idle: Mask, marked: Mask) -> int:
        """Mark the entries of `among` behind these numbers, except idle ones; return how many are newly marked."""
        begins, over = self.over()
        if self._is_single and len(over) == len(idle) and not marked.any():
            return int(mark_alone(among, over, numbers, idle, marked))
        return int(mark_behind(among, begins, over, numbers, idle, marked))

    def over(self) -> tuple[Int32s, Int32s]:
        """The numbers over each entry: those of entry `e` are `numbers[begins[e] : begins[e + 1]]`."""
        if self._over is None:
            self._over = self._numbers_over()
            self._is_single = bool(np.all(np.diff(self._over[0]) == 1))
        return self._over

    def behind(self) -> tuple[Int64s, Int32s]:
        """The entries behind each number: those of number `n` are `entries[offsets[n] : offsets[n + 1]]`."""
        return self._offsets, self._entries

    def entries(self, numbers: Mask) -> Int32s:
        """The entries behind all of these numbers."""
        found = np.empty(len(self._entries), dtype=np.int32)
        return found[: list_behind(self._offsets, self._entries, numbers, found)]

    def _numbers_over(self) -> tuple[Int32s, Int32s]:
        """For each entry its numbers, those with few entries first: they hold most often."""
        counts = np.diff(self._offsets)
        numbers = np.repeat(np.arange(len(self), dtype=np.int32), counts)
        entries, count = self._entries, int(self._entries.max(initial=-1)) + 1
        if self._data is not None:
            needed = self._needed(self._data, count)
            numbers, entries = numbers[needed], entries[needed]
        order = np.lexsort((counts[numbers], entries))
        begins = np.zeros(count + 1, dtype=np.int32)
        np.cumsum(np.bincount(entries, minlength=count), out=begins[1:])
        return begins, numbers[order]

    def _needed(self, data: DataPatterns, count: int) -> Mask:
        """For each pattern and entry behind it, whether the entry is behind no pattern that contains this pattern."""
        needed, larger = np.ones(len(self._entries), dtype=np.bool_), np.zeros(count, dtype=np.bool_)
        parts, wholes = data.parts(data, proper=True)
        for part in np.unique(parts).tolist():
            behind = np.concatenate([self.entries_at(whole) for whole in wholes[parts == part].tolist()])
            larger[behind] = True
            needed[self._offsets[part] : self._offsets[part + 1]] = ~larger[self.entries_at(part)]
            larger[behind] = False
        return needed

    def expire(self, numbers: Int64s, places: Int64s, expiry: Int32s) -> None:
        """Make the entries behind each number expire at its place, unless they expire earlier."""
        expire_behind(self._offsets, self._entries, numbers, places, expiry)

    def arrays(self) -> dict[str, AnyArray]:
        """The entries as arrays, for `restore`."""
        return {"offsets": self._offsets, "entries": self._entries}

    @classmethod
    def restore(cls, arrays: Mapping[str, AnyArray]) -> "EntriesBehind":
        """The object that `arrays` was called on, over the same memory."""
        made = cls(())
        made._offsets, made._entries = arrays["offsets"], arrays["entries"]
        return made

    def entries_at(self, number: int) -> Int32s:
        """The entries behind one number."""
        return self._entries[self._offsets[number] : self._offsets[number + 1]]

    def moved(self, to: Int32s) -> "EntriesBehind":
        """The same with other numbers for entries, -1 for removed entries."""
        moved = (to[self.entries_at(number)] for number in range(len(self)))
        return EntriesBehind((entries[entries >= 0] for entries in moved), self._data)


class BoundEntries:
    """The entries of the sender that match when an aggregate is bound (T_sagg).

    `numbers` has the permanent number of each aggregate, by its place in the advertisement; `to` the new entry of each
    old entry, -1 for removed entries, if the table has been rebuilt; `unbound` the entries behind each aggregate for
    any bindings, if known.
    """

    def __init__(
        self,
        derived: ChangingDerived | StoredSimple,
        numbers: Sequence[int],
        to: Int32s | None = None,
        unbound: EntriesBehind | None = None,
    ) -> None:
        self.derived, self.numbers, self.to = derived, numbers, to
        self._remembered: dict[Bound, Int32s] = {}
        self._unbound = unbound

    @property
    def unbound(self) -> EntriesBehind:
        """The entries that match whenever an aggregate does, by its place, for any bindings."""
        if self._unbound is None:
            self._unbound = EntriesBehind(self._entries(Bound(number, ())) for number in range(len(self.numbers)))
        return self._unbound

    def holding(self, aggregates: Mask) -> Int32s:
        """The entries that match every document that matches these aggregates, for any bindings."""
        return self.unbound.entries(aggregates)

    def entries(self, bound: Bound) -> Int32s:
        """The entries that match a document in which an aggregate has these bindings."""
        found = self._remembered.get(bound)
        if found is None:
            found = self._entries(bound)
            if is_short(bound.wildcards):
                if len(self._remembered) >= MOST_REMEMBERED:
                    self._remembered.clear()
                self._remembered[bound] = found
        return found

    def _entries(self, bound: Bound) -> Int32s:
        entries = self.derived.known(self.numbers[bound.aggregate], bound.wildcards)
        if self.to is not None:
            entries = self.to[entries]
        return entries[entries >= 0]

    def public(self) -> tuple[Simple, ...]:
        """The part that is advertised: the simple aggregates by their places."""
        assert isinstance(self.derived, ChangingDerived)
        places = {number: place for place, number in enumerate(self.numbers)}
        return tuple(Simple(places[each.aggregate], each.count, each.wildcards) for each in self.derived.simple)

    def state(self) -> dict[int, list[tuple[Any, list[int]]]]:
        """By the place of each simple aggregate its entries and the conditions for them, for `StoredSimple`."""
        assert isinstance(self.derived, ChangingDerived)
        found = {}
        for place, number in enumerate(self.numbers):
            state = self.derived.state(number)
            if self.to is not None:
                to = self.to
                state = [(need, [int(to[entry]) for entry in behind if to[entry] >= 0]) for need, behind in state]
            if state:
                found[place] = state
        return found

    def moved(self, to: Int32s) -> "BoundEntries":
        """The same with other numbers for entries."""
        if self.to is not None:
            to = np.where(self.to >= 0, to[self.to], -1)
        return BoundEntries(self.derived, self.numbers, to)


@dataclass(frozen=True, slots=True, eq=False)
class Advertisement:
    """An advertisement from `downstream` to `upstream`; `steps` is the total of the aggregates."""

    upstream: str
    downstream: str
    version: int
    steps: int
    aggregates: Sequence[Pattern]
    simple: tuple[Simple, ...]
    data: DataPatterns
    frequencies: Int32s
    covered: EntriesBehind
    known: BoundEntries
    containing: EntriesBehind
    expiring: EntriesBehind
    needs: Needs = field(default_factory=Needs)

    def moved(self, to: Int32s) -> "Advertisement":
        """The same for a table in which entries have other numbers."""
        return replace(
            self,
            covered=self.covered.moved(to),
            known=self.known.moved(to),
            containing=self.containing.moved(to),
            expiring=self.expiring.moved(to),
        )
