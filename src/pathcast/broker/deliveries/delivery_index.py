"""The delivery index: which documents of a feed match a pattern, by sequence.

Matching gives the patterns of each document; a subscriber wants the documents of a pattern. So batches are gathered and
*transposed* into runs, sorted by pattern and then by sequence:

    batches        document → patterns     at most 16 batches, or some 65,536 matches; searched from end to end
      │ sort by pattern
      ▼
    open runs      pattern → sequences     searched by bisection; 16 runs of one level become one of the next
      │ when the block of 65,536 sequences is complete
      ▼
    closed runs    the same                one per block; several if a block has more than 16 million matches

The cost of a publication depends on the number of distinct patterns it matches, not on the number of subscriptions: a
thousand equal subscriptions are one pattern. Patterns that match together in large numbers are stored as one, a set
(feed_matches.py). The index is derived from the log: it is rebuilt, never backed up.

Invariant: sequences are appended in ascending order; a reader sees a batch entirely or not at all.
Cost: transposing is a counting sort, some 2 ns per match; merging copies each match once per level, under 1 ns where
patterns match often and up to 10 ns where each matches once. No merge moves more than `most` matches, so none holds the
publisher up for more than some 50 ms. A look-up of one pattern: some 5 µs per run that ends after the position.
Memory: 2 bytes per match, and 8 per pattern and run; in batches 4 bytes per match. The latest batches are kept
(`tail`) for `matched_after`: it shows which of many patterns need no look-up.
Threads: one appends; any thread reads (the runs and batches are replaced by one assignment).
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Int64s
from pathcast.store import offsets_of

from .matches_sorted_by_pattern_kernels import (
    DocumentMatches,
    Segments,
    SortedMatches,
    UInt16s,
    sort_documents,
    sort_segments,
)

# A run never spans more sequences than this: its places have 16 bits, and old runs are dropped as the log is trimmed.
BLOCK: Final = 65_536
# Patterns get other numbers before they are sorted if theirs have more gaps than this many per match.
_SPARSE: Final = 8


class Tuning(NamedTuple):
    """When batches are transposed, and runs merged."""

    pending: int = 65_536  # matches that wait in batches before they become a run
    batches: int = 16  # batches that wait
    fan_out: int = 16  # runs of one level that become one run of the next
    most: int = 1 << 24  # matches that a merge moves at most


@dataclass(slots=True, eq=False)
class PatternSet:
    """Patterns that match together, ascending; `first` and `last` bound the documents that match them, 0 if none."""

    number: int
    patterns: Int32s
    first: int = 0
    last: int = 0


class SetMatches(NamedTuple):
    """Documents and the sets of patterns they match: `numbers` has the sets in place of patterns."""

    numbers: "Batch"
    sets: Mapping[int, PatternSet]


class Batch(NamedTuple):
    """Documents and the patterns they match: those of `sequences[i]` are `patterns[offsets[i] : offsets[i + 1]]`.

    `shared`: the patterns that they match as sets, in addition.
    """

    sequences: Int64s
    offsets: Int64s
    patterns: Int32s
    shared: SetMatches | None = None

    @property
    def counts(self) -> Int64s:
        """How many patterns each document matches."""
        counts = np.diff(self.offsets)
        if self.shared is not None:
            numbers, sets = self.shared
            sizes = np.array([len(sets[number].patterns) for number in numbers.patterns.tolist()], dtype=np.int64)
            counts += np.diff(offsets_of(sizes)[numbers.offsets])
        return counts

    @property
    def occurring(self) -> Int32s:
        """The patterns that any document matches; some repeatedly, but those of a set once."""
        if self.shared is None:
            return self.patterns
        return np.concatenate([self.patterns, *(each.patterns for each in self.shared.sets.values())])

    def at(self, sequences: Sequence[int]) -> "Batch":
        """The same documents with these sequences; a document is left out if its sequence is 0."""
        numbers = np.array(sequences, dtype=np.int64)
        shared = None if self.shared is None else self.shared._replace(numbers=self.shared.numbers.at(sequences))
        kept = numbers > 0
        if kept.all():
            return self._replace(sequences=numbers, shared=shared)
        if shared is not None:
            left = set(shared.numbers.patterns.tolist())
            shared = shared._replace(sets={number: each for number, each in shared.sets.items() if number in left})
        counts = np.diff(self.offsets)
        return Batch(numbers[kept], offsets_of(counts[kept]), self.patterns[np.repeat(kept, counts)], shared)

    def of_pattern(self, pattern: int) -> Int64s:
        """The sequences of the documents that match a pattern, ascending."""
        places = np.flatnonzero(self.patterns == pattern)
        return self.sequences[self.offsets.searchsorted(places, side="right") - 1]


class Run(NamedTuple):
    """The sequences that pattern `patterns[i]` matches are `first + places[offsets[i] : offsets[i + 1]]`."""

    first: int
    last: int
    patterns: Int32s
    offsets: Int32s
    places: UInt16s
    level: int = 0  # how often it was merged while its block was open

    def sequences(self, pattern: int) -> Int64s:
        """The sequences of the documents that match a pattern, ascending."""
        at = int(self.patterns.searchsorted(pattern))
        if at == len(self.patterns) or self.patterns[at] != pattern:
            return _NONE
        return self.places[self.offsets[at] : self.offsets[at + 1]].astype(np.int64) + self.first


class Content(NamedTuple):
    """What an index holds, each part in the order of sequences; open runs and batches are of one block."""

    closed: tuple[Run, ...] = ()
    opened: tuple[Run, ...] = ()
    batches: tuple[Batch, ...] = ()
    tail: tuple[Batch, ...] = ()  # the latest batches, whether or not they are in a run by now
    before_tail: int = 0  # the last sequence with a match before those

    @property
    def first(self) -> int:
        """The first sequence of the block that is open; 0 if there is none."""
        if self.opened:
            return self.opened[0].first
        return int(self.batches[0].sequences[0]) if self.batches else 0


_NONE: Final = np.empty(0, dtype=np.int64)


class DeliveryIndex:
    """The matches of one feed."""

    def __init__(self, tuning: Tuning | None = None) -> None:
        self._tuning = Tuning() if tuning is None else tuning
        self._pending = 0
        self._content = Content()

    def append(self, batch: Batch) -> None:
        """Add the matches of further documents, whose sequences span less than a block."""
        if len(batch.patterns) == 0:
            return
        assert batch.sequences[-1] - batch.sequences[0] < BLOCK
        content = self._content
        tail, before_tail = self._tail(content, batch)
        if content.first and batch.sequences[-1] - content.first >= BLOCK:
            opened = self._opened(content)
            content = Content(content.closed + self._closed(opened))
            self._pending = 0
        content = content._replace(batches=(*content.batches, batch))
        self._pending += len(batch.patterns)
        if self._pending >= self._tuning.pending or len(content.batches) >= self._tuning.batches:
            content = Content(content.closed, self._opened(content))
            self._pending = 0
        self._content = content._replace(tail=tail, before_tail=before_tail)

    def _tail(self, content: Content, batch: Batch) -> tuple[tuple[Batch, ...], int]:
        """The latest batches including this one, as many as may wait, and the last sequence before them."""
        tail, before = (*content.tail, batch), content.before_tail
        while len(tail) > self._tuning.batches or sum(len(each.patterns) for each in tail) > self._tuning.pending:
            before, tail = int(tail[0].sequences[-1]), tail[1:]
            if not tail:
                break
        return tail, before

    def matched_after(self, position: int) -> set[int] | None:
        """The patterns that documents above `position` match, and maybe others; None if those are too many to list."""
        content = self._content
        if position < content.before_tail:
            return None
        found: set[int] = set()
        for batch in content.tail:
            if batch.sequences[-1] > position:
                found.update(batch.patterns.tolist())
        return found

    def _opened(self, content: Content) -> tuple[Run, ...]:
        """The open runs and one more, of the batches; runs are merged as soon as there are enough of one level."""
        runs, count = content.opened, self._tuning.fan_out
        if content.batches:
            runs = (*runs, transposed(content.batches))
        while (
            len(runs) >= count
            and runs[-count].level == runs[-1].level
            and sum(len(run.places) for run in runs[-count:]) <= self._tuning.most
        ):
            runs = (*runs[:-count], merged(runs[-count:])._replace(level=runs[-1].level + 1))
        return runs

    def _closed(self, opened: tuple[Run, ...]) -> tuple[Run, ...]:
        """The runs of a block that is complete, merged as far as they may be."""
        groups: list[list[Run]] = []
        size = 0
        for run in opened:
            size += len(run.places)
            if not groups or size > self._tuning.most:
                groups.append([])
                size = len(run.places)
            groups[-1].append(run)
        return tuple(merged(group) for group in groups)

    def after(self, pattern: int, position: int, limit: int) -> list[int]:
        """At most `limit` sequences above `position` of documents that match a pattern, ascending."""
        content = self._content
        found: list[int] = []
        for runs in (content.closed, content.opened):
            for run in runs[bisect_right(runs, position, key=_last) :]:
                if len(found) >= limit:
                    return found
                sequences = run.sequences(pattern)
                if len(sequences):
                    begin = int(sequences.searchsorted(position, side="right"))
                    found += sequences[begin : begin + limit - len(found)].tolist()
        for batch in content.batches:
            if batch.sequences[-1] > position and len(found) < limit:
                sequences = batch.of_pattern(pattern)
                begin = int(sequences.searchsorted(position, side="right"))
                found += sequences[begin : begin + limit - len(found)].tolist()
        return found

    def among(self, pattern: int, wanted: Int64s) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which of some ascending sequences are of documents that match a pattern."""
        content = self._content
        mask = np.zeros(len(wanted), dtype=np.bool_)
        for runs in (content.closed, content.opened):
            for run in runs[bisect_right(runs, int(wanted[0]) - 1, key=_last) :]:
                if run.first <= wanted[-1]:
                    mask |= _among(run.sequences(pattern), wanted)
        for batch in content.batches:
            if batch.sequences[0] <= wanted[-1] and batch.sequences[-1] >= wanted[0]:
                mask |= _among(batch.of_pattern(pattern), wanted)
        return mask

    def drop_before(self, sequence: int) -> None:
        """Drop runs of documents that were trimmed."""
        closed, opened, batches, tail, before_tail = self._content
        self._content = Content(
            tuple(run for run in closed if run.last >= sequence),
            tuple(run for run in opened if run.last >= sequence),
            batches,
            tail,
            before_tail,
        )

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs, in the order of sequences."""
        return self._content.closed + self._content.opened

    @property
    def bytes(self) -> int:
        """The memory of the index."""
        return sum(run.patterns.nbytes + run.offsets.nbytes + run.places.nbytes for run in self.runs) + sum(
            batch.sequences.nbytes + batch.patterns.nbytes + batch.offsets.nbytes for batch in self._content.batches
        )


def _last(run: Run) -> int:
    return run.last


def _among(found: Int64s, wanted: Int64s) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which of the ascending `wanted` are in the ascending `found`."""
    if len(found) == 0:
        return np.zeros(len(wanted), dtype=np.bool_)
    places = np.minimum(found.searchsorted(wanted), len(found) - 1)
    return np.equal(found[places], wanted)


