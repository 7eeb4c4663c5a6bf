"""The BPA engine behind the engine contract.

    table's trie ┐
    queries ─────┴─▶ predicate_chain_tree.py ──▶ document_matching_kernels.py ──▶ entries, ascending
                                                 │ gates of delegated patterns ──▶ the default engine's verifier
                                                 └ documents too deep for a word ──▶ yfilter

Invariant: the chains are those of the table as of the last `refresh`; a run changes only its buffers, so only one runs
at a time.
Cost: each document path from the start: its pairs of tags, then the chains below the access predicates that they
satisfy.
"""

from typing import ClassVar

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.kernels import Int32s
from pathcast.matching import Entries, Offsets
from pathcast.matching.evaluation import decided
from pathcast.matching.table import PatternTable
from pathcast.patterns.parsing import normalised
from pathcast.store import offsets_of

from ..streaming.match_recording_kernels import Answers, Wanted
from ..streaming.streaming_engine_frame import Arrays, EventScratch, TablesEngine
from ..yfilter import YFilterEngine
from ..yfilter.match_output_kernels import DETERMINED, FEW_PAIRS, PATHS, SATISFIED, STATE_SIZE, TRIED
from ..yfilter.pattern_decomposition import Queries
from ..yfilter.postponed_selection_kernels import StepPlaces
from .document_matching_kernels import LONGEST, P_ROWS, Frames, NotedPairs, RunScratch, run
from .predicate_chain_tree import build_chains, kernel_tables


class Scratch(EventScratch):
    """The buffers of a run."""

    def __init__(self) -> None:
        super().__init__(STATE_SIZE)
        size = LONGEST + 2
        stack, places, times, frames = np.zeros((4, 2, size), dtype=np.int32)
        nothing = np.zeros(0, dtype=np.int32)
        self.buffers = RunScratch(
            stack=stack,
            noted=NotedPairs(np.zeros(0, dtype=np.int64), nothing, _pairs(1 << 10), nothing),
            frames=Frames(frames, np.zeros(size, dtype=np.uint64)),
            places=StepPlaces(places, times),
        )

    def _fit_tables(self, tables: Arrays) -> None:
        predicates = len(tables["distances"])
        heads, satisfied = np.zeros((2, predicates), dtype=np.int32)
        stamps = np.zeros(predicates, dtype=np.int64)
        noted = self.buffers.noted._replace(stamps=stamps, heads=heads, satisfied=satisfied)
        self.buffers = self.buffers._replace(noted=noted)

    def _fit_batch(self, batch: DocumentBatch) -> None:
        """Make room for the paths of any supported document."""

    def grow(self, why: int) -> None:
        super().grow(why)
        if why == FEW_PAIRS:
            noted = self.buffers.noted
            noted = noted._replace(pairs=_pairs(2 * noted.pairs.shape[1]))
            self.buffers = self.buffers._replace(noted=noted)


def _pairs(count: int) -> Int32s:
    return np.zeros((P_ROWS, count), dtype=np.int32)


class BPAEngine(TablesEngine[Queries, Scratch]):
    """Paths as chains of predicates on the positions of tags, with shared prefixes, found by access predicates."""

    name: ClassVar[str] = "bpa"

    def __init__(self, table: PatternTable, tables: Arrays | None = None) -> None:
        self._deep_documents = 0
        super().__init__(table, tables)

    def _new_scratch(self) -> Scratch:
        return Scratch()

    def _new_trees(self) -> Queries:
        return Queries(self.table.encoder, joins=False)

    def _tables_of(self, trees: Queries) -> Arrays:
        # A chain gives the positions of a path, not the element of its last step: normal form suffices.
        paths = [normalised(path) if path else path for path in trees.paths]
        return build_chains(self.table.trie, paths, trees.tasks) | trees.arrays()

    def _take(self, tables: Arrays) -> None:
        super()._take(tables)
        self._kernel_tables = kernel_tables(tables)
        self._for_deep: YFilterEngine | None = None

    def match_batch(self, batch: DocumentBatch) -> tuple[Offsets, Entries]:
        with self._running:
            if batch.depth.max(initial=0) <= LONGEST:
                return decided(self, batch, self._match(batch, None))
            return self._match_one_by_one(batch)

    def _match_one_by_one(self, batch: DocumentBatch) -> tuple[Offsets, Entries]:
        """Match, but pass documents with a path that is too long to the engine `yfilter`, as a whole."""
        if self._for_deep is None:
            self._for_deep = YFilterEngine.build(self.table)
        self._for_deep.limits = self.limits
        found = []
        for document in batch:
            alone = document.alone()
            deep = alone.depth.max(initial=0) > LONGEST
            self._deep_documents += int(deep)
            matched = self._for_deep.match_batch(alone) if deep else decided(self, alone, self._match(alone, None))
            found.append(matched[1])
            if alone.errors:
                batch.errors[document.index] = alone.errors[0]
        offsets = offsets_of([len(entries) for entries in found])
        return offsets, np.concatenate([np.zeros(0, dtype=np.int32), *found])

    def _run(self, batch: DocumentBatch, first: int, wanted: Wanted, answers: Answers) -> int:
        scratch, tested = self._scratch, self._tested(batch)
        return run(first, batch.elements, tested, self._kernel_tables, scratch.buffers, wanted, answers, scratch.state)

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
