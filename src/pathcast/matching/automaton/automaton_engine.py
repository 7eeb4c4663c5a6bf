"""The automaton engine: the cost of a document does not depend on the number of plain paths.

    elements ──walk──▶ states of their label paths ──▶ entries of plain paths
                │ miss                │ open gates
                ▼                     ▼
       compute the states      verify the patterns behind them on the document

The automaton alone answers plain paths. A pattern with predicates is a candidate for the documents that open its gate
and have its value, and is then verified on the element arrays (`candidate_search_and_verification.py`). Patterns added
while documents are matched are first pending, then in a small delta, then with all others in the base
(`index_updates.py`).

Invariant: an answer is that of one `Generation`, the one that was current when the batch arrived.
Cost: one hash look-up per element, one memory access per match; a new label path costs some 10 µs, once. With groups of
entries that documents share (`match_shared`), matches of plain paths cost one memory access per group.
Threads: a walk takes no lock; a thread that meets a new label path computes its state under a lock.
"""

import threading
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

import numpy as np

from pathcast.documents import DocumentBatch, Limits
from pathcast.errors import LimitError
from pathcast.kernels import AnyArray, Int32s, Int64s

from ..engine_contract import Costs, Engine, Entries, Offsets, SharedEntries
from ..evaluation import decided, shared_decided
from ..results.subscriptions_by_pattern_kernels import DocumentEntries
from ..table.pattern_table import MergedNumbers, PatternTable
from .paths.automaton_walk_buffers import Scratches
from .paths.automaton_walk_kernels import (
    C_DELTA_GATES,
    C_DELTA_MARKED,
    C_ENTRIES,
    C_GATES,
    C_GROUPS,
    C_MARKED,
    C_WHY,
    DEEPER,
    FULL,
    MISS,
    MISS_DELTA,
    NEVER,
    O_DELTA_GATES,
    O_ENTRIES,
    O_GATES,
    O_GROUPS,
    O_ROWS,
    WalkLimits,
    walk,
)
from .paths.gates_opened_by_documents import OpenGates
from .paths.jointly_accepted_entries import NO_GROUPS
from .paths.jointly_accepted_entries_kernels import EntryGroups
from .paths.label_path_matching import entries_of_paths
from .paths.lazy_determinisation import NO_STATES, States
from .paths.lazy_determinisation_kernels import NONE, Automaton
from .paths.nfa_fallback_simulation import simulated
from .updates.immutable_index_state import Generation, Index
from .updates.index_updates import IndexUpdates

if TYPE_CHECKING:
    from .places.element_places import ElementPlaces
    from .verify.tree_pattern_store import TreeStore


class Walked(NamedTuple):
    """Per document: the entries of plain paths and, if they are wanted, numbers of `groups` with further ones.

    If there are trees, also the gates that the document opens in the base and in the delta.
    """

    offsets: Offsets
    entries: Entries
    opened: tuple[OpenGates, ...]
    group_offsets: Offsets
    listed: Entries
    groups: EntryGroups


