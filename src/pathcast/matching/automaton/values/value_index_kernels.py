# mypy: allow-untyped-defs, allow-untyped-calls
"""Looking up value tests: which of the tests that patterns wait for a document passes, and whom that calls.

Tests are kept in one hash table by (element, place, kind, literal); a test on whichever element has the element ANY.
Every value that is asked about is hashed, read as a number or both, once (short ones are remembered); ranges are
settled at the end, by the largest or smallest value that was found for their group. Four-byte pieces of all text are
looked up against a small filter first. So a document without the values costs nothing more, however many patterns wait
for others.

A value that would take too long to put together (a number in very much text) makes the document one that may have any
value: then all patterns behind its open gates are called.
"""

import numpy as np

from pathcast.kernels import kernel, part, rare

from ...arrays.bitset_kernels import mark_with_summary, read_few_marks
from .value_hash_kernels import (
    ANY,
    ASKS_NUMBER,
    ASKS_RANGE,
    GRAM,
    GRAM_BYTES,
    HIGH,
    LOW,
    NO_TEST,
    OF_ATTRIBUTE,
    OF_SELF,
    OF_TEXT,
    SELF_VALUE,
    TEXT_VALUE,
    V_TESTS,
    asked_of_whichever,
    find_test,
    gram_place,
    remembered,
)  # fmt: skip

# Values that a group of ranges remembers.
SAMPLES = 32
# Numbers are put together from at most so many bytes.
MOST_NUMBER = 1024
# `state`: the stamp of the last document, the candidates of this one, at most, the groups of ranges that were met, and
# whether it may have any value.
S_STAMP, S_CALLED, S_TOUCHED, S_UNKNOWN, S_COUNTS = range(5)
ONE, LOW_SIX = np.uint64(1), np.uint64(63)


@part
def call_some(first, last, patterns, gates, open_gates, marks, summary, state):
    """Mark those of some patterns whose gate is open."""
    called = 0
    for k in range(first, last):
        gate = np.uint64(gates[k])
        if open_gates[gate >> np.uint64(6)] >> (gate & LOW_SIX) & ONE:
            mark_with_summary(marks, summary, patterns[k])
            called += 1
    state[S_CALLED] += called


@rare
def call(test, begin, patterns, gates, open_gates, test_stamps, hits, marks, summary, state):
    """A test is met: mark the patterns that wait for it and whose gate is open."""
    if test < 0 or test_stamps[test] == state[S_STAMP]:
        return
    test_stamps[test] = state[S_STAMP]
    hits[test] += 1
    call_some(begin[test], begin[test + 1], patterns, gates, open_gates, marks, summary, state)


@rare
def look_up(
    data, start, length, element, place, asked, slots, rows, hashes, numbers, groups, literals, begin, patterns,
    gates, open_gates, test_stamps, hits, extremes, group_stamps, touched, values, value_numbers, marks, summary, state,
):  # fmt: skip
    """Look up a value of an element, for that element and for whichever."""
    for turn in range(2):
        holder = np.int32(ANY)
        if turn:
            holder = np.int32(element)
            if element < 0:
                break
        row = remembered(data, start, length, holder, place, asked, slots, rows, hashes, numbers, groups, literals,
                         len(test_stamps), len(group_stamps), values, value_numbers)  # fmt: skip
        for kind in range(LOW):
            call(values[row, V_TESTS + kind], begin, patterns, gates, open_gates, test_stamps, hits, marks, summary,
                 state)  # fmt: skip
        for kind in range(LOW, HIGH + 1):
            group = values[row, V_TESTS + kind]
            if group != NO_TEST:
                value = value_numbers[row]
                if group_stamps[group] != state[S_STAMP]:
                    group_stamps[group] = state[S_STAMP]
                    extremes[group] = value
                    touched[state[S_TOUCHED]] = group
                    state[S_TOUCHED] += 1
                elif (value > extremes[group]) == (kind == LOW):
                    extremes[group] = value


