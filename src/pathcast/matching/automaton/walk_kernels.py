# mypy: allow-untyped-defs, allow-untyped-calls
"""The walk: documents through the automaton, and the matching entries of each, ascending.

For every element one look-up gives the state of its label path. The entries of a document's distinct states are
marked in a bit set and read off it, which removes duplicates and sorts at once. Where few entries are marked, a
second bit set over the first one's words says which words to look at.

A state that is not known yet is a miss: it is noted, the elements below it are passed over, and the document is walked
again when the state has been worked out.
"""

import numpy as np

from ...kernels import kernel
from ..marks_kernels import mark, mark_with_summary, read_few_marks, read_marks
from .states_kernels import NONE, next_state

# Where a document's result stands: done, to be walked again, or no room for it.
DONE, AGAIN, FULL = 0, 1, 2


@kernel(
    "int64(ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], int64,"
    " ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_i8[::1],"
    " i4[::1], i8[::1], i8[::1], u8[::1], u8[::1], i4[::1], i8[::1],"
    " i8[::1], i8[::1], i4[::1], i8[::1], i4[::1])"
)
def walk(
    offsets, names, parents, symbols, first,
    keys, targets, accepted, accepted_begin, gates, gates_begin,
    states, seen, counts, marks, summary, found_states, gate_stamps,
    misses, out_offsets, out, gate_offsets, out_gates,
):  # fmt: skip
    """Walk the documents from `first` on; the first document that is not done, with why in `counts`.

    `counts`: 0 the stamp of the last document, 1 entries written, 2 gates written, 3 misses noted, 4 why it stopped.
    """
    stamp, written, gated, missed = counts[0], counts[1], counts[2], counts[3]
    index = first
    why = DONE
    while index < len(offsets) - 1:
        stamp += 1
        begin, end = offsets[index], offsets[index + 1]
        n, total, gate_total, before = 0, 0, 0, missed
        if end > begin:
            seen[0] = stamp
            found_states[0] = 0
            n, total, gate_total = 1, accepted_begin[1], gates_begin[1]
        for element in range(begin, end):
            parent = parents[element]
            above = np.int32(0) if parent < 0 else states[parent - begin]
            if above < 0:
                states[element - begin] = NONE
                continue
            symbol = symbols[names[element]]
            state = next_state(keys, targets, above, symbol)
            states[element - begin] = state
            if state < 0:
                if missed < len(misses):
                    misses[missed] = np.int64(above) << 32 | np.int64(symbol)
                    missed += 1
            elif seen[state] != stamp:
                seen[state] = stamp
                found_states[n] = state
                n += 1
                total += accepted_begin[state + 1] - accepted_begin[state]
                gate_total += gates_begin[state + 1] - gates_begin[state]
        if missed > before:
            why = AGAIN
            break
        if written + total + 8 > len(out) or gated + gate_total > len(out_gates):
            why = FULL
            break
        few = 8 * total < len(marks)
        for k in range(n):
            state = found_states[k]
            if few:
                for a in range(accepted_begin[state], accepted_begin[state + 1]):
                    mark_with_summary(marks, summary, accepted[a])
            else:
                for a in range(accepted_begin[state], accepted_begin[state + 1]):
                    mark(marks, accepted[a])
            for g in range(gates_begin[state], gates_begin[state + 1]):
                gate = gates[g]
                if gate_stamps[gate] != stamp:
                    gate_stamps[gate] = stamp
                    out_gates[gated] = gate
                    gated += 1
        if few:
            written = read_few_marks(marks, summary, out, written)
        else:
            written = read_marks(marks, out, written)
        index += 1
        out_offsets[index] = written
        gate_offsets[index] = gated
    counts[0], counts[1], counts[2], counts[3], counts[4] = stamp, written, gated, missed, why
    return index
