# mypy: allow-untyped-defs, allow-untyped-calls
"""Simulation: one document against all plain paths, storing nothing but its open elements.

The fallback for documents whose states do not fit into memory: the sets that a state would hold (see
`lazy_determinisation_kernels.py`) are built for each element and dropped when it ends. Reached sets are on a stack, one
per level; the deep set only grows on the way down, so one list serves all levels.

Cost: one look-up per element and reached or deep node above it, counted and bounded.
"""

from typing import NamedTuple

import numpy as np

from pathcast.documents.document_batch_layout_kernels import Elements
from pathcast.kernels import Bools, Int32s, Int64s, UInt64s, Writable, kernel

from ...arrays.bitset_kernels import mark
from .lazy_determinisation_kernels import DEEP_STEPS, PathTrie, child_below

# The result: done, no room on the stack, or more look-ups than allowed.
FINISHED, STACK_FULL, TOO_MUCH = 0, 1, 2
# `progress`: elements done, nodes in the deep set, the level that is open, look-ups, gates written.
P_ELEMENT, P_DEEP, P_LEVEL, P_WORK, P_GATES, P_COUNTS = range(6)


class Simulation(NamedTuple):
    """The state of a simulation: the reached sets on a stack, one per level, and the deep set, as nodes and marks.

    Level `i` has `stack[stack_begin[i] : stack_begin[i + 1]]`, and of the deep set the first `deep_end[i]` nodes.
    """

    progress: Writable[Int64s]
    stack: Writable[Int32s]
    stack_begin: Writable[Int64s]
    deep: Writable[Int32s]
    deep_end: Writable[Int64s]
    is_deep: Writable[Bools]


@kernel(late=True)
def simulate(
    elements: Elements,
    begin: int,
    end: int,
    symbols: Int32s,
    trie: PathTrie,
    most_work: int,
    simulation: Simulation,
    marks: Writable[UInt64s],
    is_open: Writable[Bools],
    gates: Writable[Int32s],
) -> int:
    """Mark the entries of a document, and list its gates, starting at the element in `progress`."""
    progress, stack, stack_begin, deep, deep_end, is_deep = simulation
    work, gated = progress[P_WORK], progress[P_GATES]
    for element in range(begin + progress[P_ELEMENT], end):
        depth = elements.depths[element]
        symbol = symbols[elements.names[element]]
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
            found = child_below(trie, stack[index], np.int32(0))
            if found >= 0:
                stack[n] = found
                n += 1
            if symbol > 0:
                found = child_below(trie, stack[index], np.int32(2 * symbol))
                if found >= 0:
                    stack[n] = found
                    n += 1
        waiting = deep_end[depth - 1]
        if symbol > 0:
            for index in range(waiting):
                found = child_below(trie, deep[index], np.int32(2 * symbol + 1))
                if found >= 0:
                    stack[n] = found
                    n += 1
        for index in range(last, n):
            node = stack[index]
            entry, gate = trie.entry[node], trie.gate_of_node[node]
            if 0 <= entry < trie.entry_limit:
                mark(marks, entry)
            if gate >= 0 and not is_open[gate]:
                is_open[gate] = True
                gates[gated] = gate
                gated += 1
            if trie.below[node] & DEEP_STEPS != 0 and not is_deep[node]:
                is_deep[node] = True
                deep[waiting] = node
                waiting += 1
        stack_begin[depth + 1] = n
        deep_end[depth] = waiting
        progress[P_LEVEL] = depth
    progress[P_WORK], progress[P_GATES] = work, gated
    return FINISHED
