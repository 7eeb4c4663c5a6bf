"""The automaton engine: what a document costs does not depend on how many plain paths there are.

    elements ──walk──▶ states of their label paths ──▶ entries of plain paths
                │ miss                │ open gates
                ▼                     ▼
       work the states out     try the patterns behind them on the document

Plain paths are answered by the automaton alone. A pattern with predicates is a candidate for the documents that pass
its gate and have its value, and is then tried on the element arrays (`behind.py`).

Invariant: an answer is that of one `Generation`, the one that was current when the batch came.
Cost: one hash look-up an element, one memory access a match; a new label path costs some 10 µs, once.
Threads: a walk takes no lock; whoever meets a new label path works it out under one.
"""

import itertools
import threading
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from ...documents import DocumentBatch, Limits
from ...errors import LimitError
from ..contract import Entries, Offsets
from ..table import PatternTable
from ..trie_kernels import NONE
from .fresh import Fresh
from .generation import Generation, symbols_for
from .scratch import Scratch
from .simulation import simulated
from .states import Automaton, States
from .walk_kernels import C_ENTRIES, C_GATES, C_WHY, FULL, MISS, walk

if TYPE_CHECKING:
    from .behind import Behind

# Above this the states are forgotten and worked out anew: a bound on what hostile documents can make us remember.
MEMORY_LIMIT = 512 << 20
# With more bits of fresh paths or more fresh trees than this a new generation takes them up; with more cells for a
# deep document, too.
FRESH_BITS = 1 << 14
FRESH_TREES = 512
_FRESH_CELLS = 1 << 22
# After so many documents patterns choose their access predicates again, and then whenever there are twice as many.
FIRST_CHOICE = 256
_NO_GATES = np.zeros(0, dtype=np.int32)