def transposed(batches: Sequence[Batch]) -> Run:
    """One run with the matches of consecutive batches of one block."""
    first, last = int(batches[0].sequences[0]), int(batches[-1].sequences[-1])
    sequences, offsets, patterns, _ = batches[0] if len(batches) == 1 else _joined(batches)
    places = (sequences - first).astype(np.uint16)
    keys = _Keys.of(patterns)
    found = _room(min(keys.span, len(patterns)), len(patterns))
    used = sort_documents(DocumentMatches(places, offsets, keys.keys), keys.least, keys.counts(), found)
    return keys.run(first, last, found, used)


def merged(runs: Sequence[Run]) -> Run:
    """One run with the matches of consecutive runs of one block."""
    if len(runs) == 1:
        return runs[0]
    first, size = runs[0].first, sum(len(run.places) for run in runs)
    keys = _Keys.of(np.concatenate([run.patterns for run in runs]))
    offsets = np.empty(len(keys.keys) + 1, dtype=np.int64)
    places = np.empty(size, dtype=np.uint16)
    at = begin = 0
    for run in runs:
        np.add(run.offsets, begin, out=offsets[at : at + len(run.offsets)], dtype=np.int64)
        np.add(run.places, np.uint16(run.first - first), out=places[begin : begin + len(run.places)])
        at, begin = at + len(run.patterns), begin + len(run.places)
    found = _room(min(keys.span, len(keys.keys)), size)
    used = sort_segments(Segments(keys.keys, offsets, places), keys.least, keys.counts(), found)
    return keys.run(first, runs[-1].last, found, used)


