# mypy: allow-untyped-defs, allow-untyped-calls
"""Joins: documents against patterns that one element decides (`ancestor_value_tests.py`), without verification.

    values of an element ──▶ the tests that it passes, one list per element
    state of an element  ──▶ its regions: of each, a small table (place, test) ──▶ a run of patterns

For every element, the tests that it and its ancestors pass are looked up in the regions of its state
(`waiting_patterns_by_state_kernels.py`). A run holds the patterns that have the state's path and wait for this test at
this place, sorted by limit: those with limits up to the value are met. A pattern with more tests looks for these among
the tests of the ancestors that they are bound to; the 64 bits of each ancestor's tests exclude most patterns first.

A *chain* is called by a test at the end of the path that leads to it, and searched below
(`unbranched_path_search_kernels.py`). Patterns that must be verified are called in the same way.

Invariant: patterns that are found match. A document is left to the verifier if an element has no state, a state has no
regions, or a string-value was too long to assemble.
"""

from typing import NamedTuple

import numpy as np

from pathcast.documents.document_batch_layout_kernels import Elements, Values
from pathcast.kernels import (
    Bools,
    Floats,
    Int32s,
    Int64s,
    Matrix,
    UInt8s,
    UInt64s,
    Writable,
    kernel,
    part,
    rare,
)

from ...arrays.bitset_kernels import Marks, is_marked, mark_with_summary, read_few_marks, unmark
from ..values.value_test_table_kernels import ValueCache, ValueTests
from .satisfied_value_tests_kernels import (
    J_LOOKED,
    J_QUEUED,
    J_STAMP,
    J_WHY,
    PassedTests,
    note_values,
    passes_test,
    sign_of,
)
from .unbranched_path_search_kernels import MAYBE, NO, YES, ChainCall, ChainRoom, Chains, chain_below, link_names
from .waiting_patterns_by_state_kernels import (
    DOWN,
    NEGATED,
    PLACES,
    PURE,
    Q_AT,
    Q_ELEMENT,
    Q_KEY,
    S_END,
    S_FIRST,
    TEST_BITS,
    W_ENTRY,
    W_LIMIT,
    W_MORE,
    W_SECOND,
    W_SECOND_LIMIT,
    LastElements,
    Queue,
    RecentRuns,
    Regions,
    RunRows,
    find_runs,
    has_regions,
    prefetch_regions,
    queue_element,
)

# In place of a second test: there is none; or the pattern is a chain.
NONE, CHAIN = -1, -2
# In place of an entry, CALLED - pattern: the pattern must be verified.
CALLED = -2
DONE, MISS, MISS_DELTA, FULL, CROWDED = range(5)
# The number of rows whose second tests are compared with the elements' bits at a time.
BLOCK = 256
# Rows of offsets: of entries, and of patterns that must be verified.
O_ENTRIES, O_CALLED, O_ROWS = range(3)
# The bit of a test under `not` in its key.
FAILS = NEGATED << TEST_BITS
ONE = np.uint64(1)


class OtherTests(NamedTuple):
    """Per pattern, the keys and limits of its tests besides the one that it waits for."""

    begins: Int64s
    keys: Int64s
    limits: Floats


class JoinPatterns(NamedTuple):
    """Patterns by the states and tests that they wait for, and their other demands."""

    regions: Regions
    rows: RunRows
    others: OtherTests
    chains: Chains


class IndexedPatterns(NamedTuple):
    """Patterns of one index, and the state of each element in it."""

    states: Int32s
    patterns: JoinPatterns


class SeenPlaces(NamedTuple):
    """The element at each place, seen from an element, and the bits of the tests that it passes."""

    elements: Writable[Int64s]
    signs: Writable[UInt64s]


class JoinMarks(NamedTuple):
    """Entries that match, entries that were tried, and patterns that must be verified."""

    matched: Marks
    looked: Marks
    called: Marks


class JoinedRoom(NamedTuple):
    """Where results of a batch go: `offsets` has a row for entries and one for patterns that must be verified.

    `unknown` marks the documents that are left to the verifier as a whole.
    """

    offsets: Writable[Matrix[Int64s]]
    unknown: Writable[Bools]


class JoinScratch(NamedTuple):
    """Buffers of a join; `text` has room for a string-value, `out` and `called_out` for results."""

    counts: Writable[Int64s]
    cache: ValueCache
    text: Writable[UInt8s]
    passed: PassedTests
    last: LastElements
    queue: Queue
    recent: RecentRuns
    ups: Writable[Int64s]
    seen: SeenPlaces
    kept: Writable[Int64s]
    chains: ChainRoom
    marks: JoinMarks
    spare: Writable[Int32s]
    out: Writable[Int32s]
    called_out: Writable[Int32s]


