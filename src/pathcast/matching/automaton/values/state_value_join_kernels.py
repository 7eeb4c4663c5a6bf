# mypy: allow-untyped-defs, allow-untyped-calls
"""Joins: documents against patterns that one element decides (`ancestor_value_tests.py`), without verification.

    values of an element ──▶ the tests that it passes, one list per element
    state of an element  ──▶ its regions: of each, a small table (place, test) ──▶ a run of patterns

For every element, the tests that it and its ancestors pass are looked up in the regions of its state. A run holds the
patterns that have the state's path and wait for this test at this place, sorted by limit: those with limits up to the
value are met. A pattern with more tests looks for these in the lists of the ancestors that they are bound to. A look-up
mostly waits for memory, so a document's look-ups are queued first, and tables and rows are prefetched.

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
    Writable,
    kernel,
    part,
    prefetch,
    rare,
)
from pathcast.kernels.hash_table_kernels import MIX_A, first_slot, next_slot

from ...arrays.bitset_kernels import Marks, is_marked, mark_with_summary, read_few_marks, unmark
from .passed_value_tests_kernels import (
    J_LOOKED,
    J_PASSED,
    J_QUEUED,
    J_STAMP,
    J_WHY,
    L_NEXT,
    L_TEST,
    PassedTests,
    note_values,
    passes_test,
)
from .unbranched_path_search_kernels import MAYBE, NO, YES, ChainRoom, Chains, chain_below, link_names
from .value_test_table_kernels import ValueCache, ValueTests

# Places: levels up, DOWN + depth, or ANYWHERE above. A run's key is the place and the test.
DOWN, ANYWHERE, PLACES, TEST_BITS = 32, 63, 64, 26
# Columns of regions: where the table begins, its size less one, and the places that its runs are for.
R_BASE, R_MASK, R_PLACES, R_COLUMNS = range(4)
# Per state: its regions, from .. to; whether they contain patterns that need a test further down.
S_FIRST, S_END, S_BELOW, S_COLUMNS = range(4)
UNKNOWN, TOO_LARGE = -1, -2
# A region's table: keys and the runs' rows, as their first row (shifted by RUN_BITS) and their count.
T_KEY, T_RUN, T_COLUMNS = range(3)
NO_RUN, RUN_BITS = -1, 24
# Rows, half a cache line each, as int32, int64 and float64: the pattern's entry, its number if it has more than two
# tests; the key of the second; and the limits of both.
W_ENTRY, W_MORE = 0, 1
W_SECOND, W_LIMIT, W_SECOND_LIMIT, W_COLUMNS = 1, 2, 3, 4
# In place of a second test: there is none; or the pattern is a chain.
NONE, CHAIN = -1, -2
# In place of an entry, CALLED - pattern: the pattern must be verified.
CALLED = -2
# Columns of the queue: a position in a table (then in rows), a key (then the rows' end), and the element.
Q_AT, Q_KEY, Q_ELEMENT, Q_COLUMNS = range(4)
DONE, MISS, FULL, CROWDED = range(4)
# Rows of offsets: of entries, and of patterns that must be verified.
O_ENTRIES, O_CALLED, O_ROWS = range(3)
ONE = np.uint64(1)


class Regions(NamedTuple):
    """The regions of each state: `region_list[first:end]`, for `spans[state]`; their tables are in `tables`."""

    spans: Matrix[Int32s]
    region_list: Int32s
    regions: Matrix[Int64s]
    tables: Matrix[Int64s]


class RunRows(NamedTuple):
    """The rows of all runs, as three views."""

    numbers: Matrix[Int32s]
    keys: Matrix[Int64s]
    limits: Matrix[Floats]


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


class Queue(NamedTuple):
    """The look-ups of a document, and the value of each test that is looked up."""

    rows: Writable[Matrix[Int64s]]
    values: Writable[Floats]


class LastElements(NamedTuple):
    """Per state, the last element that was queued, in the document with this stamp."""

    elements: Writable[Int32s]
    stamps: Writable[Int64s]


class JoinMarks(NamedTuple):
    """Entries that match, entries that were tried, and patterns that must be verified."""

    matched: Marks
    looked: Marks
    called: Marks


class JoinScratch(NamedTuple):
    """Buffers of a join; `text` has room for a string-value, `out` and `called_out` for results."""

    counts: Writable[Int64s]
    cache: ValueCache
    text: Writable[UInt8s]
    passed: PassedTests
    last: LastElements
    queue: Queue
    chains: ChainRoom
    marks: JoinMarks
    spare: Writable[Int32s]
    out: Writable[Int32s]
    called_out: Writable[Int32s]


@part
def run_slot(key, mask):
    """The slot at which the search for a run begins in its region's table."""
    return first_slot(np.uint64(key) * MIX_A >> np.uint64(40), mask)


@part
def find_run(region, key, regions, tables):
    """The position of a run in the table of its region, or the free one for it."""
    base, mask = np.uint64(regions[region, R_BASE]), np.uint64(regions[region, R_MASK])
    slot = run_slot(key, mask)
    found = tables[base + slot, T_KEY]
    while found != key and found != NO_RUN:
        slot = next_slot(slot, mask)
        found = tables[base + slot, T_KEY]
    return base + slot


