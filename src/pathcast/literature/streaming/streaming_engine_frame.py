"""Engines that run over start and end tags: batches, entries to skip or to expire, streams, delegation.

Such an engine is a set of tables, built from the pattern table, and one kernel that runs documents over them and writes
entries. This module is the frame around the kernel, the same for all of them; an engine adds its decomposition of
trees, its tables, the call of its kernel and its buffers (`EventScratch`). `TablesEngine` is the part of the frame for
an engine that only takes batches.

Patterns that the engine cannot handle wait behind a *gate*, a plain path that they demand
(`automaton/values/required_path_gate.py`). The kernel reports open gates along with entries; the default engine's
verifier verifies the patterns behind them.

Invariant: the tables are those of the pattern table as of the last `refresh`; a run changes only the buffers, so only
one runs at a time.
"""

import threading
from abc import ABC, abstractmethod
from typing import ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np

from pathcast.documents import Document, DocumentBatch, Limits
from pathcast.kernels import AnyArray, Int32s, Int64s, UInt8s, UInt64s
from pathcast.matching import Entries, Mask, Offsets, StreamMatches
from pathcast.matching.automaton.verify import Verifier
from pathcast.matching.evaluation import decided, decided_stream
from pathcast.matching.results.match_expansion_kernels import merge_entries
from pathcast.matching.table import PatternTable
from pathcast.patterns import Pattern

from .match_recording_kernels import (
    DONE,
    FEW_GATES,
    FEW_OUT,
    GATED,
    READ,
    SKIPPING,
    STREAM,
    WHY,
    WRITTEN,
    Answers,
    Wanted,
)
from .value_tests import kernel_tests, text_room
from .value_tests_kernels import TestedValues

Arrays = dict[str, AnyArray]
Bits = UInt64s
_NOTHING: Int32s = np.zeros(0, dtype=np.int32)


def packed(mask: Mask, size: int) -> Bits:
    """A mask as marks: one bit per entry."""
    words = np.zeros(8 * (size + 63 >> 6), dtype=np.uint8)
    bits = np.packbits(mask[:size], bitorder="little")
    words[: len(bits)] = bits
    return words.view("<u8").astype(np.uint64)


class DelegatedPatterns:
    """The patterns that an engine delegates to the verifier, numbered like its gates; counts the documents."""

    def __init__(self, table: PatternTable, entries: Int32s, documents: int = 0) -> None:
        self._verifier = Verifier(table, entries.tolist())
        self.documents = documents

    def statistics(self) -> dict[str, int | float]:
        """Counters of delegated patterns and documents."""
        return {"delegated patterns": len(self._verifier), "delegated documents": self.documents}

    def add(
        self,
        batch: DocumentBatch,
        offsets: Offsets,
        entries: Entries,
        gate_offsets: Offsets,
        gates: Int32s,
        skip: Mask | None,
        marks: Bits,
        summary: Bits,
    ) -> tuple[Offsets, Entries]:
        """Each document's entries, and those of the patterns behind its open gates that hold."""
        more = self._verifier.entries[gates]
        holding = self._verifier.verify(batch, gate_offsets, gates)
        if skip is not None:
            holding &= ~skip[more]
        self.documents += int(np.count_nonzero(np.diff(gate_offsets)))
        out = np.empty(len(entries) + len(more) + 8, dtype=np.int32)
        out_offsets = np.zeros(len(offsets), dtype=np.int64)
        merge_entries(offsets, entries, gate_offsets, more, holding, marks, summary, out_offsets, out)
        return out_offsets, out[: out_offsets[-1]]


