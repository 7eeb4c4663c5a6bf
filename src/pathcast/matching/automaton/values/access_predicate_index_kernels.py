# mypy: allow-untyped-defs, allow-untyped-calls
"""Looking up value tests: which tests a document passes, and which patterns these tests call.

Tests are stored in one hash table by (element, place, kind, literal); a test on any element has the element ANY. Every
tested value is hashed, or read as a number, or both, once (short values are cached); ranges are evaluated at the end,
by the largest or smallest value that was found for their group. Four-byte pieces of all text are first checked against
a small filter. A document without the values therefore costs nothing more, however many patterns wait for others.

If assembling a value would take too long (a number in a very long text), the document is treated as one with any value:
then all patterns behind its open gates are called.
"""

from typing import NamedTuple

import numpy as np

from pathcast.documents.document_batch_layout_kernels import Elements, Values
from pathcast.kernels import Bools, Floats, Int32s, Int64s, UInt8s, UInt64s, Writable, kernel, part, rare

from ...arrays.bitset_kernels import Marks, mark_with_summary, read_few_marks
from .value_test_table_kernels import (
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
    Value,
    ValueCache,
    ValueKey,
    ValueTests,
    asked_of_name,
    asked_of_whichever,
    find_test,
    gram_place,
    remembered,
    value_at,
)

# The number of sampled values per group of ranges.
SAMPLES = 32
# The most bytes that are assembled for a number.
MOST_NUMBER = 1024
# `state`: the stamp of the last document, an upper bound of its candidates, the groups of ranges with a value, and
# whether the document may have any value.
S_STAMP, S_CALLED, S_TOUCHED, S_UNKNOWN, S_COUNTS = range(5)
ONE, LOW_SIX = np.uint64(1), np.uint64(63)


class ListedGates(NamedTuple):
    """The open gates of each document; -1 - pattern stands for a pattern without a gate.

    Only gates below `listed` are listed; any other gate may be open.
    """

    offsets: Int64s
    gates: Int32s
    listed: int


class CalledPatterns(NamedTuple):
    """The patterns that other tests call in each document; `unknown` documents may have any value.

    The index has the patterns from number `first` on.
    """

    offsets: Int64s
    patterns: Int32s
    unknown: Bools
    first: int


class GatePatterns(NamedTuple):
    """Patterns by gate: those of gate k are `patterns[begins[k] : begins[k + 1]]`."""

    begins: Int64s
    patterns: Int32s


class TestedPatterns(NamedTuple):
    """Patterns by the equality or piece of text that they wait for, with their gates."""

    begins: Int64s
    patterns: Int32s
    gates: Int32s


class RangedPatterns(NamedTuple):
    """Patterns by the group of ranges that they wait for, sorted by threshold, with their gates."""

    kinds: Int32s
    begins: Int64s
    thresholds: Floats
    patterns: Int32s
    gates: Int32s


class AccessPatterns(NamedTuple):
    """Patterns by access predicate: their gate alone (`behind`), a test, or a range; `all` of them by gate."""

    gate_of: Int32s
    behind: GatePatterns
    all: GatePatterns
    tested: TestedPatterns
    ranged: RangedPatterns


class CallScratch(NamedTuple):
    """The tests and groups of ranges that the document met, by stamps, its open gates, and the patterns called."""

    state: Writable[Int64s]
    open_gates: Writable[UInt64s]
    test_stamps: Writable[Int64s]
    group_stamps: Writable[Int64s]
    extremes: Writable[Floats]
    touched: Writable[Int32s]
    marks: Marks


class AccessScratch(NamedTuple):
    """Buffers of a search for candidates; `text` has room for a string-value, `out` for candidates."""

    calls: CallScratch
    cache: ValueCache
    text: Writable[UInt8s]
    out: Writable[Int32s]


@part
def is_open(gate, open_gates):
    """Whether a gate, given as an unsigned number, is open."""
    return open_gates[gate >> np.uint64(6)] >> (gate & LOW_SIX) & ONE != 0


@part
def call_some(first, last, patterns, gates, calls):
    """Mark those patterns whose gate is open."""
    called = 0
    for k in range(first, last):
        if is_open(np.uint64(gates[k]), calls.open_gates):
            mark_with_summary(calls.marks.bits, calls.marks.summary, patterns[k])
            called += 1
    calls.state[S_CALLED] += called


@rare
def call(test, waiting, hits, calls):
    """A test is passed: mark the patterns that wait for it and whose gate is open."""
    if test < 0 or calls.test_stamps[test] == calls.state[S_STAMP]:
        return
    calls.test_stamps[test] = calls.state[S_STAMP]
    hits[test] += 1
    call_some(waiting.begins[test], waiting.begins[test + 1], waiting.patterns, waiting.gates, calls)


