"""The index of one feed: the patterns that subscriptions wait for on it, and which documents matched them.

The matcher holds each distinct pattern once, under a number that is never used again; subscriptions refer to patterns
by their text in normal form. `since[pattern]` is the first sequence from which on every document was matched against
the pattern: older documents are looked for in the log (`delivery_search.py`).

Threads: the sequencer changes patterns and matches; any thread looks matches up.
"""

import logging
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from pathcast.broker_log import UNLIMITED
from pathcast.documents import DocumentBatch, Limits, Reader
from pathcast.kernels import Int32s, Int64s
from pathcast.matching import Subscriptions

from .delivery_index import Batch, DeliveryIndex

_LOGGER: Final = logging.getLogger(__name__)


class IndexedPattern(NamedTuple):
    """A pattern's number, and the first sequence that was matched against it.

    `rebuilt`: the pattern was there when the process started, so documents from before are matched against it, too.
    """

    number: int
    since: int
    rebuilt: bool = False


class FeedIndex:
    """Patterns and matches of one feed."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.matches = DeliveryIndex()
        self._subscriptions = Subscriptions()
        self._matcher = self._subscriptions.compile()
        self._limits = Limits.given(limits)
        self._reader = Reader(self._subscriptions.table.names, self._limits, "refuse")
        self._patterns: dict[str, IndexedPattern] = {}
        self._uses: dict[str, int] = {}
        self.earlier = DeliveryIndex()  # matches of documents that are older than this process
        self.earlier_to = 0  # how far `earlier` is complete

    def __len__(self) -> int:
        return len(self._patterns)

    def pattern(self, text: str) -> IndexedPattern | None:
        """A pattern's number and since when it is indexed."""
        return self._patterns.get(text)

    def add(self, texts: Iterable[str], since: int, *, rebuilt: bool = False) -> None:
        """One more subscription for each of these patterns; documents from `since` on are matched against them.

        `rebuilt`: earlier documents will be, too (`rebuild.py`).
        """
        new: list[str] = []
        for text in texts:
            uses = self._uses.get(text, 0)
            self._uses[text] = uses + 1
            if uses == 0:
                new.append(text)
        if new:
            for text, number in zip(new, self._subscriptions.add_many(new), strict=True):
                self._patterns[text] = IndexedPattern(number, since, rebuilt)

    def indexed_to(self, text: str, begin: int, end: int) -> int:
        """Up to where the index answers for a pattern from `begin` on: `end`, or an earlier sequence."""
        pattern = self._patterns.get(text)
        if pattern is None:
            return begin
        if pattern.since <= begin:
            return end
        if not pattern.rebuilt:
            return begin
        to = self.earlier_to + 1
        return end if to >= min(pattern.since, end) else max(begin, to)

    def remove(self, text: str) -> None:
        """One subscription less for a pattern."""
        uses = self._uses[text] = self._uses[text] - 1
        if uses == 0:
            del self._uses[text]
            self._subscriptions.remove(self._patterns.pop(text).number)

    def after(self, pattern: int, position: int, limit: int) -> list[int]:
        """At most `limit` sequences above `position` of documents that matched a pattern, ascending."""
        found = self.earlier.after(pattern, position, limit)
        return found if len(found) >= limit else found + self.matches.after(pattern, position, limit - len(found))

    def among(self, pattern: int, sequences: list[int]) -> list[int]:
        """Those of some ascending sequences whose documents matched a pattern."""
        if not sequences:
            return []
        wanted = np.array(sequences, dtype=np.int64)
        found: list[int] = wanted[self.earlier.among(pattern, wanted) | self.matches.among(pattern, wanted)].tolist()
        return found

    def drop_before(self, sequence: int) -> None:
        """Drop the matches of documents that were trimmed."""
        self.matches.drop_before(sequence)
        self.earlier.drop_before(sequence)

    def read_within(self, limits: Limits) -> None:
        """Read and match the next documents within these limits."""
        if limits != self._limits:
            self._limits = limits
            self._reader = Reader(self._subscriptions.table.names, limits, "refuse")

    def read(self, documents: Sequence[bytes]) -> DocumentBatch:
        """Documents as a batch that is valid until the next read; unreadable ones are in its `errors`."""
        return self._reader.read(documents, borrowed=True)

    def match(self, batch: DocumentBatch) -> Batch:
        """Match a batch that was read just now; its `errors` then have the documents that cost too much, too.

        The documents have no sequences yet; `Batch.at` gives them.
        """
        return _copied(range(1, len(batch) + 1), self._matcher.view().within(self._limits).match_ids(batch))

    def match_again(self, sequences: Sequence[int], bodies: Sequence[bytes]) -> Batch:
        """Match documents of the log that were accepted, whatever they cost now; in any thread."""
        batch = Reader(self._subscriptions.table.names, UNLIMITED, "refuse").read(bodies)
        found = _copied(sequences, self._matcher.view().within(UNLIMITED).match_ids(batch))
        for place, error in batch.errors.items():
            _LOGGER.error("document %d was accepted, but matches nothing any more: %s", sequences[place], error)
        return found


def _copied(sequences: Sequence[int], found: tuple[Int64s, Int32s]) -> Batch:
    """A batch that owns its arrays: those of a match may be views of buffers that the next match reuses."""
    offsets, patterns = found
    return Batch(
        np.array(sequences, dtype=np.int64), np.array(offsets, dtype=np.int64), np.array(patterns, dtype=np.int32)
    )


def warm_up() -> None:
    """Load the kernels, or compile them the first time, so that the first publication does not wait for it."""
    index = FeedIndex()
    index.add(["//a", "//a[@b = 'c']", "//a[b]/c", "//a[contains(., 'd')]"], 0)
    index.match(index.read([b"<a b='c'><b>d</b><c/></a>"]))