class AutomatonEngine:
    """Matches plain paths by a lazily determinised automaton, and other patterns behind gates."""

    name: ClassVar[str] = "automaton"
    concurrent: ClassVar[bool] = True
    counting: ClassVar[bool] = True

    def __init__(
        self,
        table: PatternTable,
        saved: dict[str, AnyArray] | None = None,
        trees: "TreeStore | None" = None,
    ) -> None:
        self.table = table
        self.limits = Limits()
        self._updates = IndexUpdates(table, saved, trees)
        self._places: ElementPlaces | None = None
        self._scratch = Scratches()
        self._counting = threading.Lock()
        self._counts: dict[str, int] = dict.fromkeys(
            ("elements", "new label paths", "simulated", "candidates", "candidates that match"), 0
        )

    @classmethod
    def build(cls, table: PatternTable) -> Self:
        return cls(table)

    @classmethod
    def restore(cls, table: PatternTable, arrays: dict[str, AnyArray]) -> Self:
        return cls(table, arrays)

    def arrays(self) -> dict[str, AnyArray]:
        """The patterns as laid out, and the states computed so far, for a reader that opens the index."""
        return self._updates.arrays(learnt=True)

    def compiled(self) -> dict[str, AnyArray]:
        """The part of `arrays` that follows from the table alone."""
        return self._updates.arrays(learnt=False)

    def refresh(self) -> None:
        self._updates.refresh()

    @classmethod
    def compile_part(cls, table: PatternTable) -> dict[str, AnyArray]:
        """The engine's arrays for a table's patterns with predicates; the table itself stores plain paths."""
        if not len(table.trees):
            return {}
        from .verify.tree_pattern_store import TreeStore

        trees = TreeStore(table)
        trees.take_up(len(table))
        trees.layout()
        return trees.part()

    def merge(self, arrays: dict[str, AnyArray], moved: MergedNumbers) -> None:
        if arrays:
            self._updates.merge(arrays, moved)

    def successor(self, table: PatternTable, entries: Entries) -> "AutomatonEngine":
        return AutomatonEngine(table, None, self._updates.trees_for(table, entries))

    def learn_from(self, other: Engine) -> None:
        """Compute the states of the label paths that another engine knows."""
        if isinstance(other, AutomatonEngine):
            self._updates.learn_from(other._updates)

    def count_on(self, other: Engine) -> None:
        if isinstance(other, AutomatonEngine):
            self._counts = dict(other._counts)
            self._updates.count_on(other._updates)

    # Matching.

    def match_batch(self, batch: DocumentBatch) -> tuple[Offsets, Entries]:
        counted = self._with_places(batch)
        single = self._matched_single(counted) if len(batch) == 1 else None
        if single is not None:
            return decided(self, batch, (np.array([0, len(single)]), single))
        offsets, entries, _ = self._matched(counted, NEVER)
        return decided(self, batch, (offsets, entries))

    def _matched_single(self, batch: DocumentBatch) -> Entries | None:
        """The entries of the batch's only document; None if it must be matched as a batch."""
        found = self._updates.single_documents.match(batch, self._scratch.mine)
        if found is None:
            return None
        self._count(batch.element_count, found.tried, found.matched)
        for states, entries in found.marked:
            self._updates.marked(states, entries)
        self._updates.seen(1)
        return found.entries

    def match_shared(self, batch: DocumentBatch) -> SharedEntries:
        offsets, entries, walked = self._matched(self._with_places(batch), self.table.tuning.shared_entries)
        groups = walked.groups
        found = SharedEntries(offsets, entries, walked.group_offsets, walked.listed, groups.begin, groups.entries)
        return shared_decided(self, batch, found)

    def _matched(self, batch: DocumentBatch, shared: int) -> tuple[Offsets, Entries, Walked]:
        """The entries of each document, but those of groups that the walk lists."""
        made = self._updates.current
        numbers, symbols = made.names_of(batch)
        walked = self._walked(made, batch, symbols, shared)
        if walked is None:
            made = self._updates.settled()
            numbers, symbols = made.names_of(batch)
            walked = self._walked(made, batch, symbols, shared)
            assert walked is not None
        offsets, entries, opened = walked.offsets, walked.entries, walked.opened
        if numbers is None or made.base.trees is None:
            self._count(batch.element_count)
            return offsets, entries, walked
        delta, plain = None if made.delta is None else made.delta.trees, DocumentEntries(offsets, entries)
        offsets, entries, candidates, matching = made.base.trees.add_matches(
            delta, batch, numbers, opened, plain, made.entries
        )
        self._count(batch.element_count, candidates, matching)
        self._updates.seen(len(batch))
        return offsets, entries, walked

    def _with_places(self, batch: DocumentBatch) -> DocumentBatch:
        """The batch with the computed attributes that patterns test."""
        if not self.table.trees.counted:
            return batch
        numbers, _ = self._updates.current.names_of(batch)
        if numbers is None:
            return batch
        if self._places is None:
            from .places.element_places import ElementPlaces

            self._places = ElementPlaces(self.table)  # another thread may make one, too; either will do
        return self._places.added_to(batch, numbers)

    def entry_order(self) -> Entries:
        return self._updates.current.base.states.entry_order

    def match_paths(self, paths: list[tuple[str, ...]]) -> tuple[Offsets, Entries]:
        memory, work = self.table.tuning.state_bytes, max(self.limits.work // 4, 1)
        return entries_of_paths(self._updates.settled(), paths, memory, work)

    def _walked(self, made: Generation, batch: DocumentBatch, symbols: Int32s, shared: int) -> Walked | None:
        """The entries of plain paths and the open gates of each document, and the states of elements.

        States are -1 in documents without states, and are returned only if they are needed to find trees. Groups of at
        least `shared` entries are listed; all are of the states that were current when the batch arrived.
        None if the walk needs a generation with all patterns in its base.
        """
        scratch, tuning, count = self._scratch.mine, self.table.tuning, len(batch)
        found = np.zeros((O_ROWS, count + 1), dtype=np.int64)
        pending, base, delta = made.pending, made.base, made.delta
        kept = base.needs_states or (delta is not None and delta.needs_states)
        longest = batch.element_count if kept or count == 1 else batch.largest().elements
        states = base.states
        automaton, beside = states.automaton, NO_STATES if delta is None else delta.states.automaton
        groups = automaton.groups
        listed_gates = base.listed_gates, 0 if delta is None else delta.listed_gates
        limits = WalkLimits(made.entries, made.patterns, *listed_gates, shared)
        scratch.fit_entries(made.entries)
        done = 0
        while True:  # once for no document
            scratch.fit_base(automaton, base.gates, longest)
            if delta is not None:
                scratch.fit_delta(beside, delta.gates, longest)
            if pending.words:
                scratch.fit_levels(0, pending.words, tuning.level_words)
            done = walk(batch.elements, symbols, automaton, beside, pending, limits, scratch.buffers, found, done, kept)
            if done == count:
                break
            why = scratch.counts[C_WHY]
            if why == FULL:
                scratch.enlarge()
            elif why == DEEPER:
                deepest = int(batch.depth.max())
                if pending.words * deepest > tuning.level_words:
                    return None
                scratch.fit_levels(deepest, pending.words, tuning.level_words)
            elif why == MISS_DELTA and delta is not None:
                learnt = self._learnt(delta.states, batch, symbols, done, tuning.state_bytes // 4)
                if learnt is None:
                    return None
                beside = learnt
            elif why == MISS:
                learnt = self._learnt(states, batch, symbols, done, tuning.state_bytes)
                if learnt is None:
                    if not made.settled:
                        return None
                    states = self._simulated(base._replace(states=states), batch, symbols, done, found, kept)
                    done += 1
                    learnt = states.automaton
                # Groups that are listed are all of one grouping, and that is of the states at the beginning.
                automaton = learnt._replace(groups=groups if states is base.states else NO_GROUPS)
        counts = scratch.counts
        self._updates.marked(states, counts[C_MARKED])
        if delta is not None:
            self._updates.marked(delta.states, counts[C_DELTA_MARKED])
        entries = scratch.buffers.entries[: counts[C_ENTRIES]]
        listed = scratch.buffers.groups[: counts[C_GROUPS]].copy()
        opened: tuple[OpenGates, ...] = ()
        if base.trees is None:
            entries = entries.copy()
        else:
            opened = self._opened(made, states, found)
        return Walked(found[O_ENTRIES], entries, opened, found[O_GROUPS], listed, groups)

    def _opened(self, made: Generation, states: States, found: Int64s) -> tuple[OpenGates, ...]:
        """The open gates that a walk found in the base, which has these states by now, and in the delta."""
        buffers, counts = self._scratch.mine.buffers, self._scratch.mine.counts
        gates = buffers.base.gates[: counts[C_GATES]]
        base = OpenGates(found[O_GATES], gates, made.base.listed_gates, states, buffers.base.states)
        delta = made.delta
        if delta is None:
            return (base,)
        gates = buffers.delta.gates[: counts[C_DELTA_GATES]]
        return base, OpenGates(found[O_DELTA_GATES], gates, delta.listed_gates, delta.states, buffers.delta.states)

    def _simulated(
        self, base: Index, batch: DocumentBatch, symbols: Int32s, document: int, found: Int64s, kept: bool
    ) -> States:
        """Match one document's plain paths without states; return the states to continue with.

        A document that takes too long gets an error. States that have no room for the document are dropped; with
        `kept`, the documents before it then list all their gates, since they cannot be found later.
        """
        with self._counting:
            self._counts["simulated"] += 1
        scratch, states = self._scratch.mine, base.states
        try:
            entries, gates = simulated(
                states, batch, document, symbols, base.gates, self.limits.work, self.table.tuning.state_bytes
            )
        except LimitError as error:
            error.__traceback__ = None
            batch.errors[document] = error
            entries = gates = np.empty(0, dtype=np.int32)
        scratch.append(entries, gates)
        counts, of = scratch.buffers.counts, scratch.buffers.base.states
        found[:O_DELTA_GATES, document + 1] = counts[C_ENTRIES], counts[C_GATES]
        found[O_GROUPS, document + 1] = counts[C_GROUPS]
        done = document + 1
        if kept:
            of[batch.offsets[document] : batch.offsets[done]] = NONE
        if not states.full:
            return states
        if kept:
            gate_offsets = found[O_GATES, : done + 1]
            listed = OpenGates(gate_offsets, scratch.buffers.base.gates[: counts[C_GATES]], 0, states, of)
            every = listed.with_all(batch.offsets, np.arange(done))
            gate_offsets[:] = every.offsets
            counts[C_GATES] = 0
            scratch.append(np.empty(0, dtype=np.int32), every.gates)
        of[: batch.offsets[done]] = NONE  # the numbers belong to dropped states
        return self._updates.forgotten(states)

    def _learnt(
        self, states: States, batch: DocumentBatch, symbols: Int32s, document: int, limit: int
    ) -> Automaton | None:
        """The automaton with the states that a document needs; None if they are too many."""
        begin, end = batch.offsets[document : document + 2].tolist()
        with states.lock:
            before = states.transitions
            found, work = np.empty(end - begin, dtype=np.int32), self.limits.work // 4
            complete = states.learn(batch.name, batch.parent, symbols, begin, end, found, limit, work)
            learnt, automaton = states.transitions - before, states.automaton
        with self._counting:
            self._counts["new label paths"] += learnt
        return automaton if complete else None

    def _count(self, elements: int, candidates: int = 0, matching: int = 0) -> None:
        counts = self._counts
        with self._counting:
            counts["elements"] += elements
            counts["candidates"] += candidates
            counts["candidates that match"] += matching

    def costs(self) -> Costs:
        """The cost of the patterns that were verified; those that joins decide cost next to nothing."""
        made = self._updates.current
        return Costs.of([] if made.base.trees is None else [made.base.trees.verifier.costs()])

    def statistics(self) -> dict[str, int | float]:
        made = self._updates.current
        base, trees = made.base, made.base.trees
        return {
            **self._counts,
            "evictions": self._updates.evictions,
            "promotions": self._updates.promotions,
            "states": len(base.states),
            "transitions": base.states.transitions,
            "memo bytes": sum(index.states.bytes for index in made.indexes),
            "pending patterns": made.entries - made.indexes[-1].states.entry_limit,
            "gates": base.gates,
            "values": trees.gated.access.values + trees.gated.joins.values if trees else 0,
        }
