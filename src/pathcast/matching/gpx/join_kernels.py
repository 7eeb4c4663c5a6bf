# mypy: allow-untyped-defs, allow-untyped-calls
"""The join of a pattern's pieces on the elements that they share, while the document is read.

A *binding* is a branch of a pattern at an element, inside the binding of the branch above it; it has a bit for each
part that was found. A piece that matches sets its bit in the binding of its last branch; a binding with all its bits
sets one in the binding above; the pattern matches when a topmost binding has all.

Bindings are found by hashing (branch, binding above, element); a slot counts only with the document's stamp.
"""

import numpy as np

from ...kernels import part, rare
from .predicate_kernels import mixed

# Rows of `chain` (a branch along a piece, and the tag, occurrence and steps that say where) and of `bindings`.
C_BRANCH, C_TAG, C_OCCURRENCE, C_STEPS, C_ROWS = range(5)
B_BRANCH, B_ABOVE, B_ELEMENT, B_ROWS = range(4)
FULL = -2
MISSING = -1


@part
def element_at(tag, occurrence, steps, kept_tag, kept_occurrence, kept_depth, kept_count, path):
    """The element that stands so many steps from a tag of the publication; from the document for no tag."""
    if tag < 0:
        return path[steps]
    for k in range(kept_count):
        if kept_tag[k] == tag and kept_occurrence[k] == occurrence:
            return path[kept_depth[k] + steps]
    return np.int32(MISSING)


@part
def binding(branch, above, element, stamp, slots, slot_stamps, bindings, parts, count):
    """The binding of a branch at an element; `count` when it is new, FULL when there is no room for it."""
    mask = np.uint64(len(slots) - 1)
    slot = mixed(np.int64(branch) << 32 | np.int64(element), above) & mask
    while slot_stamps[slot] == stamp:
        at = np.int64(slots[slot])
        if bindings[B_BRANCH, at] == branch and bindings[B_ABOVE, at] == above and bindings[B_ELEMENT, at] == element:
            return at
        slot = (slot + np.uint64(1)) & mask
    if 2 * count >= len(slots):
        return np.int64(FULL)
    slot_stamps[slot] = stamp
    slots[slot] = count
    bindings[B_BRANCH, count], bindings[B_ABOVE, count], bindings[B_ELEMENT, count] = branch, above, element
    parts[count] = 0
    return np.int64(count)


@rare
def join_piece(
    use, chain_begin, chain, use_part, branch_part, branch_full,
    kept_tag, kept_occurrence, kept_depth, kept_count, path,
    stamp, slots, slot_stamps, bindings, parts, state,
):  # fmt: skip
    """Enter a piece that matched into the join: 1 when its pattern now matches, 0 when not, FULL: no room.

    `state[0]` is the number of bindings.
    """
    at = np.int64(MISSING)
    for link in range(chain_begin[use], chain_begin[use + 1]):
        element = element_at(
            chain[C_TAG, link], chain[C_OCCURRENCE, link], chain[C_STEPS, link],
            kept_tag, kept_occurrence, kept_depth, kept_count, path,
        )  # fmt: skip
        at = binding(chain[C_BRANCH, link], at, element, stamp, slots, slot_stamps, bindings, parts, state[0])
        if at < 0:
            return np.int64(FULL)
        state[0] = max(state[0], at + 1)
    part_bit = use_part[use]
    while at >= 0:
        branch = bindings[B_BRANCH, at]
        parts[at] |= part_bit
        if parts[at] != branch_full[branch]:
            return np.int64(0)
        part_bit = branch_part[branch]
        at = np.int64(bindings[B_ABOVE, at])
    return np.int64(1)
