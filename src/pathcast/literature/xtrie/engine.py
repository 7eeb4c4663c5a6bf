"""The XTrie engine behind the engine contract.

    table's trie ─────────────┐
    pattern_decomposition.py ─┴─▶ substring_trie_tables.py ──▶ document_matching_kernels.py ──▶ entries, ascending
    (trees, split into rows)                                       │ gates of delegated patterns
                                                                   ▼
                                                             the default engine's verifier

Paper: "Efficient filtering of XML documents with XPath expressions" (Chan, Felber, Garofalakis, Rastogi, ICDE 2002),
the engine inside the routers of papers/000 and papers/004. `streaming_engine_frame.py` has the frame around the kernel.

Invariant: the tables are those of the pattern table as of the last `refresh`.
Cost: at each element the rows whose substring ends there; see `document_matching_kernels.py`. Skipping takes a pass
over the rows and omits those that lead to no wanted entry; if few are left, only their rows are checked.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, NamedTuple

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.kernels import Int32s
from pathcast.matching import Mask

from ..streaming.match_recording_kernels import Answers, Wanted
from ..streaming.streaming_engine_frame import Arrays, EventEngine
from ..streaming.value_tests_kernels import TestedValues
from .document_matching_kernels import run
from .matching_buffers import Scratch
from .pattern_decomposition import Twigs
from .substring_trie_tables import build_tables
from .substring_trie_tables_kernels import EntryRows, LeafRows, want_few, want_rows
from .table_and_stack_layout_kernels import (
    LOOKED,
    N_LEAF,
    N_LEAF_END,
    PARTIALS,
    T_ENTRY,
    TRIED,
    PlainRows,
    SubstringTrie,
    WantedRows,
    XTrieTables,
)

# If one entry in this many is left, or fewer, their rows are chained.
FEW = 8
_NOTHING: Int32s = np.zeros(0, dtype=np.int32)
_ALL_ROWS = WantedRows(np.zeros(0, dtype=np.uint8), _NOTHING, _NOTHING)


class _Entries:
    """The rows that each entry needs: a row of plain paths (its own, or the one above its twig or gate), and leaf rows.

    `are_single`: no entry needs two rows of plain paths.
    """

    def __init__(self, tables: Arrays, leaf_entry: Int32s, count: int) -> None:
        nodes, rows = tables["nodes"], np.flatnonzero(tables["row_entry"] >= 0)
        asking = np.concatenate([tables["row_entry"][rows], tables["top_entry"], tables["delegated"]])
        self.are_single = len(np.unique(asking)) == len(asking)
        self.row: Int32s = np.full(count, -1, dtype=np.int32)
        self.row[asking] = np.concatenate([rows, tables["top_base"], tables["gate_row"]])
        self.leaf_rows = np.argsort(leaf_entry, kind="stable").astype(np.int32)
        self.leaf_begin = np.searchsorted(leaf_entry[self.leaf_rows], np.arange(count + 1)).astype(np.int32)
        counts = nodes[:, N_LEAF_END] - nodes[:, N_LEAF]
        self.leaf_node = np.repeat(np.arange(len(nodes), dtype=np.int32), counts)


class RunInputs(NamedTuple):
    """The inputs of a run: the tables, also in the form that kernels read, tested values, the buffers, all entries."""

    tables: Arrays
    kernel_tables: XTrieTables
    tested: TestedValues
    scratch: Scratch
    entries: int


class XTrieEngine(EventEngine[Twigs, Scratch]):
    """Maximal wildcard-free substrings in a trie; rows of expressions by substring; partial matchings by level."""

    name: ClassVar[str] = "xtrie"

    def _new_scratch(self) -> Scratch:
        return Scratch()

    def _new_trees(self) -> Twigs:
        return Twigs(self.table.encoder)

    def _tables_of(self, trees: Twigs) -> Arrays:
        return build_tables(self.table.trie, trees)

    def _take(self, tables: Arrays) -> None:
        super()._take(tables)
        nodes, twigs = tables["nodes"], tables["twigs"]
        # Entries of leaf rows separately: if most are skipped, nothing else of a row is read.
        leaf_entry = twigs[: int(nodes[:, N_LEAF_END].max(initial=0)), T_ENTRY].copy()
        self._kernel_tables = XTrieTables(
            trie=SubstringTrie(tables["slots"], tables["trie_parent"], tables["trie_symbol"], nodes, leaf_entry),
            plain=PlainRows(
                parents=tables["row_parent"],
                reaches=tables["row_reach"],
                rows=tables["rows"],
                task_numbers=tables["task_number"],
                delegated=tables["delegated"],
                longest_wild=int(tables["longest_wild"][0]),
            ),
            twigs=twigs,
            wanted=_ALL_ROWS,
        )
        self._entries = _Entries(tables, leaf_entry, self._entry_count)

    @contextmanager
    def lent(self, batch: DocumentBatch) -> Iterator[RunInputs]:
        """Lend tables and buffers, with room for a batch, to a run over another source of events, exclusively."""
        with self._running:
            self._scratch.fit(self._tables, batch, self._entry_count)
            tables = self._kernel_tables._replace(wanted=_ALL_ROWS)
            yield RunInputs(self._tables, tables, self._tested(batch), self._scratch, self._entry_count)

    def _leave_out(self, skip: Mask | None) -> None:
        super()._leave_out(skip)
        wanted = _ALL_ROWS if skip is None else self._want(skip)
        if wanted is not self._kernel_tables.wanted:
            self._kernel_tables = self._kernel_tables._replace(wanted=wanted)

    def _want(self, skip: Mask) -> WantedRows:
        """The rows that lead to an entry that is not skipped."""
        it, scratch, entries = self._tables, self._scratch, self._entries
        left = self._entry_count - int(np.count_nonzero(skip[: self._entry_count]))
        if entries.are_single and FEW * left <= self._entry_count:
            wanted = WantedRows(scratch.wanted_rows, scratch.chosen, scratch.following)
            leaves = LeafRows(entries.leaf_begin, entries.leaf_rows, entries.leaf_node)
            want_few(scratch.skips, self._entry_count, entries.row, it["row_parent"], leaves, *wanted)
            return wanted
        tops = EntryRows(it["top_entry"], it["top_base"])
        gates = EntryRows(it["delegated"], it["gate_row"])
        want_rows(it["row_entry"], it["row_parent"], it["inner"], gates, tops, scratch.skips, scratch.wanted_rows)
        return WantedRows(scratch.wanted_rows, _NOTHING, _NOTHING)

    def _run(self, batch: DocumentBatch, first: int, wanted: Wanted, answers: Answers) -> int:
        scratch, tested = self._scratch, self._tested(batch)
        return run(first, batch.elements, tested, self._kernel_tables, scratch.stacks, wanted, answers, scratch.state)

    def statistics(self) -> dict[str, int | float]:
        it, state = self._tables, self._scratch.state
        return {
            "trie nodes": len(it["nodes"]),
            "rows of plain paths": len(it["rows"]),
            "rows of twigs": len(it["twigs"]),
            "table bytes": sum(array.nbytes for array in it.values()),
            "rows looked at": int(state[LOOKED]),
            "partial matchings": int(state[PARTIALS]),
            "selections tried": int(state[TRIED]),
            **self._delegated.statistics(),
        }
