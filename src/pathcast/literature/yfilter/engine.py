"""The YFilter engine behind the engine contract.

    table's trie ─────────────┐
    pattern_decomposition.py ─┴─▶ shared_automaton_tables.py ──▶ document_matching_kernels.py ──▶ entries, ascending
    (trees, decomposed)                                              │ gates of delegated patterns
                                                                     ▼
                                                               the default engine's verifier

`streaming_engine_frame.py` has the frame around the kernel.

Invariant: the network is that of the table as of the last `refresh`.
Cost: a search for each active state and element; it grows with the number of paths that a document keeps alive.
Skipping omits selections, joins and delegated patterns, not states.
"""

from typing import ClassVar

from pathcast.documents import DocumentBatch

from ..streaming.match_recording_kernels import Answers, Wanted
from ..streaming.streaming_engine_frame import Arrays, EventEngine
from .document_matching_kernels import run
from .match_output_kernels import JOINED, STEPS, TRIED, VISITS
from .matching_buffers import Scratch
from .pattern_decomposition import Queries
from .shared_automaton_tables import build_network, kernel_tables


class YFilterEngine(EventEngine[Queries, Scratch]):
    """All paths in one shared automaton; selections and joins postponed until paths have matched."""

    name: ClassVar[str] = "yfilter"

    def _new_scratch(self) -> Scratch:
        return Scratch()

    def _new_trees(self) -> Queries:
        return Queries(self.table.encoder)

    def _tables_of(self, trees: Queries) -> Arrays:
        return build_network(self.table.trie, trees) | trees.arrays()

    def _take(self, tables: Arrays) -> None:
        super()._take(tables)
        self._kernel_tables = kernel_tables(tables)

    def _run(self, batch: DocumentBatch, first: int, wanted: Wanted, answers: Answers) -> int:
        scratch, tested = self._scratch, self._tested(batch)
        return run(first, batch.elements, tested, self._kernel_tables, scratch.buffers, wanted, answers, scratch.state)

    def statistics(self) -> dict[str, int | float]:
        it, state = self._tables, self._scratch.state
        return {
            "states": len(it["states"]),
            "network bytes": sum(array.nbytes for array in it.values()),
            "active states visited": int(state[VISITS]),
            "selections tried": int(state[TRIED]),
            "ends joined": int(state[JOINED]),
            "steps of joins": int(state[STEPS]),
            **self._delegated.statistics(),
        }
