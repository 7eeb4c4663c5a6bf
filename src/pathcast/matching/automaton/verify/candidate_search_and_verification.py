"""The trees that match a document: finds candidates, and verifies them.

The states of elements and the tests that they pass find a pattern that one element decides (`state_value_join.py`);
the states alone find a twig (`twig_join.py`). Any other pattern waits behind its gate for its access predicate
(`access_predicate_index.py`); candidates are verified on the element arrays (`candidate_verifier.py`). For documents
without states, all patterns are.

Invariant: a matcher shows the patterns that its store had when the matcher was created (`tree_pattern_store.py`).
Cost: the look-ups of a document's values and states, and the verification of its candidates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.kernels import Bools, Int32s

from ...engine_contract import Entries, Offsets
from ...results.match_expansion_kernels import merge_joined
from ...results.subscriptions_by_pattern_kernels import DocumentEntries
from ...table.pattern_table import PatternTable
from ..paths.gates_opened_by_documents import OpenGates
from ..state_test_joins.state_value_join import ElementStates, JoinedEntries, Joins
from ..twigs.twig_join import TwigJoins
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
    """The first `patterns` of a store, with the joins and access predicates of those that have a gate.

    The latter start at number `first`, and are numbered from 0 on in `gated.access`.
    """

    table: PatternTable
    gated: GatedTrees
    verifier: Verifier
    programs: Patterns
    first: int
    patterns: int
    entries: int

    @property
    def needs_states(self) -> bool:
        """Whether finding patterns needs the states of elements."""
        return len(self.gated.joins) > 0 or len(self.gated.twigs) > 0

    def verified(
        self, batch: DocumentBatch, names: Int32s, opened: OpenGates, joined: JoinedEntries
    ) -> tuple[DocumentEntries, Bools]:
        """The candidates of each document, and which of them match."""
        offsets, candidates = self.gated.access.candidates(
            batch, names, opened.offsets, opened.gates, opened.listed, self.patterns, joined, self.first
        )
        if self.first and len(candidates):
            candidates += np.int32(self.first)
        holding = self.verifier.verify(batch, offsets, candidates, self.programs, names)
        entries = self.programs.entries[candidates] if len(candidates) else candidates
        return DocumentEntries(offsets, entries), holding


def add_matches(
    matchers: Sequence[CandidateMatcher],
    batch: DocumentBatch,
    names: Int32s,
    opened: Sequence[OpenGates],
    found: DocumentEntries,
    entry_count: int,
) -> Matched:
    """A batch's entries, merged with those of the trees that match; all matchers are of one store.

    The first matcher knows all trees. `names` has the table's number of each name of the batch, `entry_count` is larger
    than all entries of the batch.
    """
    first, name_count = matchers[0], len(matchers[0].table.names)
    states = [ElementStates(gates.states, gates.of) for gates in opened]
    beside = (matchers[1].gated.joins, states[1]) if len(matchers) > 1 else None
    entries = max(entry_count, *[matcher.entries for matcher in matchers])
    joined = first.gated.joins.match(batch, names, states[0], entries, first.patterns, name_count, beside)
    twigs = [
        matcher.gated.twigs.match(batch, batch.largest().elements, names, of.states, of.of, name_count)
        for matcher, of in zip(matchers, states, strict=True)
    ]
    unknown, looked_at = joined.unknown, joined.looked_at
    for found_twigs in twigs:
        unknown, looked_at = unknown | found_twigs.unknown, looked_at + found_twigs.looked_at
    left = np.flatnonzero(unknown) if _SET in unknown.tobytes() else None
    joined, total, none = joined._replace(unknown=unknown), len(found.entries), np.zeros_like(joined.offsets)
    for matcher, gates, of_twigs in zip(matchers, opened, twigs, strict=True):
        open_gates = gates if left is None else gates.with_all(batch.offsets, left)
        candidates, holding = matcher.verified(batch, names, open_gates, joined)
        looked_at += len(candidates.entries)
        found = _merged(found, joined, DocumentEntries(of_twigs.offsets, of_twigs.entries), candidates, holding)
        joined = joined._replace(offsets=none, entries=joined.entries[:0])  # they are in the first result
    return Matched(found.offsets, found.entries, looked_at, len(found.entries) - total)


def _merged(
    found: DocumentEntries, joined: JoinedEntries, twigs: DocumentEntries, candidates: DocumentEntries, holding: Bools
) -> DocumentEntries:
    """The entries of each document, and those that joins, twigs and the verifier have found."""
    if len(joined.unknown) == 1:  # without a kernel and its arguments, which take as long as matching a short document
        more = (found.entries, candidates.entries[holding])
        entries = np.concatenate(more if joined.unknown[0] else (*more, joined.entries, twigs.entries))
        return DocumentEntries(np.array([0, len(entries)]), entries)
    if not (len(joined.entries) or len(twigs.entries) or len(candidates.entries)):
        return found
    room = len(found.entries) + len(joined.entries) + len(twigs.entries) + int(np.count_nonzero(holding))
    out, offsets = np.empty(room, dtype=np.int32), np.zeros(len(found.offsets), dtype=np.int64)
    by_joins = DocumentEntries(joined.offsets, joined.entries)
    written = merge_joined(found, by_joins, twigs, candidates, holding, joined.unknown, offsets, out)
    return DocumentEntries(offsets, out[:written])
