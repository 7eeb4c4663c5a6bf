# mypy: allow-untyped-defs, allow-untyped-calls
"""The walk: documents through the automaton, and the matching entries of each, ascending.

For every element one look-up gives the state of its label path. The entries of a document's distinct states are
marked in a bit set and read off it, which removes duplicates and sorts at once. Where few entries are marked, a
second bit set over the first one's words says which words to look at.

Paths that came after the states were made have states of their own, `recent`, walked beside them.

A state that is not known yet is a miss: the walk stops before its document, until the state has been worked out. One
that came after the walk had begun, by another thread, counts as a miss, too.
"""

import numpy as np

from pathcast.kernels import kernel, part

from ...arrays.bitset_kernels import mark, mark_with_summary, read_few_marks, read_marks
from ..updates.delta_paths_kernels import mark_fresh
from .states_kernels import next_state

# Where a document's result stands: done, a state or a recent one not known, no room for it, or for as many levels.
DONE, MISS, MISS_RECENT, FULL, DEEPER = range(5)
# `counts`: the stamp of the last document, entries and gates written, and why the walk stopped.
C_STAMP, C_ENTRIES, C_GATES, C_WHY, C_COUNTS = range(5)


@part
def distinct_states(names, parents, symbols, begin, end, base, keys, targets, count, states, seen, stamp, found):
    """The states of a document's elements, each once, in `found`: how many, -1 for a miss.

    `states` gets the state of each element, in its place from `base` on.
    """
    seen[0] = stamp
    found[0] = 0
    n = 1
    for element in range(begin, end):
        parent = parents[element]
        above = np.int32(0) if parent < 0 else states[parent - base]
        state = next_state(keys, targets, above, symbols[names[element]])
        if state < 0 or state >= count:
            return -1
        states[element - base] = state
        if seen[state] != stamp:
            seen[state] = stamp
            found[n] = state
            n += 1
    return n


@part
def depth_of(depths, begin, end):
    """The depth of a document's deepest element."""
    deepest = np.int32(0)
    for element in range(begin, end):
        deepest = max(deepest, depths[element])
    return deepest


@part
def mark_accepted(accepted, accepted_begin, state, marks, summary, few):
    """Mark the entries of a state."""
    if few:
        for a in range(accepted_begin[state], accepted_begin[state + 1]):
            mark_with_summary(marks, summary, accepted[a])
    else:
        for a in range(accepted_begin[state], accepted_begin[state + 1]):
            mark(marks, accepted[a])


@kernel(
    "int64(ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], int64, boolean,"
    " ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_i8[::1], int64,"
    " ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], int64, i4[::1], i8[::1], i4[::1],"
    " ro_u8[:, ::1], ro_i4[::1], ro_i4[::1], int64, int64, int64, int64, u8[:, :, ::1],"
    " i4[::1], i8[::1], i8[::1], u8[::1], u8[::1], i4[::1], i8[::1],"
    " i8[::1], i4[::1], i8[::1], i4[::1])"
)
def walk(
    offsets, names, parents, depths, symbols, first, kept,
    keys, targets, accepted, accepted_begin, gates, gates_begin, state_count,
    recent_keys, recent_targets, recent_accepted, recent_begin, recent_count, recent_states, recent_seen, recent_found,
    fresh, fresh_rows, fresh_entries, fresh_words, entry_limit, pattern_limit, gate_limit, levels,
    states, seen, counts, marks, summary, found_states, gate_stamps,
    out_offsets, out, gate_offsets, out_gates,
):  # fmt: skip
    """Walk the documents from `first` on; the first document that is not done, with why in `counts`.

    With `kept`, `states` has the states of all elements in the end, otherwise those of one document at a time. Gates
    from `gate_limit` on are not told.
    """
    stamp, written, gated = counts[C_STAMP], counts[C_ENTRIES], counts[C_GATES]
    index = first
    why = DONE
    while index < len(offsets) - 1:
        stamp += 1
        begin, end = offsets[index], offsets[index + 1]
        n, recent, total, gate_total = 0, 0, 0, 0
        if end > begin:
            n = distinct_states(names, parents, symbols, begin, end, offsets[0] if kept else begin, keys, targets,
                                state_count, states, seen, stamp, found_states)  # fmt: skip
            if n < 0:
                why = MISS
                break
            if recent_count > 0:
                recent = distinct_states(names, parents, symbols, begin, end, begin, recent_keys, recent_targets,
                                         recent_count, recent_states, recent_seen, stamp, recent_found)  # fmt: skip
                if recent < 0:
                    why = MISS_RECENT
                    break
        for k in range(recent):
            total += recent_begin[recent_found[k] + 1] - recent_begin[recent_found[k]]
        for k in range(n):
            state = found_states[k]
            total += accepted_begin[state + 1] - accepted_begin[state]
            gate_total += gates_begin[state + 1] - gates_begin[state]
        fresh_total = len(fresh_entries) if fresh_words else 0
        if written + total + fresh_total + 8 > len(out) or gated + gate_total + fresh_total > len(out_gates):
            why = FULL
            break
        if fresh_words and depth_of(depths, begin, end) >= levels.shape[1]:
            why = DEEPER
            break
        few = 8 * total < len(marks)
        for k in range(recent):
            mark_accepted(recent_accepted, recent_begin, recent_found[k], marks, summary, few)
        for k in range(n):
            state = found_states[k]
            mark_accepted(accepted, accepted_begin, state, marks, summary, few)
            for g in range(gates_begin[state], gates_begin[state + 1]):
                gate = gates[g]
                if gate < gate_limit and gate_stamps[gate] != stamp:
                    gate_stamps[gate] = stamp
                    out_gates[gated] = gate
                    gated += 1
        if fresh_words and end > begin:
            gated = mark_fresh(names, depths, symbols, begin, end, fresh, fresh_rows, fresh_entries, fresh_words,
                               entry_limit, pattern_limit, levels, marks, summary, out_gates, gated)  # fmt: skip
        if few:
            written = read_few_marks(marks, summary, out, written)
        else:
            written = read_marks(marks, out, written)
            if fresh_words:
                for k in range(len(summary)):
                    summary[k] = 0
        index += 1
        out_offsets[index] = written
        gate_offsets[index] = gated
    counts[C_STAMP], counts[C_ENTRIES], counts[C_GATES], counts[C_WHY] = stamp, written, gated, why
    return index
