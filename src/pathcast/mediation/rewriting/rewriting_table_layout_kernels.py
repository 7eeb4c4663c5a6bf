# mypy: allow-untyped-defs, allow-untyped-calls
"""The layout of what rewriting element arrays works with: schema nodes, linked things, open elements, counts.

    nodes     the operators of a plan, by schema node (`operator_plan_arrays.py` fills it)
    things    what a rewritten document consists of, linked in lists (`rewritten_element_order_kernels.py`)
    frames    the elements that are open while a document is walked

A thing is an element with its attributes, a *whole* run of siblings with all that is in and between them, of which
nothing moves, a new element, a text node, or a marker: a list without a tag of its own, for what is kept apart until an
end tag comes.
"""

from typing import NamedTuple

from pathcast.kernels import Int32s, Matrix, part

NONE = -1
STAY, INTO, UP, DOWN = 0, 1, 2, 3

# Rows of the table of schema nodes.
N_NAME = 0  # the name afterwards
N_ATTRIBUTES = 1  # where its attributes begin in their table
N_PATHS = 2  # where the new elements of its inserts begin in theirs
N_PARENT = 3  # the parent once exchanges are done
N_TAKER = 4  # the child that takes its place
N_PLACE = 5  # where it goes in that parent, and …
N_WHERE = 6  # … which new element, or which slot
N_OTHERS = 7  # where children go that have no place of their own, and …
N_OTHERS_WHERE = 8  # … which new element
N_SLOT = 9  # the slot of its parent that has it for a target
N_SLOTS = 10  # how many slots it has: kinds of children that others are downgraded into
N_WHOLE = 11  # whether nothing in it moves, and nothing comes to it
N_STAYS = 12  # whether, besides, it stays where it is itself
N_UPS = 13  # whether children may be upgraded out of it
N_UP = 14  # how many levels above its parent the place is
NODE_ROWS = 15

# Rows of the table of attributes with operators: the name, the new name, what becomes of it, and for one that moves how
# many levels above its element, and which new element or slot there.
A_NAME, A_NEW, A_KIND, A_UP, A_WHERE = 0, 1, 2, 3, 4
ATTRIBUTE_ROWS = 5
RENAMED, FIRST_CHILD, MOVED_INTO, MOVED_DOWN = 0, 1, 2, 3

# Columns of the table of linked things.
O_KIND, O_SOURCE, O_NAME, O_FIRST, O_LAST, O_NEXT, O_CHAIN = 0, 1, 2, 3, 4, 5, 6
O_END, O_TO = O_NAME, O_CHAIN  # of a run: where it ends, and its last sibling
OUT_COLUMNS = 8
ELEMENT, NEW, TEXT, MARKER, WHOLE = 0, 1, 2, 3, 4

# Columns of the stack of open elements.
F_ELEMENT, F_NODE, F_SKIP, F_TAIL, F_NEXT, F_TEXT, F_OUT, F_LIST = 0, 1, 2, 3, 4, 5, 6, 7
F_HOLD, F_SLOTS, F_INSERTED, F_BEHIND, F_HELD = 8, 9, 10, 11, 12
FRAME = 16

# What is counted over the documents of a batch, and what is in use for one; behind that, what had been counted before
# the document at hand.
C_THINGS, C_ELEMENTS, C_ATTRIBUTES, C_TEXTS, C_BYTES, C_PEAK = 0, 1, 2, 3, 4, 5
C_DEPTH, C_HELD, C_TAILS, C_HOLD, C_SLOTS, C_WHY = 6, 7, 8, 9, 10, 11
COUNTS = 12
DONE, FULL, TOO_LARGE, TOO_MANY_ROOTS = 0, -1, -2, -3


class RewritingPlan(NamedTuple):
    """A mapping as tables: schema nodes, attributes with other names, new elements (`operator_plan_arrays.py`)."""

    nodes: Matrix[Int32s]
    attributes: Matrix[Int32s]
    paths: Matrix[Int32s]


@part
def span(table, row, node):
    """How many rows a node has in another table."""
    return table[row, node + 1] - table[row, node] if node >= 0 else 0
