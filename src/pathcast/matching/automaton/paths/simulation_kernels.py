# mypy: allow-untyped-defs, allow-untyped-calls
"""Simulation: one document against all plain paths with nothing remembered but its open elements.

The way out for documents whose states would not fit into memory: the sets that a state would hold (see
`states_kernels.py`) are made for each element and dropped when it ends. Reached sets lie on a stack, one for each
level; the deep set only grows on the way down, so one list serves all levels.

Cost: for each element one look-up for each reached and deep node above it, counted and bounded.
"""

import numpy as np

from pathcast.kernels import kernel

from ...arrays.bitset_kernels import mark
from .states_kernels import DEEP_STEPS, child_below

# Where it stands: done, no room on the stack, or more look-ups than allowed.
FINISHED, STACK_FULL, TOO_MUCH = 0, 1, 2
# `progress`: elements done, nodes in the deep set, the level that is open, look-ups, gates written.
P_ELEMENT, P_DEEP, P_LEVEL, P_WORK, P_GATES, P_COUNTS = range(6)


@kernel(
    "int64(int64, int64, ro_i4[::1], ro_i4[::1], ro_i4[::1],"
    " ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_u8[::1], ro_i4[::1], int64, int64,"
    " i8[::1], i4[::1], i8[::1], i4[::1], i8[::1], b1[::1], u8[::1], i8[::1], int64, i4[::1])",
    late=True,
)
def simulate(
    begin, end, names, depths, symbols,
    slots, node_parent, node_step, entries, below, gate_of_node, entry_limit, most_work,
    progress, stack, stack_begin, deep, deep_end, is_deep, marks, gate_stamps, stamp, gates,
):  # fmt: skip
    """Mark the entries and gates of a document, from the element in `progress` on."""
    count = len(below)
    work, gated = progress[P_WORK], progress[P_GATES]
    for element in range(begin + progress[P_ELEMENT], end):
        depth = depths[element]
        symbol = symbols[names[element]]
        # Leave the levels that have ended.
        level = progress[P_LEVEL]
        while level >= depth:
            for index in range(deep_end[level - 1], deep_end[level]):
                is_deep[deep[index]] = False
            level -= 1
        progress[P_LEVEL] = level
        first, last = stack_begin[depth - 1], stack_begin[depth]
        n = last
        room = len(stack)
        if n + 2 * (last - first) + deep_end[depth - 1] > room:
            progress[P_ELEMENT] = element - begin
            progress[P_WORK], progress[P_GATES] = work, gated
            return STACK_FULL
        work += 2 * (last - first) + deep_end[depth - 1]
        if work > most_work:
            return TOO_MUCH
        for index in range(first, last):
            found = child_below(slots, node_parent, node_step, count, stack[index], np.int32(0))
            if found >= 0:
                stack[n] = found
                n += 1
            if symbol > 0:
                found = child_below(slots, node_parent, node_step, count, stack[index], np.int32(2 * symbol))
                if found >= 0:
                    stack[n] = found
                    n += 1
        waiting = deep_end[depth - 1]
        if symbol > 0:
            for index in range(waiting):
                found = child_below(slots, node_parent, node_step, count, deep[index], np.int32(2 * symbol + 1))
                if found >= 0:
                    stack[n] = found
                    n += 1
        for index in range(last, n):
            node = stack[index]
            entry, gate = entries[node], gate_of_node[node]
            if 0 <= entry < entry_limit:
                mark(marks, entry)
            if gate >= 0 and gate_stamps[gate] != stamp:
                gate_stamps[gate] = stamp
                gates[gated] = gate
                gated += 1
            if below[node] & DEEP_STEPS != 0 and not is_deep[node]:
                is_deep[node] = True
                deep[waiting] = node
                waiting += 1
        stack_begin[depth + 1] = n
        deep_end[depth] = waiting
        progress[P_LEVEL] = depth
    progress[P_WORK], progress[P_GATES] = work, gated
    return FINISHED