@part
def touch_group(group, kind, value, calls):
    """A group of ranges has a value: keep its extreme value."""
    state = calls.state
    if calls.group_stamps[group] != state[S_STAMP]:
        calls.group_stamps[group] = state[S_STAMP]
        calls.extremes[group] = value
        calls.touched[state[S_TOUCHED]] = group
        state[S_TOUCHED] += 1
    elif (value > calls.extremes[group]) == (kind == LOW):
        calls.extremes[group] = value


@rare
def look_up(value, element, place, asked, table, cache, waiting, hits, calls):
    """Look up a value of an element, for that element and for any element."""
    for turn in range(2):
        holder = np.int32(ANY)
        if turn:
            holder = np.int32(element)
            if element < 0:
                break
        row = remembered(value, holder, place, asked, table, cache)
        for kind in range(LOW):
            call(cache.rows[row, V_TESTS + kind], waiting, hits, calls)
        for kind in range(LOW, HIGH + 1):
            group = cache.rows[row, V_TESTS + kind]
            if group != NO_TEST:
                touch_group(group, kind, cache.numbers[row], calls)


@rare
def gathered(element, most, texts, content, text):
    """Copy an element's string-value to `text`; return its length, or `most` + 1 if it is longer."""
    length = np.int64(0)
    for index in range(texts.begins[element], texts.ends[element]):
        start, size = texts.starts[index], np.int64(texts.lengths[index])
        if length + size > most:
            return np.int64(most + 1)
        for k in range(size):
            text[length + k] = content.data[start + k] if start >= 0 else content.arena[-1 - start + k]
        length += size
    return length


@rare
def look_up_grams(value, gram, seen, grams, table, waiting, hits, calls):
    """Look up the four-byte pieces of a text that continues after `gram`; return the last piece, and the bytes read."""
    anyone = np.int32(ANY)
    for k in range(value.length):
        gram = gram >> np.uint64(8) | np.uint64(value.data[value.start + k]) << np.uint64(24)
        seen += 1
        if seen < GRAM_BYTES:
            continue
        place = gram_place(gram)
        if grams[place >> 6] >> np.uint64(place & 63) & np.uint64(1):
            test = find_test(ValueKey(gram, anyone, anyone, np.int32(GRAM), 0.0, value), table)
            call(test, waiting, hits, calls)
    return gram, seen


@rare
def settle_ranges(ranged, statistics, calls):
    """Mark the patterns whose threshold the groups' extreme values pass, and whose gate is open."""
    thresholds, samples, sampled = ranged.thresholds, statistics.samples, statistics.sampled
    for k in range(calls.state[S_TOUCHED]):
        group = calls.touched[k]
        value = calls.extremes[group]
        samples[group, sampled[group] % SAMPLES] = value
        sampled[group] += 1
        low, high = ranged.begins[group], ranged.begins[group + 1]
        begin, end = low, high
        # The first threshold above the value (LOW), or not below it (HIGH).
        while low < high:
            middle = (low + high) >> 1
            if thresholds[middle] < value or (ranged.kinds[group] == LOW and thresholds[middle] == value):
                low = middle + 1
            else:
                high = middle
        if ranged.kinds[group] == LOW:
            end = low
        else:
            begin = low
        call_some(begin, end, ranged.patterns, ranged.gates, calls)


@rare
def call_by_values(first, last, names, values, translation, tests, waiting, scratch):
    """Mark the patterns that wait for a document's values."""
    attributes, texts, content, calls = values.attributes, values.texts, values.content, scratch.calls
    table, asks, hits, cache = tests.table, tests.filter.asks, tests.statistics.hits, scratch.cache
    grams, has_grams, most = tests.filter.grams, tests.filter.has_grams, max(tests.filter.longest, MOST_NUMBER)
    for element in range(first, last):
        name = translation[names[element]]
        for index in range(attributes.begins[element], attributes.begins[element + 1]):
            place = translation[attributes.names[index]]
            asked = asked_of_name(asks, OF_ATTRIBUTE, place)
            value = value_at(attributes.starts[index], attributes.lengths[index], content)
            if asked:
                look_up(value, name, place, asked, table, cache, waiting, hits, calls)
            if has_grams:
                look_up_grams(value, np.uint64(0), 0, grams, table, waiting, hits, calls)
        asked = asked_of_name(asks, OF_SELF, name)
        if asked | asks[OF_SELF, 0]:
            length = gathered(element, most, texts, content, scratch.text)
            text = Value(scratch.text, 0, length)
            if length > most:
                # Too long to equal a text, but its number is unknown.
                if asked & (ASKS_NUMBER | ASKS_RANGE):
                    calls.state[S_UNKNOWN] = 1
            elif asked | asked_of_whichever(text, asks):
                asked |= asks[OF_SELF, 0]
                look_up(text, name, np.int32(SELF_VALUE), asked, table, cache, waiting, hits, calls)
    gram, seen = np.uint64(0), np.int64(0)
    if last == first:
        return
    for index in range(texts.begins[first], texts.ends[first]):
        value = value_at(texts.starts[index], texts.lengths[index], content)
        name = translation[names[texts.parents[index]]]
        asked = asks[OF_TEXT, 0] | asked_of_name(asks, OF_TEXT, name)
        if asked:
            look_up(value, name, np.int32(TEXT_VALUE), asked, table, cache, waiting, hits, calls)
        if has_grams:
            # An element's string-value may continue from one text node to the next, and so does the search.
            gram, seen = look_up_grams(value, gram, seen, grams, table, waiting, hits, calls)


