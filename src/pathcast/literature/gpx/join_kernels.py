# mypy: allow-untyped-defs, allow-untyped-calls
"""The join of a pattern's pieces on the elements that they share, while the document is read.

A binding is a branch of a pattern at an element, inside the binding of the branch above it. A piece that matches sets
its bit in the binding of its last branch; a binding with all its bits sets one in the binding above; the pattern
matches when a topmost binding has all.

Cost: for each match of a piece, the branches along it, times the tags of the publication.
"""

import numpy as np

from pathcast.kernels import part, rare

from ..streaming.pattern_bindings_kernels import B_ABOVE, B_NODE, FULL, binding

# Rows of `chain`: a branch along a piece, and the tag, occurrence and steps that say where it is.
C_BRANCH, C_TAG, C_OCCURRENCE, C_STEPS, C_ROWS = range(5)
MISSING = -1


@part
def element_at(tag, occurrence, steps, publication, count, path):
    """The element that stands so many steps from a tag of the publication; from the document for no tag."""
    if tag < 0:
        return np.int32(MISSING) if steps == 0 else path[steps]
    kept_tag, kept_occurrence, kept_depth = publication
    for k in range(count):
        if kept_tag[k] == tag and kept_occurrence[k] == occurrence:
            return path[kept_depth[k] + steps]
    return np.int32(MISSING)


@rare
def join_piece(use, joins, publication, count, path, stamp, room):
    """Enter a piece that matched into the join: 1 when its pattern now matches, 0 when not, FULL: no room."""
    _, _, chain_begin, chain, use_part, branch_part, branch_full = joins
    _, _, bindings, parts, _ = room
    at = np.int64(MISSING)
    for link in range(chain_begin[use], chain_begin[use + 1]):
        element = element_at(
            chain[C_TAG, link], chain[C_OCCURRENCE, link], chain[C_STEPS, link], publication, count, path
        )
        at = binding(chain[C_BRANCH, link], element, at, stamp, room)
        if at < 0:
            return np.int64(FULL)
    part_bit = use_part[use]
    while at >= 0:
        branch = bindings[B_NODE, at]
        parts[at] |= part_bit
        if parts[at] != branch_full[branch]:
            return np.int64(0)
        part_bit = branch_part[branch]
        at = np.int64(bindings[B_ABOVE, at])
    return np.int64(1)
