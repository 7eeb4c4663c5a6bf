# mypy: allow-untyped-defs, allow-untyped-calls
"""Chains: paths without branches whose tests are not bound to fixed places (`ancestor_value_tests.py`).

A chain is called when an element passes one of its tests, and searched below this element: from each element with the
chain's last name, its path is followed upwards, step by step and test by test, by the possible depths of each step.

Invariant: YES and NO are certain. Cost: at most MOST_BELOW elements are visited; beyond that, the verifier decides.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Floats, Int32s, Int64s, Matrix, Writable, lowest_bit, part, rare

from .passed_value_tests_kernels import passes_test

# Depths are bits of a word. A chain with more elements to visit than this is left to the verifier.
DEEPEST, MOST_BELOW = 62, 64
NO_ELEMENT = -1
# Columns of `ChainRoom.named`: for each name (+ 1) the first element and its stamp, for each element the next one with
# its name.
N_FIRST, N_STAMP, N_NEXT, N_COLUMNS = range(4)
NO, YES, MAYBE = range(3)
ONE = np.uint64(1)


class Chains(NamedTuple):
    """Per chain, its steps (-1 - step) and tests from the end upwards, the tests' limits, and its pattern."""

    begins: Int64s
    codes: Int64s
    limits: Floats
    patterns: Int32s


class ChainRoom(NamedTuple):
    """Lists of a document's elements by name, and room for the ancestors of one of them, by depth."""

    named: Writable[Matrix[Int64s]]
    path: Writable[Int32s]


@part
def depths_up(depths, is_deep):
    """The depths, as bits, of the parents, or of all ancestors, of elements at some depths; the least depth is 1."""
    if is_deep:
        depths |= depths >> np.uint64(1)
        depths |= depths >> np.uint64(2)
        depths |= depths >> np.uint64(4)
        depths |= depths >> np.uint64(8)
        depths |= depths >> np.uint64(16)
        depths |= depths >> np.uint64(32)
    return depths >> ONE & ~ONE


@part
def chain_holds(begin, end, element, first, elements, translation, chains, passed, path):
    """Whether a chain that ends at an element holds: its steps and tests, from the last step to the first."""
    above = np.int64(element)
    while above >= 0:
        path[elements.depths[above]] = above
        above = np.int64(elements.parents[above])
    found = ONE << np.uint64(elements.depths[element])
    step = np.int64(-1)
    for k in range(begin, end):
        code = chains.codes[k]
        if code < 0:
            if step >= 0:
                found = depths_up(found, step & 1 != 0)
            step = -1 - code
        left = found if code >= 0 or step > 1 else np.uint64(0)
        while left:
            depth = np.uint64(lowest_bit(left))
            left &= left - ONE
            if code < 0:
                held = translation[elements.names[path[depth]]] == (step >> 1) - 1
            else:
                held = passes_test(path[depth] - first, code, chains.limits[k], passed)
            if not held:
                found &= ~(ONE << depth)
        if not found:
            return False
    return step & 1 != 0 or found & np.uint64(2) != 0


@rare
def link_names(first, last, names, translation, stamp, named):
    """Build the lists of a document's elements by name, in document order."""
    for element in range(last - 1, first - 1, -1):
        name = translation[names[element]] + 1
        named[element - first, N_NEXT] = named[name, N_FIRST] if named[name, N_STAMP] == stamp else NO_ELEMENT
        named[name, N_FIRST] = element
        named[name, N_STAMP] = stamp


@rare
def chain_below(chain, element, first, stamp, elements, translation, chains, room, passed):
    """Whether a chain, with a test that an element passes, ends at it or below it: NO, YES, or MAYBE (too many)."""
    named = room.named
    begin, end = chains.begins[chain], chains.begins[chain + 1]
    name = -1 - chains.codes[begin] >> 1
    below = np.int64(element)
    if name:
        below = named[name, N_FIRST] if named[name, N_STAMP] == stamp else np.int64(NO_ELEMENT)
    looked = 0
    while below != NO_ELEMENT and below < elements.ends[element]:
        if below >= element:
            looked += 1
            if looked > MOST_BELOW or elements.depths[below] > DEEPEST:
                return MAYBE
            if chain_holds(begin, end, below, first, elements, translation, chains, passed, room.path):
                return YES
        below = named[below - first, N_NEXT] if name else below + 1
    return NO