@rare
def gathered(element, most, text_begin, text_end, text_start, text_length, data, arena, joined):
    """An element's string-value in `joined`: its length; `most` + 1 when it is longer than that."""
    length = np.int64(0)
    for index in range(text_begin[element], text_end[element]):
        start, size = text_start[index], np.int64(text_length[index])
        if length + size > most:
            return np.int64(most + 1)
        for k in range(size):
            joined[length + k] = data[start + k] if start >= 0 else arena[-1 - start + k]
        length += size
    return length


@rare
def look_up_grams(
    data, start, length, gram, seen, grams, slots, rows, hashes, numbers, literals, begin, patterns, gates,
    open_gates, test_stamps, hits, marks, summary, state,
):  # fmt: skip
    """Look up the four-byte pieces of a text that goes on from `gram`: the last piece, and how many bytes came."""
    known = len(test_stamps)
    for k in range(length):
        gram = gram >> np.uint64(8) | np.uint64(data[start + k]) << np.uint64(24)
        seen += 1
        if seen < GRAM_BYTES:
            continue
        place = gram_place(gram)
        if grams[place >> 6] >> np.uint64(place & 63) & np.uint64(1):
            test = find_test(known, slots, rows, hashes, numbers, literals, gram, np.int32(ANY), np.int32(ANY),
                             np.int32(GRAM), 0.0, data, start, np.int64(0))  # fmt: skip
            call(test, begin, patterns, gates, open_gates, test_stamps, hits, marks, summary, state)
    return gram, seen


@rare
def settle_ranges(
    touched, extremes, kinds, range_begin, thresholds, range_patterns, range_gates, samples, sampled, open_gates, marks,
    summary, state,
):  # fmt: skip
    """Mark the patterns whose threshold the groups' extreme values pass, and whose gate is open."""
    for k in range(state[S_TOUCHED]):
        group = touched[k]
        value = extremes[group]
        samples[group, sampled[group] % SAMPLES] = value
        sampled[group] += 1
        low, high = range_begin[group], range_begin[group + 1]
        begin, end = low, high
        # The first threshold above the value (LOW), or not below it (HIGH).
        while low < high:
            middle = (low + high) >> 1
            if thresholds[middle] < value or (kinds[group] == LOW and thresholds[middle] == value):
                low = middle + 1
            else:
                high = middle
        if kinds[group] == LOW:
            end = low
        else:
            begin = low
        call_some(begin, end, range_patterns, range_gates, open_gates, marks, summary, state)


