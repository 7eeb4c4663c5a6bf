"""Matches of a feed that another process computed: Spark, for feeds and histories that outgrow the broker.

    documents that the log leaves to Spark     every pattern, range after range       `cover`
    history of one pattern                     the documents before it was indexed    `lengthen`

A feed's record says which documents Spark matches (`matching`), so the ranges are the log's, and every reader of the
log knows them. Nothing else about it is in the log, or on disk: matches are derived from the log, and the same in
every process. After a restart they are asked for again. That they are true is up to the process that sends them, which
needs the scope `administer`; that they are complete follows from the patterns that it asked for after it knew the
range.

Invariant: `pending` names the first document that Spark matches and has not matched yet; a search ends before it. What
comes twice is ignored: a range is taken from where the last one ended, and a pattern up to where it is indexed.
Cost: that of the delivery index; 8 bytes per match of a history.
Threads: one changes it, any thread reads.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from pathcast.broker_log import SparkSpans
from pathcast.errors import PathcastError
from pathcast.kernels import Bools, Int32s, Int64s
from pathcast.store import offsets_of

from .delivery_index import BLOCK, Batch, DeliveryIndex


class RangeError(PathcastError):
    """Matches of a range cannot be taken: the range before it is missing, or it is beyond the end of the log."""


class Range(NamedTuple):
    """The documents from `begin` to before `end`."""

    begin: int
    end: int


class ComputedMatches:
    """What other processes computed for one feed; `begin` is the first document that this process published."""

    def __init__(self) -> None:
        self._spans: SparkSpans = ()
        self._earlier, self._live = DeliveryIndex(), DeliveryIndex()
        self._history: dict[int, Int64s] = {}
        self._begin = 1
        self._earlier_end = 1  # everything before it is matched
        self._end = 1
        self._last = 0  # the last document that Spark matches

    def begin_at(self, begin: int, spans: SparkSpans) -> None:
        """The process starts: documents before `begin` are in the log."""
        self._begin = self._end = begin
        self._last = begin - 1
        self._spans = spans

    def leave(self, spans: SparkSpans, last: int) -> None:
        """Documents up to `last` were published, and not matched."""
        self._spans = spans
        self._last = max(self._last, last)

    def follow(self, spans: SparkSpans) -> None:
        """The log has changed what Spark matches."""
        self._spans = spans

    @property
    def is_used(self) -> bool:
        """Whether there are documents that this process has not matched by itself."""
        return bool(self._spans or self._history)

    def leaves(self, sequence: int) -> bool:
        """Whether Spark matches a document."""
        return any(begin <= sequence and (end is None or sequence < end) for begin, end in self._spans)

    def pending(self, begin: int, end: int) -> int:
        """The first sequence of a range from which on Spark still has documents to match; its end if there is none."""
        for first, last in self._spans:
            at, to = max(first, begin), min(end, self._last + 1, end if last is None else last)
            if at < self._begin:
                at = max(at, min(self._earlier_end, self._begin))
            if at >= self._begin:
                at = max(at, self._end)
            if at < to:
                return at
        return end

    def ranges(self, first: int, head: int) -> list[Range]:
        """The ranges that are to be matched next, the latest first; `first` is the oldest document of the log."""
        wanted = [(max(first, self._end), head + 1), (max(first, self._earlier_end), self._begin)]
        return [Range(at, end) for begin, end in wanted if (at := self.pending(begin, end)) < end]

    def cover(self, begin: int, end: int, bounds: Range, found: Iterable[tuple[int, Int64s]]) -> Batch:
        """Take the matches of a range: the sequences that each pattern matches; returns what was not known before.

        `bounds`: the documents of the feed that the log has.
        """
        if begin < self._begin:
            known, most, matches = max(self._earlier_end, min(bounds.begin, self._begin)), self._begin, self._earlier
        else:
            known, most, matches = max(self._end, bounds.begin), bounds.end, self._live
        if end > most:
            raise RangeError(
                f"the range ends before {end}, but may end before {most} at most; ask for the ranges again"
            )
        if self.pending(known, begin) < begin:
            raise RangeError(
                f"the range begins at {begin}, but documents from {known} on are not matched; send them first"
            )
        numbers, sequences = _pairs(found)
        kept = (sequences >= max(begin, known)) & (sequences < end) & self._left(sequences)
        batch = _batch(numbers[kept], sequences[kept])
        for part in _blocks(batch):
            matches.append(part)
        if begin < self._begin:
            self._earlier_end = max(known, end)
        else:
            self._end = max(known, end)
        return batch

    def lengthen(self, pattern: int, begin: int, end: int, sequences: Int64s) -> None:
        """Take the documents that match a pattern from `begin` to before `end`, where what is known of it begins."""
        wanted = np.unique(sequences[(sequences >= begin) & (sequences < end)])
        known = self._history.get(pattern)
        self._history[pattern] = wanted if known is None else np.concatenate((wanted, known))

    def forget(self, pattern: int) -> None:
        """Nobody waits for a pattern any more."""
        self._history.pop(pattern, None)

    def after(self, pattern: int, position: int, limit: int) -> list[int]:
        """At most `limit` sequences above `position` of documents that match a pattern, ascending."""
        found = self._earlier.after(pattern, position, limit)
        found += self._live.after(pattern, position, limit)
        history = self._history.get(pattern)
        if history is not None:
            begin = int(history.searchsorted(position, side="right"))
            found += history[begin : begin + limit].tolist()
        return sorted(set(found))[:limit]

    def among(self, pattern: int, wanted: Int64s) -> Bools:
        """Which of some ascending sequences are of documents that match a pattern."""
        mask = self._earlier.among(pattern, wanted) | self._live.among(pattern, wanted)
        history = self._history.get(pattern)
        return mask if history is None else mask | np.isin(wanted, history)

    def drop_before(self, sequence: int) -> None:
        """Drop the matches of documents that were trimmed."""
        self._earlier.drop_before(sequence)
        self._live.drop_before(sequence)
        for pattern, history in list(self._history.items()):
            self._history[pattern] = history[int(history.searchsorted(sequence)) :]

    def _left(self, sequences: Int64s) -> Bools:
        mask = np.zeros(len(sequences), dtype=np.bool_)
        for begin, end in self._spans:
            mask |= (sequences >= begin) & (sequences < (sequences.max(initial=0) + 1 if end is None else end))
        return mask


def _pairs(found: Iterable[tuple[int, Int64s]]) -> tuple[Int32s, Int64s]:
    """Patterns and sequences, a pair per match."""
    each = list(found)
    sizes = [len(sequences) for _, sequences in each]
    numbers = np.repeat(np.array([number for number, _ in each], dtype=np.int32), sizes)
    return numbers, np.concatenate([np.empty(0, dtype=np.int64), *(sequences for _, sequences in each)])


def _batch(numbers: Int32s, sequences: Int64s) -> Batch:
    """Matches as a batch, in the order of documents."""
    order = np.lexsort((numbers, sequences))
    documents, counts = np.unique(sequences, return_counts=True)
    return Batch(documents, offsets_of(counts.astype(np.int64)), numbers[order])


def _blocks(batch: Batch) -> Iterable[Batch]:
    """A batch in parts that span less than a block each."""
    begin = 0
    while begin < len(batch.sequences):
        end = int(batch.sequences.searchsorted(batch.sequences[begin] + BLOCK))
        first, last = int(batch.offsets[begin]), int(batch.offsets[end])
        yield Batch(batch.sequences[begin:end], batch.offsets[begin : end + 1] - first, batch.patterns[first:last])
        begin = end


def decoded(matches: Mapping[str, list[int]]) -> dict[str, Int64s]:
    """The matches of patterns, as arrays."""
    return {pattern: np.array(sequences, dtype=np.int64) for pattern, sequences in matches.items()}
