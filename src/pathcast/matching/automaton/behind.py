"""The patterns behind gates: candidates of documents, and which of them match.

A pattern with predicates waits behind its gate (`gates.py`) and for its value (`access.py`); what becomes a candidate
is tried on the element arrays (`verifier.py`).
"""

import numpy as np
import numpy.typing as npt

from ...documents import DocumentBatch
from ..contract import Entries, Offsets
from ..expansion_kernels import merge_entries
from ..table import PatternTable
from .access import Access
from .verifier import Verifier

Int32s = npt.NDArray[np.int32]


class Behind:
    """The tree patterns of a table; `gate_of` has the gate of each, `gates` how many there are."""

    def __init__(self, table: PatternTable, entries: list[int], gate_of: Int32s, gates: int) -> None:
        self.table = table
        self.access = Access(table.names, [table.trees[entry] for entry in entries], gate_of, gates)
        self.verifier = Verifier(table, entries)

    def add_matches(
        self,
        batch: DocumentBatch,
        offsets: Offsets,
        entries: Entries,
        gate_offsets: Offsets,
        gates: Int32s,
        entry_count: int,
    ) -> tuple[Offsets, Entries, int, int]:
        """A batch's entries and those of the patterns behind open gates that match; candidates, and how many match."""
        translation = self.table.translation(batch)
        candidate_offsets, candidates = self.access.candidates(batch, translation, gate_offsets, gates)
        holding = self.verifier.verify(batch, candidate_offsets, candidates)
        verified = int(np.count_nonzero(holding))
        out = np.empty(len(entries) + verified + 8, dtype=np.int32)
        out_offsets = np.zeros(len(offsets), dtype=np.int64)
        more = self.verifier.entries[candidates]
        marks = np.zeros(entry_count + 63 >> 6, dtype=np.uint64)
        summary = np.zeros(len(marks) + 63 >> 6, dtype=np.uint64)
        merge_entries(offsets, entries, candidate_offsets, more, holding, marks, summary, out_offsets, out)
        return out_offsets, out[: out_offsets[-1]], len(candidates), verified