@part
def test_holds(key, limit, seen, passed):
    """Whether a bound test holds, or fails under `not`, seen from the element of the pattern's last step."""
    above = seen.elements[key >> TEST_BITS & (PLACES - 1)]
    return passes_test(above, key & ((1 << TEST_BITS) - 1), limit, passed) != (key & FAILS != 0)


@part
def other_tests_hold(row, rows, others, seen, passed):
    """Whether the tests of a run's row besides the first one hold."""
    if not test_holds(rows.seconds[row, W_SECOND], rows.second_limits[row, W_SECOND_LIMIT], seen, passed):
        return False
    held, pattern = True, np.int64(rows.numbers[row, W_MORE])
    k = others.begins[pattern] + 1 if pattern != NONE else np.int64(0)
    while held and pattern != NONE and k < others.begins[pattern + 1]:
        held = test_holds(others.keys[k], others.limits[k], seen, passed)
        k += 1
    return held


@part
def list_places(element, first, elements, signs, seen):
    """List the element at each place, seen from an element, and the bits of its tests; return those of all, too.

    Only places that exist are listed.
    """
    above, up, depth, every = np.int64(element), np.int64(0), np.int64(elements.depths[element]), np.uint64(0)
    while above >= 0:
        found = signs[above - first]
        every |= found
        if up < DOWN:
            seen.elements[up], seen.signs[up] = above - first, found
        if depth - up < PLACES - DOWN:
            seen.elements[DOWN + depth - up], seen.signs[DOWN + depth - up] = above - first, found
        above = np.int64(elements.parents[above])
        up += 1
    return every


@part
def keep_rows(row, end, value, rows, signs, kept, looked):
    """Mark the patterns of a run, from one row on, whose limits are met; keep the rows whose second tests may hold.

    Return the number of these, and the row after the last one with such a limit.
    """
    count = 0
    while row < end and rows.limits[row, W_LIMIT] <= value:
        entry, second = rows.numbers[row, W_ENTRY], rows.seconds[row, W_SECOND]
        if entry > CALLED:
            mark_with_summary(looked.bits, looked.summary, entry)
        passed = signs[second >> TEST_BITS & (PLACES - 1)]
        kept[count] = row
        count += (second < 0) | (second & FAILS != 0) | (passed & sign_of(second & ((1 << TEST_BITS) - 1)) != 0)
        row += 1
    return count, row


@part
def take_chain(row, found, patterns, marks):
    """Mark the pattern of a chain's row, found or left to the verifier."""
    entry, pattern = patterns.rows.numbers[row, W_ENTRY], patterns.chains.patterns[patterns.rows.numbers[row, W_MORE]]
    if found == YES:
        mark_with_summary(marks.matched.bits, marks.matched.summary, entry)
        unmark(marks.called.bits, pattern)
    elif not is_marked(marks.matched.bits, entry):
        mark_with_summary(marks.called.bits, marks.called.summary, pattern)


@part
def take_pure(row, end, value, rows, matched):
    """Mark the patterns of a pure run whose limits are met."""
    while row < end and rows.limits[row, W_LIMIT] <= value:
        mark_with_summary(matched.bits, matched.summary, rows.numbers[row, W_ENTRY])
        row += 1


@rare
def take_rows(first, elements, translation, patterns, queue, scratch):
    """Mark the matching patterns of the queued runs, and those that must be verified; no pattern is marked as both."""
    rows, marks, passed, seen, kept = patterns.rows, scratch.marks, scratch.passed, scratch.seen, scratch.kept
    matched, called, stamp = marks.matched, marks.called, scratch.counts[J_STAMP]
    listed, every = np.int64(-1), np.uint64(0)
    for n in range(scratch.counts[J_QUEUED]):
        element, value = queue.rows[n, Q_ELEMENT], queue.values[n]
        begin, end = queue.rows[n, Q_AT], queue.rows[n, Q_KEY]
        if end & PURE:
            take_pure(begin, end & (PURE - 1), value, rows, matched)
            continue
        if element != listed:
            listed = element
            every = list_places(element, first, elements, passed.signs, seen)
        while begin < end:
            stop = min(end, begin + BLOCK)
            count, begin = keep_rows(begin, stop, value, rows, seen.signs, kept, marks.looked)
            for k in range(count):
                row = kept[k]
                entry, second = rows.numbers[row, W_ENTRY], rows.seconds[row, W_SECOND]
                if entry <= CALLED:
                    mark_with_summary(called.bits, called.summary, CALLED - entry)
                    continue
                if second == CHAIN:
                    chain = ChainCall(np.int64(rows.numbers[row, W_MORE]), rows.seconds[row, W_SECOND_LIMIT], every)
                    below = chain_below(
                        chain, element, first, stamp, elements, translation, patterns.chains, scratch.chains, passed
                    )
                    if below != NO:
                        take_chain(row, below, patterns, marks)
                    continue
                if second != NONE and not other_tests_hold(row, rows, patterns.others, seen, passed):
                    continue
                mark_with_summary(matched.bits, matched.summary, entry)
            if begin < stop:
                break


