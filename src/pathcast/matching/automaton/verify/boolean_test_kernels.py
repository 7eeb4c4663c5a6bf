# mypy: allow-untyped-defs, allow-untyped-calls
"""Tests of elements' own values, and choices among them: which elements of a set pass.

A choice is `and`, `or` and `not` of tests of one element, and of conditions whose sets are known. Each test names the
next test for elements that pass it, and the next for those that fail (`condition_table.py`). Sets of elements go
through a choice as a whole:

    [. = 'x' or contains(., 'y')]      {1, 2, 3}  ── . = 'x' ──▶ {2}  yes
                                                       │ {1, 3}
                                                       ▼
                                                  contains ──▶ {3}  yes
                                                       │ {1}
                                                       ▼ no

So each test sees only the elements that it can still decide, and nested elements share one search for a text.

Invariant: a test has a larger number than the tests that it names. Tests are therefore taken from the largest number
down, and each gets all its elements at once.
Cost: that of each test on the elements that reach it.
"""

import numpy as np

from pathcast.kernels import lowest_bit, rare

from ..values.comparison_kernels import CONTAINS
from .condition_kernels import (
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
    first_passes,
    known_test_passes,
    put_bit,
)
from .element_set_kernels import (
    BOTH,
    EITHER,
    HASH_A,
    OPERATIONS,
    T_EPOCH,
    T_FULL,
    T_SETS,
    T_WORK,
    TRIED,
    WITHOUT,
    interned,
    made,
)

# Before a text has been looked for: no text node comes after this one.
NOWHERE = np.int64(1 << 62)
# Bytes that a look at an element counts for, besides the text that is searched.
LOOK = 16


@rare
def narrowed(
    row, of, enough, first, count, width, stamp, state, slots, rows, limits, literal_hashes, literals, parts, parents,
    ends, heads, head_stamps, lists, attribute_begin, attribute_start, attribute_length, text_begin, text_end,
    text_parent, text_start, text_length, data, arena, joined, known, bits, scratch, hashes, hash_stamps, numbers,
    number_stamps,
):  # fmt: skip
    """The elements of a set that pass a condition which is tried on them one by one: SELF or FIRST.

    With `enough`, the first of them alone.
    """
    word, at = state[T_SETS] * width, of * width
    kind = rows[row, C_KIND]
    since, found_at, until = NOWHERE, NOWHERE, NOWHERE
    for w in range(width):
        bits[word + w] = 0
    for w in range(width):
        left = bits[at + w]
        while left:
            element = np.int64(64 * w + lowest_bit(left))
            left &= left - ONE
            begin = text_begin[first + element]
            state[T_WORK] += LOOK
            if kind == FIRST:
                held = first_passes(
                    row, element, first, count, width, stamp, rows, limits, literals, parts, parents, ends, heads,
                    head_stamps, lists, attribute_begin, attribute_start, attribute_length, text_begin, text_end,
                    text_parent, text_start, text_length, data, arena, joined, known, bits, scratch,
                )  # fmt: skip
            elif rows[row, C_TEST] == CONTAINS:
                before = since, found_at, until
                held, since, found_at, until = contains_further(
                    first + element, row, since, found_at, until, rows, limits, literals, text_begin, text_end,
                    text_start, text_length, data, arena, joined,
                )  # fmt: skip
                if before != (since, found_at, until):
                    for text in range(begin, until + (found_at >= 0)):
                        state[T_WORK] += text_length[text]
            elif text_end[first + element] - begin == 1:
                held = known_test_passes(
                    row, np.int64(begin - text_begin[first]), text_start[begin], np.int64(text_length[begin]), stamp,
                    rows, limits, literal_hashes, literals, data, arena, hashes[V_TEXT], hash_stamps[V_TEXT],
                    numbers[V_TEXT], number_stamps[V_TEXT],
                )  # fmt: skip
            else:
                held = element_passes(first + element, row, rows, limits, literals, text_begin, text_end, text_start,
                                      text_length, data, arena, joined)  # fmt: skip
            if held:
                put_bit(bits, word, element)
                if enough:
                    return interned(state, bits, width, slots)
    return interned(state, bits, width, slots)


