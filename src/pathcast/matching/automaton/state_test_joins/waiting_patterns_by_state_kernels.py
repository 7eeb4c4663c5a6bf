# mypy: allow-untyped-defs, allow-untyped-calls
"""Regions: for a state, a small table from place and test to the run of patterns that wait for them there.

Each element's tests, and those of its ancestors at the places of its state's regions, are looked up. A region has 64
bits per place: tests without their bit are not looked up. The look-ups of a document are queued first, and everything
that they read is prefetched, as a look-up mostly waits for memory.

A run is *pure* if its patterns have no other tests: it is read once per document, unless a larger value comes later.

Invariant: all runs of a state's regions whose tests an element and its ancestors pass are found.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Floats, Int32s, Int64s, Matrix, Writable, kernel, part, prefetch, rare
from pathcast.kernels.hash_table_kernels import MIX_A, first_slot, next_slot

from .satisfied_value_tests_kernels import J_QUEUED, J_STAMP, L_NEXT, L_TEST, sign_of
from .unbranched_path_search_kernels import MAYBE, NO, YES

# Places: levels up, DOWN + depth, or ANYWHERE above. A run's key is the place and the test.
DOWN, ANYWHERE, PLACES, TEST_BITS = 32, 63, 64, 26
# Added to the place of a test under `not`: the element there must fail it. No pattern waits for such a test.
NEGATED = PLACES
# Columns of regions: where the table begins, its size less one, and the rows of its places, from .. to.
R_BASE, R_MASK, R_FIRST, R_END, R_COLUMNS = range(5)
# Columns of a region's places: the place, and the bits of the tests that its runs wait for there.
P_PLACE, P_SIGNS, P_COLUMNS = range(3)
# Per state: its regions, from .. to; whether they contain patterns that need a test further down.
S_FIRST, S_END, S_BELOW, S_COLUMNS = range(4)
UNKNOWN, TOO_LARGE = -1, -2
# A region's table: keys and the runs' rows, as their first row (shifted by RUN_BITS) and their count.
T_KEY, T_RUN, T_COLUMNS = range(3)
NO_RUN, RUN_BITS = -1, 24
# Added to a run that no other tests belong to.
PURE = 1 << 62
# Rows, as int32 and float64: the pattern's entry, its number if it has more than two tests, and the limit of its first;
# beside them, as int64 and float64: the key of the second, and its limit, or the chain in brief.
W_ENTRY, W_MORE = 0, 1
W_LIMIT, W_COLUMNS = 1, 2
W_SECOND, W_SECOND_LIMIT = 0, 1
# Columns of the queue: a position in a table (then in rows), a key (then the rows' end), and the element.
Q_AT, Q_KEY, Q_ELEMENT, Q_COLUMNS = range(4)
# Columns of `RecentRuns.runs`: a run's first row, and the document's stamp; the number of runs is a power of two.
N_ROW, N_DOCUMENT, RECENT_COLUMNS, RECENT = 0, 1, 2, 1 << 10
# The number of ancestors that are listed for an element.
UPS = 32
# The number of 64-bit words of a cache line.
CACHE_LINE = 8


class Regions(NamedTuple):
    """The regions of each state: `region_list[first:end]`, for `spans[state]`; their tables are in `tables`."""

    spans: Matrix[Int32s]
    region_list: Int32s
    regions: Matrix[Int64s]
    places: Matrix[Int64s]
    tables: Matrix[Int64s]


class RunRows(NamedTuple):
    """The rows of all runs, as two views, and their second tests, as two views; pure runs do not need the latter."""

    numbers: Matrix[Int32s]
    limits: Matrix[Floats]
    seconds: Matrix[Int64s]
    second_limits: Matrix[Floats]


class Queue(NamedTuple):
    """The look-ups of a document, and the value of each test that is looked up."""

    rows: Writable[Matrix[Int64s]]
    values: Writable[Floats]


class RecentRuns(NamedTuple):
    """Pure runs that were taken, and the largest value that they were taken with."""

    runs: Writable[Matrix[Int64s]]
    values: Writable[Floats]


class LastElements(NamedTuple):
    """Per state, the last element that was queued, in the document with this stamp."""

    elements: Writable[Int32s]
    stamps: Writable[Int64s]


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
def list_ups(element, parents, ups):
    """List an element and its nearest ancestors, at most UPS; return their number."""
    above, up = np.int64(element), np.int64(0)
    while above >= 0 and up < UPS:
        ups[up] = above
        above = np.int64(parents[above])
        up += 1
    return up


@part
def climb_to(place, element, depths):
    """The number of levels from an element up to a place; negative if it is below the element."""
    return place if place < DOWN else np.int64(depths[element]) - (place - DOWN)


@part
def ancestor(climb, parents, ups):
    """The ancestor that is some levels above the element that `ups` is about."""
    above = ups[min(climb, UPS - 1)]
    for _ in range(UPS - 1, climb):
        above = np.int64(parents[above])
    return above


@part
def queue_tests(element, above, row, region, regions, passed, queue, counts):
    """Queue those tests in the list of the element's ancestor `above` that a region may have at a place.

    `above` is counted from the document's first element; `row` is that of the place. False if there is no room.
    """
    base, mask = np.uint64(regions.regions[region, R_BASE]), np.uint64(regions.regions[region, R_MASK])
    place, signs = regions.places[row, P_PLACE] << TEST_BITS, np.uint64(regions.places[row, P_SIGNS])
    at, n = np.int64(passed.heads[above]), counts[J_QUEUED]
    while at >= 0 and n < len(queue.rows):
        test = np.int64(passed.links[at, L_TEST])
        slot = np.int64(base) + np.int64(run_slot(place | test, mask))
        # Written in any case, and counted if the region may have it: a branch would often be mispredicted.
        queue.rows[n, Q_AT] = region
        queue.rows[n, Q_KEY] = place | test
        queue.rows[n, Q_ELEMENT] = element
        queue.values[n] = passed.values[at]
        n += signs & sign_of(test) != 0
        prefetch(regions.tables, slot * T_COLUMNS)
        at = np.int64(passed.links[at, L_NEXT])
    counts[J_QUEUED] = n
    return at < 0


@part
def levels_to_look_up(element, listed, state, spans, parents, ups, last, counts):
    """How many levels to look up for an element; above an ancestor that it shares with the last element of the same
    state, everything has been looked up.
    """
    levels = np.int64(1 << 30)
    if not spans[state, S_BELOW]:
        if last.stamps[state] == counts[J_STAMP]:
            before, up = np.int64(last.elements[state]), np.int64(0)
            while up < listed and before >= 0 and ups[up] != before:
                before = np.int64(parents[before])
                up += 1
            if up < listed and before >= 0:
                levels = up
        last.stamps[state] = counts[J_STAMP]
        last.elements[state] = element
    return levels


@part
def queue_element(element, first, state, elements, regions, ups, passed, last, queue, counts):
    """Queue the slots, in the regions of its state, of the tests that an element and its ancestors pass.

    False if there is no room.
    """
    spans = regions.spans
    listed = list_ups(element, elements.parents, ups)
    levels = levels_to_look_up(element, listed, state, spans, elements.parents, ups, last, counts)
    for k in range(spans[state, S_FIRST], spans[state, S_END]):
        region = np.int64(regions.region_list[k])
        for row in range(regions.regions[region, R_FIRST], regions.regions[region, R_END]):
            climb = climb_to(regions.places[row, P_PLACE], element, elements.depths)
            if climb < 0 or climb >= levels or climb >= elements.depths[element]:
                continue
            above = ancestor(climb, elements.parents, ups) - first
            if passed.signs[above] & np.uint64(regions.places[row, P_SIGNS]) and not queue_tests(
                element, above, row, region, regions, passed, queue, counts
            ):
                return False
    return True


@part
def is_taken(row, value, stamp, recent):
    """Whether a pure run has been taken with a value as large in this document; otherwise it counts as taken now."""
    at = row & (RECENT - 1)
    if recent.runs[at, N_ROW] == row and recent.runs[at, N_DOCUMENT] == stamp and recent.values[at] >= value:
        return True
    recent.runs[at, N_ROW] = row
    recent.runs[at, N_DOCUMENT] = stamp
    recent.values[at] = value
    return False


@rare
def find_runs(regions, run_rows, queue, recent, counts):
    """Keep the queued look-ups that have a run, with their rows; of a pure run only those that may add patterns."""
    tables, rows, kept = regions.tables, queue.rows, 0
    for n in range(counts[J_QUEUED]):
        key = rows[n, Q_KEY]
        at = find_run(rows[n, Q_AT], key, regions.regions, tables)
        if tables[at, T_KEY] == key:
            run = tables[at, T_RUN]
            pure = run & PURE != 0
            row = (run & (PURE - 1)) >> RUN_BITS
            if pure and is_taken(row, queue.values[n], counts[J_STAMP], recent):
                continue
            prefetch(run_rows.limits, row * W_COLUMNS)
            prefetch(run_rows.limits, row * W_COLUMNS + CACHE_LINE)
            if not pure:
                prefetch(run_rows.seconds, row * W_COLUMNS)
            rows[kept, Q_AT] = row
            rows[kept, Q_KEY] = row + (run & ((1 << RUN_BITS) - 1)) | (run & PURE)
            rows[kept, Q_ELEMENT] = rows[n, Q_ELEMENT]
            queue.values[kept] = queue.values[n]
            kept += 1
    counts[J_QUEUED] = kept


@rare
def prefetch_regions(first, last, states, regions):
    """Fetch the regions of the states of a document's elements: reading them one after the other would mostly wait."""
    spans, begins = regions.spans, regions.regions
    for element in range(first, last):
        state = states[element]
        for k in range(spans[state, S_FIRST], spans[state, S_END]):
            prefetch(begins, np.int64(regions.region_list[k]) * R_COLUMNS)
    for element in range(first, last):
        state = states[element]
        for k in range(spans[state, S_FIRST], spans[state, S_END]):
            region = regions.region_list[k]
            prefetch(regions.places, begins[region, R_FIRST] * P_COLUMNS)
            prefetch(regions.places, begins[region, R_END] * P_COLUMNS - 1)


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


@kernel
def place_runs(
    regions: Matrix[Int64s], region_of: Int32s, keys: Int64s, runs: Int64s, tables: Writable[Matrix[Int64s]]
) -> None:
    """Insert runs into the tables of their regions."""
    for k in range(len(keys)):
        at = find_run(region_of[k], keys[k], regions, tables)
        tables[at, T_KEY] = keys[k]
        tables[at, T_RUN] = runs[k]