@rare
def call_all(gates, opened, closed, by_gate, calls):
    """Mark the patterns that wait behind open gates."""
    begins = by_gate.begins
    for index in range(opened, closed):
        gate = gates[index]
        if gate >= 0:
            for k in range(begins[gate], begins[gate + 1]):
                mark_with_summary(calls.marks.bits, calls.marks.summary, by_gate.patterns[k])
            calls.state[S_CALLED] += begins[gate + 1] - begins[gate]


@part
def open_all(document, gates, calls):
    """Open the gates of a document; a pattern without a gate is called. Return whether a gate was opened."""
    opened = False
    for index in range(gates.offsets[document], gates.offsets[document + 1]):
        if gates.gates[index] >= 0:
            gate = np.uint64(gates.gates[index])
            calls.open_gates[gate >> np.uint64(6)] |= ONE << (gate & LOW_SIX)
            opened = True
        else:
            mark_with_summary(calls.marks.bits, calls.marks.summary, -1 - gates.gates[index])
            calls.state[S_CALLED] += 1
    return opened


@part
def take_called(document, called, gate_of, listed, calls):
    """Mark the patterns that other tests called and whose gate is open, or not listed."""
    for index in range(called.offsets[document], called.offsets[document + 1]):
        pattern = called.patterns[index] - called.first
        if not 0 <= pattern < len(gate_of):
            continue  # of another index
        gate = np.uint64(gate_of[pattern])
        if np.int64(gate) >= listed or is_open(gate, calls.open_gates):
            mark_with_summary(calls.marks.bits, calls.marks.summary, pattern)
            calls.state[S_CALLED] += 1


@kernel
def candidates_of(
    gates: ListedGates,
    called: CalledPatterns,
    elements: Elements,
    values: Values,
    translation: Int32s,
    tests: ValueTests,
    access: AccessPatterns,
    scratch: AccessScratch,
    out_offsets: Writable[Int64s],
    first: int,
) -> int:
    """The candidates of each document from `first` on, ascending; return the first document without room for them.

    Candidates are the patterns that wait behind an open gate alone, and those with an open gate that wait for a test
    which the document passes, or that are `called`.
    """
    calls, out, offsets = scratch.calls, scratch.out, elements.offsets
    state, marks = calls.state, calls.marks
    for document in range(first, len(offsets) - 1):
        state[S_STAMP] += 1
        state[S_TOUCHED] = state[S_CALLED] = 0
        state[S_UNKNOWN] = called.unknown[document]
        opened, closed = gates.offsets[document], gates.offsets[document + 1]
        has_open = open_all(document, gates, calls)
        take_called(document, called, access.gate_of, gates.listed, calls)
        call_all(gates.gates, opened, closed, access.behind, calls)
        if has_open and tests.table.size:
            begin, end = offsets[document], offsets[document + 1]
            call_by_values(begin, end, elements.names, values, translation, tests, access.tested, scratch)
            settle_ranges(access.ranged, tests.statistics, calls)
        if state[S_UNKNOWN]:
            call_all(gates.gates, opened, closed, access.all, calls)
        for index in range(opened, closed):
            if gates.gates[index] >= 0:
                calls.open_gates[np.uint64(gates.gates[index]) >> np.uint64(6)] = 0
        if out_offsets[document] + state[S_CALLED] + 8 > len(out):
            for k in range(len(marks.bits)):
                marks.bits[k] = 0
            for k in range(len(marks.summary)):
                marks.summary[k] = 0
            return document
        out_offsets[document + 1] = read_few_marks(marks.bits, marks.summary, out, out_offsets[document])
    return len(offsets) - 1
