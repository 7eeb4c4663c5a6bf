"""The delivery index: which documents of a feed match a pattern, by sequence.

Matching gives the patterns of each document; a subscriber wants the documents of a pattern. So batches are gathered and
*transposed* into runs, sorted by pattern and then by sequence:

    batches        document → patterns     at most `pending` matches, searched from end to end
      │ sort by pattern
      ▼
    runs           pattern → sequences     searched by bisection; neighbours of similar size are merged,
                                           so there are O(log n) of them per block of 65,536 sequences

The cost of a publication depends on the number of distinct patterns it matches, not on the number of subscriptions: a
thousand equal subscriptions are one pattern. The index is derived from the log: it is rebuilt, never backed up.

Invariant: sequences are appended in ascending order; a reader sees a batch entirely or not at all.
Cost: 6 to 8 bytes per match; a look-up of one pattern some 5 µs per run.
Threads: one appends; any thread reads (a list of immutable runs is replaced by one assignment).
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Int64s

# Matches that wait in batches before they are sorted into a run.
PENDING: Final = 65_536
# A run never spans more sequences than this, so that old runs can be dropped as the log is trimmed.
BLOCK: Final = 65_536


class Batch(NamedTuple):
    """Documents and the patterns they match: those of `sequences[i]` are `patterns[offsets[i] : offsets[i + 1]]`."""

    sequences: Int64s
    offsets: Int64s
    patterns: Int32s

    def at(self, sequences: Sequence[int]) -> "Batch":
        """The same documents with these sequences; a document is left out if its sequence is 0."""
        numbers = np.array(sequences, dtype=np.int64)
        kept = numbers > 0
        if kept.all():
            return self._replace(sequences=numbers)
        counts = np.diff(self.offsets)
        offsets = np.concatenate([[0], np.cumsum(counts[kept])]).astype(np.int64)
        return Batch(numbers[kept], offsets, self.patterns[np.repeat(kept, counts)])


class Run(NamedTuple):
    """The sequences that pattern `patterns[i]` matches are `first + places[offsets[i] : offsets[i + 1]]`."""

    first: int
    last: int
    patterns: Int32s
    offsets: Int64s
    places: np.ndarray[tuple[int], np.dtype[np.uint16]]

    def sequences(self, pattern: int) -> Int64s:
        """The sequences of the documents that match a pattern, ascending."""
        at = int(self.patterns.searchsorted(pattern))
        if at == len(self.patterns) or self.patterns[at] != pattern:
            return _NONE
        return self.places[self.offsets[at] : self.offsets[at + 1]].astype(np.int64) + self.first


_NONE: Final = np.empty(0, dtype=np.int64)


class DeliveryIndex:
    """The matches of one feed."""

    def __init__(self, pending: int = PENDING) -> None:
        self._pending_limit = pending
        self._pending = 0
        self._content: tuple[tuple[Run, ...], tuple[Batch, ...]] = ((), ())

    def append(self, batch: Batch) -> None:
        """Add the matches of further documents, whose sequences span less than a block."""
        assert batch.sequences[-1] - batch.sequences[0] < BLOCK
        runs, batches = self._content
        if batches and batch.sequences[-1] - batches[0].sequences[0] >= BLOCK:
            runs, batches = _with_run(runs, transposed(batches)), ()
            self._pending = 0
        batches = (*batches, batch)
        self._pending += len(batch.patterns)
        if self._pending >= self._pending_limit:
            runs, batches = _with_run(runs, transposed(batches)), ()
            self._pending = 0
        self._content = runs, batches

    def after(self, pattern: int, position: int, limit: int) -> list[int]:
        """At most `limit` sequences above `position` of documents that match a pattern, ascending."""
        runs, batches = self._content
        found: list[int] = []
        for run in runs:
            if run.last > position and len(found) < limit:
                sequences = run.sequences(pattern)
                begin = int(sequences.searchsorted(position, side="right"))
                found += sequences[begin : begin + limit - len(found)].tolist()
        for batch in batches:
            if batch.sequences[-1] > position and len(found) < limit:
                places = np.flatnonzero(batch.patterns == pattern)
                if len(places):
                    sequences = batch.sequences[batch.offsets.searchsorted(places, side="right") - 1]
                    begin = int(sequences.searchsorted(position, side="right"))
                    found += sequences[begin : begin + limit - len(found)].tolist()
        return found

    def among(self, pattern: int, wanted: Int64s) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which of some ascending sequences are of documents that match a pattern."""
        runs, batches = self._content
        mask = np.zeros(len(wanted), dtype=np.bool_)
        for run in runs:
            if run.first <= wanted[-1] and run.last >= wanted[0]:
                mask |= _among(run.sequences(pattern), wanted)
        for batch in batches:
            if batch.sequences[0] <= wanted[-1] and batch.sequences[-1] >= wanted[0]:
                places = np.flatnonzero(batch.patterns == pattern)
                mask |= _among(batch.sequences[batch.offsets.searchsorted(places, side="right") - 1], wanted)
        return mask

    def drop_before(self, sequence: int) -> None:
        """Drop runs of documents that were trimmed."""
        runs, batches = self._content
        self._content = tuple(run for run in runs if run.last >= sequence), batches

    @property
    def bytes(self) -> int:
        """The memory of the index."""
        runs, batches = self._content
        return sum(run.patterns.nbytes + run.offsets.nbytes + run.places.nbytes for run in runs) + sum(
            batch.patterns.nbytes + batch.offsets.nbytes for batch in batches
        )


def _among(found: Int64s, wanted: Int64s) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which of the ascending `wanted` are in the ascending `found`."""
    if len(found) == 0:
        return np.zeros(len(wanted), dtype=np.bool_)
    places = np.minimum(found.searchsorted(wanted), len(found) - 1)
    return np.equal(found[places], wanted)


def transposed(batches: tuple[Batch, ...]) -> Run:
    """One run with the matches of consecutive batches."""
    first, last = int(batches[0].sequences[0]), int(batches[-1].sequences[-1])
    patterns = np.concatenate([batch.patterns for batch in batches])
    places = np.concatenate(
        [np.repeat((batch.sequences - first).astype(np.uint16), np.diff(batch.offsets)) for batch in batches]
    )
    return _run(first, last, patterns, places)


def _run(first: int, last: int, patterns: Int32s, places: np.ndarray[tuple[int], np.dtype[np.uint16]]) -> Run:
    """A run of matches whose sequences ascend for each pattern."""
    order = np.argsort(patterns, kind="stable")
    patterns = patterns[order]
    begins = np.flatnonzero(np.r_[True, patterns[1:] != patterns[:-1]]) if len(patterns) else _NONE
    return Run(first, last, patterns[begins], np.append(begins, len(patterns)).astype(np.int64), places[order])


def _with_run(runs: tuple[Run, ...], run: Run) -> tuple[Run, ...]:
    """Runs and one more, merged with its predecessors of the same block while they are not twice as large."""
    while runs and runs[-1].places.size < 2 * run.places.size and run.last - runs[-1].first < BLOCK:
        before, runs = runs[-1], runs[:-1]
        shifted = (run.places.astype(np.int64) + (run.first - before.first)).astype(np.uint16)
        patterns = [np.repeat(each.patterns, np.diff(each.offsets)) for each in (before, run)]
        run = _run(before.first, run.last, np.concatenate(patterns), np.concatenate([before.places, shifted]))
    return (*runs, run)
