"""The automaton engine: what a document costs does not depend on how many subscriptions there are.

    elements ──walk──▶ states of their label paths ──▶ entries of plain paths
                │ miss                │ open gates
                ▼                     ▼
       work the state out      try the patterns behind them on the document

Plain paths are answered by the automaton alone. A pattern with predicates is a candidate for the documents that pass
its gate (`gates.py`) and have its value (`access.py`), and is then tried on the element arrays (`verifier.py`).

Invariant: the states are those of the table as of the last `refresh`.
Cost: one hash look-up an element, one memory access a match; a new label path costs some 100 µs, once.
"""

import threading
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from ...documents import DocumentBatch
from ..contract import Entries, Offsets
from ..expansion_kernels import merge_entries
from ..table import PatternTable
from ..trie import flat
from ..trie_kernels import NONE
from .access import Access
from .gates import gate
from .states import States
from .verifier import Verifier
from .walk_kernels import AGAIN, FULL, walk

# Above this the states are forgotten and worked out anew: a bound on what hostile documents can make us remember, but
# for what a single one of them needs.
MEMORY_LIMIT = 512 << 20
_MISSES = 4096
# Names of a batch that the table lacks have symbol 0; up to so many are at hand.
_OTHER_NAMES = 1 << 13


class _Scratch(threading.local):
    """Buffers of a walk; one set a thread."""

    def __init__(self) -> None:
        self.of: States | None = None
        self.counts = np.zeros(5, dtype=np.int64)
        self.misses = np.empty(_MISSES, dtype=np.int64)
        self.out = np.empty(1 << 14, dtype=np.int32)
        self.gates = np.empty(1 << 10, dtype=np.int32)
        self.states = np.empty(0, dtype=np.int32)
        self.seen = np.zeros(0, dtype=np.int64)
        self.found = np.empty(0, dtype=np.int32)
        self.marks = np.zeros(0, dtype=np.uint64)
        self.summary = np.zeros(0, dtype=np.uint64)
        self.gate_stamps = np.zeros(0, dtype=np.int64)

    def fit(self, states: States, entries: int, gates: int, longest: int) -> None:
        """Make room for this generation and for documents of so many elements."""
        if self.of is not states:
            self.of = states
            self.seen = np.zeros(0, dtype=np.int64)
            self.marks = np.zeros(entries + 63 >> 6, dtype=np.uint64)
            self.summary = np.zeros(len(self.marks) + 63 >> 6, dtype=np.uint64)
            self.gate_stamps = np.zeros(gates, dtype=np.int64)
        if len(self.seen) < len(states) + 1:
            larger = np.zeros(2 * len(states) + 64, dtype=np.int64)
            larger[: len(self.seen)] = self.seen
            self.seen = larger
            self.found = np.empty(len(larger), dtype=np.int32)
        if len(self.states) < longest:
            self.states = np.empty(2 * longest, dtype=np.int32)


