"""A prepared walk: the kernel's arguments for single documents, kept from document to document.

To collect the arguments of a kernel, and to check that its buffers have room, takes Python longer than the kernel takes
for a document of some elements. A prepared call does so once. Before each document it only checks that nothing that it
holds has been replaced, and that the document is no larger than its buffers. Joins are prepared in the same way
(`prepared_state_value_join.py`, `prepared_twig_join.py`).

Invariant: a call that returns True has done what the engine's own call does (`automaton_engine.py`). After one that
returns False the engine starts from the beginning.
"""

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.kernels import Int32s

from ...engine_contract import Entries
from ..updates.immutable_index_state import Generation
from .automaton_walk_buffers import Scratch
from .automaton_walk_kernels import (
    C_DELTA_GATES,
    C_DELTA_MARKED,
    C_ENTRIES,
    C_GATES,
    C_MARKED,
    NEVER,
    O_DELTA_GATES,
    O_GATES,
    O_ROWS,
    WalkLimits,
    walk,
)
from .gates_opened_by_documents import OpenGates
from .lazy_determinisation import NO_STATES, States


class PreparedWalk:
    """A walk through the states of a generation."""

    def __init__(self, made: Generation, scratch: Scratch) -> None:
        base, delta = made.base, made.delta
        self.states, self.states_beside = base.states, base.states if delta is None else delta.states
        self.automaton = base.states.automaton
        self.automaton_beside = NO_STATES if delta is None else delta.states.automaton
        self._has_delta, self._pending, self._kept = delta is not None, made.pending, base.needs_states
        self._listed = base.listed_gates, 0 if delta is None else delta.listed_gates
        self._limits = WalkLimits(made.entries, made.patterns, *self._listed, NEVER)
        scratch.fit_entries(made.entries)
        if made.pending.words:
            scratch.fit_levels(0, made.pending.words, made.table.tuning.level_words)
        scratch.fit_base(self.automaton, base.gates, 1)
        if delta is not None:
            self._kept |= delta.needs_states
            scratch.fit_delta(self.automaton_beside, delta.gates, 1)
        self._scratch, self.buffers, self.counts = scratch, scratch.buffers, scratch.counts
        visited = (self.buffers.base, self.buffers.delta)[: 1 + self._has_delta]
        self._elements = min(len(each.states) for each in visited)
        self._found = np.zeros((O_ROWS, 2), dtype=np.int64)

    def match(self, batch: DocumentBatch, symbols: Int32s, elements: int) -> bool:
        """Walk the batch's only document, which has this number of elements."""
        automaton, beside, buffers = self.automaton, self.automaton_beside, self.buffers
        if (
            elements > self._elements
            or self.states.automaton is not automaton
            or (self._has_delta and self.states_beside.automaton is not beside)
            or self._scratch.buffers is not buffers
        ):
            return False
        found, limits = self._found, self._limits
        return bool(
            walk(batch.elements, symbols, automaton, beside, self._pending, limits, buffers, found, 0, self._kept)
        )

    @property
    def entries(self) -> Entries:
        """The entries of plain paths, in a buffer of the thread."""
        return self.buffers.entries[: self.counts[C_ENTRIES]]

    def marked(self) -> tuple[tuple[States, int], ...]:
        """How many entries were marked for lack of groups, by states."""
        marked, beside = self.counts[C_MARKED], self.counts[C_DELTA_MARKED]
        return ((self.states, marked), (self.states_beside, beside)) if marked or beside else ()

    @property
    def has_gates(self) -> bool:
        """Whether a gate is open behind which patterns wait to be verified."""
        return self.counts[C_GATES] > 0 or self.counts[C_DELTA_GATES] > 0

    def opened(self) -> tuple[OpenGates, ...]:
        """The open gates of the base and, if there is one, of the delta."""
        buffers, counts, found = self.buffers, self.counts, self._found
        gates, (listed, listed_beside) = buffers.base.gates[: counts[C_GATES]], self._listed
        base = OpenGates(found[O_GATES], gates, listed, self.states, buffers.base.states)
        if not self._has_delta:
            return (base,)
        gates = buffers.delta.gates[: counts[C_DELTA_GATES]]
        return base, OpenGates(found[O_DELTA_GATES], gates, listed_beside, self.states_beside, buffers.delta.states)
