"""The automaton engine: what a document costs does not depend on how many plain paths there are.

    elements ──walk──▶ states of their label paths ──▶ entries of plain paths
                │ miss                │ open gates
                ▼                     ▼
       work the states out     try the patterns behind them on the document

Plain paths are answered by the automaton alone. A pattern with predicates is a candidate for the documents that pass
its gate and have its value, and is then tried on the element arrays (`candidate_matcher.py`).

Invariant: an answer is that of one `Generation`, the one that was current when the batch came.
Cost: one hash look-up an element, one memory access a match; a new label path costs some 10 µs, once.
Threads: a walk takes no lock; whoever meets a new label path works it out under one.
"""

import threading
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from pathcast.documents import DocumentBatch, Limits
from pathcast.errors import LimitError
from pathcast.kernels import AnyArray, Int32s

from ..engine_contract import Costs, Engine, Entries, Offsets
from ..table.pattern_table import Moved, PatternTable
from .paths.label_path_matching import entries_of_paths
from .paths.simulation import simulated
from .paths.states import NO_STATES, States
from .paths.states_kernels import NONE, Automaton
from .paths.walk_kernels import (
    C_ENTRIES,
    C_GATES,
    C_WHY,
    DEEPER,
    FULL,
    MISS,
    MISS_RECENT,
    O_ROWS,
    WalkLimits,
    walk,
)
from .paths.walk_scratch import LEVEL_CELLS, Scratch, Scratches
from .updates import index_updates as generations
from .updates.generation import Generation
from .updates.index_updates import Generations
from .values.open_gates import all_open

if TYPE_CHECKING:
    from .verify.candidate_matcher import Behind


