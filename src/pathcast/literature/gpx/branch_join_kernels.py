# mypy: allow-untyped-defs, allow-untyped-calls
"""The join of a pattern's pieces on the elements that they share, while the document is read.

A binding is a branch of a pattern at an element, inside the binding of the branch above it. A matching piece sets its
bit in the binding of its last branch; a binding with all its bits sets one in the binding above; the pattern matches
when a topmost binding has all its bits.

Cost: per match of a piece, the branches along it, times the tags of the publication.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Int64s, Matrix, part, rare

from ..streaming.pattern_binding_table_kernels import B_ABOVE, B_NODE, FULL, binding

# Rows of `chain`: a branch along a piece, and its place as tag, occurrence and steps.
C_BRANCH, C_TAG, C_OCCURRENCE, C_STEPS, C_ROWS = range(5)
MISSING = -1


class Joins(NamedTuple):
    """The joins of patterns with branches.

    The uses of piece `p` start at `use_begins[p]`: the pattern's entry and the piece's bit in its last branch. The
    branches along use `u` start at `chain_begins[u]`. A branch has its bit in the branch above, and all bits it needs.
    """

    use_begins: Int64s
    use_entries: Int32s
    use_parts: Int64s
    chain_begins: Int64s
    chain: Matrix[Int32s]
    branch_parts: Int64s
    branch_full: Int64s


@part
def element_at(tag, occurrence, steps, path, count):
    """The element that is `steps` steps from a tag of the publication; without a tag, from the document."""
    if tag < 0:
        return np.int32(MISSING) if steps == 0 else path.elements[steps]
    tags, occurrences, depths = path.publication
    for k in range(count):
        if tags[k] == tag and occurrences[k] == occurrence:
            return path.elements[depths[k] + steps]
    return np.int32(MISSING)


@rare
def join_piece(use, joins, path, count, stamp, table):
    """Add a matched piece to the join: 1 if its pattern now matches, 0 if not, FULL: no room."""
    chain, bindings, parts = joins.chain, table.bindings, table.parts
    at = np.int64(MISSING)
    for link in range(joins.chain_begins[use], joins.chain_begins[use + 1]):
        tag, occurrence, steps = chain[C_TAG, link], chain[C_OCCURRENCE, link], chain[C_STEPS, link]
        element = element_at(tag, occurrence, steps, path, count)
        at = binding(chain[C_BRANCH, link], element, at, stamp, table)
        if at < 0:
            return np.int64(FULL)
    part_bit = joins.use_parts[use]
    while at >= 0:
        branch = bindings[B_NODE, at]
        parts[at] |= part_bit
        if parts[at] != joins.branch_full[branch]:
            return np.int64(0)
        part_bit = joins.branch_parts[branch]
        at = np.int64(bindings[B_ABOVE, at])
    return np.int64(1)
