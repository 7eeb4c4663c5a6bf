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


class _Verified(NamedTuple):
    """The candidates of documents, as entries, and which of them match."""

    candidates: DocumentEntries
    holding: Bools


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

    def add_matches(
        self,
        delta: "CandidateMatcher | None",
        batch: DocumentBatch,
        names: Int32s,
        opened: Sequence[OpenGates],
        found: DocumentEntries,
        entry_count: int,
    ) -> Matched:
        """A batch's entries, merged with those of the trees that match, also those of a delta of the same store.

        `names` has the table's number of each name of the batch, `opened` the gates of both matchers, `entry_count` is
        larger than all entries of the batch. `self` knows the trees of `delta`, which have no gates in it.
        """
        matchers = (self,) if delta is None else (self, delta)
        name_count, entries = len(self.table.names), max(entry_count, self.entries)
        states = [ElementStates(gates.states, gates.of) for gates in opened]
        beside = None if delta is None else (delta.gated.joins, states[1])
        joined = self.gated.joins.match(batch, names, states[0], entries, self.patterns, name_count, beside)
        twigs, looked_at, unknown = list[DocumentEntries](), joined.looked_at, joined.unknown
        for matcher, of in zip(matchers, states, strict=False):
            if len(matcher.gated.twigs):
                longest = batch.largest().elements
                of_twigs = matcher.gated.twigs.match(batch, longest, names, of.states, of.of, name_count)
                unknown, looked_at = unknown | of_twigs.unknown, looked_at + of_twigs.looked_at
                twigs.append(DocumentEntries(of_twigs.offsets, of_twigs.entries))
        joined = joined._replace(unknown=unknown, looked_at=looked_at)
        return self.add_verified(delta, batch, names, opened, found, joined, twigs)

    def add_verified(
        self,
        delta: "CandidateMatcher | None",
        batch: DocumentBatch,
        names: Int32s,
        opened: Sequence[OpenGates],
        found: DocumentEntries,
        joined: JoinedEntries,
        twigs: Sequence[DocumentEntries],
    ) -> Matched:
        """As `add_matches`, given what joins have found: for joins of both kinds, what `joined` says of documents."""
        matchers = (self,) if delta is None else (self, delta)
        unknown, looked_at = joined.unknown, joined.looked_at
        if _SET in unknown.tobytes():
            left = np.flatnonzero(unknown)
            opened = [gates.with_all(batch.offsets, left) for gates in opened]
        verified = [
            matcher._verified(batch, names, gates, joined) for matcher, gates in zip(matchers, opened, strict=False)
        ]
        total, looked_at = len(found.entries), looked_at + sum([len(each.holding) for each in verified])
        found = (_merged_alone if len(batch) == 1 else _merged)(found, joined, twigs, verified)
        return Matched(found.offsets, found.entries, looked_at, len(found.entries) - total)

    def _verified(self, batch: DocumentBatch, names: Int32s, opened: OpenGates, joined: JoinedEntries) -> _Verified:
        """The candidates of each document, and which of them match."""
        offsets, candidates = self.gated.access.candidates(
            batch, names, opened.offsets, opened.gates, opened.listed, self.patterns, joined, self.first
        )
        if self.first and len(candidates):
            candidates += np.int32(self.first)
        holding = self.verifier.verify(batch, offsets, candidates, self.programs, names)
        entries = self.programs.entries[candidates] if len(candidates) else candidates
        return _Verified(DocumentEntries(offsets, entries), holding)


def _merged_alone(
    found: DocumentEntries, joined: JoinedEntries, twigs: Sequence[DocumentEntries], verified: Sequence[_Verified]
) -> DocumentEntries:
    """As `_merged`, for one document: without a kernel, whose arguments take as long as matching a short document."""
    parts = [found.entries, *[each.candidates.entries[each.holding] for each in verified if len(each.holding)]]
    if not joined.unknown[0]:
        parts += [joined.entries, *[each.entries for each in twigs]]
    entries = np.concatenate(parts)
    return DocumentEntries(np.array([0, len(entries)]), entries)


def _merged(
    found: DocumentEntries, joined: JoinedEntries, twigs: Sequence[DocumentEntries], verified: Sequence[_Verified]
) -> DocumentEntries:
    """The entries of each document, and those that joins, twigs and the verifier have found; never `found` itself,
    which may be a buffer of the thread.
    """
    none = DocumentEntries(np.zeros_like(found.offsets), found.entries[:0])
    of_joins = DocumentEntries(joined.offsets, joined.entries)
    for number, (candidates, holding) in enumerate(verified):
        of_twigs = twigs[number] if number < len(twigs) else none
        room = len(of_joins.entries) + len(of_twigs.entries) + int(np.count_nonzero(holding))
        if room or not number:
            out, offsets = np.empty(len(found.entries) + room, dtype=np.int32), np.zeros_like(found.offsets)
            written = merge_joined(found, of_joins, of_twigs, candidates, holding, joined.unknown, offsets, out)
            found = DocumentEntries(offsets, out[:written])
        of_joins = none
    return found
