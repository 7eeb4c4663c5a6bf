"""The contract that every engine fulfils, and the capabilities that one may have besides.

An engine sees distinct patterns (`PatternTable` entries), never subscriptions: it is asked which entries match which
documents of a batch, and the matcher turns entries into ids, subscribers or links afterwards.

- Answers are exact: for each document precisely the entries whose pattern it matches, ascending. An engine that can't
  take a pattern or document by design hands it to one that can, and says so in `statistics()`.
- A document that could not be read matches nothing.
- `refresh` is called whenever the table has grown; after it, answers cover the new entries.
- Names of the batch are translated by `table.translation`; an engine never keeps a batch's own ids.

Capabilities are protocols of their own: `isinstance(engine, Streaming)` tells. Routers need them.
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
        """The engine whose `arrays` these are, over the same table."""
        ...

    def arrays(self) -> dict[str, AnyArray]:
        """What is worth keeping in a snapshot besides the table."""
        ...

    def refresh(self) -> None:
        """Take up the entries that the table has gained."""
        ...

    def match_batch(self, batch: DocumentBatch) -> tuple[Offsets, Entries]:
        """The matching entries of document `i` are `entries[offsets[i] : offsets[i + 1]]`, ascending."""
        ...

    def statistics(self) -> dict[str, int | float]:
        """Counts since the engine was built."""
        ...


@runtime_checkable
class Concurrent(Protocol):
    """Matches in several threads at once, while another one calls `refresh`."""

    concurrent: ClassVar[bool]


@runtime_checkable
class Learning(Protocol):
    """Remembers what documents have shown; an engine for another table with the same names can go on with it."""

    def learn_from(self, other: Engine) -> None:
        """Take over what another engine of the same kind has learnt."""
        ...

    def count_on(self, other: Engine) -> None:
        """Go on with the counts of another engine of the same kind."""
        ...

    def compiled(self) -> dict[str, AnyArray]:
        """Of `arrays`, what is not learnt from documents."""
        ...


@runtime_checkable
class Costed(Protocol):
    """Counts what its patterns cost, so that users can find the expensive ones."""

    def costs(self) -> "Costs":
        """What each entry that was tried on documents has cost so far."""
        ...


class Costs(NamedTuple):
    """Of some entries: on how many documents each was tried, and about how many bytes of values that took to read."""

    entries: Entries
    tries: Int64s
    bytes: Int64s

    @classmethod
    def of(cls, parts: Sequence["Costs"]) -> "Costs":
        """Several, one after the other."""
        none = cls(np.zeros(0, dtype=np.int32), *np.zeros((2, 0), dtype=np.int64))
        return cls(*(np.concatenate(columns) for columns in zip(none, *parts, strict=True)))


@runtime_checkable
class Mergeable(Protocol):
    """Takes over what another process has compiled for a part of the patterns (`compiled_shards.py`)."""

    @classmethod
    def compile_part(cls, table: PatternTable) -> dict[str, AnyArray]:
        """What the engine makes of a table's entries, for `merge` elsewhere."""
        ...

    def merge(self, arrays: dict[str, AnyArray], moved: MergedNumbers) -> None:
        """Take over what was compiled for a table that has just been merged into the engine's own."""
        ...

    def successor(self, table: PatternTable, entries: Entries) -> Engine:
        """An engine for a table with some of our own table's patterns; `entries` are their numbers there, -1: none."""
        ...


@runtime_checkable
class Limited(Protocol):
    """Bounds what one document may cost: one that would cost more gets a `LimitError` in the batch's `errors`."""

    limits: Limits


@runtime_checkable
class Skipping(Protocol):
    """Can leave out entries whose answer is known already (negative annotations of routers upstream)."""

    def match_except(self, batch: DocumentBatch, skip: Mask) -> tuple[Offsets, Entries]:
        """As `match_batch`, without the entries that `skip` marks, and without their work."""
        ...


@runtime_checkable
class Expiring(Protocol):
    """Can stop looking for entries within a document (last places of data patterns, from routers upstream)."""

    def match_until(self, batch: DocumentBatch, skip: Mask, expiry: Entries) -> tuple[Offsets, Entries]:
        """As `match_except`; past `expiry[entry]` start tags an entry can have no new match and need not be tried."""
        ...


@dataclass(frozen=True, slots=True)
class StreamMatches:
    """What a stream over one document found.

    `positions[k]` is how many start tags had been read when `entries[k]` was certain; `read` how many when it stopped.
    """

    entries: Entries
    positions: Entries
    read: int


@runtime_checkable
class Streaming(Protocol):
    """Matches while the document is being read, as a router that forwards early does."""

    def match_stream(
        self, document: Document, *, skip: Mask | None = None, link: Entries | None = None
    ) -> StreamMatches:
        """The entries that match, with positions.

        With `link` (the link of each entry, -1 for none) the stream stops as soon as every link that has an entry
        to wait for is decided, that is, has a match; entries of decided links need not be reported.
        """
        ...


@runtime_checkable
class PathMatching(Protocol):
    """Matches from label paths alone, without the document (structure annotations)."""

    def match_paths(self, paths: list[tuple[str, ...]]) -> tuple[Offsets, Entries]:
        """For each label path the plain-path entries that an element with it satisfies, ascending.

        For the empty path those that every document satisfies.
        """
        ...
