# mypy: allow-untyped-defs, allow-untyped-calls
"""Embeddings of patterns in a document: which element each step comes to lie on, and what lies on wildcards.

A pattern's steps stand in reading order, each after the one above it. From the last step to the first it is found where
the pattern from that step down holds (`holds`), by the elements that have the step's name, which are chained; then
steps are laid from the first to the last, each on the first (or last) element that will do. A stamp for each pattern
takes the place of wiping what is written by step and element.

Cost: for each step the elements of its name, and once the elements above them; all elements only for `*`.
"""

import numpy as np

from pathcast.kernels import kernel, part

ANY = -2
CHILD, DESCENDANT = 0, 1
# Rows of `held`, for each step and element: the pattern holds there from this step down; it does so at a child, or
# (for a step after `//`) somewhere below.
HOLDS, HOLDS_BELOW, H_ROWS = range(3)
NO_ROOM = -1
# `state`: the last stamp, and how many names were written.
STAMP, USED, S_SIZE = range(3)


@part
def chain_elements(symbols, read, head, following):
    """Chain the elements of each name in document order; `head` has none of any before."""
    for element in range(read - 1, -1, -1):
        if symbols[element] >= 0:
            following[element] = head[symbols[element]]
            head[symbols[element]] = element


@part
def unchain_elements(symbols, read, head):
    """Leave no name with an element."""
    for element in range(read):
        if symbols[element] >= 0:
            head[symbols[element]] = -1


@part
def fits(node, element, stamp, begin, count, node_parents, held):
    """Whether all that a step demands below it holds at an element."""
    for below in range(node + 1, count):
        if node_parents[begin + below] == node and held[HOLDS_BELOW, below, element] != stamp:
            return False
    return True


@part
def hold(node, element, stamp, child, parents, held):
    """Note that the pattern from a step down holds at an element."""
    held[HOLDS, node, element] = stamp
    above = parents[element]
    if child:
        if above >= 0:
            held[HOLDS_BELOW, node, above] = stamp
        return
    while above >= 0 and held[HOLDS_BELOW, node, above] != stamp:
        held[HOLDS_BELOW, node, above] = stamp
        above = parents[above]


@part
def place_of(node, stamp, symbol, child, above, first, end, backwards, parents, head, following, held):
    """The first, or last, element of a range that a step can be laid on; -1 for none."""
    found = np.int64(-1)
    element = first if symbol == ANY else np.int64(head[symbol])
    while 0 <= element < end:
        if element >= first and held[HOLDS, node, element] == stamp and (not child or parents[element] == above):
            found = element
            if not backwards:
                break
        element = element + 1 if symbol == ANY else np.int64(following[element])
    return found


@part
def lay(
    backwards, stamp, read, begin, count, node_parents, node_axes, node_symbols, parents, ends, head, following, held,
    placed,
):  # fmt: skip
    """Lay the steps of a pattern on elements, each below the one that its parent lies on; whether that can be done."""
    for node in range(count):
        above, first, end = np.int64(-1), np.int64(0), np.int64(read)
        if node > 0:
            above = np.int64(placed[node_parents[begin + node]])
            first, end = above + 1, min(end, np.int64(ends[above]))
        place = place_of(
            node, stamp, node_symbols[begin + node], node_axes[begin + node] == CHILD, above, first, end, backwards,
            parents, head, following, held,
        )  # fmt: skip
        if place < 0:
            return False
        placed[node] = place
    return True


@part
def find_holding(stamp, read, begin, count, node_parents, node_axes, node_symbols, parents, head, following, held):
    """Find where a pattern holds from each step down, from the last to the first; whether every step does somewhere."""
    for node in range(count - 1, -1, -1):
        symbol, child, some = node_symbols[begin + node], node_axes[begin + node] == CHILD, False
        element = np.int64(0) if symbol == ANY else np.int64(head[symbol])
        while 0 <= element < read:
            if fits(node, element, stamp, begin, count, node_parents, held):
                hold(node, element, stamp, child, parents, held)
                some = True
            element = element + 1 if symbol == ANY else np.int64(following[element])
        if not some:
            return False
    return True


@part
def write_labels(asked, first, last, placed, names, parents, at, labels, label_ends, ends_at):
    """Write the names on each wildcard that is asked for, from the top down; where the next ones go, or `NO_ROOM`."""
    for k in range(first, last):
        bottom, top = np.int64(placed[asked[0, k]]), np.int64(-1)
        if asked[1, k] == asked[0, k]:  # a `*`
            top, count = np.int64(parents[bottom]), 1
        else:
            if asked[1, k] >= 0:
                top = np.int64(placed[asked[1, k]])
            bottom = np.int64(parents[bottom])
            count, above = 0, bottom
            while above != top:
                count, above = count + 1, np.int64(parents[above])
        if at + count > len(labels):
            return NO_ROOM
        for place in range(at + count - 1, at - 1, -1):
            labels[place] = names[bottom]
            bottom = np.int64(parents[bottom])
        at += count
        label_ends[ends_at + k - first] = at
    return at


@kernel(
    "int64(ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], int64,"
    " ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[:, ::1], ro_i4[::1],"
    " i4[::1], i4[::1], i4[:, :, ::1], i4[::1], i4[::1], i4[::1], i4[::1], i4[::1])",
    late=True,
)
def embed(
    parents, ends, symbols, names, read,
    begins, node_parents, node_axes, node_symbols, asked_begins, asked, chosen,
    head, following, held, state, placed, rows, labels, label_ends,
):  # fmt: skip
    """Lay each chosen pattern over the first `read` elements, from the front and from the back.

    For each way that fits, `rows` gets the pattern, `label_ends` where the names of each wildcard asked for end in
    `labels`: how many ways, or `NO_ROOM` for the names.
    """
    chain_elements(symbols, read, head, following)
    at, ends_at, ways = np.int64(0), np.int64(0), np.int64(0)
    for row in range(len(chosen)):
        number = chosen[row]
        begin, count = begins[number], begins[number + 1] - begins[number]
        first, last = asked_begins[number], asked_begins[number + 1]
        state[STAMP] += 1
        if not find_holding(
            state[STAMP], read, begin, count, node_parents, node_axes, node_symbols, parents, head, following, held
        ):
            continue
        for backwards in range(1 if first == last else 2):
            if at >= 0 and lay(
                backwards, state[STAMP], read, begin, count, node_parents, node_axes, node_symbols, parents, ends,
                head, following, held, placed,
            ):  # fmt: skip
                at = write_labels(asked, first, last, placed, names, parents, at, labels, label_ends, ends_at)
                rows[ways] = number
                ways += 1
                ends_at += last - first
    unchain_elements(symbols, read, head)
    state[USED] = at
    return ways if at >= 0 else NO_ROOM
