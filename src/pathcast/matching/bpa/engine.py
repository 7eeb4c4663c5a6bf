"""The BPA engine behind the engine contract.

    table's trie ┐
    queries ─────┴─▶ chains.py ──▶ run_kernels.py ──▶ entries, ascending
                                    │ gates of patterns that are not taken ──▶ the default engine's verifier
                                    └ documents too deep for a word ──▶ yfilter

Invariant: the chains are those of the table as of the last `refresh`; a run changes nothing but its buffers, hence
one at a time.
Cost: each document path anew: its pairs of tags, then the chains below the access predicates that they satisfy.
"""

import threading
from typing import ClassVar, Self

import numpy as np

from ...documents import DocumentBatch
from ...patterns.linear import normalised
from ..contract import Entries, Offsets
from ..selections import text_room
from ..streaming import Delegated
from ..table import PatternTable
from ..yfilter import YFilterEngine
from ..yfilter.queries import Queries
from .chains import Arrays, build_chains
from .run_kernels import (
    DETERMINED,
    FEW_GATES,
    FEW_OUT,
    FEW_PAIRS,
    GATED,
    LONGEST,
    PATHS,
    SATISFIED,
    STATE_SIZE,
    TRIED,
    WHY,
    WRITTEN,
    run,
)


class BPAEngine:
    """Paths as chains of predicates on the places of tags, shared by their beginnings, reached by access predicates."""

    name: ClassVar[str] = "bpa"

    def __init__(self, table: PatternTable, chains: Arrays | None = None) -> None:
        self.table = table
        self._queries: Queries | None = None
        self._taken = 0
        self._handed_on = Delegated(table, np.zeros(0, dtype=np.int32))
        self._deep_documents = 0
        self._running = threading.Lock()
        self._state = np.zeros(STATE_SIZE, dtype=np.int64)
        self._out = np.zeros(1 << 12, dtype=np.int32)
        self._gates = np.zeros(1 << 8, dtype=np.int32)
        self._pairs = np.zeros((3, 1 << 10), dtype=np.int32)
        self._joined = np.zeros(0, dtype=np.uint8)
        self._take(chains or self._build())

    @classmethod
    def build(cls, table: PatternTable) -> Self:
        return cls(table)

    @classmethod
    def restore(cls, table: PatternTable, arrays: Arrays) -> Self:
        return cls(table, dict(arrays))

    def arrays(self) -> Arrays:
        """The chains, the index of predicates and the tables of queries."""
        return self._chains

    def refresh(self) -> None:
        """Take up new patterns: queries are added to those that were taken before, the chains are built anew."""
        with self._running:
            if len(self.table) != self._entry_count:
                self._take(self._build())

    def _build(self) -> Arrays:
        table = self.table
        if self._queries is None:
            self._queries, self._taken = Queries(table.encoder, joins=False), 0
        queries = self._queries
        for entry in table.trees:
            if entry >= self._taken:
                queries.add(entry, table.trees[entry])
        self._taken = len(table)
        # A chain says where a path lies, not which element its last step is: normal form will do.
        paths = [normalised(path) if path else path for path in queries.paths]
        return build_chains(table.trie, paths, queries.tasks) | queries.arrays()

    def _take(self, chains: Arrays) -> None:
        self._chains = chains
        self._entry_count = len(self.table)
        self._handed_on = Delegated(self.table, chains["delegated"], self._handed_on.documents)
        self._for_deep: YFilterEngine | None = None
        predicates = len(chains["distances"])
        self._marks = np.zeros(self._entry_count + 63 >> 6, dtype=np.uint64)
        self._summary = np.zeros(len(self._marks) + 63 >> 6, dtype=np.uint64)
        self._stamps = np.zeros(predicates, dtype=np.int64)
        self._heads, self._satisfied = np.zeros((2, predicates), dtype=np.int32)
        self._gate_stamps = np.zeros(len(chains["delegated"]), dtype=np.int64)
        self._stack, self._places, self._times = np.zeros((3, 2, LONGEST + 2), dtype=np.int32)
        self._frames = np.zeros((2, LONGEST + 2), dtype=np.int32)
        self._frame_sets = np.zeros(LONGEST + 2, dtype=np.uint64)

    def match_batch(self, batch: DocumentBatch) -> tuple[Offsets, Entries]:
        with self._running:
            if batch.depth.max(initial=0) <= LONGEST:
                return self._match(batch)
            return self._match_one_by_one(batch)

    def _match_one_by_one(self, batch: DocumentBatch) -> tuple[Offsets, Entries]:
        """Documents with a path that is too long go to the engine `yfilter`, whole."""
        if self._for_deep is None:
            self._for_deep = YFilterEngine.build(self.table)
        found = []
        for document in batch:
            alone = document.alone()
            deep = alone.depth.max(initial=0) > LONGEST
            self._deep_documents += int(deep)
            found.append(self._for_deep.match_batch(alone)[1] if deep else self._match(alone)[1])
        offsets = np.concatenate([[0], np.cumsum([len(entries) for entries in found], dtype=np.int64)])
        return offsets, np.concatenate([np.zeros(0, dtype=np.int32), *found])

    def _match(self, batch: DocumentBatch) -> tuple[Offsets, Entries]:
        it = self._chains
        if len(it["selects"]) and len(self._joined) < (room := text_room(batch.data_offsets, batch.arena)):
            self._joined = np.zeros(2 * room, dtype=np.uint8)
        self._state[[WRITTEN, GATED]] = 0
        offsets, gate_offsets = np.zeros((2, len(batch) + 1), dtype=np.int64)
        translation = self.table.translation(batch)
        done = 0
        while done < len(batch):
            done = run(
                batch.offsets, batch.name, batch.depth, batch.end, done,
                batch.attribute_begin, batch.attribute_name, batch.attribute_start, batch.attribute_length,
                batch.text_begin, batch.text_end, batch.text_parent, batch.text_start, batch.text_length,
                batch.data, batch.arena, translation,
                it["chains"], it["access_begin"], it["pair_keys"], it["pair_slots"], it["pair_rows"], it["distances"],
                it["length_needed"], it["length_entry"],
                it["task_kind"], it["task_number"], it["bare_needed"], it["bare_kind"], it["bare_number"],
                it["selection_rows"], it["limits"], it["literals"], it["parts"], it["selects"],
                it["steps"], it["query_begin"], it["query_entry"],
                self._state, self._stack, self._places, self._times, self._marks, self._summary,
                self._stamps, self._heads, self._pairs, self._satisfied, self._frames, self._frame_sets,
                self._joined, self._gate_stamps,
                offsets, self._out, gate_offsets, self._gates,
            )  # fmt: skip
            self._grow(int(self._state[WHY]))
        entries = self._out[: offsets[-1]].copy()
        if gate_offsets[-1]:
            gates = self._gates[: gate_offsets[-1]]
            return self._handed_on.add(batch, offsets, entries, gate_offsets, gates, None, self._marks, self._summary)
        return offsets, entries

    def _grow(self, why: int) -> None:
        """Double what was too small; what has been written stays."""
        if why == FEW_OUT:
            self._out = np.resize(self._out, 2 * len(self._out))
        elif why == FEW_GATES:
            self._gates = np.resize(self._gates, 2 * len(self._gates))
        elif why == FEW_PAIRS:
            self._pairs = np.zeros((3, 2 * self._pairs.shape[1]), dtype=np.int32)

    def statistics(self) -> dict[str, int | float]:
        it, state = self._chains, self._state
        return {
            "chain nodes": len(it["chains"]),
            "predicates": len(it["distances"]),
            "chain bytes": sum(array.nbytes for array in it.values()),
            "document paths": int(state[PATHS]),
            "pairs noted": int(state[SATISFIED]),
            "occurrence determinations": int(state[DETERMINED]),
            "selections tried": int(state[TRIED]),
            "delegated patterns": len(it["delegated"]),
            "delegated documents": self._handed_on.documents + self._deep_documents,
            "documents too deep": self._deep_documents,
        }