class EventScratch(ABC):
    """Buffers of a run, enlarged on demand; an engine adds its own."""

    def __init__(self, state_size: int) -> None:
        self.state: Int64s = np.zeros(state_size, dtype=np.int64)
        self.out: Int32s = np.zeros(1 << 12, dtype=np.int32)
        self.out_times: Int32s = np.zeros(0, dtype=np.int32)
        self.gates: Int32s = np.zeros(1 << 8, dtype=np.int32)
        self.skips: Bits = np.zeros(0, dtype=np.uint64)
        self.expiry: Int32s = _NOTHING
        self.link_stamps: Int64s = np.zeros(0, dtype=np.int64)
        self.joined: UInt8s = np.zeros(0, dtype=np.uint8)
        self._of: Arrays | None = None

    def forget(self) -> None:
        """Reset the buffers: the tables have changed."""
        self._of = None

    def fit(self, tables: Arrays, batch: DocumentBatch, entries: int) -> None:
        """Make room for these tables and for the documents of this batch."""
        if self._of is not tables:
            self._of = tables
            self.marks: Bits = np.zeros(entries + 63 >> 6, dtype=np.uint64)
            self.summary: Bits = np.zeros(len(self.marks) + 63 >> 6, dtype=np.uint64)
            self.gate_stamps: Int64s = np.zeros(len(tables["delegated"]), dtype=np.int64)
            self._fit_tables(tables)
        if len(tables["selects"]) and len(self.joined) < (room := text_room(batch.data_offsets, batch.arena)):
            self.joined = np.zeros(2 * room, dtype=np.uint8)
        self._fit_batch(batch)

    @abstractmethod
    def _fit_tables(self, tables: Arrays) -> None: ...

    @abstractmethod
    def _fit_batch(self, batch: DocumentBatch) -> None: ...

    def wanted(self, link: Int32s) -> Wanted:
        """The wanted entries, in the form that kernels read."""
        return Wanted(self.marks, self.summary, self.skips, self.expiry, link, self.link_stamps)

    def answers(self, offsets: Offsets, gate_offsets: Offsets) -> Answers:
        """Room for the answers, in the form that kernels write."""
        return Answers(self.out, self.out_times, self.gates, self.gate_stamps, offsets, gate_offsets)

    def fit_stream(self, entries: int, link: Entries | None) -> None:
        """Make room for a stream: it writes every entry once."""
        if len(self.out) < entries + 8:
            self.out = np.zeros(entries + 8, dtype=np.int32)
        if len(self.out_times) < entries + 8:
            self.out_times = np.zeros(entries + 8, dtype=np.int32)
        links = 0 if link is None else int(link.max(initial=-1)) + 1
        if len(self.link_stamps) < links:
            self.link_stamps = np.zeros(links, dtype=np.int64)

    def grow(self, why: int) -> None:
        """Double the buffer that was too small; its content stays."""
        if why == FEW_OUT:
            self.out = np.resize(self.out, 2 * len(self.out))
        elif why == FEW_GATES:
            self.gates = np.resize(self.gates, 2 * len(self.gates))


class Decomposed(Protocol):
    """The patterns of a table that are not plain paths, as an engine takes them."""

    def add(self, entry: int, pattern: Pattern) -> None:
        """Add one more."""
        ...


Trees = TypeVar("Trees", bound=Decomposed)
Scratch = TypeVar("Scratch", bound=EventScratch)


class TablesEngine(ABC, Generic[Trees, Scratch]):
    """The frame around the kernel of an engine that consists of tables: adding patterns, batches, delegation."""

    name: ClassVar[str]

    def __init__(self, table: PatternTable, tables: Arrays | None = None) -> None:
        self.table = table
        self.limits = Limits()
        self._trees: Trees | None = None
        self._taken = 0
        self._scratch = self._new_scratch()
        self._running = threading.Lock()
        self._delegated = DelegatedPatterns(table, np.zeros(0, dtype=np.int32))
        self._take(tables or self._build())

    @classmethod
    def build(cls, table: PatternTable) -> Self:
        return cls(table)

    @classmethod
    def restore(cls, table: PatternTable, arrays: Arrays) -> Self:
        return cls(table, dict(arrays))

    @abstractmethod
    def _new_scratch(self) -> Scratch:
        """The buffers of runs."""

    @abstractmethod
    def _new_trees(self) -> Trees:
        """The decomposition, to which the table's trees are added."""

    @abstractmethod
    def _tables_of(self, trees: Trees) -> Arrays:
        """The tables for the plain paths and for these trees; `delegated` has the entries behind gates."""

    @abstractmethod
    def _run(self, batch: DocumentBatch, first: int, wanted: Wanted, answers: Answers) -> int:
        """Run the documents from `first` on; return the first one that is not done."""

    def _tested(self, batch: DocumentBatch) -> TestedValues:
        """The values that selections test."""
        symbols, selects = self.table.translation(batch), self._tables["selects"]
        return TestedValues(batch.end, batch.values, symbols, self._tests, selects, self._scratch.joined)

    @abstractmethod
    def statistics(self) -> dict[str, int | float]:
        """Counts since the engine was built."""

    def _build(self) -> Arrays:
        """Rebuild the tables; trees are added to those that were decomposed before."""
        if self._trees is None:
            self._trees, self._taken = self._new_trees(), 0
        for entry in self.table.trees:
            if entry >= self._taken:
                self._trees.add(entry, self.table.trees[entry])
        self._taken = len(self.table)
        return self._tables_of(self._trees)

    def arrays(self) -> Arrays:
        """All tables, so that opening them requires no rebuild."""
        return self._tables

    def refresh(self) -> None:
        """Add new patterns by rebuilding the tables."""
        with self._running:
            if len(self.table) != self._entry_count:
                self._take(self._build())

    def _take(self, tables: Arrays) -> None:
        self._tables = tables
        self._tests = kernel_tests(tables)
        self._entry_count = len(self.table)
        self._delegated = DelegatedPatterns(self.table, tables["delegated"], self._delegated.documents)
        self._scratch.forget()

    def match_batch(self, batch: DocumentBatch) -> tuple[Offsets, Entries]:
        with self._running:
            return decided(self, batch, self._match(batch, None))

    def _match(self, batch: DocumentBatch, skip: Mask | None) -> tuple[Offsets, Entries]:
        scratch = self._scratch
        scratch.fit(self._tables, batch, self._entry_count)
        scratch.state[[WRITTEN, GATED, STREAM]] = 0
        self._leave_out(skip)
        offsets, gate_offsets = np.zeros((2, len(batch) + 1), dtype=np.int64)
        done = 0
        while done < len(batch):
            done = self._run(batch, done, scratch.wanted(_NOTHING), scratch.answers(offsets, gate_offsets))
            scratch.grow(int(scratch.state[WHY]))
        entries = scratch.out[: offsets[-1]].copy()
        if gate_offsets[-1]:
            return self._with_delegated(batch, offsets, entries, gate_offsets, skip)
        return offsets, entries

    def _leave_out(self, skip: Mask | None) -> None:
        """Pass the entries to skip to the kernel."""
        self._scratch.state[SKIPPING] = skip is not None
        if skip is not None:
            self._scratch.skips = packed(skip, self._entry_count)

    def _with_delegated(
        self, batch: DocumentBatch, offsets: Offsets, entries: Entries, gate_offsets: Offsets, skip: Mask | None
    ) -> tuple[Offsets, Entries]:
        scratch = self._scratch
        gates = scratch.gates[: gate_offsets[-1]]
        return self._delegated.add(batch, offsets, entries, gate_offsets, gates, skip, scratch.marks, scratch.summary)