class AutomatonEngine:
    """Plain paths by a lazily determinised automaton, other patterns behind gates."""

    name: ClassVar[str] = "automaton"

    def __init__(self, table: PatternTable) -> None:
        self.table = table
        self._lock = threading.Lock()
        self._walking = threading.Lock()
        self._scratch = _Scratch()
        self._elements = self._missed = self._evictions = self._candidates = self._verified = 0
        self.refresh()

    @classmethod
    def build(cls, table: PatternTable) -> Self:
        return cls(table)

    @classmethod
    def restore(cls, table: PatternTable, arrays: dict[str, npt.NDArray[Any]]) -> Self:
        engine = cls(table)
        if arrays:
            engine._states = States.restore(table.trie, engine._gate_of_node, arrays)
        return engine

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The states worked out so far: whoever opens the index need not work them out again."""
        return self._states.arrays()

    def refresh(self) -> None:
        """Forget all states: the table has changed."""
        table = self.table
        trees = list(table.trees)
        ends = table.trie.insert(*flat([gate(table.trees[entry], table.encoder) for entry in trees]))
        nodes, gates = np.unique(ends, return_inverse=True)
        gate_of_node = np.full(table.trie.count, NONE, dtype=np.int32)
        gate_of_node[nodes] = np.arange(len(nodes), dtype=np.int32)
        self._gates = len(nodes)
        patterns = [table.trees[entry] for entry in trees]
        self._access = Access(table.names, patterns, gates.astype(np.int32), len(nodes))
        self._verifier = Verifier(table, trees)
        self._gate_of_node = gate_of_node
        self._entry_count = len(table)
        self._symbols = self._fold()
        self._states = States(table.trie, gate_of_node)

    def _fold(self) -> npt.NDArray[np.int32]:
        """For each name of the table its symbol: 0 unless a step of the trie asks for it. And many more zeros."""
        trie = self.table.trie
        counts = np.bincount(trie.step[1 : trie.count] >> 1, minlength=len(self.table.names) + 2)
        symbols = np.zeros(len(self.table.names) + _OTHER_NAMES, dtype=np.int32)
        used = np.flatnonzero(counts[1:])
        symbols[used] = used + 1
        return symbols

    def _symbols_of(self, batch: DocumentBatch) -> npt.NDArray[np.int32]:
        """For each name of the batch its symbol."""
        table = self.table
        if batch.known is table.names and table.namespaces != "ignore":
            known, count = batch.known_count, batch.name_count
            if known == len(table.names) and count <= len(self._symbols):
                # Read with the table's own names as they are: what is new in the batch is in no subscription.
                return self._symbols[:count]
        translation = table.translation(batch)
        # A name that came to the table since the last refresh belongs to no subscription yet.
        translation[translation >= len(self._symbols)] = -1
        return np.where(translation < 0, np.int32(0), self._symbols[translation])

    def match_batch(self, batch: DocumentBatch) -> tuple[Offsets, Entries]:
        # One walk at a time: states that another one works out must not appear in the middle of it.
        with self._walking:
            return self._match_batch(batch)

    def _match_batch(self, batch: DocumentBatch) -> tuple[Offsets, Entries]:
        offsets = np.zeros(len(batch) + 1, dtype=np.int64)
        gate_offsets = np.zeros(len(batch) + 1, dtype=np.int64)
        symbols = self._symbols_of(batch)
        scratch = self._scratch
        scratch.counts[1:] = 0
        longest = int(np.diff(batch.offsets).max(initial=0))
        states = self._states
        done, forgotten_for = 0, -1
        while done < len(batch):
            scratch.fit(states, self._entry_count, self._gates, longest)
            done = walk(
                batch.offsets, batch.name, batch.parent, symbols, done,
                states.keys, states.targets, states.view("accepted"), states.view("accepted_begin"),
                states.view("gates"), states.view("gates_begin"),
                scratch.states, scratch.seen, scratch.counts, scratch.marks, scratch.summary, scratch.found,
                scratch.gate_stamps, scratch.misses, offsets, scratch.out, gate_offsets, scratch.gates,
            )  # fmt: skip
            why = scratch.counts[4]
            if why == AGAIN:
                # A document that meets the limit starts again with no states; it may then have as many as it needs.
                may_forget = done > forgotten_for
                states, forgot = self._extend(states, scratch.misses[: scratch.counts[3]], may_forget)
                forgotten_for = done if forgot else forgotten_for
                scratch.counts[3] = 0
            elif why == FULL:
                scratch.out = np.resize(scratch.out, 2 * len(scratch.out))
                scratch.gates = np.resize(scratch.gates, 2 * len(scratch.gates))
        self._elements += len(batch.name)
        entries = scratch.out[: scratch.counts[1]].copy()
        if scratch.counts[2]:
            return self._try_behind(batch, offsets, entries, gate_offsets, scratch.gates)
        return offsets, entries

    def _extend(self, states: States, misses: npt.NDArray[np.int64], may_forget: bool) -> tuple[States, bool]:
        """Work out what was missed, or forget everything where there is too much of it; whether it was forgotten."""
        with self._lock:
            if may_forget and states.bytes > MEMORY_LIMIT:
                self._evictions += 1
                self._states = States(self.table.trie, self._gate_of_node)
                return self._states, True
            states.extend(misses)
            self._missed += len(misses)
            return states, False

    def _try_behind(
        self,
        batch: DocumentBatch,
        offsets: Offsets,
        entries: Entries,
        gate_offsets: Offsets,
        gates: npt.NDArray[np.int32],
    ) -> tuple[Offsets, Entries]:
        """Add the patterns behind open gates that hold."""
        translation = self.table.translation(batch)
        candidate_offsets, candidates = self._access.candidates(batch, translation, gate_offsets, gates)
        holding = self._verifier.verify(batch, candidate_offsets, candidates)
        verified = int(np.count_nonzero(holding))
        self._candidates += len(candidates)
        self._verified += verified
        out = np.empty(len(entries) + verified + 8, dtype=np.int32)
        out_offsets = np.zeros(len(offsets), dtype=np.int64)
        more = self._verifier.entries[candidates]
        marks, summary = self._scratch.marks, self._scratch.summary
        merge_entries(offsets, entries, candidate_offsets, more, holding, marks, summary, out_offsets, out)
        return out_offsets, out[: out_offsets[-1]]

    def statistics(self) -> dict[str, int | float]:
        states = self._states
        return {
            "elements": self._elements,
            "states": len(states),
            "transitions": states.transitions,
            "new label paths": self._missed,
            "memo bytes": states.bytes,
            "evictions": self._evictions,
            "gates": self._gates,
            "values": self._access.values,
            "candidates": self._candidates,
            "candidates that match": self._verified,
            "patterns for the reference embedding": self._verifier.slow,
        }