class AutomatonEngine:
    """Plain paths by a lazily determinised automaton, other patterns behind gates."""

    name: ClassVar[str] = "automaton"
    concurrent: ClassVar[bool] = True

    def __init__(
        self,
        table: PatternTable,
        saved: dict[str, AnyArray] | None = None,
        behind: "Behind | None" = None,
    ) -> None:
        self.table = table
        self.limits = Limits()
        self._generations = Generations(table, saved, behind)
        self._scratch, self._late_scratch = Scratches(), Scratches()
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
        """The patterns as they are laid out, and the states worked out so far: whoever opens the index has them."""
        return self._generations.arrays(learnt=True)

    def compiled(self) -> dict[str, AnyArray]:
        """Of `arrays`, what follows from the table alone."""
        return self._generations.arrays(learnt=False)

    def refresh(self) -> None:
        self._generations.refresh()

    @classmethod
    def compile_part(cls, table: PatternTable) -> dict[str, AnyArray]:
        """What the engine makes of a table's patterns with predicates; plain paths are the table's own."""
        if not len(table.trees):
            return {}
        from .verify.candidate_matcher import Behind

        behind = Behind(table)
        behind.take_up(len(table))
        behind.layout()
        return behind.part()

    def merge(self, arrays: dict[str, AnyArray], moved: Moved) -> None:
        if arrays:
            self._generations.merge(arrays, moved)

    def successor(self, table: PatternTable, entries: Entries) -> "AutomatonEngine":
        return AutomatonEngine(table, None, self._generations.trees_for(table, entries))

    def learn_from(self, other: Engine) -> None:
        """Work out the states of the label paths that another engine knows."""
        if isinstance(other, AutomatonEngine):
            self._generations.learn_from(other._generations)

    def count_on(self, other: Engine) -> None:
        if isinstance(other, AutomatonEngine):
            self._counts = dict(other._counts)
            self._generations.count_on(other._generations)

    # Matching.

    def match_batch(self, batch: DocumentBatch) -> tuple[Offsets, Entries]:
        made = self._generations.current
        scratch = self._scratch.mine
        found = self._walked(made, batch, scratch)
        if found is None:
            made = self._generations.settled()
            found = self._walked(made, batch, scratch)
            assert found is not None
        offsets, entries, gate_offsets, gates, states = found
        if made.waiting is None:
            self._count(elements=len(batch.name))
        else:
            offsets, entries, candidates, verified = made.waiting.add_matches(
                batch, offsets, entries, gate_offsets, gates, made.told_gates, made.entries, states,
                scratch.buffers.visited.states,
            )  # fmt: skip
            if made.lately is not None:
                offsets, entries, *more = self._with_lately(made, made.lately, batch, offsets, entries)
                candidates, verified = candidates + more[0], verified + more[1]
            counts = {"candidates": candidates, "candidates that match": verified}
            self._count(elements=len(batch.name), **counts)
            self._generations.seen(len(batch))
        return offsets, entries

    def _with_lately(
        self, made: Generation, lately: Generation, batch: DocumentBatch, offsets: Offsets, entries: Entries
    ) -> tuple[Offsets, Entries, int, int]:
        """A batch's entries and those of the trees that came lately; how many were candidates and matched."""
        scratch = self._late_scratch.mine
        found = self._walked(lately, batch, scratch)
        assert found is not None
        assert lately.waiting is not None
        _, _, gate_offsets, gates, states = found
        return lately.waiting.add_matches(
            batch,
            offsets,
            entries,
            gate_offsets,
            gates,
            lately.told_gates,
            made.entries,
            states,
            scratch.buffers.visited.states,
        )

    def match_paths(self, paths: list[tuple[str, ...]]) -> tuple[Offsets, Entries]:
        return entries_of_paths(
            self._generations.settled(), paths, generations.MEMORY_LIMIT, max(self.limits.work // 4, 1)
        )

    def _walked(
        self, made: Generation, batch: DocumentBatch, scratch: Scratch
    ) -> tuple[Offsets, Entries, Offsets, Int32s, States] | None:
        """The entries of plain paths of each document, the gates that it opens, and the states of its elements.

        These are in `scratch`, -1 for the elements of documents that had none, if patterns wait for them.
        None when that takes a generation without fresh paths.
        """
        count = len(batch)
        found = np.zeros((O_ROWS, count + 1), dtype=np.int64)
        offsets, gate_offsets = found
        symbols = made.symbols_of(batch)
        fresh = made.fresh
        counts = scratch.buffers.counts
        counts[1:] = 0
        kept = made.waiting is not None and made.waiting.needs_states
        longest = len(batch.name)
        if not kept and count > 1:
            longest = batch.largest().elements
        automaton = made.states.automaton
        recent = NO_STATES if made.recent is None else made.recent.automaton
        limits = WalkLimits(made.entries, made.patterns, made.told_gates)
        done = 0
        while done < count:
            scratch.fit(made.states, automaton.known, made.entries, made.gates, longest)
            scratch.fit_recent(recent.known, longest)
            scratch.fit_levels(0, fresh.words)
            done = walk(batch.elements, symbols, automaton, recent, fresh, limits, scratch.buffers, found, done, kept)
            why = counts[C_WHY]
            if why == FULL:
                scratch.enlarge()
            elif why == DEEPER:
                deepest = int(batch.depth.max())
                if fresh.words * deepest > LEVEL_CELLS:
                    return None
                scratch.fit_levels(deepest, fresh.words)
            elif why == MISS_RECENT and made.recent is not None:
                learnt = self._learnt(made.recent, batch, symbols, done, generations.MEMORY_LIMIT // 4)
                if learnt is None:
                    return None
                recent = learnt
            elif why == MISS:
                learnt = self._learnt(made.states, batch, symbols, done, generations.MEMORY_LIMIT)
                if learnt is not None:
                    automaton = learnt
                    continue
                if not made.settled:
                    return None
                self._simulate(made, batch, symbols, done, offsets, gate_offsets, scratch)
                states = scratch.buffers.visited.states
                if kept:
                    states[batch.offsets[done] : batch.offsets[done + 1]] = NONE
                done += 1
                if made.states.full:
                    if kept:
                        self._tell_all_gates(made, batch, done, gate_offsets, scratch)
                    made = made._replace(states=self._generations.forgotten(made.states))
                    states[: batch.offsets[done]] = NONE  # numbers of states that are forgotten
                automaton = made.states.automaton
        return (
            offsets,
            scratch.buffers.entries[: counts[C_ENTRIES]].copy(),
            gate_offsets,
            scratch.buffers.gates[: counts[C_GATES]],
            made.states,
        )

    def _tell_all_gates(
        self, made: Generation, batch: DocumentBatch, done: int, gate_offsets: Offsets, scratch: Scratch
    ) -> None:
        """Of the documents so far tell all gates, since their states are going to be forgotten."""
        counts, told = scratch.buffers.counts, scratch.buffers.gates
        of = scratch.buffers.visited.states
        offsets, gates = all_open(
            batch.offsets, gate_offsets[: done + 1], told[: counts[C_GATES]], np.arange(done), of, made.states.automaton
        )
        gate_offsets[: done + 1] = offsets
        counts[C_GATES] = 0
        scratch.append(np.empty(0, dtype=np.int32), gates)

    def _learnt(
        self, states: States, batch: DocumentBatch, symbols: Int32s, document: int, limit: int
    ) -> Automaton | None:
        """The automaton with the states that a document needs; None when they would be too many."""
        begin, end = batch.offsets[document : document + 2].tolist()
        with states.lock:
            before = states.transitions
            complete = states.learn(
                batch.name, batch.parent, symbols, begin, end, np.empty(end - begin, dtype=np.int32),
                limit, self.limits.work // 4,
            )  # fmt: skip
            learnt, automaton = states.transitions - before, states.automaton
        self._count(**{"new label paths": learnt})
        return automaton if complete else None

    def _simulate(
        self,
        made: Generation,
        batch: DocumentBatch,
        symbols: Int32s,
        document: int,
        offsets: Offsets,
        gate_offsets: Offsets,
        scratch: Scratch,
    ) -> None:
        """Match one document's plain paths without states; a document that takes too long gets an error."""
        self._count(simulated=1)
        try:
            entries, gates = simulated(
                made.states, batch, document, symbols, made.gates, self.limits.work, generations.MEMORY_LIMIT
            )
        except LimitError as error:
            error.__traceback__ = None
            batch.errors[document] = error
            entries = gates = np.empty(0, dtype=np.int32)
        scratch.append(entries, gates)
        offsets[document + 1] = scratch.buffers.counts[C_ENTRIES]
        gate_offsets[document + 1] = scratch.buffers.counts[C_GATES]

    def _count(self, **counts: int) -> None:
        with self._counting:
            for name, count in counts.items():
                self._counts[name] += count

    def costs(self) -> Costs:
        """What the patterns that were tried on documents have cost; those that joins decide cost next to nothing."""
        made = self._generations.current
        found = [each.waiting.verifier.costs() for each in (made, made.lately) if each is not None and each.waiting]
        return Costs.of(found)

    def statistics(self) -> dict[str, int | float]:
        made = self._generations.current
        states, waiting = made.states, made.waiting
        all_states = [each for each in (states, made.recent, made.lately and made.lately.states) if each]
        return {
            **self._counts,
            "evictions": self._generations.evictions,
            "renewals": self._generations.renewals,
            "states": len(states),
            "transitions": states.transitions,
            "memo bytes": sum(each.bytes for each in all_states),
            "fresh patterns": made.entries - max(each.entry_limit for each in all_states),
            "gates": made.gates,
            "values": waiting.access.values + waiting.joins.values if waiting else 0,
        }
