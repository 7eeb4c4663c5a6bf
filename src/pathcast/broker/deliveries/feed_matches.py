"""The matches of a feed: which documents match a pattern, whether by itself or as one of a set.

    document ──▶ pattern 9                            pattern → sequences      (delivery_index.py)
        └──────▶ set 12 ──▶ patterns 3, 5, 8, …       set → sequences, pattern → sets      (pattern_sets.py)

Patterns that match together are stored as sets, so a document that matches 100,000 plain paths costs what one costs
that matches ten. They are expanded when somebody asks for a pattern's documents.

Invariant: a document matches a pattern either by itself or in exactly one of its sets.
Cost: a look-up of one pattern takes one look-up in the delivery index, and one more for each set that has the pattern
and was matched after the position.
Threads: one appends and drops; any thread reads. A reader may see a part of a batch that is being appended, so it asks
for documents up to a sequence that is published after that (`Broker.matched_to`).
"""

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from pathcast.kernels import Bools, Int64s
from pathcast.matching import SharedEntries, View

from .delivery_index import Batch, DeliveryIndex, PatternSet, Tuning
from .pattern_sets import PatternSets


class LatestMatches:
    """The patterns that the latest documents match, and maybe others."""

    def __init__(self, patterns: set[int], sets: Sequence[PatternSet]) -> None:
        self._patterns = patterns
        self._sets = [each.patterns.data for each in sets]

    def __contains__(self, pattern: int) -> bool:
        return pattern in self._patterns or any(_has(each, pattern) for each in self._sets)


class FeedMatches:
    """The matches of one feed."""

    def __init__(self, tuning: Tuning | None = None) -> None:
        self._single = DeliveryIndex(tuning)
        self._shared = DeliveryIndex(tuning)  # sets take the place of patterns
        self.sets = PatternSets()

    def batch(self, view: View, found: SharedEntries, sequences: Sequence[int]) -> Batch:
        """What a matcher found for documents, as a batch that owns its arrays: the matcher reuses its buffers."""
        offsets, patterns = view.expansion.ids_of_all(found.offsets, found.entries)
        numbers = np.array(sequences, dtype=np.int64)
        return Batch(
            numbers,
            np.array(offsets, dtype=np.int64),
            np.array(patterns, dtype=np.int32),
            self.sets.of_documents(view, found, numbers),
        )

    def append(self, batch: Batch) -> None:
        """Add the matches of further documents, whose sequences span less than a block."""
        if batch.shared is not None and len(batch.sequences):
            for each in batch.shared.sets.values():
                each.first = each.first or int(batch.sequences[0])
                each.last = int(batch.sequences[-1])
            self._shared.append(batch.shared.numbers)
        self._single.append(batch._replace(shared=None))

    def after(self, pattern: int, position: int, limit: int) -> list[int]:
        """At most `limit` sequences above `position` of documents that match a pattern, ascending."""
        found = self._single.after(pattern, position, limit)
        for each in self.sets.with_pattern(pattern, position) if limit > 0 else ():
            if len(found) == limit and found[-1] < each.first:
                break
            found = sorted(found + self._shared.after(each.number, position, limit))[:limit]
        return found

    def among(self, pattern: int, wanted: Int64s) -> Bools:
        """Which of some ascending sequences are of documents that match a pattern."""
        mask = self._single.among(pattern, wanted)
        for each in self.sets.with_pattern(pattern, int(wanted[0]) - 1):
            mask |= self._shared.among(each.number, wanted)
        return mask

    def matched_after(self, position: int) -> LatestMatches | None:
        """The patterns that documents above `position` match, and maybe others; None if those are too many to list."""
        patterns, sets = self._single.matched_after(position), self._shared.matched_after(position)
        if patterns is None or sets is None:
            return None
        return LatestMatches(patterns, self.sets.named(sets))

    def drop_before(self, sequence: int) -> None:
        """Drop the matches of documents that were trimmed."""
        self._single.drop_before(sequence)
        self._shared.drop_before(sequence)
        self.sets.drop_before(sequence)

    @property
    def bytes(self) -> int:
        """The memory of the matches."""
        return self._single.bytes + self._shared.bytes + self.sets.bytes


def _has(patterns: memoryview, pattern: int) -> bool:
    at = bisect_left(patterns, pattern)
    return at < len(patterns) and bool(patterns[at] == pattern)