@rare
def call_by_values(
    first, last, names, attribute_begin, attribute_names, attribute_start, attribute_length, text_begin, text_end,
    text_parent, text_start, text_length, data, arena, translation, longest, asks, grams, has_grams,
    slots, rows, hashes, numbers, groups, literals, begin, patterns, gates,
    open_gates, test_stamps, hits, extremes, group_stamps, touched, joined, values, value_numbers, marks, summary,
    state,
):  # fmt: skip
    """Mark the patterns that wait for a document's values."""
    for element in range(first, last):
        name = translation[names[element]]
        for index in range(attribute_begin[element], attribute_begin[element + 1]):
            place = translation[attribute_names[index]]
            asked = asks[OF_ATTRIBUTE, place + 1] if 0 <= place < asks.shape[1] - 1 else 0
            start, length = attribute_start[index], np.int64(attribute_length[index])
            if asked:
                if start >= 0:
                    look_up(data, start, length, name, place, asked, slots, rows, hashes, numbers, groups, literals,
                            begin, patterns, gates, open_gates, test_stamps, hits, extremes, group_stamps, touched,
                            values, value_numbers, marks, summary, state)  # fmt: skip
                else:
                    look_up(arena, -1 - start, length, name, place, asked, slots, rows, hashes, numbers, groups,
                            literals, begin, patterns, gates, open_gates, test_stamps, hits, extremes, group_stamps,
                            touched, values, value_numbers, marks, summary, state)  # fmt: skip
            if has_grams:
                if start >= 0:
                    look_up_grams(data, start, length, np.uint64(0), 0, grams, slots, rows, hashes, numbers, literals,
                                  begin, patterns, gates, open_gates, test_stamps, hits, marks, summary,
                                  state)  # fmt: skip
                else:
                    look_up_grams(arena, -1 - start, length, np.uint64(0), 0, grams, slots, rows, hashes, numbers,
                                  literals, begin, patterns, gates, open_gates, test_stamps, hits, marks, summary,
                                  state)  # fmt: skip
        asked = asks[OF_SELF, name + 1] if 0 <= name < asks.shape[1] - 1 else 0
        if asked | asks[OF_SELF, 0]:
            most = max(longest, MOST_NUMBER)
            length = gathered(element, most, text_begin, text_end, text_start, text_length, data, arena, joined)
            if length > most:
                # Too long to equal a text; what number it is, is another question.
                if asked & (ASKS_NUMBER | ASKS_RANGE):
                    state[S_UNKNOWN] = 1
            elif asked | asked_of_whichever(joined, length, asks):
                look_up(joined, np.int64(0), length, name, np.int32(SELF_VALUE), asked | asks[OF_SELF, 0], slots, rows,
                        hashes, numbers, groups, literals, begin, patterns, gates, open_gates, test_stamps, hits,
                        extremes, group_stamps, touched, values, value_numbers, marks, summary, state)  # fmt: skip
    gram, seen = np.uint64(0), np.int64(0)
    if last == first:
        return
    for index in range(text_begin[first], text_end[first]):
        start, length = text_start[index], np.int64(text_length[index])
        name = translation[names[text_parent[index]]]
        asked = asks[OF_TEXT, 0] | (asks[OF_TEXT, name + 1] if 0 <= name < asks.shape[1] - 1 else 0)
        if asked:
            if start >= 0:
                look_up(data, start, length, name, np.int32(TEXT_VALUE), asked, slots, rows, hashes, numbers, groups,
                        literals, begin, patterns, gates, open_gates, test_stamps, hits, extremes, group_stamps,
                        touched, values, value_numbers, marks, summary, state)  # fmt: skip
            else:
                look_up(arena, -1 - start, length, name, np.int32(TEXT_VALUE), asked, slots, rows, hashes, numbers,
                        groups, literals, begin, patterns, gates, open_gates, test_stamps, hits, extremes,
                        group_stamps, touched, values, value_numbers, marks, summary, state)  # fmt: skip
        if has_grams:
            # An element's string-value may go on from one text node to the next: so does the search.
            if start >= 0:
                gram, seen = look_up_grams(data, start, length, gram, seen, grams, slots, rows, hashes, numbers,
                                           literals, begin, patterns, gates, open_gates, test_stamps, hits, marks,
                                           summary, state)  # fmt: skip
            else:
                gram, seen = look_up_grams(arena, -1 - start, length, gram, seen, grams, slots, rows, hashes, numbers,
                                           literals, begin, patterns, gates, open_gates, test_stamps, hits, marks,
                                           summary, state)  # fmt: skip


@rare
def call_all(gates, opened, closed, begin, patterns, marks, summary, state):
    """Mark the patterns that wait behind open gates."""
    for index in range(opened, closed):
        gate = gates[index]
        if gate >= 0:
            for k in range(begin[gate], begin[gate + 1]):
                mark_with_summary(marks, summary, patterns[k])
            state[S_CALLED] += begin[gate + 1] - begin[gate]


