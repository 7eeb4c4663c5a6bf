"""The trees that match a document: candidates, and which of them hold.

A pattern that one element decides is found by the states of elements and the tests that they pass
(`state_value_join.py`), a twig by the states alone (`twig_join.py`). Any other one waits behind its gate and for its
value (`access_predicates.py`); what becomes a candidate is tried on the element arrays (`candidate_verifier.py`), and
so are all patterns on documents that have no states.

Invariant: a matcher shows the patterns that its store had when it was made (`tree_store.py`).
Cost: the look-ups of a document's values and states, and what its candidates take.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.kernels import Int32s

from ...engine_contract import Entries, Offsets
from ...results.match_expansion_kernels import DocumentEntries, merge_joined
from ...table.pattern_table import PatternTable
from ..twigs.twig_join import TwigJoins
from ..values.access_predicates import Access
from ..values.open_gates import OpenGates
from ..values.state_value_join import Joins
from .candidate_verifier import Patterns, Verifier


class GatedTrees(NamedTuple):
    """Patterns with a gate, by what they wait for."""

    joins: Joins
    twigs: TwigJoins
    access: Access

    @property
    def patterns(self) -> int:
        """How many patterns have a gate."""
        return len(self.access.gate_of)


class Matched(NamedTuple):
    """Entries of the documents of a batch; how many patterns were candidates for them, and how many matched."""

    offsets: Offsets
    entries: Entries
    candidates: int
    verified: int


@dataclass(frozen=True, slots=True, eq=False)
class CandidateMatcher:
    """The first `patterns` of a store, with the joins and access predicates of those that have a gate."""

    table: PatternTable
    gated: GatedTrees
    verifier: Verifier
    programs: Patterns
    patterns: int
    entries: int

    @property
    def needs_states(self) -> bool:
        """Whether patterns are found by the states of elements."""
        return len(self.gated.joins) > 0 or len(self.gated.twigs) > 0

    def add_matches(
        self,
        batch: DocumentBatch,
        names: Int32s,
        opened: OpenGates,
        offsets: Offsets,
        entries: Entries,
        entry_count: int,
    ) -> Matched:
        """A batch's entries and those of the patterns that match besides.

        `names` has the table's number of each name of the batch, `entry_count` is more than all of the batch's entries.
        """
        states, of, largest = opened.states, opened.of, batch.largest()
        count = max(self.entries, entry_count)
        joined = self.gated.joins.match(batch, largest, names, states, of, count, self.patterns)
        twigs = self.gated.twigs.match(batch, largest.elements, names, states, of, len(self.table.names))
        unknown = joined.unknown | twigs.unknown
        if unknown.any():
            opened = opened.with_all(batch.offsets, np.flatnonzero(unknown))
        candidate_offsets, candidates = self.gated.access.candidates(
            batch, names, opened.offsets, opened.gates, opened.listed, self.patterns, joined._replace(unknown=unknown)
        )
        holding = self.verifier.verify(batch, candidate_offsets, candidates, self.programs, names)
        verified = int(np.count_nonzero(holding)) + len(joined.entries) + len(twigs.entries)
        out = np.empty(len(entries) + verified + 8, dtype=np.int32)
        out_offsets = np.zeros(len(offsets), dtype=np.int64)
        more = self.programs.entries[candidates]
        marks = np.zeros(count + 63 >> 6, dtype=np.uint64)
        summary = np.zeros(len(marks) + 63 >> 6, dtype=np.uint64)
        merge_joined(
            DocumentEntries(offsets, entries),
            DocumentEntries(joined.offsets, joined.entries),
            DocumentEntries(twigs.offsets, twigs.entries),
            DocumentEntries(candidate_offsets, more),
            holding,
            marks,
            summary,
            out_offsets,
            out,
        )
        looked_at = len(candidates) + joined.looked_at + twigs.looked_at
        return Matched(out_offsets, out[: out_offsets[-1]], looked_at, verified)
