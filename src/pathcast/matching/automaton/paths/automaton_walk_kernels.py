# mypy: allow-untyped-defs, allow-untyped-calls
"""The walk: documents through the automaton, and the matching entries of each, distinct, in no particular order.

One look-up per element gives the state of its label path. The entries of a document's distinct states are copied group
by group (`jointly_accepted_entries.py`). If a state is too new to have groups, the entries are marked in a bit set and
read from it, which removes duplicates. If few entries are marked, a second bit set over the words of the first selects
the words to read. If the caller wants groups that documents share, the large ones are listed by number instead.

Paths added after the base was built have states of their own, those of the delta, walked in parallel; paths added after
the delta are pending.

An unknown state is a miss: the walk stops before its document until the state has been computed. A state that another
thread adds during the walk counts as a miss, too.
"""

from typing import NamedTuple

import numpy as np

from pathcast.documents.document_batch_layout_kernels import Elements
from pathcast.kernels import Cube, Int32s, Int64s, Matrix, UInt64s, Writable, kernel, part

from ...arrays.bitset_kernels import mark, mark_with_summary, read_few_marks, read_marks
from ..updates.pending_paths_kernels import PendingBits, mark_pending
from .jointly_accepted_entries_kernels import SHORT, write_groups
from .lazy_determinisation_kernels import Automaton, next_state

# The result of a document: done, unknown state in the base or the delta, no room for entries, or none for its levels.
DONE, MISS, MISS_DELTA, FULL, DEEPER = range(5)
# `counts`: the stamp of the last document, entries written, gates of the base and of the delta, why the walk stopped,
# the entries marked for lack of groups in the base and in the delta, and the groups listed.
C_STAMP, C_ENTRIES, C_GATES, C_DELTA_GATES, C_WHY, C_MARKED, C_DELTA_MARKED, C_GROUPS, C_COUNTS = range(9)
# Rows of `offsets`.
O_ENTRIES, O_GATES, O_DELTA_GATES, O_GROUPS, O_ROWS = range(5)
# More entries than a group has: none is listed.
NEVER = 1 << 31


class WalkLimits(NamedTuple):
    """The sizes of a generation: entries, patterns with predicates, and the gates that a walk lists.

    Groups of the base with `shared` entries or more are listed, not written.
    """

    entries: int
    patterns: int
    gates: int
    delta_gates: int
    shared: int


class VisitedStates(NamedTuple):
    """For one automaton: the state of each element, the last document with each state, and a document's states.

    `gates` receives the open gates of all documents, one after the other; `gate_stamps` has the last document that
    opened each gate, `group_stamps` the last document with each group.
    """

    states: Writable[Int32s]
    stamps: Writable[Int64s]
    found: Writable[Int32s]
    gates: Writable[Int32s]
    gate_stamps: Writable[Int64s]
    group_stamps: Writable[Int64s]


class WalkScratch(NamedTuple):
    """The buffers of a walk.

    `marks` and `summary` are empty between documents. `entries` and `groups` receive those of all documents, one after
    the other; `levels` is for pending paths.
    """

    base: VisitedStates
    delta: VisitedStates
    marks: Writable[UInt64s]
    summary: Writable[UInt64s]
    levels: Writable[Cube[UInt64s]]
    counts: Writable[Int64s]
    entries: Writable[Int32s]
    groups: Writable[Int32s]


@part
def distinct_states(elements, symbols, begin, end, base, automaton, visited, stamp):
    """Write the distinct states of a document's elements to `visited.found`; return how many, or -1 for a miss.

    `visited.states` receives the state of each element, from `base` on.
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
def mark_accepted(automaton, visited, found, scratch, few):
    """Mark the entries of a document's states."""
    for k in range(found):
        state = visited.found[k]
        begin, end = automaton.accepted_begin[state], automaton.accepted_begin[state + 1]
        if few:
            for a in range(begin, end):
                mark_with_summary(scratch.marks, scratch.summary, automaton.accepted[a])
        else:
            for a in range(begin, end):
                mark(scratch.marks, automaton.accepted[a])


@part
def copy_grouped(automaton, visited, found, stamp, scratch, written, listed, least):
    """Write the entries of a document's states, group by group, and list groups of `least` entries or more.

    Returns how many entries are written now, and how many groups are listed.
    """
    for k in range(found):
        written, listed = write_groups(
            automaton.groups,
            visited.found[k],
            visited.group_stamps,
            stamp,
            scratch.entries,
            written,
            scratch.groups,
            listed,
            least,
        )
    return written, listed


@part
def groups_of(automaton, visited, found):
    """The number of groups of a document's states, counted once per state."""
    groups = automaton.groups
    total = np.int64(0)
    for k in range(found):
        state = visited.found[k]
        if state < groups.known:
            total += groups.state_begin[state + 1] - groups.state_begin[state]
    return total


@part
def are_grouped(automaton, visited, found):
    """Whether all states of a document have groups."""
    for k in range(found):
        if visited.found[k] >= automaton.groups.known:
            return False
    return True