@rare
def tried(
    row, of, results, first, count, width, stamp, state, slots, rows, limits, literal_hashes, literals, parts, parents,
    ends, heads, head_stamps, lists, attribute_begin, attribute_start, attribute_length, text_begin, text_end,
    text_parent, text_start, text_length, data, arena, joined, known, bits, scratch, hashes, hash_stamps, numbers,
    number_stamps,
):  # fmt: skip
    """The elements of a set that pass one test of a choice, remembered as operations on sets are."""
    at = rows[row, C_PARTS]
    if rows[row, C_PARTS_END] > at + X_CONDITION:
        row = np.int64(parts[at + X_CONDITION])
        if rows[row, C_KIND] != FIRST:
            return made(np.int64(BOTH), of, np.int64(known[row, K_SET]), state, bits, width, slots, results, first,
                        count, stamp, parents, ends, heads, head_stamps, lists)  # fmt: skip
    key = (of << 32 | (row + 1)) * OPERATIONS + TRIED
    place = np.uint64(key) * HASH_A >> np.uint64(40) & np.uint64(len(results) - 1)
    if results[place, 0] == key and results[place, 1] >> 32 == state[T_EPOCH]:
        return results[place, 1] & 0xFFFFFFFF
    found = narrowed(
        row, of, False, first, count, width, stamp, state, slots, rows, limits, literal_hashes, literals, parts,
        parents, ends, heads, head_stamps, lists, attribute_begin, attribute_start, attribute_length, text_begin,
        text_end, text_parent, text_start, text_length, data, arena, joined, known, bits, scratch, hashes, hash_stamps,
        numbers, number_stamps,
    )  # fmt: skip
    results[place, 0] = key
    results[place, 1] = state[T_EPOCH] << 32 | found
    return found


@rare
def chosen(
    row, of, enough, base, pending, results, first, count, width, stamp, state, slots, rows, limits, literal_hashes,
    literals, parts, parents, ends, heads, head_stamps, lists, attribute_begin, attribute_start, attribute_length,
    text_begin, text_end, text_parent, text_start, text_length, data, arena, joined, known, bits, scratch, hashes,
    hash_stamps, numbers, number_stamps,
):  # fmt: skip
    """The elements of a set that pass a CHOICE; with `enough`, some of them, if there are any.

    `pending` is free from `base` on: it gets tests, and the elements at them.
    """
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
                found = made(np.int64(EITHER), found, left, state, bits, width, slots, results, first, count, stamp,
                             parents, ends, heads, head_stamps, lists)  # fmt: skip
            continue
        passed = tried(
            test, left, results, first, count, width, stamp, state, slots, rows, limits, literal_hashes, literals,
            parts, parents, ends, heads, head_stamps, lists, attribute_begin, attribute_start, attribute_length,
            text_begin, text_end, text_parent, text_start, text_length, data, arena, joined, known, bits, scratch,
            hashes, hash_stamps, numbers, number_stamps,
        )  # fmt: skip
        for outcome in range(2):
            some = passed
            if outcome == X_FAILED:
                some = made(np.int64(WITHOUT), left, passed, state, bits, width, slots, results, first, count, stamp,
                            parents, ends, heads, head_stamps, lists)  # fmt: skip
            if some == EMPTY:
                continue
            goes_to = parts[rows[test, C_PARTS] + outcome]
            if enough and rows[goes_to, C_KIND] == ALL_OF:
                return some
            k = base
            while k < base + waiting and pending[0, k] != goes_to:
                k += 1
            if k < base + waiting:
                some = made(np.int64(EITHER), np.int64(pending[1, k]), some, state, bits, width, slots, results, first,
                            count, stamp, parents, ends, heads, head_stamps, lists)  # fmt: skip
            elif k == pending.shape[1]:
                state[T_FULL] = 1
                break
            else:
                waiting += 1
            pending[0, k], pending[1, k] = goes_to, some
    return found


@rare
def passing(
    row, of, enough, base, pending, results, first, count, width, stamp, state, slots, rows, limits, literal_hashes,
    literals, parts, parents, ends, heads, head_stamps, lists, attribute_begin, attribute_start, attribute_length,
    text_begin, text_end, text_parent, text_start, text_length, data, arena, joined, known, bits, scratch, hashes,
    hash_stamps, numbers, number_stamps,
):  # fmt: skip
    """The elements of a set that pass a condition which is tried on them: SELF, FIRST or CHOICE.

    With `enough`, it is enough to find some of them.
    """
    if rows[row, C_KIND] == CHOICE:
        return chosen(
            row, of, enough, base, pending, results, first, count, width, stamp, state, slots, rows, limits,
            literal_hashes, literals, parts, parents, ends, heads, head_stamps, lists, attribute_begin, attribute_start,
            attribute_length, text_begin, text_end, text_parent, text_start, text_length, data, arena, joined, known,
            bits, scratch, hashes, hash_stamps, numbers, number_stamps,
        )  # fmt: skip
    return narrowed(
        row, of, enough, first, count, width, stamp, state, slots, rows, limits, literal_hashes, literals, parts,
        parents, ends, heads, head_stamps, lists, attribute_begin, attribute_start, attribute_length, text_begin,
        text_end, text_parent, text_start, text_length, data, arena, joined, known, bits, scratch, hashes, hash_stamps,
        numbers, number_stamps,
    )  # fmt: skip
