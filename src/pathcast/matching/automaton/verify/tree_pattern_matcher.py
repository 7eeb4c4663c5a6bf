"""The trees that match a document: finds candidates, and verifies them.

The states of elements and the tests that they pass find a pattern that one element decides (`state_value_join.py`);
the states alone find a twig (`twig_join.py`). Any other pattern waits behind its gate for its access predicate
(`access_predicate_index.py`); candidates are verified on the element arrays (`candidate_verifier.py`). For documents
without states, all patterns are.

Invariant: a matcher shows the patterns that its store had when the matcher was created (`tree_pattern_store.py`).
Cost: the look-ups of a document's values and states, and the verification of its candidates.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.kernels import Int32s

from ...engine_contract import Entries, Offsets
from ...results.match_expansion_kernels import merge_joined
from ...results.subscriptions_by_pattern_kernels import DocumentEntries
from ...table.pattern_table import PatternTable
from ..paths.gates_opened_by_documents import OpenGates
from ..state_test_joins.state_value_join import Joins
from ..twigs.twig_join import TwigJoins, TwigsFound
from ..values.access_predicate_index import Access
from .candidate_verifier import Patterns, Verifier

_SET = b"\x01"  # in the bytes of truth values


class GatedTrees(NamedTuple):
    """Patterns with a gate, by what they wait for."""

    joins: Joins
    twigs: TwigJoins
    access: Access

    @property
    def patterns(self) -> int:
        """The number of patterns with a gate."""
        return len(self.access.gate_of)


class Matched(NamedTuple):
    """Entries of the documents of a batch; the number of candidates, and how many of them matched."""

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
        """Whether finding patterns needs the states of elements."""
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
        """A batch's entries, merged with those of the trees that match.

        `names` has the table's number of each name of the batch, `entry_count` is larger than all entries of the batch.
        """
        states, of, largest = opened.states, opened.of, batch.largest()
        count, name_count = max(self.entries, entry_count), len(self.table.names)
        joined = self.gated.joins.match(batch, largest, names, states, of, count, self.patterns, name_count)
        twigs = TwigsFound(np.zeros(len(offsets), dtype=np.int64), joined.entries[:0], joined.unknown, 0)
        if len(self.gated.twigs):
            twigs = self.gated.twigs.match(batch, largest.elements, names, states, of, name_count)
            joined = joined._replace(unknown=joined.unknown | twigs.unknown)
        unknown = _SET in joined.unknown.tobytes()
        if unknown:
            opened = opened.with_all(batch.offsets, np.flatnonzero(joined.unknown))
        candidate_offsets, candidates = self.gated.access.candidates(
            batch, names, opened.offsets, opened.gates, opened.listed, self.patterns, joined
        )
        holding = self.verifier.verify(batch, candidate_offsets, candidates, self.programs, names)
        more = self.programs.entries[candidates] if len(candidates) else candidates
        looked_at = len(candidates) + joined.looked_at + twigs.looked_at
        if len(batch) == 1:  # without a kernel and its arguments, which take as long as matching a short document
            found = (entries, more[holding]) if unknown else (entries, joined.entries, twigs.entries, more[holding])
            out = np.concatenate(found)
            return Matched(np.array([0, len(out)]), out, looked_at, len(out) - len(entries))
        room = len(entries) + len(joined.entries) + len(twigs.entries) + int(np.count_nonzero(holding))
        out = np.empty(room, dtype=np.int32)
        out_offsets = np.zeros(len(offsets), dtype=np.int64)
        written = merge_joined(
            DocumentEntries(offsets, entries),
            DocumentEntries(joined.offsets, joined.entries),
            DocumentEntries(twigs.offsets, twigs.entries),
            DocumentEntries(candidate_offsets, more),
            holding,
            joined.unknown,
            out_offsets,
            out,
        )
        return Matched(out_offsets, out[:written], looked_at, written - len(entries))
