"""The contract that every engine fulfils, and the optional capabilities of engines.

An engine sees distinct patterns (`PatternTable` entries), never subscriptions: it returns which entries match which
documents of a batch, and the matcher turns entries into ids, subscribers or links afterwards.

- Answers are exact: for each document precisely the entries whose pattern it matches, each once, in no particular
  order. An engine that cannot handle a pattern or document by design delegates it to one that can, and counts this in
  `statistics()`.
- An engine sees an opaque pattern as its tree, and passes its answers through `evaluation/engine_answers.py`. If it
  computes attributes (`Counting`), it may match the pattern's counted tree instead.
- A document that could not be read matches nothing.
- `refresh` is called whenever the table has grown; after it, answers cover the new entries.
- Names of the batch are translated by `table.translation`; an engine never keeps a batch's own ids.

Capabilities are separate protocols: test with `isinstance(engine, Streaming)`. Routers need them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np

from pathcast.documents import Document, DocumentBatch, Limits
from pathcast.kernels import AnyArray, Bools, Int32s, Int64s

from .table.pattern_table import MergedNumbers, PatternTable

Offsets = Int64s
Entries = Int32s
Mask = Bools


class SharedEntries(NamedTuple):
    """The entries of documents, those that match together as groups which documents share.

    Document `i` matches `entries[offsets[i] : offsets[i + 1]]`, and each entry of the groups
    `groups[group_offsets[i] : group_offsets[i + 1]]`; those of group `g` are
    `group_entries[group_begin[g] : group_begin[g + 1]]`. All are different.
    """

    offsets: Offsets
    entries: Entries
    group_offsets: Offsets
    groups: Entries
    group_begin: Entries
    group_entries: Entries  # the same array until the groups change

    @classmethod
    def unshared(cls, offsets: Offsets, entries: Entries) -> "SharedEntries":
        """The answer of an engine without groups."""
        none = entries[:0]
        return cls(offsets, entries, np.zeros_like(offsets), none, np.zeros(1, dtype=np.int32), none)

    def of_group(self, group: int) -> Entries:
        """The entries of a group."""
        return self.group_entries[self.group_begin[group] : self.group_begin[group + 1]]


class Engine(Protocol):
    """Matches batches of documents against a table of patterns."""

    name: ClassVar[str]
    table: PatternTable

    @classmethod
    def build(cls, table: PatternTable) -> Self:
        """An engine for all entries of the table."""
        ...

    @classmethod
    def restore(cls, table: PatternTable, arrays: dict[str, AnyArray]) -> Self:
        """The engine that was saved as `arrays`, over the same table."""
        ...

    def arrays(self) -> dict[str, AnyArray]:
        """The arrays to store in a snapshot, in addition to the table."""
        ...

    def refresh(self) -> None:
        """Add the entries that the table has gained."""
        ...

    def match_batch(self, batch: DocumentBatch) -> tuple[Offsets, Entries]:
        """The matching entries of document `i` are `entries[offsets[i] : offsets[i + 1]]`, in no particular order."""
        ...

    def statistics(self) -> dict[str, int | float]:
        """Counts since the engine was built."""
        ...


@runtime_checkable
class Concurrent(Protocol):
    """Matches in several threads at once, while another thread calls `refresh`."""

    concurrent: ClassVar[bool]


@runtime_checkable
class Learning(Protocol):
    """Learns from documents; an engine for another table with the same names can continue with the results."""

    def learn_from(self, other: Engine) -> None:
        """Copy what another engine of the same kind has learnt."""
        ...

    def count_on(self, other: Engine) -> None:
        """Continue the counts of another engine of the same kind."""
        ...

    def compiled(self) -> dict[str, AnyArray]:
        """The part of `arrays` that is not learnt from documents."""
        ...


@runtime_checkable
class Grouping(Protocol):
    """Reports entries that match together one after the other, in an order that changes seldom."""

    def entry_order(self) -> Entries:
        """Entries in this order, each at most once; the same array until the order changes."""
        ...


@runtime_checkable
class Sharing(Protocol):
    """Answers with groups of entries, so that an answer costs less than writing each match."""

    def match_shared(self, batch: DocumentBatch) -> SharedEntries:
        """As `match_batch`; entries that match together in large numbers are groups (`Tuning.shared_entries`)."""
        ...


@runtime_checkable
class Costed(Protocol):
    """Counts the cost of its patterns, so that users can find the expensive ones."""

    def costs(self) -> "Costs":
        """The cost so far of each entry that was tried on documents."""
        ...


class Costs(NamedTuple):
    """Per entry: the number of documents it was tried on, and about how many bytes of values were read for it."""

    entries: Entries
    tries: Int64s
    bytes: Int64s

    @classmethod
    def of(cls, parts: Sequence["Costs"]) -> "Costs":
        """Concatenate several costs."""
        none = cls(np.zeros(0, dtype=np.int32), *np.zeros((2, 0), dtype=np.int64))
        return cls(*(np.concatenate(columns) for columns in zip(none, *parts, strict=True)))


@runtime_checkable
class Mergeable(Protocol):
    """Merges what another process has compiled for a part of the patterns (`pattern_shard_merging.py`)."""

    @classmethod
    def compile_part(cls, table: PatternTable) -> dict[str, AnyArray]:
        """The engine's arrays for a table's entries, for `merge` elsewhere."""
        ...

    def merge(self, arrays: dict[str, AnyArray], moved: MergedNumbers) -> None:
        """Merge what was compiled for a table that has just been merged into the engine's own."""
        ...

    def successor(self, table: PatternTable, entries: Entries) -> Engine:
        """An engine for a table with some of our table's patterns; `entries` are their numbers there, -1: none."""
        ...


