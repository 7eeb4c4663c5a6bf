# mypy: allow-untyped-defs, allow-untyped-calls
"""Passed tests: for each element of a document, the list of the value tests that its values pass, for joins.

A test is a number: 2 · number for an equality, 2 · group + 1 for a range, with its value beside it (negated for upper
limits, so that all are lower limits).

Cost: one look-up per value that some pattern tests; results for short values are cached.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Floats, Int32s, Int64s, Matrix, UInt64s, Writable, part, rare
from pathcast.kernels.hash_table_kernels import MIX_A, first_slot, next_slot

from ..values.access_predicate_index_kernels import MOST_NUMBER, SAMPLES, gathered
from ..values.value_test_table_kernels import (
    ANY,
    ASKS_NUMBER,
    ASKS_RANGE,
    KINDS,
    LOW,
    NO_TEST,
    OF_ATTRIBUTE,
    OF_SELF,
    OF_TEXT,
    SELF_VALUE,
    TEXT_VALUE,
    V_TESTS,
    Value,
    asked_of_name,
    asked_of_whichever,
    remembered,
    value_at,
)

# `counts`: the last stamp, tests passed in the document, look-ups queued, patterns tried, why the kernel stopped.
J_STAMP, J_PASSED, J_QUEUED, J_LOOKED, J_WHY, J_COUNTS = range(6)
# Columns of `PassedTests.links`.
L_TEST, L_NEXT, L_SLOT, L_COLUMNS = range(4)
ONE, NO_KEY = np.uint64(1), -1


class PassedTests(NamedTuple):
    """The tests that each element of the document passes, as linked lists: `heads` has the first place of each list.

    A place has a test, the next place of its list, -1 at the end, and the test's slot (`links`), and the value of a
    range (`values`). `signs` has 64 bits per element: a test whose bit is not set is not in the element's list. A hash
    table has the largest value of each element and test: `largest`, beside the key in `slots`; `mask[0]` is its size
    less one.
    """

    heads: Writable[Int32s]
    signs: Writable[UInt64s]
    links: Writable[Matrix[Int32s]]
    values: Writable[Floats]
    slots: Writable[Int64s]
    largest: Writable[Floats]
    mask: Writable[Int64s]


@part
def sign_of(test):
    """The bit of a test."""
    return ONE << (np.uint64(test) * MIX_A >> np.uint64(58))


@part
def passes_test(element, test, limit, passed):
    """Whether an element, counted from the document's first, passes a test with a value of at least `limit`."""
    key = np.int64(element) << 32 | np.int64(test)
    slot = slot_of(key, passed)
    return passed.slots[slot] == key and passed.largest[slot] >= limit


@part
def slot_of(key, passed):
    """The slot of an element and a test, or the free one for them."""
    mask = np.uint64(passed.mask[0])
    slot = first_slot(np.uint64(key) * MIX_A >> np.uint64(32), mask)
    while passed.slots[slot] != key and passed.slots[slot] != NO_KEY:
        slot = next_slot(slot, mask)
    return slot


@part
def clear(count, most, passed):
    """Clear the table of a document with `count` tests, for a document with at most this many."""
    for at in range(count):
        passed.slots[passed.links[at, L_SLOT]] = NO_KEY
    size = np.int64(64)
    while size <= most:
        size *= 2
    passed.mask[0] = size - 1


@part
def note(element, value, holder, place, asked, table, cache, statistics, passed, counts):
    """Add the tests that a value of `element` passes to the element's list."""
    row = remembered(value, holder, place, asked, table, cache)
    for kind in range(KINDS):
        test = cache.rows[row, V_TESTS + kind]
        if test != NO_TEST:
            test = 2 * test if kind < LOW else 2 * test + 1
            at = counts[J_PASSED]
            counts[J_PASSED] = at + 1
            passed.links[at, L_TEST] = test
            passed.links[at, L_NEXT] = passed.heads[element]
            passed.heads[element] = at
            passed.signs[element] |= sign_of(test)
            if kind < LOW:
                passed.values[at] = np.inf
                statistics.hits[test >> 1] += 1
            else:
                limit = cache.numbers[row]
                passed.values[at] = limit if kind == LOW else -limit
                group = test >> 1
                statistics.samples[group, statistics.sampled[group] % SAMPLES] = limit
                statistics.sampled[group] += 1
            key = np.int64(element) << 32 | np.int64(test)
            slot = slot_of(key, passed)
            if passed.slots[slot] != key or passed.values[at] > passed.largest[slot]:
                passed.slots[slot] = key
                passed.largest[slot] = passed.values[at]
            passed.links[at, L_SLOT] = slot


@rare
def note_values(first, last, names, values, translation, tests, cache, text, passed, counts):
    """Build the lists of the tests that the elements of a document pass; False if a value was too long."""
    attributes, texts, content = values.attributes, values.texts, values.content
    table, asks, statistics = tests.table, tests.filter.asks, tests.statistics
    values_here = attributes.begins[last] - attributes.begins[first] + 2 * (last - first)
    if last > first:
        values_here += texts.ends[first] - texts.begins[first]
    clear(counts[J_PASSED], KINDS * values_here, passed)
    counts[J_PASSED] = 0
    for element in range(first, last):
        passed.heads[element - first] = -1
        passed.signs[element - first] = 0
    anyone, most = np.int32(ANY), max(tests.filter.longest, MOST_NUMBER)
    for element in range(first, last):
        at = element - first
        for index in range(attributes.begins[element], attributes.begins[element + 1]):
            place = translation[attributes.names[index]]
            asked = asked_of_name(asks, OF_ATTRIBUTE, place)
            if asked:
                value = value_at(attributes.starts[index], attributes.lengths[index], content)
                note(at, value, anyone, place, asked, table, cache, statistics, passed, counts)
        name = translation[names[element]]
        asked = asked_of_name(asks, OF_SELF, name)
        if asked | asks[OF_SELF, 0]:
            length = gathered(element, most, texts, content, text)
            whole = Value(text, 0, length)
            for turn in range(2 if length <= most else 0):
                holder, asks_here = (name, asked) if turn == 0 else (anyone, asked_of_whichever(whole, asks))
                if asks_here:
                    note(at, whole, holder, np.int32(SELF_VALUE), asks_here, table, cache, statistics, passed, counts)
            if length > most and asked & (ASKS_NUMBER | ASKS_RANGE):
                return False  # too long to equal a text, but its number is unknown
    asked = asks[OF_TEXT, 0]
    if asked and last > first:
        for index in range(texts.begins[first], texts.ends[first]):
            value = value_at(texts.starts[index], texts.lengths[index], content)
            at = texts.parents[index] - first
            note(at, value, anyone, np.int32(TEXT_VALUE), asked, table, cache, statistics, passed, counts)
    return True
