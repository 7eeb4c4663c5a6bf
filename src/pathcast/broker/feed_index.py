"""The index of one feed: the patterns that subscriptions wait for on it, and which documents matched them.

The matcher holds each distinct pattern once, under a number that is never used again; subscriptions refer to patterns
by their text in normal form. `since` of a pattern is the first sequence from which on every document was matched
against it: older documents are looked for in the log (`delivery_search.py`).

An index may begin with the patterns of a snapshot (`StoredPatterns`), which are read where they are. A pattern of it
that a subscription begins or ceases to use is an entry of the dictionaries from then on.

Threads: the sequencer changes patterns and matches; any thread looks matches up.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec import Struct

from pathcast.broker_log import UNLIMITED, LoggedDocuments, MediatorSpans, SparkSpans, sparing
from pathcast.documents import DocumentBatch, Limits, Reader
from pathcast.errors import PathcastError
from pathcast.kernels import AnyArray, Int32s, Int64s
from pathcast.matching import Matcher, Subscriptions, Tuning, restored_matcher
from pathcast.store import TextLookup

from .deliveries.computed_matches import ComputedMatches
from .deliveries.delivery_index import Batch
from .deliveries.feed_matches import FeedMatches

_LOGGER: Final = logging.getLogger(__name__)
_TEXTS, _MATCHER = "texts_", "matcher_"


class IndexedPattern(Struct, frozen=True, gc=False):
    """A pattern's number, and the first sequence that was matched against it.

    `rebuilt`: the pattern was there when the process started, so documents from before are matched against it, too.
    """

    number: int
    since: int
    rebuilt: bool = False


class StoredPatterns(NamedTuple):
    """The patterns of a snapshot: each one's text, number, and how many subscriptions and guards use it."""

    texts: TextLookup
    numbers: Int32s
    uses: Int32s
    matcher: Matcher  # knows each by its number