@part
def test_holds(key, limit, element, first, elements, passed):
    """Whether a bound test holds, seen from the element of the pattern's last step."""
    place, test = key >> TEST_BITS, key & ((1 << TEST_BITS) - 1)
    climb = place if place < DOWN else elements.depths[element] - (place - DOWN)
    above = np.int64(element)
    for _ in range(climb):
        above = np.int64(elements.parents[above])
    return passes_test(above - first, test, limit, passed)


@part
def queue_tests(element, above, place, region, regions, passed, queue, counts):
    """Queue the tests in the list of the element's ancestor `above`, which is at `place`; False if there is no room.

    `above` is counted from the document's first element.
    """
    base, mask = regions.regions[region, R_BASE], np.uint64(regions.regions[region, R_MASK])
    at = passed.heads[above]
    while at >= 0:
        n = counts[J_QUEUED]
        if n == len(queue.rows):
            return False
        key = np.int64(place) << TEST_BITS | passed.links[at, L_TEST]
        slot = base + np.int64(run_slot(key, mask))
        prefetch(regions.tables, slot * T_COLUMNS)
        queue.rows[n, Q_AT] = region
        queue.rows[n, Q_KEY] = key
        queue.rows[n, Q_ELEMENT] = element
        queue.values[n] = passed.values[at]
        counts[J_QUEUED] = n + 1
        at = passed.links[at, L_NEXT]
    return True


@part
def queue_element(element, first, state, elements, regions, passed, last, queue, counts):
    """Queue the slots, in the regions of its state, of the tests that an element and its ancestors pass.

    False if there is no room.
    """
    spans = regions.spans
    begin, end = spans[state, S_FIRST], spans[state, S_END]
    places = np.uint64(0)
    for k in range(begin, end):
        places |= np.uint64(regions.regions[regions.region_list[k], R_PLACES])
    # Above an ancestor that it shares with an element of the same state, everything has been looked up.
    before = np.int64(-1)
    if not spans[state, S_BELOW]:
        if last.stamps[state] == counts[J_STAMP]:
            before = np.int64(last.elements[state])
        last.stamps[state] = counts[J_STAMP]
        last.elements[state] = element
    above, up, depth = np.int64(element), np.int64(0), np.int64(elements.depths[element])
    ups, downs = places & np.uint64(0xFFFFFFFF), places >> np.uint64(DOWN)
    if depth < DOWN:
        downs &= (np.uint64(2) << np.uint64(depth)) - ONE
    while above >= 0 and above != before and (ups or downs):
        here = ups & ONE != 0 or (depth < DOWN and downs >> np.uint64(depth) & ONE != 0)
        if here and passed.heads[above - first] >= 0:
            for k in range(begin, end):
                region = regions.region_list[k]
                wanted = np.uint64(regions.regions[region, R_PLACES])
                for turn in range(2):
                    place = up if turn == 0 else DOWN + depth
                    if place >= (DOWN if turn == 0 else ANYWHERE) or not wanted >> np.uint64(place) & ONE:
                        continue
                    if not queue_tests(element, above - first, place, region, regions, passed, queue, counts):
                        return False
        above = np.int64(elements.parents[above])
        before = np.int64(elements.parents[before]) if before >= 0 else before
        ups >>= ONE
        up += 1
        depth -= 1
        if depth < DOWN:
            downs &= (np.uint64(2) << np.uint64(depth)) - ONE
    return True


@rare
def find_runs(regions, row_keys, queue, counts):
    """Keep the queued look-ups that have a run, with their rows."""
    tables, rows, kept = regions.tables, queue.rows, 0
    for n in range(counts[J_QUEUED]):
        key = rows[n, Q_KEY]
        at = find_run(rows[n, Q_AT], key, regions.regions, tables)
        if tables[at, T_KEY] == key:
            run = tables[at, T_RUN]
            row = run >> RUN_BITS
            prefetch(row_keys, row * W_COLUMNS)
            rows[kept, Q_AT] = row
            rows[kept, Q_KEY] = row + (run & ((1 << RUN_BITS) - 1))
            rows[kept, Q_ELEMENT] = rows[n, Q_ELEMENT]
            queue.values[kept] = queue.values[n]
            kept += 1
    counts[J_QUEUED] = kept


@part
def other_tests_hold(row, element, first, elements, rows, others, passed):
    """Whether the tests of a run's row besides the first one hold."""
    if not test_holds(rows.keys[row, W_SECOND], rows.limits[row, W_SECOND_LIMIT], element, first, elements, passed):
        return False
    held, pattern = True, np.int64(rows.numbers[row, W_MORE])
    k = others.begins[pattern] + 1 if pattern != NONE else np.int64(0)
    while held and pattern != NONE and k < others.begins[pattern + 1]:
        held = test_holds(others.keys[k], others.limits[k], element, first, elements, passed)
        k += 1
    return held