@kernel(
    "int64(ro_i8[::1], ro_i4[::1], int64, ro_i8[::1], ro_i4[::1], ro_i4[::1],"
    " ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1],"
    " ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_u1[::1], ro_u1[::1], ro_i4[::1],"
    " int64, boolean, ro_i1[:, ::1], ro_u8[::1], ro_i4[::1], ro_i4[:, ::1], ro_u8[::1], ro_f8[::1], ro_i4[::1],"
    " ro_u1[::1],"
    " ro_i8[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_i4[::1],"
    " ro_i4[::1], ro_i8[::1], ro_f8[::1], ro_i4[::1], ro_i4[::1], ro_b1[::1],"
    " i8[::1], u8[::1], i8[::1], i8[::1], f8[:, ::1], i8[::1], f8[::1], i8[::1], i4[::1], u1[::1],"
    " i8[:, ::1], f8[::1], u8[::1], u8[::1],"
    " i8[::1], i4[::1], int64)"
)
def candidates_of(
    gate_offsets, gates, told_gates, called_offsets, called, gate_of,
    offsets, names, attribute_begin, attribute_names, attribute_start, attribute_length,
    text_begin, text_end, text_parent, text_start, text_length, data, arena, translation,
    longest, has_grams, asks, grams, slots, rows, hashes, numbers, groups, literals,
    behind_begin, behind, all_begin, all_patterns, begin, patterns, pattern_gates,
    range_kinds, range_begin, thresholds, range_patterns, range_gates, unknown,
    state, open_gates, test_stamps, hits, samples, sampled, extremes, group_stamps, touched, joined, values,
    value_numbers, marks, summary, out_offsets, out, first,
):  # fmt: skip
    """The candidates of each document from `first` on, ascending; the first document whose candidates found no room.

    Patterns wait behind their gate alone (`behind`), for an equality or piece of text (`patterns`) or for a value
    beyond a threshold (`range_patterns`), both with their gates beside them; `all_patterns` has all of them by gate.
    Those that were `called` by other tests are candidates if their gates (`gate_of`) are open, or not told.
    Among gates, -1 - pattern is the gate of a fresh one. An `unknown` document may have any value.
    """
    for document in range(first, len(offsets) - 1):
        state[S_STAMP] += 1
        state[S_TOUCHED] = state[S_CALLED] = 0
        state[S_UNKNOWN] = unknown[document]
        opened, closed = gate_offsets[document], gate_offsets[document + 1]
        for index in range(opened, closed):
            if gates[index] >= 0:
                gate = np.uint64(gates[index])
                open_gates[gate >> np.uint64(6)] |= ONE << (gate & LOW_SIX)
            else:
                mark_with_summary(marks, summary, -1 - gates[index])
                state[S_CALLED] += 1
        for index in range(called_offsets[document], called_offsets[document + 1]):
            gate = np.uint64(gate_of[called[index]])
            if np.int64(gate) >= told_gates or open_gates[gate >> np.uint64(6)] >> (gate & LOW_SIX) & ONE:
                mark_with_summary(marks, summary, called[index])
                state[S_CALLED] += 1
        call_all(gates, opened, closed, behind_begin, behind, marks, summary, state)
        if closed > opened and len(test_stamps):
            call_by_values(
                offsets[document], offsets[document + 1], names, attribute_begin, attribute_names, attribute_start,
                attribute_length, text_begin, text_end, text_parent, text_start, text_length, data, arena, translation,
                longest, asks, grams, has_grams, slots, rows, hashes, numbers, groups, literals, begin, patterns,
                pattern_gates, open_gates, test_stamps, hits, extremes, group_stamps, touched, joined, values,
                value_numbers, marks, summary, state,
            )  # fmt: skip
            settle_ranges(touched, extremes, range_kinds, range_begin, thresholds, range_patterns, range_gates, samples,
                          sampled, open_gates, marks, summary, state)  # fmt: skip
        if state[S_UNKNOWN]:
            call_all(gates, opened, closed, all_begin, all_patterns, marks, summary, state)
        for index in range(opened, closed):
            if gates[index] >= 0:
                open_gates[np.uint64(gates[index]) >> np.uint64(6)] = 0
        if out_offsets[document] + state[S_CALLED] + 8 > len(out):
            for k in range(len(marks)):
                marks[k] = 0
            for k in range(len(summary)):
                summary[k] = 0
            return np.int64(document)
        out_offsets[document + 1] = read_few_marks(marks, summary, out, out_offsets[document])
    return np.int64(len(offsets) - 1)
