# mypy: allow-untyped-defs, allow-untyped-calls
"""The join of nested paths, while the document is read.

YFilter (Diao et al., TODS 2003) joins the elements at which the paths of a query ended on those that the paths share.
Here each end enters the join when it is found. A node of the query holds at an element of its name if its selections
hold and each of its branches holds below; the query holds if its first node holds somewhere. An end makes its node hold
there, which gives the elements above it a bit in their binding of the node's parent; the bit that completes a binding
makes that node hold, and so on upwards.

Invariant: if an element has the bit of a `//` branch, so have all elements above it; the way up ends there.
Cost: each bit is set once, so per document a join costs at most its elements times the query's nodes, however often its
paths end.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Bools, Int32s, Int64s, Matrix, Writable, rare

from ..streaming.match_recording_kernels import STAMP
from ..streaming.pattern_binding_table_kernels import FULL, BindingTable, binding
from ..streaming.value_tests_kernels import all_selected
from .match_output_kernels import STEPS
from .postponed_selection_kernels import T_COLUMNS, T_DEEP, T_SELECT, T_SELECT_END, T_SYMBOL

# Columns of a node of a join, after those of a step: the node above (-1: none), its part number there, its own number
# of parts, and its join.
N_PARENT, N_PART, N_PARTS, N_JOIN, N_COLUMNS = range(T_COLUMNS, T_COLUMNS + 5)
FAILS, HOLDS, NO_ROOM = 0, 1, -1
ONE = np.int64(1)


class Joins(NamedTuple):
    """The nodes of all joins; for each join its entry, and whether it is certain only at the document's end."""

    nodes: Matrix[Int32s]
    entries: Int32s
    late: Bools


class JoinScratch(NamedTuple):
    """The last document in which each join held, and the bindings of the current one.

    `waiting` has rows: nodes that hold, and the elements at which they do; their parents are not credited yet.
    """

    stamps: Writable[Int64s]
    bindings: BindingTable
    waiting: Writable[Matrix[Int32s]]


@rare
def join_end(node, element, elements, nodes, scratch, tested, state):
    """Add the end of a path at an element to the join; return whether its query holds now."""
    names, parents, symbols = elements.names, elements.parents, tested.symbols
    parts, waiting = scratch.bindings.parts, scratch.waiting
    if not all_selected(np.int64(element), nodes[node, T_SELECT], nodes[node, T_SELECT_END], tested):
        return FAILS
    waiting[0, 0], waiting[1, 0] = node, element
    n = 1
    while n > 0:
        n -= 1
        node, holder = np.int64(waiting[0, n]), np.int64(parents[waiting[1, n]])
        above = np.int64(nodes[node, N_PARENT])
        if above < 0:
            if nodes[node, T_DEEP] or holder < 0:
                return HOLDS
            continue
        bit, full, symbol = ONE << nodes[node, N_PART], (ONE << nodes[above, N_PARTS]) - 1, nodes[above, T_SYMBOL]
        begin, end = nodes[above, T_SELECT], nodes[above, T_SELECT_END]
        while holder >= 0:
            state[STEPS] += 1
            at = binding(above, holder, -1, state[STAMP], scratch.bindings)
            if at == FULL:
                return NO_ROOM
            if parts[at] & bit:
                break
            parts[at] |= bit
            named = symbol == 0 or symbols[names[holder]] + 1 == symbol
            if parts[at] == full and named and all_selected(holder, begin, end, tested):
                waiting[0, n], waiting[1, n] = above, holder
                n += 1
            if not nodes[node, T_DEEP]:
                break
            holder = np.int64(parents[holder])
    return FAILS
