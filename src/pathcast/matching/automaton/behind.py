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
from .demands import DemandTable, Tests
from .gates import gate
from .growing import Growing
from .verifier import Programs, Verifier

Int32s = npt.NDArray[np.int32]
_NONE = np.zeros(0, dtype=np.int32)


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
        self,
        batch: DocumentBatch,
        offsets: Offsets,
        entries: Entries,
        gate_offsets: Offsets,
        gates: Int32s,
        entry_count: int,
    ) -> tuple[Offsets, Entries, int, int]:
        """A batch's entries and those of the patterns that match besides; how many were candidates and matched.

        `entry_count` is more than all of the batch's entries.
        """
        translation = self.table.translation(batch)
        candidate_offsets, candidates = self.access.candidates(batch, translation, gate_offsets, gates, self.patterns)
        holding = self.verifier.verify(batch, candidate_offsets, candidates, self.programs, translation)
        verified = int(np.count_nonzero(holding))
        out = np.empty(len(entries) + verified + 8, dtype=np.int32)
        out_offsets = np.zeros(len(offsets), dtype=np.int64)
        more = self.programs.entries[candidates]
        marks = np.zeros(max(self.entries, entry_count) + 63 >> 6, dtype=np.uint64)
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
        self.until = 0  # the first entry that was not looked at yet

    def __len__(self) -> int:
        return len(self._verifier)

    @property
    def slow(self) -> int:
        """How many patterns go to the reference embedding."""
        return self._verifier.slow

    def take_up(self, entries: int) -> None:
        """Take up all patterns below an entry that were not looked at yet."""
        for entry in self.table.trees.between(self.until, entries):
            self._add(entry)
        self.until = entries

    def _add(self, entry: int) -> None:
        self._verifier.add(entry)
        self._tests.extend(np.array(self._demands.add(self.table.trees[entry]), dtype=np.int32))
        self._tests_begin.append(self._tests.size)

    def layout(self) -> "Layout":
        """Give gates to the patterns that have none yet; all that it takes to lay them out."""
        entries = self._verifier.entries[self._ends.size :].tolist()
        trees, encoder = self.table.trees, self.table.encoder
        self._ends.extend(self.table.trie.insert(*flat([gate(trees[entry], encoder) for entry in entries])))
        return Layout(
            self._ends.view.copy(),
            self._tests_begin.view[: len(self) + 1],
            self._tests.view,
            self._demands.captured(),
            self._demands.likely(self.documents),
        )

    def chosen_again(self, waiting: Waiting) -> Waiting:
        """The same patterns with the same gates, behind the tests that are the rarest by now; and those since."""
        access = waiting.access
        count = len(access.gate_of)
        begin = self._tests_begin.view[: count + 1]
        chosen = rarest(begin, self._tests.view[: begin[-1]], self._demands.likely(self.documents))
        return self.waiting(Access(self._demands.captured(), access.gate_of, access.gates, chosen))

    def waiting(self, access: Access | None = None) -> Waiting:
        """All patterns as of now; without `access`, all without a gate."""
        if access is None:
            access = Access(self._demands.captured(), _NONE, 0, _NONE)
        return Waiting(self.table, access, self._verifier, self._verifier.programs(), len(self), len(self.table))


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """What `Access` is made of: of each pattern the gate's trie node and the tests, and how likely these are."""

    ends: Int32s
    begin: npt.NDArray[np.int64]
    tests: Int32s
    captured: Tests
    likely: npt.NDArray[np.float64]

    def access(self) -> tuple[Int32s, Access]:
        """The trie nodes that are gates, and the patterns behind them and the rarest of their tests."""
        nodes, gates = np.unique(self.ends, return_inverse=True)
        chosen = rarest(self.begin, self.tests[: self.begin[-1]], self.likely)
        return nodes, Access(self.captured, gates.astype(np.int32), len(nodes), chosen)
