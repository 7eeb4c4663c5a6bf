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

import threading
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from ...documents import DocumentBatch, Limits
from ...errors import LimitError
from ..contract import Entries, Offsets
from ..table import PatternTable
from ..trie import flat
from ..trie_kernels import NONE
from .fresh import Fresh
from .gates import gate
from .generation import Generation, symbols_for
from .scratch import Scratch
from .simulation import simulated
from .states import Automaton, States
from .walk_kernels import C_ENTRIES, C_GATES, C_WHY, FULL, MISS, walk

# Above this the states are forgotten and worked out anew: a bound on what hostile documents can make us remember.
MEMORY_LIMIT = 512 << 20
# With more bits of fresh paths than this a new generation takes them up; with more cells for a deep document, too.
FRESH_BITS = 1 << 14
_FRESH_CELLS = 1 << 22


class AutomatonEngine:
    """Plain paths by a lazily determinised automaton, other patterns behind gates."""

    name: ClassVar[str] = "automaton"

    def __init__(self, table: PatternTable) -> None:
        self.table = table
        self.limits = Limits()
        self._lock = threading.RLock()
        self._scratch = Scratch()
        self._counts: dict[str, int] = dict.fromkeys(
            ("elements", "new label paths", "evictions", "simulated", "candidates", "candidates that match"), 0
        )
        self._fresh = Fresh()
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
        """Take up the entries that the table has gained: as fresh paths while they are few."""
        with self._lock:
            made = self._generation
            table = self.table
            entries = range(made.entries, len(table))
            if not entries:
                return
            steps = [] if 4 * len(entries) > FRESH_BITS else [table.steps(entry) for entry in entries]
            if not steps or not all(steps) or self._fresh.bits + sum(map(len, filter(None, steps))) > FRESH_BITS:
                self._generation = self._renewed(made.states)
                return
            symbols = made.symbols
            if len(table.names) > made.names:
                symbols = np.zeros(len(made.symbols) + len(table.names) - made.names, dtype=np.int32)
                symbols[: made.names] = made.symbols[: made.names]
            for entry, path in zip(entries, steps, strict=True):
                assert path is not None
                self._fresh.add(entry, path)
                for step in path:
                    if step > 1:
                        symbols[(step >> 1) - 1] = step >> 1
            self._generation = Generation(
                table, made.states, self._fresh.view(), made.behind, made.gates, len(table), len(table.names), symbols
            )

    def _renewed(self, old: States | None = None) -> Generation:
        """A generation with states of its own, worked out for the label paths that `old` knows."""
        table = self.table
        trees = list(table.trees)
        ends = table.trie.insert(*flat([gate(table.trees[entry], table.encoder) for entry in trees]))
        nodes, gates = np.unique(ends, return_inverse=True)
        gate_of_node = np.full(table.trie.count, NONE, dtype=np.int32)
        gate_of_node[nodes] = np.arange(len(nodes), dtype=np.int32)
        behind = None
        if trees:
            from .behind import Behind

            behind = Behind(table, trees, gates.astype(np.int32), len(nodes))
        states = States(table.trie, gate_of_node, len(table))
        if old is not None:
            states.relearn(old, MEMORY_LIMIT // 2)
        self._fresh = Fresh()
        symbols = symbols_for(table)
        return Generation(table, states, self._fresh.view(), behind, len(nodes), len(table), len(table.names), symbols)

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
        if len(gates):
            assert made.behind is not None
            offsets, entries, candidates, verified = made.behind.add_matches(
                batch, offsets, entries, gate_offsets, gates, made.entries
            )
            counts |= {"candidates": candidates, "candidates that match": verified}
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
        states, behind = made.states, made.behind
        return {
            **self._counts,
            "states": len(states),
            "transitions": states.transitions,
            "memo bytes": states.bytes,
            "fresh paths": self._fresh.paths,
            "gates": made.gates,
            "values": behind.access.values if behind else 0,
            "patterns for the reference embedding": behind.verifier.slow if behind else 0,
        }
