# mypy: allow-untyped-defs, allow-untyped-calls
"""Passed tests: of each element of a document the list of the value tests that its values pass, for joins.

A test is a number: 2 · number for an equality, 2 · group + 1 for a range, whose value stands beside it (with the other
sign for upper limits, so that all are lower limits).

Cost: one look-up for each value that some pattern asks about; short values are remembered.
"""

import numpy as np

from pathcast.kernels import part, rare

from .value_hash_kernels import (
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
    asked_of_whichever,
    remembered,
)
from .value_index_kernels import MOST_NUMBER, SAMPLES, gathered

# `counts`: the last stamp, tests passed in the document, what is queued, patterns looked at, why the kernel stopped.
J_STAMP, J_PASSED, J_QUEUED, J_LOOKED, J_WHY, J_COUNTS = range(6)


@part
def note(
    element, data, start, length, holder, place, asked, slots, tests, hashes, numbers, groups, literals, known,
    known_groups, values, value_numbers, counts, heads, passed, passed_values, hits, samples, sampled,
):  # fmt: skip
    """Put the tests that a value of `element` passes into the element's list."""
    row = remembered(data, start, length, holder, place, asked, slots, tests, hashes, numbers, groups, literals, known,
                     known_groups, values, value_numbers)  # fmt: skip
    for kind in range(KINDS):
        test = values[row, V_TESTS + kind]
        if test != NO_TEST:
            test = 2 * test if kind < LOW else 2 * test + 1
            at = counts[J_PASSED]
            counts[J_PASSED] = at + 1
            passed[at, 0] = test
            passed[at, 1] = heads[element]
            heads[element] = at
            if kind < LOW:
                passed_values[at] = np.inf
                hits[test >> 1] += 1
            else:
                value = value_numbers[row]
                passed_values[at] = value if kind == LOW else -value
                group = test >> 1
                samples[group, sampled[group] % SAMPLES] = value
                sampled[group] += 1


@rare
def note_values(
    first, last, names, attribute_begin, attribute_names, attribute_start, attribute_length, text_begin, text_end,
    text_parent, text_start, text_length, data, arena, translation, longest, asks, slots, tests, hashes, numbers,
    groups, literals, known, known_groups, values, value_numbers, joined, counts, heads, passed, passed_values, hits,
    samples, sampled,
):  # fmt: skip
    """Make the lists of the tests that the elements of a document pass; False when a value was too long for that."""
    for element in range(first, last):
        heads[element - first] = -1
    anyone, most = np.int32(ANY), max(longest, MOST_NUMBER)
    for element in range(first, last):
        at = element - first
        for index in range(attribute_begin[element], attribute_begin[element + 1]):
            place = translation[attribute_names[index]]
            asked = asks[OF_ATTRIBUTE, place + 1] if 0 <= place < asks.shape[1] - 1 else 0
            if asked:
                start, length = attribute_start[index], np.int64(attribute_length[index])
                if start >= 0:
                    note(at, data, start, length, anyone, place, asked, slots, tests, hashes, numbers, groups, literals,
                         known, known_groups, values, value_numbers, counts, heads, passed, passed_values, hits,
                         samples, sampled)  # fmt: skip
                else:
                    note(at, arena, -1 - start, length, anyone, place, asked, slots, tests, hashes, numbers, groups,
                         literals, known, known_groups, values, value_numbers, counts, heads, passed, passed_values,
                         hits, samples, sampled)  # fmt: skip
        name = translation[names[element]]
        asked = asks[OF_SELF, name + 1] if 0 <= name < asks.shape[1] - 1 else 0
        if asked | asks[OF_SELF, 0]:
            length = gathered(element, most, text_begin, text_end, text_start, text_length, data, arena, joined)
            for turn in range(2 if length <= most else 0):
                holder, asks_here = (name, asked) if turn == 0 else (anyone, asked_of_whichever(joined, length, asks))
                if asks_here:
                    note(at, joined, np.int64(0), length, holder, np.int32(SELF_VALUE), asks_here, slots, tests, hashes,
                         numbers, groups, literals, known, known_groups, values, value_numbers, counts, heads, passed,
                         passed_values, hits, samples, sampled)  # fmt: skip
            if length > most and asked & (ASKS_NUMBER | ASKS_RANGE):
                return False  # too long to equal a text; what number it is, is another question
    asked = asks[OF_TEXT, 0]
    if asked and last > first:
        for index in range(text_begin[first], text_end[first]):
            start, length = text_start[index], np.int64(text_length[index])
            at = text_parent[index] - first
            if start >= 0:
                note(at, data, start, length, anyone, np.int32(TEXT_VALUE), asked, slots, tests, hashes, numbers,
                     groups, literals, known, known_groups, values, value_numbers, counts, heads, passed, passed_values,
                     hits, samples, sampled)  # fmt: skip
            else:
                note(at, arena, -1 - start, length, anyone, np.int32(TEXT_VALUE), asked, slots, tests, hashes, numbers,
                     groups, literals, known, known_groups, values, value_numbers, counts, heads, passed, passed_values,
                     hits, samples, sampled)  # fmt: skip
    return True
