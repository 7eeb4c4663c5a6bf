# mypy: allow-untyped-defs, allow-untyped-calls
"""Embeddings of patterns in a document: map each step to an element, and find the labels that wildcards stand for.

A pattern's steps are in reading order, each after its parent. From the last step to the first, the kernel finds the
elements where the pattern from that step down holds (`holds`), using chains of elements with the same name; then it
maps the steps from the first to the last, each to the first (or last) possible element. A stamp per pattern avoids
clearing the entries per step and element.

Cost: for each step the elements of its name, and once their ancestors; all elements only for `*`.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Cube, Int32s, Matrix, Writable, kernel, part

ANY = -2
CHILD, DESCENDANT = 0, 1
# Rows of `held`, for each step and element: the pattern holds at the element from this step down; or it holds at a
# child, or (for a step after `//`) at a descendant.
HOLDS, HOLDS_BELOW, H_ROWS = range(3)
NO_ROOM = -1
# `state`: the last stamp, and the number of names written.
STAMP, USED, S_SIZE = range(3)


class Steps(NamedTuple):
    """The steps of all patterns, those of pattern `n` from `begins[n]` on: parent in the pattern, axis, symbol."""

    begins: Int32s
    parents: Int32s
    axes: Int32s
    symbols: Int32s


class LaidOver(NamedTuple):
    """The elements of the document: parent, end, symbol in the patterns (-1: none), name."""

    parents: Int32s
    ends: Int32s
    symbols: Int32s
    names: Int32s


class Search(NamedTuple):
    """Scratch: the elements of each symbol, chained from `head`; stamps by `H_…`, step and element."""

    head: Writable[Int32s]
    following: Writable[Int32s]
    held: Writable[Cube[Int32s]]


class Wanted(NamedTuple):
    """Per pattern, from `begins` on, the wildcards whose names are wanted: their step, and the step above a `//`."""

    begins: Int32s
    steps: Matrix[Int32s]


class Found(NamedTuple):
    """Per embedding its pattern, and where the names on each wanted wildcard end in `labels`."""

    rows: Writable[Int32s]
    labels: Writable[Int32s]
    label_ends: Writable[Int32s]


@part
def chain_elements(symbols, read, search):
    """Chain the elements of each name in document order; `head` must be empty."""
    for element in range(read - 1, -1, -1):
        if symbols[element] >= 0:
            search.following[element] = search.head[symbols[element]]
            search.head[symbols[element]] = element


@part
def unchain_elements(symbols, read, head):
    """Empty the chains of all names."""
    for element in range(read):
        if symbols[element] >= 0:
            head[symbols[element]] = -1


@part
def fits(node, element, stamp, begin, count, step_parents, held):
    """Whether everything that a step requires below it holds at an element."""
    for below in range(node + 1, count):
        if step_parents[begin + below] == node and held[HOLDS_BELOW, below, element] != stamp:
            return False
    return True


@part
def hold(node, element, stamp, child, parents, held):
    """Record that the pattern from a step down holds at an element."""
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
def place_of(node, stamp, symbol, child, above, first, end, backwards, parents, search):
    """The first, or last, element of a range that a step can map to; -1 if there is none."""
    found = np.int64(-1)
    element = first if symbol == ANY else np.int64(search.head[symbol])
    while 0 <= element < end:
        if element >= first and search.held[HOLDS, node, element] == stamp and (not child or parents[element] == above):
            found = element
            if not backwards:
                break
        element = element + 1 if symbol == ANY else np.int64(search.following[element])
    return found


@part
def lay(pattern, backwards, stamp, read, steps, elements, search, placed):
    """Map the steps of a pattern to elements, each below the element of its parent; return whether this is possible."""
    begin = steps.begins[pattern]
    for node in range(steps.begins[pattern + 1] - begin):
        above, first, end = np.int64(-1), np.int64(0), np.int64(read)
        if node > 0:
            above = np.int64(placed[steps.parents[begin + node]])
            first, end = above + 1, min(end, np.int64(elements.ends[above]))
        symbol, child = steps.symbols[begin + node], steps.axes[begin + node] == CHILD
        place = place_of(node, stamp, symbol, child, above, first, end, backwards, elements.parents, search)
        if place < 0:
            return False
        placed[node] = place
    return True


@part
def find_holding(pattern, stamp, read, steps, parents, search):
    """Find where a pattern holds from each step down, the last step first; return whether each holds somewhere."""
    begin, held = steps.begins[pattern], search.held
    count = steps.begins[pattern + 1] - begin
    for node in range(count - 1, -1, -1):
        symbol, child, some = steps.symbols[begin + node], steps.axes[begin + node] == CHILD, False
        element = np.int64(0) if symbol == ANY else np.int64(search.head[symbol])
        while 0 <= element < read:
            if fits(node, element, stamp, begin, count, steps.parents, held):
                hold(node, element, stamp, child, parents, held)
                some = True
            element = element + 1 if symbol == ANY else np.int64(search.following[element])
        if not some:
            return False
    return True


@part
def write_labels(wanted, pattern, placed, elements, at, found, ends_at):
    """Write the names for each wanted wildcard, from the top down; return the next free place, or `NO_ROOM`."""
    steps, parents, labels = wanted.steps, elements.parents, found.labels
    first = wanted.begins[pattern]
    for k in range(first, wanted.begins[pattern + 1]):
        bottom, top = np.int64(placed[steps[0, k]]), np.int64(-1)
        if steps[1, k] == steps[0, k]:  # a `*`
            top, count = np.int64(parents[bottom]), 1
        else:
            if steps[1, k] >= 0:
                top = np.int64(placed[steps[1, k]])
            bottom = np.int64(parents[bottom])
            count, above = 0, bottom
            while above != top:
                count, above = count + 1, np.int64(parents[above])
        if at + count > len(labels):
            return NO_ROOM
        for place in range(at + count - 1, at - 1, -1):
            labels[place] = elements.names[bottom]
            bottom = np.int64(parents[bottom])
        at += count
        found.label_ends[ends_at + k - first] = at
    return at


@kernel(late=True)
def embed(
    elements: LaidOver,
    read: int,
    steps: Steps,
    wanted: Wanted,
    chosen: Int32s,
    search: Search,
    placed: Writable[Int32s],
    found: Found,
    state: Writable[Int32s],
) -> int:
    """Embed each chosen pattern in the first `read` elements, from the front and from the back.

    Write each embedding to `found`; return their number, or `NO_ROOM` for the names.
    """
    chain_elements(elements.symbols, read, search)
    at, ends_at, ways = np.int64(0), np.int64(0), np.int64(0)
    for row in range(len(chosen)):
        pattern = chosen[row]
        labels = wanted.begins[pattern + 1] - wanted.begins[pattern]
        state[STAMP] += 1
        if not find_holding(pattern, state[STAMP], read, steps, elements.parents, search):
            continue
        for backwards in range(1 if labels == 0 else 2):
            if at >= 0 and lay(pattern, backwards, state[STAMP], read, steps, elements, search, placed):
                at = write_labels(wanted, pattern, placed, elements, at, found, ends_at)
                found.rows[ways] = pattern
                ways += 1
                ends_at += labels
    unchain_elements(elements.symbols, read, search.head)
    state[USED] = at
    return int(ways) if at >= 0 else NO_ROOM