class FeedIndex:
    """Patterns and matches of one feed."""

    def __init__(
        self, limits: Limits | None = None, tuning: Tuning | None = None, stored: StoredPatterns | None = None
    ) -> None:
        self.matches = FeedMatches()
        self._stored = stored
        self._left = 0 if stored is None else len(stored.texts)  # stored patterns that are not in the dictionaries
        self._matcher = Subscriptions(tuning=tuning).compile() if stored is None else stored.matcher
        self._subscriptions = self._matcher.subscriptions
        self._limits = sparing(Limits.given(limits))
        self._reader = Reader(self._subscriptions.table.names, self._limits, "refuse")
        self._patterns: dict[str, int | IndexedPattern] = {}  # a number alone: there when the process started
        self._uses: dict[str, int] = {}  # 0: a stored pattern that is no longer used
        self._begin = 0
        self.earlier = FeedMatches()  # matches of documents that are older than this process
        self.earlier_to = 0  # how far `earlier` is complete
        self.computed = ComputedMatches()  # by other processes

    def __len__(self) -> int:
        return len(self._patterns) + self._left

    def begin_at(self, sequence: int, spark: SparkSpans = ()) -> None:
        """Documents from here on are matched live; those before it are matched again (`delivery_index_rebuild.py`).

        `spark`: which documents Spark matches.
        """
        self._begin = sequence
        self.computed.begin_at(sequence, spark)

    def lacks(self, text: str, begin: int) -> int | None:
        """Where what is known of a pattern begins, if that is after `begin` and nobody is finding out the rest."""
        pattern = self.pattern(text)
        return None if pattern is None or pattern.rebuilt or pattern.since <= begin else pattern.since

    def lengthen(self, text: str, begin: int, end: int, sequences: Int64s) -> int | None:
        """Take the documents that match a pattern from `begin` to before `end`; returns its number if that was new."""
        since = self.lacks(text, begin)
        found = self.pattern(text)
        if since is None or found is None or end < since:
            return None
        self.computed.lengthen(found.number, begin, since, sequences)
        self._patterns[text] = IndexedPattern(found.number, begin)
        return found.number

    def pattern(self, text: str) -> IndexedPattern | None:
        """A pattern's number and since when it is indexed."""
        found = self._patterns.get(text)
        if found is None and self._stored is not None:
            if text in self._uses:
                found = self._patterns.get(text)  # perhaps since a moment ago
            elif (row := self._stored.texts.find(text)) >= 0:
                found = int(self._stored.numbers[row])
        return IndexedPattern(found, self._begin, True) if isinstance(found, int) else found

    def add(self, texts: Iterable[str], since: int | None) -> None:
        """One more subscription for each of these patterns; documents from `since` on are matched against them.

        None: the patterns of a broker that is starting; `begin_at` says since when.
        """
        new: list[str] = []
        for text in texts:
            uses = self._taken_up(text)
            self._uses[text] = uses + 1
            if uses == 0:
                new.append(text)
        if new:
            for text, number in zip(new, self._subscriptions.add_many(new), strict=True):
                self._patterns[text] = number if since is None else IndexedPattern(number, since)

    def _taken_up(self, text: str) -> int:
        """The uses of a pattern. A stored one is in the dictionaries from now on; the caller sets its uses."""
        uses = self._uses.get(text)
        if uses is not None or self._stored is None:
            return uses or 0
        row = self._stored.texts.find(text)
        if row < 0:
            return 0
        self._patterns[text] = int(self._stored.numbers[row])
        self._left -= 1
        return int(self._stored.uses[row])

    def remove(self, text: str, count: int = 1) -> None:
        """Some subscriptions less for a pattern."""
        uses = self._uses[text] = self._taken_up(text) - count
        if uses == 0:
            number = self._patterns.pop(text)
            if self._stored is None or self._stored.texts.find(text) < 0:
                del self._uses[text]
            number = number if isinstance(number, int) else number.number
            self._subscriptions.remove(number)
            self.computed.forget(number)

    def patterns(self) -> Iterator[tuple[str, int, int]]:
        """Text, number and uses of each pattern; not while patterns are added or removed."""
        for text, found in self._patterns.items():
            yield text, found if isinstance(found, int) else found.number, self._uses[text]
        if self._stored is not None:
            texts, numbers, uses, _ = self._stored
            for text, number, used in zip(texts.texts, numbers.tolist(), uses.tolist(), strict=True):
                if text not in self._uses:
                    yield text, number, used

    def restore(self, patterns: Sequence[tuple[str, int]]) -> None:
        """Patterns and their uses, in an index without any."""
        self.add([text for text, _ in patterns], None)
        self._uses = dict(patterns)

    def stored(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """The compiled patterns as facts and arrays of a snapshot; `opened` reads them."""
        texts, numbers, uses = zip(*self.patterns(), strict=True)
        facts, arrays = self._matcher.arrays()
        arrays = {_MATCHER + name: array for name, array in arrays.items()}
        arrays |= {_TEXTS + name: array for name, array in TextLookup.arrays(texts).items()}
        arrays["numbers"], arrays["uses"] = np.array(numbers, dtype=np.int32), np.array(uses, dtype=np.int32)
        return facts, arrays

    @classmethod
    def opened(cls, facts: dict[str, Any], arrays: Mapping[str, AnyArray], limits: Limits) -> "FeedIndex":
        """The index whose patterns are `stored`; nothing is copied or compiled."""
        texts = TextLookup(_part(arrays, _TEXTS))
        matcher = restored_matcher(facts, _part(arrays, _MATCHER))
        return cls(limits, stored=StoredPatterns(texts, arrays["numbers"], arrays["uses"], matcher))

    def indexed_to(self, text: str, begin: int, end: int) -> int:
        """Up to where the index answers for a pattern from `begin` on: `end`, or an earlier sequence."""
        pattern = self.pattern(text)
        if pattern is None:
            return begin
        if pattern.since <= begin:
            return end
        if not pattern.rebuilt:
            return begin
        to = self.earlier_to + 1
        return end if to >= min(pattern.since, end) else max(begin, to)

    def after(self, pattern: int, position: int, limit: int) -> list[int]:
        """At most `limit` sequences above `position` of documents that matched a pattern, ascending."""
        found = self.earlier.after(pattern, position, limit)
        if len(found) < limit:
            found += self.matches.after(pattern, position, limit - len(found))
        if not self.computed.is_used:
            return found
        return sorted({*found, *self.computed.after(pattern, position, limit)})[:limit]

    def among(self, pattern: int, sequences: list[int]) -> list[int]:
        """Those of some ascending sequences whose documents matched a pattern."""
        if not sequences:
            return []
        wanted = np.array(sequences, dtype=np.int64)
        mask = self.earlier.among(pattern, wanted) | self.matches.among(pattern, wanted)
        if self.computed.is_used:
            mask |= self.computed.among(pattern, wanted)
        found: list[int] = wanted[mask].tolist()
        return found

    def most_expensive(self) -> list[dict[str, Any]]:
        """The patterns that were tried on most documents, as `Matcher.statistics` lists them."""
        found: list[dict[str, Any]] = self._matcher.statistics()["most expensive"]
        return found

    def drop_before(self, sequence: int) -> None:
        """Drop the matches of documents that were trimmed."""
        self.matches.drop_before(sequence)
        self.earlier.drop_before(sequence)
        self.computed.drop_before(sequence)

    def read_within(self, limits: Limits) -> None:
        """Read and match the next documents within these limits."""
        if (limits := sparing(limits)) != self._limits:
            self._limits = limits
            self._reader = Reader(self._subscriptions.table.names, limits, "refuse")

    def read(self, documents: Sequence[bytes]) -> DocumentBatch:
        """Documents as a batch that is valid until the next read; unreadable ones are in its `errors`."""
        return self._reader.read(documents, borrowed=True)

    def match(self, batch: DocumentBatch) -> Batch:
        """Match a batch that was read just now; its `errors` then have the documents that cost too much, too.

        The documents have no sequences yet; `Batch.at` gives them.
        """
        view = self._matcher.view().within(self._limits)
        return self.matches.batch(view, view.match_shared(batch), range(1, len(batch) + 1))

    def read_only(
        self, bodies: Sequence[bytes], mappings: Mapping[int, str | PathcastError]
    ) -> Mapping[int, PathcastError]:
        """Why documents cannot be read, or rewritten; Spark matches those that can."""
        if not mappings:
            return self.read(bodies).errors
        from pathcast.broker_log import match_mediated

        nothing = Subscriptions().compile()
        return match_mediated(nothing.view(), nothing.subscriptions.table.names, bodies, mappings, self._limits).errors

    def match_mediated(
        self, bodies: Sequence[bytes], mappings: Mapping[int, str | PathcastError]
    ) -> tuple[Batch, dict[int, PathcastError], int]:
        """Read and match documents of which some have a mapping, by place.

        Also returns the errors, by place, and how many of these could be rewritten. `Batch.at` gives sequences.
        """
        from pathcast.broker_log import match_mediated

        view, names = self._matcher.view(), self._subscriptions.table.names
        found = match_mediated(view, names, bodies, mappings, self._limits)
        numbers = np.arange(1, len(bodies) + 1, dtype=np.int64)
        return Batch(numbers, found.offsets, found.patterns), found.errors, found.unmatched

    def match_again(self, documents: LoggedDocuments, mediators: MediatorSpans = ()) -> Batch:
        """Match documents of the log that were accepted, whatever they cost now; in one thread, beside the sequencer.

        The result is for `earlier`. `mediators`: those of the feed, for documents that have a schema.
        """
        sequences, bodies, schemas = documents
        view, names = self._matcher.view(), self._subscriptions.table.names
        errors: Mapping[int, PathcastError]
        if schemas:
            from pathcast.broker_log import mappings_of, match_mediated

            matched = match_mediated(view, names, bodies, mappings_of(documents, mediators), UNLIMITED)
            found = Batch(np.array(sequences, dtype=np.int64), matched.offsets, matched.patterns)
            errors = matched.errors
        else:
            batch = Reader(names, UNLIMITED, "refuse").read(bodies)
            found = self.earlier.batch(view, view.within(UNLIMITED).match_shared(batch), sequences)
            errors = batch.errors
        for place, error in errors.items():
            _LOGGER.error(
                "the broker accepted document %d earlier, but cannot match it now: %s", sequences[place], error
            )
        return found


def _part(arrays: Mapping[str, AnyArray], prefix: str) -> dict[str, AnyArray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def warm_up() -> None:
    """Load the kernels, or compile them the first time, so that the first publication does not wait for it."""
    index = FeedIndex()
    index.add(["//a", "//a[@b = 'c']", "//a[b]/c", "//a[contains(., 'd')]"], 0)
    index.match(index.read([b"<a b='c'><b>d</b><c/></a>"]))
