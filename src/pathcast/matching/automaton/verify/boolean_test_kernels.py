# mypy: allow-untyped-defs, allow-untyped-calls
"""Tests of elements' own values, and choices among them: which elements of a set pass.

A choice is `and`, `or` and `not` of tests of one element, and of conditions whose sets are known. Each test names the
next test for elements that pass it, and the next for those that fail (`shared_pattern_conditions.py`). Sets of elements
go through a choice as a whole:

    [. = 'x' or contains(., 'y')]      {1, 2, 3}  ── . = 'x' ──▶ {2}  yes
                                                       │ {1, 3}
                                                       ▼
                                                  contains ──▶ {3}  yes
                                                       │ {1}
                                                       ▼ no

Each test therefore sees only the elements that it can still decide, and nested elements share one search for a text.

Invariant: a test has a larger number than the tests that it names. Tests are therefore processed from the largest
number down, and each receives all its elements at once.
Cost: that of each test on the elements that reach it.
"""

import numpy as np

from pathcast.kernels import lowest_bit, rare

from ..values.value_comparison_kernels import CONTAINS
from .element_set_kernels import (
    BOTH,
    EITHER,
    OPERATIONS,
    T_EPOCH,
    T_FULL,
    T_SETS,
    T_WORK,
    TRIED,
    WITHOUT,
    interned,
    made,
    result_place,
)
from .first_node_value_test_kernels import first_passes
from .value_condition_kernels import (
    ALL_OF,
    C_KIND,
    C_PARTS,
    C_PARTS_END,
    C_TEST,
    CHOICE,
    EMPTY,
    FIRST,
    K_SET,
    ONE,
    SELF,
    V_TEXT,
    X_CONDITION,
    X_FAILED,
    contains_further,
    element_passes,
    known_test_passes,
    put_bit,
)

# No search for the text yet: no text node comes after this one.
NOWHERE = np.int64(1 << 62)
# The bytes counted per visited element, in addition to the searched text.
LOOK = 16


@rare
def narrowed(row, of, enough, document, values, conditions, scratch):
    """The elements of a set that pass a condition which is evaluated per element: SELF or FIRST.

    With `enough`, only the first of them.
    """
    sets, room, texts, content = scratch.sets, scratch.room, values.texts, values.content
    state, bits = sets.state, sets.bits
    first, width = document.first, document.width
    word, at = state[T_SETS] * width, of * width
    kind = conditions.rows[row, C_KIND]
    since, found_at, until = NOWHERE, NOWHERE, NOWHERE
    for w in range(width):
        bits[word + w] = 0
    for w in range(width):
        left = bits[at + w]
        while left:
            element = np.int64(64 * w + lowest_bit(left))
            left &= left - ONE
            begin = texts.begins[first + element]
            state[T_WORK] += LOOK
            if kind == FIRST:
                held = first_passes(
                    row, element, document, values, conditions, scratch.occurrences, scratch.known, bits, room
                )
            elif conditions.rows[row, C_TEST] == CONTAINS:
                before = since, found_at, until
                held, since, found_at, until = contains_further(
                    first + element, row, since, found_at, until, conditions, texts, content, room.joined
                )
                if before != (since, found_at, until):
                    for text in range(begin, until + (found_at >= 0)):
                        state[T_WORK] += texts.lengths[text]
            elif texts.ends[first + element] - begin == 1:
                number, length = np.int64(begin - texts.begins[first]), np.int64(texts.lengths[begin])
                held = known_test_passes(
                    row, V_TEXT, number, texts.starts[begin], length, document.stamp, conditions, content, scratch.memo
                )
            else:
                held = element_passes(first + element, row, conditions, texts, content, room.joined)
            if held:
                put_bit(bits, word, element)
                if enough:
                    return interned(sets, width)
    return interned(sets, width)


@rare
def tried(row, of, document, values, conditions, scratch):
    """The elements of a set that pass one test of a choice, cached like set operations."""
    rows, parts, sets, results = conditions.rows, conditions.parts, scratch.sets, scratch.results
    at = rows[row, C_PARTS]
    if rows[row, C_PARTS_END] > at + X_CONDITION:
        row = np.int64(parts[at + X_CONDITION])
        if rows[row, C_KIND] != FIRST:
            other = np.int64(scratch.known[row, K_SET])
            return made(np.int64(BOTH), of, other, document, sets, results, scratch.occurrences)
    state = sets.state
    key = (of << 32 | (row + 1)) * OPERATIONS + TRIED
    place = result_place(key, results)
    if results[place, 0] == key and results[place, 1] >> 32 == state[T_EPOCH]:
        return results[place, 1] & 0xFFFFFFFF
    found = narrowed(row, of, False, document, values, conditions, scratch)
    results[place, 0] = key
    results[place, 1] = state[T_EPOCH] << 32 | found
    return found


@rare
def chosen(row, of, enough, base, document, values, conditions, scratch):
    """The elements of a set that pass a CHOICE; with `enough`, some of them, if there are any.

    `scratch.pending` is free from `base` on: it receives tests, and the elements at them.
    """
    rows, parts, pending = conditions.rows, conditions.parts, scratch.pending
    sets, results, occurrences = scratch.sets, scratch.results, scratch.occurrences
    state = sets.state
    found = np.int64(EMPTY)
    waiting = np.int64(0)
    if base < pending.shape[1]:
        pending[0, base], pending[1, base] = parts[rows[row, C_PARTS]], of
        waiting = np.int64(1)
    else:
        state[T_FULL] = 1
    while waiting and not state[T_FULL]:
        best = base
        for k in range(base + 1, base + waiting):
            if pending[0, k] > pending[0, best]:
                best = k
        test, left = np.int64(pending[0, best]), np.int64(pending[1, best])
        waiting -= 1
        pending[0, best], pending[1, best] = pending[0, base + waiting], pending[1, base + waiting]
        if rows[test, C_KIND] != SELF:
            if rows[test, C_KIND] == ALL_OF:
                found = made(np.int64(EITHER), found, left, document, sets, results, occurrences)
            continue
        passed = tried(test, left, document, values, conditions, scratch)
        for outcome in range(2):
            some = passed
            if outcome == X_FAILED:
                some = made(np.int64(WITHOUT), left, passed, document, sets, results, occurrences)
            if some == EMPTY:
                continue
            goes_to = parts[rows[test, C_PARTS] + outcome]
            if enough and rows[goes_to, C_KIND] == ALL_OF:
                return some
            k = base
            while k < base + waiting and pending[0, k] != goes_to:
                k += 1
            if k < base + waiting:
                there = np.int64(pending[1, k])
                some = made(np.int64(EITHER), there, some, document, sets, results, occurrences)
            elif k == pending.shape[1]:
                state[T_FULL] = 1
                break
            else:
                waiting += 1
            pending[0, k], pending[1, k] = goes_to, some
    return found


@rare
def passing(row, of, enough, base, document, values, conditions, scratch):
    """The elements of a set that pass a condition which is evaluated per element: SELF, FIRST or CHOICE.

    With `enough`, some of them suffice.
    """
    if conditions.rows[row, C_KIND] == CHOICE:
        return chosen(row, of, enough, base, document, values, conditions, scratch)
    return narrowed(row, of, enough, document, values, conditions, scratch)