class AutomatonEngine:
    """Plain paths by a lazily determinised automaton, other patterns behind gates."""

    name: ClassVar[str] = "automaton"
    concurrent: ClassVar[bool] = True

    def __init__(self, table: PatternTable) -> None:
        self.table = table
        self.limits = Limits()
        self._lock = threading.RLock()
        self._scratch = Scratch()
        self._counts: dict[str, int] = dict.fromkeys(
            ("elements", "new label paths", "evictions", "simulated", "candidates", "candidates that match"), 0
        )
        self._fresh = Fresh()
        self._behind: Behind | None = None
        self._generation = self._renewed()

    @classmethod
    def build(cls, table: PatternTable) -> Self:
        return cls(table)

    @classmethod
    def restore(cls, table: PatternTable, arrays: dict[str, npt.NDArray[Any]]) -> Self:
        engine = cls(table)
        if arrays:
            made = engine._generation
            states = States.restore(table.trie, made.states.gate_of_node, made.entries, arrays)
            engine._generation = replace(made, states=states)
        return engine

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The states worked out so far: whoever opens the index need not work them out again."""
        with self._lock:
            if self._generation.fresh.words:
                self._generation = self._renewed(self._generation.states)
            return self._generation.states.arrays()

    # Following the table.

    def refresh(self) -> None:
        """Take up the entries that the table has gained: as fresh ones while they are few."""
        with self._lock:
            made, table = self._generation, self.table
            entries, known_names = range(made.entries, len(table)), len(table.names)
            if not entries:
                return
            paths = [(entry, table.steps(entry)) for entry in entries] if len(entries) < FRESH_BITS else []
            bits = sum(len(steps) or FRESH_BITS + 1 for _, steps in paths if steps is not None)
            trees = [entry for entry, steps in paths if steps is None]
            waits = len(self._behind) if self._behind is not None else 0
            gated = len(made.waiting.access.gate_of) if made.waiting is not None else 0
            if not paths or self._fresh.bits + bits > FRESH_BITS or waits - gated + len(trees) > FRESH_TREES:
                self._generation = self._renewed(made.states)
                return
            symbols = made.symbols
            if known_names > made.names:
                symbols = np.zeros(len(made.symbols) + known_names - made.names, dtype=np.int32)
                symbols[: made.names] = made.symbols[: made.names]
            for entry, steps in paths:
                if steps is not None:
                    self._fresh.add(entry, steps)
                    names = np.array(steps) >> 1
                    symbols[names[names > 0] - 1] = names[names > 0]
            waiting = made.waiting
            if trees:
                behind = self._take_up(trees)
                waiting = behind.waiting(_NO_GATES, 0) if waiting is None else behind.and_fresh(waiting)
            self._generation = replace(
                made, fresh=self._fresh.view(), waiting=waiting, entries=entries.stop, names=known_names,
                symbols=symbols,
            )  # fmt: skip

    def _take_up(self, trees: Iterable[int]) -> "Behind":
        """Enter tree patterns into the store of those behind gates."""
        if self._behind is None:
            # Its kernels are compiled and loaded for those alone who have such patterns.
            from .behind import Behind

            self._behind = Behind(self.table)
        for entry in trees:
            self._behind.add(entry)
        return self._behind

    def _renewed(self, old: States | None = None) -> Generation:
        """A generation with states of its own, worked out for the label paths that `old` knows."""
        table = self.table
        # First of all: what another thread enters from now on is for the next generation.
        entries, names = len(table), len(table.names)
        known = len(self._behind) if self._behind is not None else 0
        trees = [entry for entry in itertools.islice(table.trees, known, None) if entry < entries]
        behind = self._take_up(trees) if known or trees else None
        waiting, nodes = None, _NO_GATES
        if behind is not None:
            nodes, gate_of = behind.give_gates()
            waiting = behind.waiting(gate_of, len(nodes))
        gate_of_node = np.full(table.trie.count, NONE, dtype=np.int32)
        gate_of_node[nodes] = np.arange(len(nodes), dtype=np.int32)
        states = States(table.trie, gate_of_node, entries)
        if old is not None:
            states.relearn(old, MEMORY_LIMIT // 2)
        self._fresh = Fresh()
        symbols = symbols_for(table, names)
        return Generation(table, states, self._fresh.view(), waiting, len(nodes), entries, names, symbols)

    def _choose_again(self, documents: int) -> None:
        """Count documents; now and then, let patterns wait for what these have shown to be rare."""
        with self._lock:
            made, behind = self._generation, self._behind
            assert behind is not None
            before, behind.documents = behind.documents, behind.documents + documents
            due = before.bit_length() < behind.documents.bit_length() and behind.documents >= FIRST_CHOICE
            if due and made.waiting is not None:
                access = made.waiting.access
                self._generation = replace(made, waiting=behind.waiting(access.gate_of, access.gates))

    # Matching.

    def match_batch(self, batch: DocumentBatch) -> tuple[Offsets, Entries]:
        made = self._generation
        deepest = int(batch.depth.max(initial=0))
        found = None if made.fresh.words * deepest > _FRESH_CELLS else self._walked(made, batch, deepest)
        if found is None:
            with self._lock:
                made = self._generation = self._renewed(self._generation.states)
            found = self._walked(made, batch, deepest)
            assert found is not None
        offsets, entries, gate_offsets, gates = found
        counts = {"elements": len(batch.name)}
        if made.waiting is not None:
            offsets, entries, candidates, verified = made.waiting.add_matches(
                batch, offsets, entries, gate_offsets, gates
            )
            counts |= {"candidates": candidates, "candidates that match": verified}
            self._choose_again(len(batch))
        self._count(**counts)
        return offsets, entries

    def _walked(
        self, made: Generation, batch: DocumentBatch, deepest: int
    ) -> tuple[Offsets, Entries, Offsets, npt.NDArray[np.int32]] | None:
        """The entries of plain paths of each document, and the gates that it opens.

        None when that takes a generation without fresh paths.
        """
        offsets = np.zeros(len(batch) + 1, dtype=np.int64)
        gate_offsets = np.zeros(len(batch) + 1, dtype=np.int64)
        symbols = made.symbols_of(batch)
        scratch, fresh = self._scratch, made.fresh
        scratch.counts[1:] = 0
        longest = int(np.diff(batch.offsets).max(initial=0))
        automaton = made.states.automaton
        done = 0
        while done < len(batch):
            scratch.fit(made.states, automaton.known, made.entries, made.gates, longest)
            scratch.fit_levels(deepest, fresh.words)
            done = walk(
                batch.offsets, batch.name, batch.parent, batch.depth, symbols, done,
                *automaton,
                fresh.table, fresh.rows, fresh.entries, fresh.words, made.entries, scratch.levels,
                scratch.states, scratch.seen, scratch.counts, scratch.marks, scratch.summary, scratch.found,
                scratch.gate_stamps, offsets, scratch.out, gate_offsets, scratch.gates,
            )  # fmt: skip
            why = scratch.counts[C_WHY]
            if why == FULL:
                scratch.enlarge()
            elif why == MISS:
                learnt = self._learnt(made, batch, symbols, done)
                if learnt is not None:
                    automaton = learnt
                    continue
                if fresh.words:
                    return None
                self._simulate(made, batch, symbols, done, offsets, gate_offsets)
                done += 1
                if made.states.full:
                    made = replace(made, states=self._forgotten(made.states))
                automaton = made.states.automaton
        counts = scratch.counts
        return offsets, scratch.out[: counts[C_ENTRIES]].copy(), gate_offsets, scratch.gates[: counts[C_GATES]]

    def _learnt(
        self, made: Generation, batch: DocumentBatch, symbols: npt.NDArray[np.int32], document: int
    ) -> Automaton | None:
        """The automaton with the states that a document needs; None when they would be too many."""
        states = made.states
        begin, end = batch.offsets[document : document + 2].tolist()
        with self._lock:
            before = states.transitions
            complete = states.learn(
                batch.name, batch.parent, symbols, begin, end, self._scratch.states, MEMORY_LIMIT, self.limits.work // 4
            )
            self._counts["new label paths"] += states.transitions - before
            return states.automaton if complete else None

    def _forgotten(self, states: States) -> States:
        """The states that take the place of those that have become too many."""
        with self._lock:
            if self._generation.states is states:
                self._counts["evictions"] += 1
                self._generation = replace(self._generation, states=states.emptied())
            current = self._generation.states
            return current if current.gate_of_node is states.gate_of_node else states.emptied()

    def _simulate(
        self,
        made: Generation,
        batch: DocumentBatch,
        symbols: npt.NDArray[np.int32],
        document: int,
        offsets: Offsets,
        gate_offsets: Offsets,
    ) -> None:
        """Match one document's plain paths without states; a document that takes too long gets an error."""
        scratch = self._scratch
        self._count(simulated=1)
        try:
            entries, gates = simulated(
                made.states, batch, document, symbols, made.gates, self.limits.work, MEMORY_LIMIT
            )
        except LimitError as error:
            error.__traceback__ = None
            batch.errors[document] = error
            entries = gates = np.empty(0, dtype=np.int32)
        scratch.append(entries, gates)
        offsets[document + 1] = scratch.counts[C_ENTRIES]
        gate_offsets[document + 1] = scratch.counts[C_GATES]

    def _count(self, **counts: int) -> None:
        with self._lock:
            for name, count in counts.items():
                self._counts[name] += count

    def statistics(self) -> dict[str, int | float]:
        made = self._generation
        states, waiting = made.states, made.waiting
        return {
            **self._counts,
            "states": len(states),
            "transitions": states.transitions,
            "memo bytes": states.bytes,
            "fresh paths": self._fresh.paths,
            "gates": made.gates,
            "values": waiting.access.values if waiting else 0,
            "patterns for the reference embedding": waiting.verifier.slow if waiting else 0,
        }
