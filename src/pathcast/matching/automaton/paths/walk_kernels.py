# mypy: allow-untyped-defs, allow-untyped-calls
"""The walk: documents through the automaton, and the matching entries of each, ascending.

For every element one look-up gives the state of its label path. The entries of a document's distinct states are
marked in a bit set and read off it, which removes duplicates and sorts at once. Where few entries are marked, a
second bit set over the first one's words says which words to look at.

Paths that came after the states were made have states of their own, `recent`, walked beside them.

A state that is not known yet is a miss: the walk stops before its document, until the state has been worked out. One
that came after the walk had begun, by another thread, counts as a miss, too.
"""

from typing import NamedTuple

import numpy as np

from pathcast.documents.document_batch_kernels import Elements
from pathcast.kernels import Cube, Int32s, Int64s, Matrix, UInt64s, Writable, kernel, part

from ...arrays.bitset_kernels import mark, mark_with_summary, read_few_marks, read_marks
from ..updates.delta_paths_kernels import FreshPaths, mark_fresh
from .states_kernels import Automaton, next_state

# Where a document's result stands: done, a state or a recent one not known, no room for it, or for as many levels.
DONE, MISS, MISS_RECENT, FULL, DEEPER = range(5)
# `counts`: the stamp of the last document, entries and gates written, and why the walk stopped.
C_STAMP, C_ENTRIES, C_GATES, C_WHY, C_COUNTS = range(5)
# Rows of `offsets`.
O_ENTRIES, O_GATES, O_ROWS = range(3)


class WalkLimits(NamedTuple):
    """What a generation knows: entries, patterns with predicates, and gates that patterns wait behind."""

    entries: int
    patterns: int
    gates: int


class Visited(NamedTuple):
    """Of one automaton: the state of each element, the last document that had a state, and a document's states."""

    states: Writable[Int32s]
    stamps: Writable[Int64s]
    found: Writable[Int32s]


class WalkScratch(NamedTuple):
    """The buffers of a walk.

    `marks` and `summary` are empty between documents. `entries` and `gates` get those of all documents, one after the
    other; `gate_stamps` says which document opened a gate last, `levels` is for fresh paths.
    """

    visited: Visited
    recent: Visited
    marks: Writable[UInt64s]
    summary: Writable[UInt64s]
    gate_stamps: Writable[Int64s]
    levels: Writable[Cube[UInt64s]]
    counts: Writable[Int64s]
    entries: Writable[Int32s]
    gates: Writable[Int32s]


@part
def distinct_states(elements, symbols, begin, end, base, automaton, visited, stamp):
    """The states of a document's elements, each once, in `visited.found`: how many, -1 for a miss.

    `visited.states` gets the state of each element, in its place from `base` on.
    """
    visited.stamps[0] = stamp
    visited.found[0] = 0
    n = 1
    for element in range(begin, end):
        parent = elements.parents[element]
        above = np.int32(0) if parent < 0 else visited.states[parent - base]
        state = next_state(automaton.keys, automaton.targets, above, symbols[elements.names[element]])
        if state < 0 or state >= automaton.known:
            return -1
        visited.states[element - base] = state
        if visited.stamps[state] != stamp:
            visited.stamps[state] = stamp
            visited.found[n] = state
            n += 1
    return n


@part
def depth_of(elements, begin, end):
    """The depth of a document's deepest element."""
    deepest = np.int32(0)
    for element in range(begin, end):
        deepest = max(deepest, elements.depths[element])
    return deepest


@part
def mark_accepted(automaton, state, scratch, few):
    """Mark the entries of a state."""
    begin, end = automaton.accepted_begin[state], automaton.accepted_begin[state + 1]
    if few:
        for a in range(begin, end):
            mark_with_summary(scratch.marks, scratch.summary, automaton.accepted[a])
    else:
        for a in range(begin, end):
            mark(scratch.marks, automaton.accepted[a])


@part
def tell_gates(automaton, state, limits, scratch, stamp, gated):
    """Write the gates of a state that the document has not opened yet; how many gates there are then."""
    for g in range(automaton.gates_begin[state], automaton.gates_begin[state + 1]):
        gate = automaton.gates[g]
        if gate < limits.gates and scratch.gate_stamps[gate] != stamp:
            scratch.gate_stamps[gate] = stamp
            scratch.gates[gated] = gate
            gated += 1
    return gated


@kernel
def walk(
    elements: Elements,
    symbols: Int32s,
    states: Automaton,
    recent: Automaton,
    fresh: FreshPaths,
    limits: WalkLimits,
    scratch: WalkScratch,
    offsets: Writable[Matrix[Int64s]],
    first: int,
    kept: bool,
) -> int:
    """Walk the documents from `first` on; the first document that is not done, with the reason in `counts`.

    `offsets` gets where each document's entries end, and its gates. With `kept`, `scratch.visited` has the states of
    all elements in the end, otherwise those of one document at a time.
    """
    counts, visited, fresh_words = scratch.counts, scratch.visited, fresh.words
    stamp, written, gated = counts[C_STAMP], counts[C_ENTRIES], counts[C_GATES]
    index = first
    why = DONE
    while index < len(elements.offsets) - 1:
        stamp += 1
        begin, end = elements.offsets[index], elements.offsets[index + 1]
        n, found_recent, total, gate_total = 0, 0, 0, 0
        if end > begin:
            base = elements.offsets[0] if kept else begin
            n = distinct_states(elements, symbols, begin, end, base, states, visited, stamp)
            if n < 0:
                why = MISS
                break
            if recent.known > 0:
                found_recent = distinct_states(elements, symbols, begin, end, begin, recent, scratch.recent, stamp)
                if found_recent < 0:
                    why = MISS_RECENT
                    break
        for k in range(found_recent):
            state = scratch.recent.found[k]
            total += recent.accepted_begin[state + 1] - recent.accepted_begin[state]
        for k in range(n):
            state = visited.found[k]
            total += states.accepted_begin[state + 1] - states.accepted_begin[state]
            gate_total += states.gates_begin[state + 1] - states.gates_begin[state]
        fresh_total = len(fresh.entries) if fresh_words else 0
        no_room = written + total + fresh_total + 8 > len(scratch.entries)
        if no_room or gated + gate_total + fresh_total > len(scratch.gates):
            why = FULL
            break
        if fresh_words and depth_of(elements, begin, end) >= scratch.levels.shape[1]:
            why = DEEPER
            break
        few = 8 * total < len(scratch.marks)
        for k in range(found_recent):
            mark_accepted(recent, scratch.recent.found[k], scratch, few)
        for k in range(n):
            state = visited.found[k]
            mark_accepted(states, state, scratch, few)
            gated = tell_gates(states, state, limits, scratch, stamp, gated)
        if fresh_words and end > begin:
            gated = mark_fresh(elements, symbols, begin, end, fresh, limits, scratch, gated)
        if few:
            written = read_few_marks(scratch.marks, scratch.summary, scratch.entries, written)
        else:
            written = read_marks(scratch.marks, scratch.entries, written)
            if fresh_words:
                for k in range(len(scratch.summary)):
                    scratch.summary[k] = 0
        index += 1
        offsets[O_ENTRIES, index] = written
        offsets[O_GATES, index] = gated
    counts[C_STAMP], counts[C_ENTRIES], counts[C_GATES], counts[C_WHY] = stamp, written, gated, why
    return index