@part
def total_of(automaton, visited, found):
    """The number of entries and gates of a document's states."""
    entries, gates = np.int64(0), np.int64(0)
    for k in range(found):
        state = visited.found[k]
        entries += automaton.accepted_begin[state + 1] - automaton.accepted_begin[state]
        gates += automaton.gates_begin[state + 1] - automaton.gates_begin[state]
    return entries, gates


@part
def list_gates(automaton, visited, found, limit, stamp, gated):
    """Append the gates of a document's states below `limit`, each once; return the new number of gates."""
    for k in range(found):
        state = visited.found[k]
        for g in range(automaton.gates_begin[state], automaton.gates_begin[state + 1]):
            gate = automaton.gates[g]
            if gate < limit and visited.gate_stamps[gate] != stamp:
                visited.gate_stamps[gate] = stamp
                visited.gates[gated] = gate
                gated += 1
    return gated


@part
def read_marked(scratch, few, written):
    """Write the marked entries and remove their marks; return how many entries are written now."""
    if few:
        return read_few_marks(scratch.marks, scratch.summary, scratch.entries, written)
    for k in range(len(scratch.summary)):
        scratch.summary[k] = 0
    return read_marks(scratch.marks, scratch.entries, written)


@kernel
def walk(
    elements: Elements,
    symbols: Int32s,
    base: Automaton,
    delta: Automaton,
    pending: PendingBits,
    limits: WalkLimits,
    scratch: WalkScratch,
    offsets: Writable[Matrix[Int64s]],
    first: int,
    kept: bool,
) -> int:
    """Walk the documents from `first` on; return the first document that is not done, with the reason in `counts`.

    `offsets` receives the end of each document's entries and of its gates. With `kept`, `scratch` keeps the states of
    all elements, otherwise those of one document at a time.
    """
    counts, words = scratch.counts, pending.words
    if first == 0:
        for count in range(C_ENTRIES, C_COUNTS):
            counts[count] = 0
    stamp, written = counts[C_STAMP], counts[C_ENTRIES]
    gated, delta_gated, listed = counts[C_GATES], counts[C_DELTA_GATES], counts[C_GROUPS]
    index = first
    why = DONE
    while index < len(elements.offsets) - 1:
        stamp += 1
        begin, end = elements.offsets[index], elements.offsets[index + 1]
        n, n_delta = 0, 0
        if end > begin:
            start = elements.offsets[0] if kept else begin
            n = distinct_states(elements, symbols, begin, end, start, base, scratch.base, stamp)
            if n < 0:
                why = MISS
                break
            if delta.known > 0:
                n_delta = distinct_states(elements, symbols, begin, end, start, delta, scratch.delta, stamp)
                if n_delta < 0:
                    why = MISS_DELTA
                    break
        total, gate_total = total_of(base, scratch.base, n)
        delta_total, delta_gate_total = total_of(delta, scratch.delta, n_delta)
        pending_total = len(pending.entries) if words else 0
        no_room = written + total + delta_total + pending_total + SHORT > len(scratch.entries)
        no_room |= delta_gated + delta_gate_total > len(scratch.delta.gates)
        no_room |= limits.shared < NEVER and listed + groups_of(base, scratch.base, n) > len(scratch.groups)
        if no_room or gated + gate_total + pending_total > len(scratch.base.gates):
            why = FULL
            break
        if words and depth_of(elements, begin, end) >= scratch.levels.shape[1]:
            why = DEEPER
            break
        delta_gated = list_gates(delta, scratch.delta, n_delta, limits.delta_gates, stamp, delta_gated)
        gated = list_gates(base, scratch.base, n, limits.gates, stamp, gated)
        # Marked entries are read first: reading stores beyond the last entry, and so does copying.
        by_group, delta_by_group = are_grouped(base, scratch.base, n), are_grouped(delta, scratch.delta, n_delta)
        marked, delta_marked = 0 if by_group else total, 0 if delta_by_group else delta_total
        few = 8 * (marked + delta_marked) < len(scratch.marks)
        if not by_group:
            mark_accepted(base, scratch.base, n, scratch, few)
        if not delta_by_group:
            mark_accepted(delta, scratch.delta, n_delta, scratch, few)
        if words and end > begin:
            gated = mark_pending(elements, symbols, begin, end, pending, limits, scratch, gated)
        if words or marked + delta_marked:
            written = read_marked(scratch, few, written)
        if by_group:
            written, listed = copy_grouped(base, scratch.base, n, stamp, scratch, written, listed, limits.shared)
        if delta_by_group:
            written, _ = copy_grouped(delta, scratch.delta, n_delta, stamp, scratch, written, listed, NEVER)
        counts[C_MARKED] += marked
        counts[C_DELTA_MARKED] += delta_marked
        index += 1
        offsets[O_ENTRIES, index] = written
        offsets[O_GATES, index] = gated
        offsets[O_DELTA_GATES, index] = delta_gated
        offsets[O_GROUPS, index] = listed
    counts[C_STAMP], counts[C_ENTRIES], counts[C_WHY] = stamp, written, why
    counts[C_GATES], counts[C_DELTA_GATES], counts[C_GROUPS] = gated, delta_gated, listed
    return index
