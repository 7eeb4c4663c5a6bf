"""Pattern sets: patterns that match together in large numbers, kept once and named by a number.

The matcher answers with groups of entries that documents share (`SharedEntries`). A group's patterns become a set when
a document matches it for the first time, and another set when subscriptions have changed them since: a set never
changes, so the documents that are stored with its number keep their matches.

    document ──▶ group 7 ──as of the current subscriptions──▶ set 12 ──▶ patterns 3, 5, 8, …
                                                              pattern 5 ──▶ sets 4, 12

Invariant: a set has its number before a batch with that number is appended; numbers ascend and are not used again.
Cost: per batch a look-up for each different group in it, and expanding each group again after subscriptions have
changed, some 3 ns per pattern. A new set costs some 14 bytes and 10 ns per pattern.
Threads: one adds and drops; any thread looks sets up.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Int64s
from pathcast.matching import SharedEntries, View
from pathcast.store import offsets_of

from .delivery_index import Batch, DeliveryIndex, PatternSet, SetMatches, Tuning

# More than there are sets.
_ALL: Final = 1 << 31
# Sets are made seldom and looked up often: they become a run at once, and runs are merged early.
_LOOKED_UP: Final = Tuning(pending=1, fan_out=4)
_TOGETHER: Final = 4_096


class _Known(NamedTuple):
    """The set of a group at a version of the subscriptions; None if the group has no patterns then."""

    version: int
    set: PatternSet | None


class PatternSets:
    """The sets of one feed."""

    def __init__(self) -> None:
        self._of_pattern = DeliveryIndex(_LOOKED_UP)  # sets take the place of documents
        self._sets: dict[int, PatternSet] = {}
        self._made = 0
        self._groups: Int32s | None = None  # the matcher's groups, to which the numbers of groups belong
        self._known: dict[int, _Known] = {}

    def __len__(self) -> int:
        return len(self._sets)

    def __getitem__(self, number: int) -> PatternSet:
        return self._sets[number]

    def of_documents(self, view: View, found: SharedEntries, sequences: Int64s) -> SetMatches | None:
        """The sets that documents match; None if there are none."""
        if not len(found.groups):
            return None
        if found.group_entries is not self._groups:
            self._groups, self._known = found.group_entries, {}
        groups, places = np.unique(found.groups, return_inverse=True)
        made = self._made
        sets = [self._of_group(group, view, found) for group in groups.tolist()]
        self._index(each for each in sets if each is not None and each.number > made)
        numbers = np.array([0 if each is None else each.number for each in sets], dtype=np.int32)[places]
        kept = numbers > 0  # without the groups whose patterns were all removed
        matches = Batch(sequences, offsets_of(kept)[found.group_offsets], numbers[kept])
        return SetMatches(matches, {each.number: each for each in sets if each is not None})

    def _of_group(self, group: int, view: View, found: SharedEntries) -> PatternSet | None:
        version, known = view.expansion.version, self._known.get(group)
        if known is not None and known.version == version:
            return known.set
        patterns = view.expansion.ids_of(found.of_group(group))
        current = None if known is None else known.set
        if current is None or not np.array_equal(current.patterns, patterns):
            current = self._new(patterns) if len(patterns) else None
        self._known[group] = _Known(version, current)
        return current

    def _new(self, patterns: Int32s) -> PatternSet:
        self._made += 1
        made = self._sets[self._made] = PatternSet(self._made, patterns)
        return made

    def _index(self, made: Iterable[PatternSet]) -> None:
        """Let new sets be found by their patterns; they are in no batch yet."""
        sets = sorted(made, key=_number)
        for begin in range(0, len(sets), _TOGETHER):
            some = sets[begin : begin + _TOGETHER]
            numbers = np.array([each.number for each in some], dtype=np.int64)
            patterns = [each.patterns for each in some]
            self._of_pattern.append(
                Batch(numbers, offsets_of([len(each) for each in patterns]), np.concatenate(patterns))
            )

    def with_pattern(self, pattern: int, position: int) -> list[PatternSet]:
        """The sets with a pattern that documents after a position match, by their first document."""
        if not self._sets:
            return []
        found = [self._sets.get(number) for number in self._of_pattern.after(pattern, 0, _ALL)]
        return sorted((each for each in found if each is not None and each.last > position), key=_first)

    def named(self, numbers: Iterable[int]) -> list[PatternSet]:
        """The sets with these numbers, but those that were dropped."""
        return [found for number in numbers if (found := self._sets.get(number)) is not None]

    def drop_before(self, sequence: int) -> None:
        """Drop the sets whose documents were all trimmed."""
        dropped = {number for number, each in self._sets.items() if 0 < each.last < sequence}
        if not dropped:
            return
        self._known = {
            group: known for group, known in self._known.items() if known.set is None or known.set.number not in dropped
        }
        self._sets = {number: each for number, each in self._sets.items() if number not in dropped}
        self._of_pattern.drop_before(next(iter(self._sets), self._made + 1))

    @property
    def bytes(self) -> int:
        """The memory of the sets."""
        return self._of_pattern.bytes + sum(each.patterns.nbytes for each in self._sets.values())


def _first(each: PatternSet) -> int:
    return each.first


def _number(each: PatternSet) -> int:
    return each.number
