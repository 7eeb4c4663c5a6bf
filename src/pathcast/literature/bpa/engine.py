"""The BPA engine behind the engine contract.

    table's trie ┐
    queries ─────┴─▶ tables.py ──▶ run_kernels.py ──▶ entries, ascending
                                    │ gates of patterns that are not taken ──▶ the default engine's verifier
                                    └ documents too deep for a word ──▶ yfilter

Invariant: the chains are those of the table as of the last `refresh`; a run changes nothing but its buffers, hence
one at a time.
Cost: each document path anew: its pairs of tags, then the chains below the access predicates that they satisfy.
"""

from typing import ClassVar

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.kernels import Int32s
from pathcast.matching import Entries, Offsets
from pathcast.matching.table import PatternTable
from pathcast.patterns.parsing import normalised

from ..streaming.streaming_engine import Arrays, EventScratch, TablesEngine
from ..streaming.value_tests import text_room
from ..yfilter import YFilterEngine
from ..yfilter.decomposition import Queries
from ..yfilter.result_kernels import DETERMINED, FEW_PAIRS, PATHS, SATISFIED, STATE_SIZE, TRIED
from .run_kernels import LONGEST, P_ROWS, run
from .tables import build_chains


class Scratch(EventScratch):
    """What a run writes."""

    def __init__(self) -> None:
        super().__init__(STATE_SIZE)
        self.joined = np.zeros(0, dtype=np.uint8)
        self.pairs = np.zeros((P_ROWS, 1 << 10), dtype=np.int32)
        self.stack, self.places, self.times = np.zeros((3, 2, LONGEST + 2), dtype=np.int32)
        self.frames = np.zeros((2, LONGEST + 2), dtype=np.int32)
        self.frame_sets = np.zeros(LONGEST + 2, dtype=np.uint64)

    def _fit_tables(self, tables: Arrays) -> None:
        predicates = len(tables["distances"])
        self.stamps = np.zeros(predicates, dtype=np.int64)
        self.heads, self.satisfied = np.zeros((2, predicates), dtype=np.int32)

    def _fit_batch(self, tables: Arrays, batch: DocumentBatch) -> None:
        if len(tables["selects"]) and len(self.joined) < (room := text_room(batch.data_offsets, batch.arena)):
            self.joined = np.zeros(2 * room, dtype=np.uint8)

    def grow(self, why: int) -> None:
        super().grow(why)
        if why == FEW_PAIRS:
            self.pairs = np.zeros((P_ROWS, 2 * self.pairs.shape[1]), dtype=np.int32)


class BPAEngine(TablesEngine[Queries, Scratch]):
    """Paths as chains of predicates on the places of tags, shared by their beginnings, reached by access predicates."""

    name: ClassVar[str] = "bpa"

    def __init__(self, table: PatternTable, tables: Arrays | None = None) -> None:
        self._deep_documents = 0
        super().__init__(table, tables)

    def _new_scratch(self) -> Scratch:
        return Scratch()

    def _new_trees(self) -> Queries:
        return Queries(self.table.encoder, joins=False)

    def _tables_of(self, trees: Queries) -> Arrays:
        # A chain says where a path lies, not which element its last step is: normal form will do.
        paths = [normalised(path) if path else path for path in trees.paths]
        return build_chains(self.table.trie, paths, trees.tasks) | trees.arrays()

    def _take(self, tables: Arrays) -> None:
        super()._take(tables)
        self._for_deep: YFilterEngine | None = None

    def match_batch(self, batch: DocumentBatch) -> tuple[Offsets, Entries]:
        with self._running:
            if batch.depth.max(initial=0) <= LONGEST:
                return self._match(batch, None)
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
            found.append(self._for_deep.match_batch(alone)[1] if deep else self._match(alone, None)[1])
        offsets = np.concatenate([[0], np.cumsum([len(entries) for entries in found], dtype=np.int64)])
        return offsets, np.concatenate([np.zeros(0, dtype=np.int32), *found])

    def _run(self, batch: DocumentBatch, first: int, link: Int32s, offsets: Offsets, gate_offsets: Offsets) -> int:
        it, scratch = self._tables, self._scratch
        return run(  # type: ignore[no-any-return]
            batch.offsets, batch.name, batch.depth, batch.end, first,
            batch.attribute_begin, batch.attribute_name, batch.attribute_start, batch.attribute_length,
            batch.text_begin, batch.text_end, batch.text_parent, batch.text_start, batch.text_length,
            batch.data, batch.arena, self.table.translation(batch),
            it["selection_rows"], it["limits"], it["literals"], it["parts"], it["selects"],
            it["steps"], it["query_begin"], it["query_entry"], scratch.places, scratch.times, scratch.joined,
            it["chains"], it["access_begin"], it["pair_keys"], it["pair_slots"], it["pair_rows"], it["distances"],
            it["length_needed"], it["length_entry"],
            it["task_kind"], it["task_number"], it["bare_needed"], it["bare_kind"], it["bare_number"],
            scratch.stack, scratch.stamps, scratch.heads, scratch.pairs, scratch.satisfied, scratch.frames,
            scratch.frame_sets, scratch.marks, scratch.summary, scratch.state, scratch.out,
            scratch.gate_stamps, scratch.gates, offsets, gate_offsets,
        )  # fmt: skip

    def statistics(self) -> dict[str, int | float]:
        it, state = self._tables, self._scratch.state
        return {
            "chain nodes": len(it["chains"]),
            "predicates": len(it["distances"]),
            "chain bytes": sum(array.nbytes for array in it.values()),
            "document paths": int(state[PATHS]),
            "pairs noted": int(state[SATISFIED]),
            "occurrence determinations": int(state[DETERMINED]),
            "selections tried": int(state[TRIED]),
            "delegated patterns": len(it["delegated"]),
            "delegated documents": self._delegated.documents + self._deep_documents,
            "documents too deep": self._deep_documents,
        }