@rare
def take_rows(first, elements, translation, patterns, queue, room, passed, marks, counts):
    """Mark the matching patterns of the queued runs, and those that must be verified; no pattern is marked as both."""
    rows, others, chains = patterns.rows, patterns.others, patterns.chains
    matched, looked, called = marks.matched, marks.looked, marks.called
    for n in range(counts[J_QUEUED]):
        element, value = queue.rows[n, Q_ELEMENT], queue.values[n]
        for row in range(queue.rows[n, Q_AT], queue.rows[n, Q_KEY]):
            if rows.limits[row, W_LIMIT] > value:
                break
            entry = rows.numbers[row, W_ENTRY]
            if entry <= CALLED:
                mark_with_summary(called.bits, called.summary, CALLED - entry)
                continue
            second = rows.keys[row, W_SECOND]
            if second != NONE:
                mark_with_summary(looked.bits, looked.summary, entry)
                if second == CHAIN:
                    chain = np.int64(rows.numbers[row, W_MORE])
                    below = chain_below(
                        chain, element, first, counts[J_STAMP], elements, translation, chains, room, passed
                    )
                    if below == YES:
                        mark_with_summary(matched.bits, matched.summary, entry)
                        unmark(called.bits, chains.patterns[chain])
                    elif below == MAYBE and not is_marked(matched.bits, entry):
                        mark_with_summary(called.bits, called.summary, chains.patterns[chain])
                    continue
                if not other_tests_hold(row, element, first, elements, rows, others, passed):
                    continue
            mark_with_summary(matched.bits, matched.summary, entry)


@part
def count_marks(marks, spare):
    """Count the marked numbers, and clear the marks."""
    return read_few_marks(marks.bits, marks.summary, spare, np.int64(0))


@part
def has_regions(first, last, states, spans):
    """Whether the states of all elements of a document have regions: YES, NO, or MAYBE if some are not built yet."""
    found = YES
    for element in range(first, last):
        state = states[element]
        span = spans[state, S_FIRST] if 0 <= state < spans.shape[0] else UNKNOWN
        if state >= 0 and span == UNKNOWN:
            return MAYBE
        if state < 0 or span == TOO_LARGE:
            found = NO
    return found


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


@kernel
def join_documents(
    elements: Elements,
    values: Values,
    translation: Int32s,
    states: Int32s,
    tests: ValueTests,
    patterns: JoinPatterns,
    scratch: JoinScratch,
    unknown: Writable[Bools],
    offsets: Writable[Matrix[Int64s]],
    start: int,
) -> int:
    """The entries of each document from `start` on, ascending; return the first document that is not done, and why.

    Also the patterns that must be verified. `offsets` has two rows, for entries and for these patterns. `unknown` marks
    the documents that are left to the verifier as a whole.
    """
    counts, passed, queue, called = scratch.counts, scratch.passed, scratch.queue, scratch.marks.called
    regions, spans = patterns.regions, patterns.regions.spans
    for document in range(start, len(elements.offsets) - 1):
        first, last = elements.offsets[document], elements.offsets[document + 1]
        written, called_before = offsets[O_ENTRIES, document], offsets[O_CALLED, document]
        offsets[O_ENTRIES, document + 1], offsets[O_CALLED, document + 1] = written, called_before
        if called_before + 64 * len(called.bits) + 8 > len(scratch.called_out):
            counts[J_WHY] = FULL
            return document
        counts[J_STAMP] += 1
        counts[J_PASSED] = counts[J_QUEUED] = 0
        covered = has_regions(first, last, states, spans)
        if covered == MAYBE:
            counts[J_WHY] = MISS
            return document
        found = covered == YES and note_values(
            first, last, elements.names, values, translation, tests, scratch.cache, scratch.text, passed, counts
        )
        unknown[document] = not found
        if not found:
            continue
        if len(patterns.chains.codes):
            link_names(first, last, elements.names, translation, counts[J_STAMP], scratch.chains.named)
        for element in range(first, last):
            state = states[element]
            if spans[state, S_FIRST] < spans[state, S_END] and not queue_element(
                element, first, state, elements, regions, passed, scratch.last, queue, counts
            ):
                counts[J_WHY] = CROWDED
                return document
        find_runs(regions, patterns.rows.keys, queue, counts)
        take_rows(first, elements, translation, patterns, queue, scratch.chains, passed, scratch.marks, counts)
        written = write_matches(written, scratch)
        called_end = read_few_marks(called.bits, called.summary, scratch.called_out, called_before)
        if written < 0:
            counts[J_WHY] = FULL
            return document
        offsets[O_ENTRIES, document + 1], offsets[O_CALLED, document + 1] = written, called_end
    counts[J_WHY] = DONE
    return len(elements.offsets) - 1


@kernel
def place_runs(
    regions: Matrix[Int64s], region_of: Int32s, keys: Int64s, runs: Int64s, tables: Writable[Matrix[Int64s]]
) -> None:
    """Insert runs into the tables of their regions."""
    for k in range(len(keys)):
        at = find_run(region_of[k], keys[k], regions, tables)
        tables[at, T_KEY] = keys[k]
        tables[at, T_RUN] = runs[k]