@runtime_checkable
class Limited(Protocol):
    """Bounds the cost of a document: one that would cost more gets a `LimitError` in the batch's `errors`.

    `limits` are read by each call, so a shallow copy of an engine with other limits answers for the same patterns.
    """

    limits: Limits


@runtime_checkable
class Counting(Protocol):
    """Matches the counted trees of opaque patterns: on these, its answers are exact without an evaluation."""

    counting: ClassVar[bool]


@runtime_checkable
class Skipping(Protocol):
    """Can skip entries whose answer is already known (negative annotations of routers upstream)."""

    def match_except(self, batch: DocumentBatch, skip: Mask) -> tuple[Offsets, Entries]:
        """As `match_batch`, without the entries that `skip` marks, and without their work."""
        ...


@runtime_checkable
class Expiring(Protocol):
    """Can stop searching for entries within a document (last places of data patterns, from routers upstream)."""

    def match_until(self, batch: DocumentBatch, skip: Mask, expiry: Entries) -> tuple[Offsets, Entries]:
        """As `match_except`; past `expiry[entry]` start tags an entry can have no new match and need not be tried."""
        ...


@dataclass(frozen=True, slots=True)
class StreamMatches:
    """The results of a stream over one document.

    `positions[k]` is the number of start tags read when `entries[k]` was certain; `read` the number when it stopped.
    """

    entries: Entries
    positions: Entries
    read: int


@runtime_checkable
class Streaming(Protocol):
    """Matches while the document is being read, for a router that forwards early."""

    def match_stream(
        self, document: Document, *, skip: Mask | None = None, link: Entries | None = None
    ) -> StreamMatches:
        """The entries that match, with positions.

        With `link` (the link of each entry, -1 for none) the stream stops as soon as every link with undecided entries
        is decided, that is, has a match; entries of decided links need not be reported.
        """
        ...


@runtime_checkable
class PathMatching(Protocol):
    """Matches from label paths alone, without the document (structure annotations)."""

    def match_paths(self, paths: list[tuple[str, ...]]) -> tuple[Offsets, Entries]:
        """For each label path the plain-path entries that an element with it satisfies, ascending.

        For the empty path, the entries that every document satisfies.
        """
        ...
