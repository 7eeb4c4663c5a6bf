# mypy: allow-untyped-defs, allow-untyped-calls
"""Chains: paths without branches whose tests are not bound to fixed places (`ancestor_value_tests.py`).

A chain is called when an element passes one of its tests and has the path that leads to it. The test's step divides the
chain. Its lower part is searched below the element: from each element with the chain's last name, the path is followed
upwards, step by step and test by test, by the possible depths of each step. Many chains have a lower part with the same
steps, so whether these steps exist below an element is remembered for the document. The upper part is followed upwards
from the element, if it has tests.

Invariant: YES and NO are certain, for this element.
Cost: at most MOST_BELOW elements are visited; beyond that, the verifier decides.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Floats, Int32s, Int64s, Matrix, Writable, lowest_bit, part, rare
from pathcast.kernels.hash_table_kernels import MIX_A, MIX_B

from .satisfied_value_tests_kernels import passes_test

# Depths are bits of a word. A chain with more elements to visit than this is left to the verifier.
DEEPEST, MOST_BELOW = 62, 64
NO_ELEMENT = -1
# Columns of `ChainRoom.named`: for each name (+ 1) the first element and its stamp, for each element the next one with
# its name.
N_FIRST, N_STAMP, N_NEXT, N_COLUMNS = range(4)
NO, YES, MAYBE = range(3)
# What a chain has besides the test that calls it: no tests; tests in its upper part; tests in its lower part, too.
ALONE, UPPER, LOWER = range(3)
# A chain in brief: the kind; whether an upper test has its bit in the six bits from B_SIGN on; and the number of its
# lower steps, 0 for none.
B_KINDS, B_HAS_SIGN, B_SIGN, B_LOWER = 4, 4, 3, 9
# Columns of `ChainRoom.known`: an element and lower steps; and whether they exist below it, in the document with this
# stamp (4 · stamp + answer).
K_KEY, K_ANSWER, K_COLUMNS = range(3)
KNOWN_BITS = 12
ONE = np.uint64(1)


class Chains(NamedTuple):
    """Per chain, its steps (-1 - step) and tests from the end upwards, the tests' limits, and its pattern.

    Its upper part begins at `uppers`.
    """

    begins: Int64s
    codes: Int64s
    limits: Floats
    patterns: Int32s
    uppers: Int64s


class ChainCall(NamedTuple):
    """A chain, the chain in brief, and the bits of all tests that the calling element and its ancestors pass."""

    chain: np.int64
    brief: np.int64
    every: np.uint64


class ChainRoom(NamedTuple):
    """Lists of a document's elements by name, room for the ancestors of one of them, by depth; and known answers."""

    named: Writable[Matrix[Int64s]]
    path: Writable[Int32s]
    known: Writable[Matrix[Int64s]]


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


@part
def steps_lead(begin, end, element, above, elements, translation, chains, path):
    """Whether the steps among some codes lead from `above` to an element below it; tests are not read."""
    down = np.int64(element)
    depth = np.int64(elements.depths[element]) - elements.depths[above] + 1
    found = ONE << np.uint64(depth)
    while depth > 0:
        path[depth] = down
        down = np.int64(elements.parents[down])
        depth -= 1
    step = np.int64(-1)
    for k in range(begin, end):
        code = chains.codes[k]
        if code >= 0:
            continue
        if step >= 0:
            found = depths_up(found, step & 1 != 0)
        step = -1 - code
        left = found if step > 1 else np.uint64(0)
        while left:
            place = np.uint64(lowest_bit(left))
            left &= left - ONE
            if translation[elements.names[path[place]]] != (step >> 1) - 1:
                found &= ~(ONE << place)
        if not found:
            return False
    return depths_up(found, step & 1 != 0) & np.uint64(2) != 0


@rare
def search_below(chain, tested, element, first, stamp, elements, translation, chains, room, passed):
    """Whether a chain ends below an element, `tested` or by its lower steps alone: NO, YES, or MAYBE (too many)."""
    named = room.named
    begin, middle, end = chains.begins[chain], chains.uppers[chain], chains.begins[chain + 1]
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
            if tested:
                if chain_holds(begin, end, below, first, elements, translation, chains, passed, room.path):
                    return YES
            elif below > element and steps_lead(
                begin, middle, below, element, elements, translation, chains, room.path
            ):
                return YES
        below = named[below - first, N_NEXT] if name else below + 1
    return NO


@part
def steps_below(chain, lower, element, first, stamp, elements, translation, chains, room, passed):
    """Whether the lower steps of a chain exist below an element: NO, YES, or MAYBE; answers are remembered."""
    known = room.known
    key = lower << 32 | element - first
    at = np.int64(np.uint64(key) * MIX_A * MIX_B >> np.uint64(64 - KNOWN_BITS))
    if known[at, K_KEY] != key or known[at, K_ANSWER] >> 2 != stamp:
        known[at, K_ANSWER] = 4 * stamp + search_below(
            chain, False, element, first, stamp, elements, translation, chains, room, passed
        )
        known[at, K_KEY] = key
    return known[at, K_ANSWER] & 3


@rare
def chain_below(call, element, first, stamp, elements, translation, chains, room, passed):
    """Whether a chain, with a test that an element passes, holds by this element: NO, YES, or MAYBE (too many)."""
    chain, brief = call.chain, call.brief
    kind, found = brief & (B_KINDS - 1), np.int64(YES)
    if kind != ALONE and not call.every >> np.uint64(brief >> B_SIGN & 63) & ONE and brief & B_HAS_SIGN:
        return np.int64(NO)
    lower = brief >> B_LOWER
    if lower:
        found = steps_below(chain, lower, element, first, stamp, elements, translation, chains, room, passed)
    if kind == ALONE or found == NO:
        return found
    if elements.depths[element] > DEEPEST:
        return np.int64(MAYBE)
    if not chain_holds(
        chains.uppers[chain],
        chains.begins[chain + 1],
        element,
        first,
        elements,
        translation,
        chains,
        passed,
        room.path,
    ):
        return np.int64(NO)
    if kind == LOWER:
        found = search_below(chain, True, element, first, stamp, elements, translation, chains, room, passed)
    return found