class _Keys(NamedTuple):
    """Patterns as numbers to sort by, from `least` on: their own, or places in `names` if theirs have too many gaps."""

    keys: Int32s
    least: int
    span: int
    names: Int32s | None = None

    @classmethod
    def of(cls, patterns: Int32s) -> "_Keys":
        least = int(patterns.min())
        span = int(patterns.max()) - least + 1
        if span <= _SPARSE * len(patterns) + 1_024:
            return cls(patterns, least, span)
        names, places = np.unique(patterns, return_inverse=True)
        return cls(places.astype(np.int32), 0, len(names), names)

    def counts(self) -> Int32s:
        return np.zeros(self.span, dtype=np.int32)

    def run(self, first: int, last: int, found: SortedMatches, used: int) -> Run:
        """The run of `used` sorted patterns; what was only room for more is released."""
        patterns = found.patterns[:used].copy() if self.names is None else self.names[found.patterns[:used]]
        return Run(first, last, patterns, found.offsets[: used + 1].copy(), found.places)


def _room(patterns: int, matches: int) -> SortedMatches:
    return SortedMatches(
        np.empty(patterns, dtype=np.int32),
        np.empty(patterns + 1, dtype=np.int32),
        np.empty(matches, dtype=np.uint16),
    )


def _joined(batches: Sequence[Batch]) -> Batch:
    return Batch(
        np.concatenate([batch.sequences for batch in batches]),
        offsets_of(np.concatenate([np.diff(batch.offsets) for batch in batches])),
        np.concatenate([batch.patterns for batch in batches]),
    )
