"""Single documents: a batch of one document, matched by calls that were prepared for a generation.

A thread prepares the calls of all kernels when it uses a generation for the second time. Whatever a prepared call does
not handle (a new label path, a document larger than all before) is left to the engine, and
the calls are prepared again.

Invariant: the entries are those that the engine finds in a batch (`AutomatonEngine.match_batch`).
Cost: with patterns of all kinds, Python takes some 5 µs per document besides its kernels; a batch takes 20 µs.
"""

import threading
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.kernels import Int32s

from ..engine_contract import Entries
from ..results.subscriptions_by_pattern_kernels import DocumentEntries
from .paths.automaton_walk_buffers import Scratch
from .paths.lazy_determinisation import States
from .paths.prepared_walk import PreparedWalk
from .updates.immutable_index_state import Generation

if TYPE_CHECKING:
    from .state_test_joins.prepared_state_value_join import PreparedJoin
    from .twigs.prepared_twig_join import PreparedTwigJoin
    from .verify.candidate_search_and_verification import CandidateMatcher


class SingleMatched(NamedTuple):
    """A document's entries, in an array of their own; how many patterns were tried, and how many of these matched.

    `marked`: how many entries were marked for lack of groups, by states.
    """

    entries: Entries
    tried: int
    matched: int
    marked: tuple[tuple[States, int], ...]


class SingleDocuments(threading.local):
    """The single documents of a generation; prepared calls belong to a thread."""

    def __init__(self, made: Generation) -> None:
        self.made = made
        self._is_used = False
        self._prepared: PreparedMatch | None = None

    def match(self, batch: DocumentBatch, scratch: Scratch) -> SingleMatched | None:
        """Match the batch's only document, in the thread's buffers; None if the engine must match it."""
        prepared = self._prepared
        if prepared is None:
            if not self._is_used:
                self._is_used = True
                return None
            prepared = self._prepared = PreparedMatch(self.made, scratch)
        found = prepared.match(batch)
        if found is None:
            self._prepared = None
        return found


class PreparedMatch:
    """The calls of all kernels that match a single document, for one generation and thread."""

    def __init__(self, made: Generation, scratch: Scratch) -> None:
        self._made, self._walk = made, PreparedWalk(made, scratch)
        self._joins: PreparedJoin | None = None
        self._twigs: list[PreparedTwigJoin] = []
        if made.base.trees is not None:
            self._prepare_joins(made.base.trees, None if made.delta is None else made.delta.trees)

    def _prepare_joins(self, trees: "CandidateMatcher", delta: "CandidateMatcher | None") -> None:
        """Prepare the joins of the base and of the delta."""
        from .state_test_joins.prepared_state_value_join import PreparedJoin
        from .state_test_joins.state_value_join import ElementStates
        from .twigs.prepared_twig_join import PreparedTwigJoin

        walk, names, entries = self._walk, len(trees.table.names), max(self._made.entries, trees.entries)
        base = ElementStates(walk.states, walk.buffers.base.states)
        other = ElementStates(walk.states_beside, walk.buffers.delta.states)
        beside = None if delta is None else (delta.gated.joins, other)
        self._joins = PreparedJoin.of(trees.gated.joins, base, entries, trees.patterns, names, beside)
        for matcher, states in ((trees, base), (delta, other)):
            if matcher is not None and len(matcher.gated.twigs):
                self._twigs.append(PreparedTwigJoin(matcher.gated.twigs, states, names))

    def match(self, batch: DocumentBatch) -> SingleMatched | None:
        """Match the batch's only document; None if that needs other arguments."""
        walk, joins = self._walk, self._joins
        numbers, symbols = self._made.names_of(batch)
        largest = batch.largest()
        if not walk.match(batch, symbols, largest.elements):
            return None
        if numbers is None:
            return SingleMatched(walk.entries.copy(), 0, 0, walk.marked())
        parts, tried, is_complete = [walk.entries], 0, not walk.has_gates
        if joins is not None:
            if not joins.match(batch, numbers, largest):
                return None
            is_complete = is_complete and joins.is_complete
            parts.append(joins.entries)
            tried = joins.looked_at
        for twigs in self._twigs:
            if not twigs.match(batch, numbers, largest.elements):
                return None
            is_complete = is_complete and twigs.is_complete
            parts.append(twigs.entries)
            tried += twigs.looked_at
        if not is_complete:
            return self._verified(batch, numbers, tried)
        entries = np.concatenate(parts)
        return SingleMatched(entries, tried, len(entries) - len(parts[0]), walk.marked())

    def _verified(self, batch: DocumentBatch, numbers: Int32s, tried: int) -> SingleMatched:
        """The entries that joins have found, and those that the verifier finds."""
        from .state_test_joins.prepared_state_value_join import nothing_joined

        made, walk, twigs = self._made, self._walk, self._twigs
        trees, delta = made.base.trees, None if made.delta is None else made.delta.trees
        assert trees is not None
        joined = nothing_joined() if self._joins is None else self._joins.joined()
        for each in twigs:
            joined = joined._replace(unknown=joined.unknown | each.unknown)
        found, of_twigs = walk.entries, [DocumentEntries(each.offsets, each.entries) for each in twigs]
        plain = DocumentEntries(np.array([0, len(found)]), found)
        joined = joined._replace(looked_at=tried)
        matched = trees.add_verified(delta, batch, numbers, walk.opened(), plain, joined, of_twigs)
        return SingleMatched(matched.entries, matched.candidates, matched.verified, walk.marked())
