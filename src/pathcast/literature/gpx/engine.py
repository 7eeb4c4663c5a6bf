"""The GPX engines: XPath matching as Boolean matching of predicates against publications.

Paper: GPX-Matcher (Sadoghi, Burcea, Jacobsen, EDBT 2011). `gpx` counts hits, `gpx-ap` and `gpx-apf` cluster paths by an
access predicate, the last or the first on structure (section 4.2). Encoding: `xpath_as_boolean_predicates.py`; tables:
`predicate_lookup_tables.py`; matching: `document_matching_kernels.py`.

Equal subscriptions are already one entry of the table, the paper's representatives.

Invariant: the index is that of the table as of the last `refresh`.
Cost: publications times tuples to find predicates, then the cost of finding paths, which depends on the engine; both
are in `statistics()`. A new pattern requires building the index again, about a second for a million paths.
Not done: selecting access predicates by statistics of documents, which the paper mentions but does not do either.
"""

import threading
from typing import ClassVar, Self

import numpy as np

from pathcast.documents import Document, DocumentBatch, Limits
from pathcast.kernels import AnyArray
from pathcast.matching import Entries, Mask, Offsets, StreamMatches
from pathcast.matching.evaluation import decided, decided_stream
from pathcast.matching.results.match_expansion_kernels import merge_entries
from pathcast.matching.table import PatternTable

from ..streaming.streaming_engine_frame import Bits, packed
from .automaton_delegation import Delegate
from .document_matching_kernels import Results, Run, match_documents
from .gpx_index import Arrays, build_index, kernel_index
from .matching_buffers import Scratch
from .publication_matching.satisfied_path_kernels import (
    CHECKED,
    COMPARED,
    COUNT,
    COUNTS,
    FIRST,
    LAST,
    PUBLICATIONS,
    READ,
    SATISFIED,
    TUPLES,
    WAITING,
    Wanted,
)

_NO_BITS: Bits = np.zeros(0, dtype=np.uint64)
_NO_LINKS: Entries = np.zeros(0, dtype=np.int32)
_NO_FLAGS: Mask = np.zeros(0, dtype=np.bool_)


class GpxEngine:
    """Counts hits (`gpx`).

    `reuse`: evaluate the tuples that overlapping paths of a document share only once (section 4.1, last paragraph).
    """

    name: ClassVar[str] = "gpx"
    mode: ClassVar[int] = COUNT

    def __init__(self, table: PatternTable, *, reuse: bool = False, arrays: Arrays | None = None) -> None:
        self.table = table
        self.reuse = reuse
        self.limits = Limits()
        self._lock = threading.Lock()
        self._done = np.zeros(COUNTS, dtype=np.int64)
        self._delegated_documents = 0
        self._take(arrays or build_index(table, self.mode))

    @classmethod
    def build(cls, table: PatternTable) -> Self:
        return cls(table)

    @classmethod
    def restore(cls, table: PatternTable, arrays: dict[str, AnyArray]) -> Self:
        fresh = bool(arrays) and int(arrays["entries"][0]) == len(table)
        return cls(table, arrays=arrays if fresh else None)

    def arrays(self) -> dict[str, AnyArray]:
        """The whole index, so that opening it requires no rebuild."""
        return dict(self._index)

    def refresh(self) -> None:
        """Rebuild the index if the table has grown."""
        with self._lock:
            if len(self.table) == self._entries:
                return
            self._done += self._scratch.counts
            self._delegated_documents += self._delegate.documents
            self._take(build_index(self.table, self.mode))

    def _take(self, index: Arrays) -> None:
        self._index = index
        self._entries = int(index["entries"][0])
        self._kernel_index = kernel_index(index)
        self._delegate = Delegate(self.table, self._entries, index["delegated"])
        self._scratch = Scratch(self._kernel_index, self._entries)

    def match_batch(self, batch: DocumentBatch) -> tuple[Offsets, Entries]:
        with self._lock:
            return decided(self, batch, self._match(batch, None))

    def _match(self, batch: DocumentBatch, skip: Mask | None) -> tuple[Offsets, Entries]:
        bits = _NO_BITS if skip is None else packed(skip, self._entries)
        over = np.zeros(len(batch), dtype=np.bool_)
        offsets = self._run(batch, self.reuse, over, self._wanted(bits))
        entries = self._scratch.out[: offsets[-1]].copy()
        if not self._delegate.is_needed(over):
            return offsets, entries
        self._delegate.limits = self.limits
        return self._merged(offsets, entries, *self._delegate.answers(batch, over, skip))

    def _wanted(
        self, skip: Bits, links: Entries = _NO_LINKS, decided: Mask = _NO_FLAGS, positions: Entries = _NO_LINKS
    ) -> Wanted:
        """All entries except those in `skip`; those of a link only until it is decided."""
        return Wanted(self._scratch.marks, self._scratch.summary, skip, links, decided, positions)

    def _run(self, batch: DocumentBatch, reuse: bool, over: Mask, wanted: Wanted) -> Offsets:
        """Match by the kernel; the entries are in the scratch's `out`."""
        scratch = self._scratch
        scratch.fit(batch)
        translation = self.table.translation(batch)
        offsets = np.zeros(len(batch) + 1, dtype=np.int64)
        done, waiting = 0, scratch.counts[WAITING]
        while done < len(batch):
            if len(wanted.links):  # also when a document restarts for lack of room
                wanted.decided.fill(False)
                scratch.counts[WAITING] = waiting
            done = match_documents(
                Run(self.mode, reuse, done),
                batch.elements,
                batch.values.attributes,
                batch.data,
                batch.arena,
                translation,
                self._kernel_index,
                wanted,
                scratch.buffers,
                Results(over, offsets, scratch.out),
            )
            scratch.enlarge()
        return offsets

    def _merged(
        self, offsets: Offsets, entries: Entries, more_offsets: Offsets, more: Entries
    ) -> tuple[Offsets, Entries]:
        """Each document's entries merged with those found elsewhere, ascending."""
        out = np.empty(len(entries) + len(more) + 8, dtype=np.int32)
        out_offsets = np.zeros(len(offsets), dtype=np.int64)
        scratch, all_of_them = self._scratch, np.ones(len(more), dtype=np.bool_)
        merge_entries(
            offsets, entries, more_offsets, more, all_of_them, scratch.marks, scratch.summary, out_offsets, out
        )
        return out_offsets, out[: out_offsets[-1]]

    def statistics(self) -> dict[str, int | float]:
        counts = self._done + self._scratch.counts
        index = self._index
        checked = "hits counted" if self.mode == COUNT else "paths checked"
        return {
            "paths": len(index["path_entry"]),
            "predicates": len(index["member_begin"]) - 1,
            "table bytes": sum(array.nbytes for array in index.values()),
            "publications": int(counts[PUBLICATIONS]),
            "tuples": int(counts[TUPLES]),
            "predicates satisfied": int(counts[SATISFIED]),
            checked: int(counts[CHECKED]),
            "paths compared": int(counts[COMPARED]),
            "delegated patterns": len(index["delegated"]),
            "delegated documents": self._delegated_documents + self._delegate.documents,
        }


