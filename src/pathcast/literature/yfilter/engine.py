"""The YFilter engine behind the engine contract.

    table's trie ┐
    decomposition.py ──┴─▶ tables.py ──▶ run_kernels.py ──▶ entries, ascending
    (trees, decomposed)               │ gates of what is not taken
                                      ▼
                                the default engine's verifier

`streaming_engine.py` has the frame around the kernel.

Invariant: the network is that of the table as of the last `refresh`.
Cost: a search for each active state and element; it grows with the number of paths that a document keeps alive.
Skipping leaves out selections, joins and what is delegated, not states.
"""

from typing import ClassVar

from pathcast.documents import DocumentBatch
from pathcast.kernels import Int32s
from pathcast.matching import Offsets

from ..streaming.streaming_engine import Arrays, EventEngine
from .decomposition import Queries
from .result_kernels import JOINED, STEPS, TRIED, VISITS
from .run_kernels import run
from .scratch import Scratch
from .tables import build_network


class YFilterEngine(EventEngine[Queries, Scratch]):
    """All paths in one shared automaton; selections and joins postponed until paths have matched."""

    name: ClassVar[str] = "yfilter"

    def _new_scratch(self) -> Scratch:
        return Scratch()

    def _new_trees(self) -> Queries:
        return Queries(self.table.encoder)

    def _tables_of(self, trees: Queries) -> Arrays:
        return build_network(self.table.trie, trees) | trees.arrays()

    def _run(self, batch: DocumentBatch, first: int, link: Int32s, offsets: Offsets, gate_offsets: Offsets) -> int:
        it, scratch = self._tables, self._scratch
        content = (
            batch.end, batch.attribute_begin, batch.attribute_name, batch.attribute_start, batch.attribute_length,
            batch.text_begin, batch.text_end, batch.text_parent, batch.text_start, batch.text_length, batch.data,
            batch.arena, self.table.translation(batch), it["selection_rows"], it["limits"], it["literals"],
            it["parts"], scratch.joined,
        )  # fmt: skip
        network = it["states"], it["state_symbol"], it["task_begin"], it["task_kind"], it["task_number"]
        queries = it["query_begin"], it["query_entry"], it["steps"], it["selects"], (scratch.places, scratch.times)
        joins = (
            it["nodes"], it["selects"], it["join_entry"], it["join_late"], scratch.join_stamps,
            tuple(scratch.bindings), scratch.waiting,
        )  # fmt: skip
        return run(  # type: ignore[no-any-return]
            batch.offsets, batch.name, batch.parent, batch.depth, first, content, network, queries, joins,
            (scratch.active, scratch.levels, scratch.deep_stamps), scratch.state,
            (scratch.marks, scratch.summary, scratch.skips, scratch.expiry),
            (link, scratch.link_stamps, scratch.out, scratch.out_times, scratch.pending),
            (scratch.gate_stamps, scratch.gates), offsets, gate_offsets,
        )  # fmt: skip

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
