# mypy: allow-untyped-defs, allow-untyped-calls
"""Chains: paths without branches whose tests are not bound to fixed places (`ancestor_tests.py`).

A chain is called when an element passes one of its tests, and looked for below this element: from each element with the
chain's last name its path is followed upwards, step by step and test by test, by the depths at which each may stand.

Invariant: YES and NO are certain. Cost: at most MOST_BELOW elements are looked at; beyond that, the verifier decides.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Floats, Int32s, Int64s, Matrix, Writable, lowest_bit, part, rare

from .passed_tests_kernels import passes_test

# Depths are bits of a word. With more elements than this to look at, a chain is left to the verifier.
DEEPEST, MOST_BELOW = 62, 64
NO_ELEMENT = -1
# Columns of `ChainRoom.named`: of each name (+ 1) the first element and its stamp, of each element the next one of its
# name.
N_FIRST, N_STAMP, N_NEXT, N_COLUMNS = range(4)
NO, YES, MAYBE = range(3)
ONE = np.uint64(1)


class Chains(NamedTuple):
    """Of each chain its steps (-1 - step) and tests from the end upwards, the tests' limits, and its pattern."""

    begins: Int64s
    codes: Int64s
    limits: Floats
    patterns: Int32s


class ChainRoom(NamedTuple):
    """Lists of a document's elements by name, and room for the elements above one of them, by depth."""

    named: Writable[Matrix[Int64s]]
    path: Writable[Int32s]


@part
def depths_up(depths, is_deep):
    """The depths, as bits, of the parents of what is at some depths, or of all above; an element has at least 1."""
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
    """Whether a chain holds that ends at an element: its steps and tests, from the last step to the first."""
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
    """Make the lists of a document's elements of each name, in document order."""
    for element in range(last - 1, first - 1, -1):
        name = translation[names[element]] + 1
        named[element - first, N_NEXT] = named[name, N_FIRST] if named[name, N_STAMP] == stamp else NO_ELEMENT
        named[name, N_FIRST] = element
        named[name, N_STAMP] = stamp


@rare
def chain_below(chain, element, first, stamp, elements, translation, chains, room, passed):
    """Whether a chain, with a test that an element passes, ends at it or below it: NO, YES, or too much to look at."""
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
