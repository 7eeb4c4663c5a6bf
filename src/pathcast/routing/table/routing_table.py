"""The routing table of one router: patterns and the targets that want them (§2 of the paper: pairs (S, p)).

A *target* is a neighbour or a local subscriber. A pattern that several targets want is one entry of the table, so an
entry has a set of targets; entries with the same set form a *group*. A stream waits for the first match of each group.

    entry        0     1     2     3          group   0: r3   1: ada   2: r3, ada
    targets      r3   ada   r3,ada  r3        entries 0, 3       1          2

The sender of a document does not get it back: the table has a *view* per sender, in which entries that only the sender
wants are idle.

Invariant: an entry's number never changes during the lifetime of the table; entries without targets are idle in every
view. When most are, the router builds a new table.
Cost: a view is made once per sender and change, about 2 µs per entry.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pathcast.documents import Limits
from pathcast.kernels import AnyArray, Bools, Int32s, Int64s
from pathcast.matching import Engine, Limited, Tuning, engine_class
from pathcast.matching.table import PatternTable
from pathcast.patterns import Namespaces, Pattern
from pathcast.store import offsets_of

from .ruled_out_entries_and_targets_kernels import gather_targets, leave_out, mark_targets

Mask = Bools
_NOTHING: Mask = np.zeros(0, dtype=np.bool_)


@dataclass(frozen=True, slots=True, order=True)
class Target:
    """A receiver of documents: a neighbour, or a local subscriber."""

    name: str
    is_router: bool


class View:
    """The table for documents of one sender.

    `group` is the group of each entry, -1 for idle entries. Targets are numbered, neighbours first (`routers` of them),
    each kind in order of names; sets of targets are masks.
    """

    def __init__(self, group: Int32s, sets: Sequence[frozenset[Target]]) -> None:
        self.group = group
        self.idle: Mask = group < 0
        self.busy = int(np.count_nonzero(~self.idle))
        self.entries: Int32s = np.arange(len(group), dtype=np.int32)
        self.targets = sorted(set().union(*sets), key=lambda target: (not target.is_router, target.name))
        self.routers = sum(target.is_router for target in self.targets)
        self.local_names = [target.name for target in self.targets[self.routers :]]
        numbers = {target: number for number, target in enumerate(self.targets)}
        self._offsets = offsets_of([len(each) for each in sets])
        self._members = np.array([numbers[target] for each in sets for target in each], dtype=np.int64)
        self._group_of_member = np.repeat(np.arange(len(sets)), np.diff(self._offsets))
        self.for_router: Mask = self.groups_with(np.arange(len(self.targets)) < self.routers)

    def groups_with(self, targets: Mask) -> Mask:
        """For each group whether it has one of these targets; an extra last place, for idle entries, is false."""
        found = np.zeros(len(self._offsets), dtype=np.bool_)
        found[self._group_of_member[targets[self._members]]] = True
        return found

    def targets_of(self, entries: Int32s) -> Mask:
        """The targets that want one of these entries."""
        return self.undecided(entries, _NOTHING, _NOTHING)

    def undecided(self, entries: Int32s, skip: Mask, decided: Mask) -> Mask:
        """The undecided targets that want one of these entries, except skipped entries."""
        found = self.nobody()
        mark_targets(entries, skip, self.group, self._offsets, self._members, decided, found)
        return found

    def targets_of_each(self, offsets: Int64s, entries: Int32s, chosen: Mask) -> tuple[Int64s, Int32s]:
        """The targets of each chosen document: those of document `i` are `targets[edges[i] : edges[i + 1]]`.

        Targets ascend; `entries[offsets[i] : offsets[i + 1]]` are the entries of document `i`.
        """
        edges = np.empty(len(offsets), dtype=np.int64)
        out = np.empty(max(256, 2 * len(entries)), dtype=np.int32)
        while True:
            stamps = np.zeros(len(self.targets), dtype=np.int64)
            filled = gather_targets(
                offsets, entries, chosen, self.group, self._offsets, self._members, stamps, edges, out
            )
            if filled >= 0:
                break
            out = np.empty(2 * len(out), dtype=np.int32)
        targets = out[:filled]
        documents = np.repeat(np.arange(len(offsets) - 1), np.diff(edges))
        return edges, targets[np.lexsort((targets, documents))]

    def left_out(self, failed: Mask, decided: Mask) -> tuple[Mask, int]:
        """The entries that need no matching, since they fail or all their targets are decided; how many are left."""
        skip = np.empty(len(self.group), dtype=np.bool_)
        return skip, leave_out(self.group, failed, self._offsets, self._members, decided, skip)

    @property
    def sets(self) -> tuple[Int64s, Int64s]:
        """The targets of each group: those of group `g` are `members[offsets[g] : offsets[g + 1]]`."""
        return self._offsets, self._members

    def members(self, group: int) -> list[int]:
        """The targets of a group, by number."""
        return [int(number) for number in self._members[self._offsets[group] : self._offsets[group + 1]]]

    def nobody(self) -> Mask:
        """The empty set of targets."""
        return np.zeros(len(self.targets), dtype=np.bool_)


class RoutingTable:
    """Patterns and the targets that want them."""

    def __init__(self, namespaces: Namespaces, max_steps: int, limits: Limits, tuning: Tuning | None = None) -> None:
        self.patterns = PatternTable(namespaces, max_steps, tuning)
        self.limits = limits
        self._wanted: list[dict[Target, int]] = []
        self._unused = 0
        self._engines: dict[str, Engine] = {}
        self._views: dict[str | None, View] = {}

    def __len__(self) -> int:
        return len(self.patterns)

    @property
    def is_wasteful(self) -> bool:
        """Whether most entries, and not just a few, have no targets."""
        return self._unused > self.patterns.tuning.unused_entries and 2 * self._unused > len(self)

    def enter(self, patterns: Iterable[Pattern], target: Target) -> list[int]:
        """Add patterns for a target; return their entries. Each entry counts how often it was added."""
        patterns = list(patterns)
        return self.enter_each(patterns, [target] * len(patterns))

    def enter_each(self, patterns: Sequence[Pattern], targets: Sequence[Target]) -> list[int]:
        """Add patterns, each for its target; return their entries."""
        entries = _enter(self.patterns, patterns)
        fresh = len(self.patterns) - len(self._wanted)
        self._wanted.extend({} for _ in range(fresh))
        self._unused += fresh
        for entry, target in zip(entries, targets, strict=True):
            wanted = self._wanted[entry]
            self._unused -= not wanted
            wanted[target] = wanted.get(target, 0) + 1
        self._views.clear()
        return entries

    def release(self, entries: Iterable[int], target: Target) -> None:
        """Release entries that were added for a target, each once."""
        for entry in entries:
            wanted = self._wanted[entry]
            wanted[target] -= 1
            if not wanted[target]:
                del wanted[target]
                self._unused += not wanted
        self._views.clear()

    def moved_to(self, other: "RoutingTable") -> Int32s:
        """For each entry its number in another table, -1 if that table lacks it."""
        numbers = {other.patterns.pattern(entry): entry for entry in range(len(other))}
        moved = [numbers.get(self.patterns.pattern(entry), -1) for entry in range(len(self))]
        return np.array(moved, dtype=np.int32)

    def wanted(self, sender: str | None) -> Iterator[int]:
        """The entries with a target other than `sender`, ascending."""
        for entry, targets in enumerate(self._wanted):
            if targets and (len(targets) > 1 or next(iter(targets)) != Target(sender or "", True)):
                yield entry

    def wanted_by(self, sender: str | None) -> Iterator[tuple[int, Target]]:
        """The entries, ascending, with each target other than `sender`."""
        for entry, targets in enumerate(self._wanted):
            for target in targets:
                if not target.is_router or target.name != sender:
                    yield entry, target

    def local(self) -> Iterator[int]:
        """The entries that local subscribers want, ascending."""
        for entry, targets in enumerate(self._wanted):
            if any(not target.is_router for target in targets):
                yield entry

    def view(self, sender: str | None) -> View:
        """The table for documents that come from `sender`."""
        found = self._views.get(sender)
        if found is None:
            found = self._views[sender] = self._view(None if sender is None else Target(sender, True))
        return found

    def _view(self, sender: Target | None) -> View:
        numbers: dict[frozenset[Target], int] = {}
        group = np.full(len(self._wanted), -1, dtype=np.int32)
        for entry, wanted in enumerate(self._wanted):
            targets = frozenset(wanted) - {sender} if sender in wanted else frozenset(wanted)
            if targets:
                group[entry] = numbers.setdefault(targets, len(numbers))
        return View(group, list(numbers))

    def state(self) -> tuple[list[Target], dict[str, AnyArray]]:
        """The targets, to be stored: all targets; for each entry its set of targets (-1: none); the sets."""
        numbers: dict[frozenset[Target], int] = {}
        group = [numbers.setdefault(frozenset(wanted), len(numbers)) if wanted else -1 for wanted in self._wanted]
        targets = sorted(set().union(*numbers))
        number_of = {target: number for number, target in enumerate(targets)}
        return targets, {
            "group": np.array(group, dtype=np.int32),
            "set_offsets": offsets_of([len(each) for each in numbers]),
            "set_members": np.array([number_of[each] for one in numbers for each in sorted(one)], dtype=np.int32),
        }

    def engine(self, name: str | None) -> Engine:
        """The engine with this name over all entries of the table."""
        kind = engine_class(name)
        found = self._engines.get(kind.name)
        if found is None:
            found = self._engines[kind.name] = kind.build(self.patterns)
            if isinstance(found, Limited):
                found.limits = self.limits
        found.refresh()
        return found


def _enter(table: PatternTable, patterns: Sequence[Pattern]) -> list[int]:
    """The entries of patterns; new entries are created."""
    steps: list[int] = []
    lengths: list[int] = []
    trees: list[tuple[int, Pattern]] = []
    for place, pattern in enumerate(patterns):
        path = table.encoder.steps_of(pattern)
        if path is None:
            trees.append((place, pattern))
        else:
            steps += path
            lengths.append(len(path))
    entries = table.number(np.array(steps, dtype=np.int32), np.array(lengths, dtype=np.int32), trees)
    return [int(entry) for entry in entries]
