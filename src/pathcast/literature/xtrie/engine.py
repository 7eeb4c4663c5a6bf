"""The XTrie engine behind the engine contract.

    table's trie ┐
    decomposition.py ────┴─▶ tables.py ──▶ run_kernels.py ──▶ entries, ascending
    (trees, cut into rows)           │ gates of what is not taken
                                     ▼
                               the default engine's verifier

Paper: "Efficient filtering of XML documents with XPath expressions" (Chan, Felber, Garofalakis, Rastogi, ICDE 2002),
the engine inside the routers of papers/000 and papers/004. `streaming_engine.py` has the frame around the kernel.

Invariant: the tables are those of the pattern table as of the last `refresh`.
Cost: at each element the rows whose substring ends there; see `run_kernels.py`. Skipping takes a pass over the rows and
leaves out those that lead to no entry that is asked for; where few are left, it looks at nothing but their rows.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.kernels import Int32s
from pathcast.matching import Mask, Offsets

from ..streaming.streaming_engine import Arrays, EventEngine
from .decomposition import Twigs
from .layout_kernels import LOOKED, N_LEAF, N_LEAF_END, PARTIALS, T_ENTRY, TRIED
from .run_kernels import run
from .scratch import Scratch
from .table_kernels import want_few, want_rows
from .tables import build_tables

# Where one of so many entries is left, or less, their rows are chained.
FEW = 8
_NOTHING: Int32s = np.zeros(0, dtype=np.int32)


class _Entries:
    """What each entry asks for: a row of plain paths (its own, or the one above its twig or gate), and leaf rows.

    `are_single`: no entry asks for two rows of plain paths.
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


class Lent(NamedTuple):
    """What a run needs: the tables, also as kernels take them, the buffers, and how many entries there are."""

    tables: Arrays
    kernel_tables: tuple[Any, ...]
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
        # Entries of leaf rows by themselves: where most are left out, nothing else of a row is looked at.
        leaf_entry = twigs[: int(nodes[:, N_LEAF_END].max(initial=0)), T_ENTRY].copy()
        trie = (tables["slots"], tables["trie_parent"], tables["trie_symbol"], nodes, leaf_entry, _NOTHING, _NOTHING)
        plain = tuple(tables[name] for name in ("row_parent", "row_reach", "rows", "task_number", "delegated"))
        tests = tuple(tables[name] for name in ("selects", "selection_rows", "limits", "literals", "parts"))
        self._kernel_tables = trie, (*plain, int(tables["longest_wild"][0])), twigs, tests
        self._entries = _Entries(tables, leaf_entry, self._entry_count)

    @contextmanager
    def lent(self, batch: DocumentBatch) -> Iterator[Lent]:
        """Tables and buffers, with room for a batch, to a run over another source of events; nobody else runs then."""
        with self._running:
            self._scratch.fit(self._tables, batch, self._entry_count)
            yield Lent(self._tables, self._kernel_tables, self._scratch, self._entry_count)

    def _leave_out(self, skip: Mask | None) -> None:
        super()._leave_out(skip)
        self._chosen = _NOTHING, _NOTHING
        if skip is None:
            return
        it, scratch = self._tables, self._scratch
        left = self._entry_count - int(np.count_nonzero(skip[: self._entry_count]))
        if self._entries.are_single and FEW * left <= self._entry_count:
            self._chosen = scratch.chosen, scratch.following
            want_few(
                scratch.skips, self._entry_count, self._entries.row, it["row_parent"], self._entries.leaf_begin,
                self._entries.leaf_rows, self._entries.leaf_node, scratch.wanted, *self._chosen,
            )  # fmt: skip
        else:
            want_rows(
                it["row_entry"], it["row_parent"], it["inner"], it["gate_row"], it["delegated"], it["top_entry"],
                it["top_base"], scratch.skips, scratch.wanted,
            )  # fmt: skip

    def _run(self, batch: DocumentBatch, first: int, link: Int32s, offsets: Offsets, gate_offsets: Offsets) -> int:
        scratch = self._scratch
        translation = self.table.translation(batch)
        values = (
            batch.attribute_begin, batch.attribute_name, batch.attribute_start, batch.attribute_length,
            batch.text_begin, batch.text_end, batch.text_parent, batch.text_start, batch.text_length,
            batch.data, batch.arena, translation, scratch.joined,
        )  # fmt: skip
        return run(  # type: ignore[no-any-return]
            batch.offsets, batch.name, batch.depth, batch.end, translation, first, values,
            (*self._kernel_tables[0][:5], *self._chosen), *self._kernel_tables[1:],
            scratch.state, scratch.stacks, scratch.known,
            (scratch.marks, scratch.skips, scratch.wanted, link, scratch.link_stamps, scratch.expiry),
            (scratch.summary, scratch.gate_stamps, scratch.out, scratch.out_times, scratch.gates),
            offsets, gate_offsets,
        )  # fmt: skip

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