@part
def count_marks(marks, spare):
    """Count the marked numbers, and clear the marks."""
    return read_few_marks(marks.bits, marks.summary, spare, np.int64(0))


@part
def write_matches(written, scratch):
    """Append the entries that match a document after the first `written`; return the new count, or -1 if there is no
    room.
    """
    matched, looked, out, spare = scratch.marks.matched, scratch.marks.looked, scratch.out, scratch.spare
    begin = written
    if written + 64 * len(matched.bits) + 8 > len(out):
        # Rarely: is there room for the actual number?
        count = count_marks(matched, spare)
        if written + count + 8 > len(out):
            count_marks(looked, spare)
            return np.int64(-1)
        for k in range(count):
            out[written + k] = spare[k]
        written += count
    else:
        written = read_few_marks(matched.bits, matched.summary, out, written)
    # Entries that were tried, beyond those that match.
    for k in range(begin, written):
        unmark(looked.bits, out[k])
    scratch.counts[J_LOOKED] += written - begin + count_marks(looked, spare)
    return written


@rare
def join_index(first, last, elements, translation, index, scratch):
    """Mark the patterns of one index that a document matches, and those to verify; False if the queue has no room.

    All that is kept about an index while its patterns are found has a stamp of its own.
    """
    states, patterns, counts, queue = index.states, index.patterns, scratch.counts, scratch.queue
    regions, spans = patterns.regions, patterns.regions.spans
    counts[J_STAMP] += 1
    counts[J_QUEUED] = 0
    if len(patterns.chains.codes):
        link_names(first, last, elements.names, translation, counts[J_STAMP], scratch.chains.named)
    prefetch_regions(first, last, states, regions)
    for element in range(first, last):
        state = states[element]
        if spans[state, S_FIRST] < spans[state, S_END] and not queue_element(
            element, first, state, elements, regions, scratch.ups, scratch.passed, scratch.last, queue, counts
        ):
            return False
    find_runs(regions, patterns.rows, queue, scratch.recent, counts)
    take_rows(first, elements, translation, patterns, queue, scratch)
    return True


@kernel
def join_documents(
    elements: Elements,
    values: Values,
    translation: Int32s,
    tests: ValueTests,
    base: IndexedPatterns,
    delta: IndexedPatterns,
    has_delta: bool,
    scratch: JoinScratch,
    found: JoinedRoom,
    start: int,
) -> int:
    """The entries of each document from `start` on, ascending; return the first document that is not done, and why.

    Also the patterns that must be verified. The values of a document are looked up once, for base and delta.
    """
    counts, called, offsets = scratch.counts, scratch.marks.called, found.offsets
    for document in range(start, len(elements.offsets) - 1):
        first, last = elements.offsets[document], elements.offsets[document + 1]
        written, called_before = offsets[O_ENTRIES, document], offsets[O_CALLED, document]
        offsets[O_ENTRIES, document + 1], offsets[O_CALLED, document + 1] = written, called_before
        if called_before + 64 * len(called.bits) + 8 > len(scratch.called_out):
            counts[J_WHY] = FULL
            return document
        covered = has_regions(first, last, base.states, base.patterns.regions.spans)
        covered_beside = has_regions(first, last, delta.states, delta.patterns.regions.spans) if has_delta else YES
        if covered == MAYBE or covered_beside == MAYBE:
            counts[J_WHY] = MISS if covered == MAYBE else MISS_DELTA
            return document
        decided = (covered == YES and covered_beside == YES) and note_values(
            first, last, elements.names, values, translation, tests, scratch.cache, scratch.text, scratch.passed, counts
        )
        found.unknown[document] = not decided
        if not decided:
            continue
        # Marks of a document that starts again, with a longer queue, are only set again.
        if not join_index(first, last, elements, translation, base, scratch) or (
            has_delta and not join_index(first, last, elements, translation, delta, scratch)
        ):
            counts[J_WHY] = CROWDED
            return document
        written = write_matches(written, scratch)
        called_end = read_few_marks(called.bits, called.summary, scratch.called_out, called_before)
        if written < 0:
            counts[J_WHY] = FULL
            return document
        offsets[O_ENTRIES, document + 1], offsets[O_CALLED, document + 1] = written, called_end
    counts[J_WHY] = DONE
    return len(elements.offsets) - 1
