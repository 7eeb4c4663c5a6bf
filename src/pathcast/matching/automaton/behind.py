"""The patterns behind gates: candidates of documents, and which of them match.

A pattern with predicates waits behind its gate (`gates.py`) and for its value (`access.py`); what becomes a candidate
is tried on the element arrays (`verifier.py`). Patterns are taken up as they come; until the next generation gives them
a gate, they are candidates of every document.

Invariant: patterns are appended, never changed; a `Waiting` shows those that there were when it was made.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...documents import DocumentBatch
from ..contract import Entries, Offsets
from ..expansion_kernels import merge_entries
from ..table import PatternTable
from ..trie import flat
from .access import Access, rarest
from .demands import DemandTable
from .gates import gate
from .growing import Growing
from .verifier import Programs, Verifier

Int32s = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Waiting:
    """The first `patterns` of them, with the access predicates of those that have a gate."""

    table: PatternTable
    access: Access
    verifier: Verifier
    programs: Programs
    patterns: int
    entries: int

    def add_matches(
        self, batch: DocumentBatch, offsets: Offsets, entries: Entries, gate_offsets: Offsets, gates: Int32s
    ) -> tuple[Offsets, Entries, int, int]:
        """A batch's entries and those of the patterns that match besides; how many were candidates and matched."""
        translation = self.table.translation(batch)
        candidate_offsets, candidates = self.access.candidates(batch, translation, gate_offsets, gates, self.patterns)
        holding = self.verifier.verify(batch, candidate_offsets, candidates, self.programs)
        verified = int(np.count_nonzero(holding))
        out = np.empty(len(entries) + verified + 8, dtype=np.int32)
        out_offsets = np.zeros(len(offsets), dtype=np.int64)
        more = self.programs.entries[candidates]
        marks = np.zeros(self.entries + 63 >> 6, dtype=np.uint64)
        summary = np.zeros(len(marks) + 63 >> 6, dtype=np.uint64)
        merge_entries(offsets, entries, candidate_offsets, more, holding, marks, summary, out_offsets, out)
        return out_offsets, out[: out_offsets[-1]], len(candidates), verified


class Behind:
    """All tree patterns of a table that the engine has taken up; one call at a time."""

    def __init__(self, table: PatternTable) -> None:
        self.table = table
        self.documents = 0
        self._demands = DemandTable(table.names)
        self._verifier = Verifier(table)
        self._tests = Growing(np.int32)
        self._tests_begin = Growing(np.int64, [0])
        self._ends = Growing(np.int32)  # the trie node of each pattern's gate, as far as they have one

    def __len__(self) -> int:
        return len(self._verifier)

    @property
    def slow(self) -> int:
        """How many patterns go to the reference embedding."""
        return self._verifier.slow

    def add(self, entry: int) -> None:
        """Take up the pattern of an entry."""
        self._verifier.add(entry)
        self._tests.extend(np.array(self._demands.add(self.table.trees[entry]), dtype=np.int32))
        self._tests_begin.append(self._tests.size)

    def give_gates(self) -> tuple[Int32s, Int32s]:
        """Put the gates of patterns that have none yet into the trie: the nodes that are gates, and each one's gate."""
        entries = self._verifier.entries[self._ends.size :].tolist()
        trees, encoder = self.table.trees, self.table.encoder
        self._ends.extend(self.table.trie.insert(*flat([gate(trees[entry], encoder) for entry in entries])))
        nodes, gates = np.unique(self._ends.view, return_inverse=True)
        return nodes, gates.astype(np.int32)

    def waiting(self, gate_of: Int32s, gates: int) -> Waiting:
        """All patterns, those with a gate behind the rarest of their values."""
        begin = self._tests_begin.view[: len(gate_of) + 1]
        chosen = rarest(begin, self._tests.view[: begin[-1]], self._demands.likely(self.documents))
        return self._with(Access(self._demands, gate_of, gates, chosen))

    def and_fresh(self, waiting: Waiting) -> Waiting:
        """The same, and the patterns that came since."""
        return self._with(waiting.access)

    def _with(self, access: Access) -> Waiting:
        return Waiting(self.table, access, self._verifier, self._verifier.programs(), len(self), len(self.table))