class GpxFirstEngine(GpxEngine):
    """Clusters by the first predicate (`gpx-apf`)."""

    name: ClassVar[str] = "gpx-apf"
    mode: ClassVar[int] = FIRST


class GpxLastEngine(GpxEngine):
    """Clusters by the last predicate on structure (`gpx-ap`); can also skip entries, and run as a stream."""

    name: ClassVar[str] = "gpx-ap"
    mode: ClassVar[int] = LAST

    def match_except(self, batch: DocumentBatch, skip: Mask) -> tuple[Offsets, Entries]:
        """As `match_batch`, without the entries that `skip` marks."""
        with self._lock:
            return decided(self, batch, self._match(batch, skip))

    def match_stream(
        self, document: Document, *, skip: Mask | None = None, link: Entries | None = None
    ) -> StreamMatches:
        """The entries that match, with positions; a delegated pattern is certain at the document's end."""
        with self._lock:
            return decided_stream(self, self._stream, document, skip, link)

    def _stream(self, document: Document, skip: Mask | None, link: Entries | None) -> StreamMatches:
        batch, size, scratch = document.alone(), len(document), self._scratch
        bits = _NO_BITS if skip is None else packed(skip, self._entries)
        links, decided = _NO_LINKS, _NO_FLAGS
        if link is not None:
            links = np.ascontiguousarray(link[: self._entries], dtype=np.int32)
            decided = np.zeros(int(links.max(initial=-1)) + 1, dtype=np.bool_)
            scratch.counts[WAITING] = _waited_for(links, skip)
        over = np.zeros(1, dtype=np.bool_)
        positions = scratch.positions(self._entries)
        offsets = self._run(batch, True, over, self._wanted(bits, links, decided, positions))
        entries = scratch.out[: offsets[-1]].copy()
        decided_early = link is not None and scratch.counts[WAITING] == 0 and not over[0]
        if decided_early or not self._delegate.is_needed(over):
            return StreamMatches(entries, positions[entries], int(scratch.counts[READ]))
        self._delegate.limits = self.limits
        _, more = self._delegate.answers(batch, over, skip)
        positions[more] = size
        entries = np.union1d(entries, more).astype(np.int32)
        return StreamMatches(entries, positions[entries], size)


def _waited_for(links: Entries, skip: Mask | None) -> int:
    """The number of links that have an entry which is not skipped."""
    asked = links[links >= 0] if skip is None else links[(links >= 0) & ~skip[: len(links)]]
    waiting = np.zeros(int(asked.max(initial=-1)) + 1, dtype=np.bool_)
    waiting[asked] = True
    return int(np.count_nonzero(waiting))