class EventEngine(TablesEngine[Trees, Scratch]):
    """The frame around the kernel of an engine that runs over start and end tags: it can also skip, and stream."""

    def match_except(self, batch: DocumentBatch, skip: Mask) -> tuple[Offsets, Entries]:
        """As `match_batch`, without the entries that `skip` marks, and without their work."""
        with self._running:
            return decided(self, batch, self._match(batch, skip))

    def match_until(self, batch: DocumentBatch, skip: Mask, expiry: Entries) -> tuple[Offsets, Entries]:
        """As `match_except`; an entry is searched for at most `expiry` start tags."""
        with self._running:
            self._scratch.expiry = np.ascontiguousarray(expiry[: self._entry_count], dtype=np.int32)
            try:
                return decided(self, batch, self._match(batch, skip))
            finally:
                self._scratch.expiry = _NOTHING

    def match_stream(
        self, document: Document, *, skip: Mask | None = None, link: Entries | None = None
    ) -> StreamMatches:
        """See `Streaming`. Tests of text are certain at their element's end; delegated patterns, at the document's."""
        with self._running:
            return decided_stream(self, self._match_stream, document, skip, link)

    def _match_stream(self, document: Document, skip: Mask | None, link: Entries | None) -> StreamMatches:
        batch, scratch = document.alone(), self._scratch
        scratch.fit(self._tables, batch, self._entry_count)
        scratch.fit_stream(self._entry_count, link)
        self._leave_out(skip)
        links = _NOTHING if link is None else np.ascontiguousarray(link[: self._entry_count], dtype=np.int32)
        offsets, gate_offsets = np.zeros((2, 2), dtype=np.int64)
        while True:
            scratch.state[[WRITTEN, GATED]] = 0
            scratch.state[STREAM] = 1
            self._run(batch, 0, scratch.wanted(links), scratch.answers(offsets, gate_offsets))
            if scratch.state[WHY] == DONE:
                break
            scratch.grow(int(scratch.state[WHY]))
        written, read = int(scratch.state[WRITTEN]), int(scratch.state[READ])
        entries, positions = scratch.out[:written].copy(), scratch.out_times[:written].copy()
        if scratch.state[GATED] and read == len(document):
            nothing = np.zeros(0, dtype=np.int32)
            _, more = self._with_delegated(batch, np.zeros(2, dtype=np.int64), nothing, gate_offsets, skip)
            entries = np.append(entries, more)
            positions = np.append(positions, np.full(len(more), read, dtype=np.int32))
        order = np.argsort(entries)
        return StreamMatches(entries[order], positions[order], read)
