# mypy: allow-untyped-defs, allow-untyped-calls
"""Joins: documents against patterns that one element decides (`ancestor_tests.py`), without verifying anything.

    values of an element ──▶ the tests that it passes, a list for each element
    state of an element  ──▶ its regions: of each, a small table (place, test) ──▶ a run of patterns

For every element, the tests that it and its ancestors pass are looked up in the regions of its state; a run holds the
patterns whose path the state has and which wait for this test at this place, in the order of their limits: those up to
the value are met. One with more tests looks for these in the lists of the ancestors that they are bound to. What a
look-up costs is waiting for memory; so a document's look-ups are queued first, and tables and rows fetched meanwhile.

A *chain* is called by a test at the end of the path that leads to it, and looked for below: from an element with its
last name its path is followed upwards, step by step and test by test, by the depths at which each may stand.

Patterns that have to be verified are called in the same way, by a test at the end of the path that leads to it.

Invariant: patterns that are found match. A document is left to the verifier when an element has no state, a state no
regions, or a string-value was too long to be put together; and a chain where there is too much below.
"""

import numpy as np

from pathcast.kernels import kernel, lowest_bit, part, prefetch, rare

from ...arrays.bitset_kernels import mark_with_summary, read_few_marks
from .passed_tests_kernels import J_LOOKED, J_PASSED, J_QUEUED, J_STAMP, J_WHY, note_values

# Places: so many levels up, DOWN + depth, or ANYWHERE above. A run's key is the place and the test.
DOWN, ANYWHERE, PLACES, TEST_BITS = 32, 63, 64, 26
# Columns of regions: where the table begins, its size less one, and the places that its runs are for.
R_BASE, R_MASK, R_PLACES, R_COLUMNS = range(4)
# Of each state: its regions, from .. to; whether patterns that need a test further down are among them.
S_FIRST, S_END, S_BELOW, S_COLUMNS = range(4)
UNKNOWN, TOO_LARGE = -1, -2
# A region's table: keys and the runs' rows, from (shifted by RUN_BITS) and how many.
T_KEY, T_RUN, T_COLUMNS = range(3)
NO_RUN, RUN_BITS = -1, 24
# Rows, half a cache line each, as int32, int64 and float64: the pattern's entry, its number if it has more than two
# tests; the key of the second; and the limits of both.
W_ENTRY, W_MORE = 0, 1
W_SECOND, W_LIMIT, W_SECOND_LIMIT, W_COLUMNS = 1, 2, 3, 4
# In the place of a second test: there is none; or the pattern is a chain.
NONE, CHAIN = -1, -2
# Depths are bits of a word. With more elements than this to look at, a chain is left to the verifier.
DEEPEST, MOST_BELOW = 62, 64
# Columns of `named`: of each name (+ 1) the first element and its stamp; of each element the next of its name.
N_FIRST, N_STAMP, N_NEXT, N_COLUMNS = range(4)
NO, YES, MAYBE = range(3)
# In the place of an entry, CALLED - pattern: the pattern has to be verified.
CALLED = -2
# Columns of what is queued: a place in a table (then in rows), a key (then the rows' end), and the element.
Q_AT, Q_KEY, Q_ELEMENT, Q_COLUMNS = range(4)
DONE, MISS, FULL, CROWDED = range(4)
HASH_A = np.uint64(0x9E3779B97F4A7C15)
ONE = np.uint64(1)


@part
def run_slot(key, mask):
    """Where the search for a run begins in its region's table."""
    return np.int64(np.uint64(key) * HASH_A >> np.uint64(40) & np.uint64(mask))


@part
def test_holds(key, limit, element, first, parents, depths, heads, passed, passed_values):
    """Whether a bound test holds, seen from the element of the pattern's last step."""
    place, test = key >> TEST_BITS, key & ((1 << TEST_BITS) - 1)
    climb = place if place < DOWN else depths[element] - (place - DOWN)
    above = np.int64(element)
    for _ in range(climb):
        above = np.int64(parents[above])
    at = heads[above - first]
    while at >= 0 and (passed[at, 0] != test or passed_values[at] < limit):
        at = passed[at, 1]
    return at >= 0


@part
def depths_up(depths, is_deep):
    """The depths, as bits, of the parents of what is at some depths, or of all above; an element has at least 1."""
    if is_deep:
        depths |= depths >> np.uint64(1)
        depths |= depths >> np.uint64(2)
        depths |= depths >> np.uint64(4)
        depths |= depths >> np.uint64(8)
        depths |= depths >> np.uint64(16)
        depths |= depths >> np.uint64(32)
    return depths >> ONE & ~ONE


@part
def chain_holds(
    begin, end, element, first, names, parents, depths, translation, chain_codes, chain_limits, heads, passed,
    passed_values, path,
):  # fmt: skip
    """Whether a chain holds that ends at an element: its steps and tests, from the last step to the first."""
    above = np.int64(element)
    while above >= 0:
        path[depths[above]] = above
        above = np.int64(parents[above])
    found = ONE << np.uint64(depths[element])
    step = np.int64(-1)
    for k in range(begin, end):
        code = chain_codes[k]
        if code < 0:
            if step >= 0:
                found = depths_up(found, step & 1 != 0)
            step = -1 - code
        left = found if code >= 0 or step > 1 else np.uint64(0)
        while left:
            depth = np.uint64(lowest_bit(left))
            left &= left - ONE
            if code < 0:
                held = translation[names[path[depth]]] == (step >> 1) - 1
            else:
                at = heads[path[depth] - first]
                while at >= 0 and (passed[at, 0] != code or passed_values[at] < chain_limits[k]):
                    at = passed[at, 1]
                held = at >= 0
            if not held:
                found &= ~(ONE << depth)
        if not found:
            return False
    return step & 1 != 0 or found & np.uint64(2) != 0


@rare
def link_names(first, last, names, translation, stamp, named):
    """Make the lists of a document's elements of each name, in document order."""
    for element in range(last - 1, first - 1, -1):
        name = translation[names[element]] + 1
        named[element - first, N_NEXT] = named[name, N_FIRST] if named[name, N_STAMP] == stamp else NONE
        named[name, N_FIRST] = element
        named[name, N_STAMP] = stamp


@rare
def chain_below(
    pattern, element, first, names, parents, depths, ends, translation, chain_begin, chain_codes, chain_limits, stamp,
    named, heads, passed, passed_values, path,
):  # fmt: skip
    """Whether a chain, with a test that an element passes, ends at it or below it: NO, YES, or too much to look at."""
    begin, end = chain_begin[pattern], chain_begin[pattern + 1]
    name = -1 - chain_codes[begin] >> 1
    below = np.int64(element)
    if name:
        below = named[name, N_FIRST] if named[name, N_STAMP] == stamp else np.int64(NONE)
    looked = 0
    while below != NONE and below < ends[element]:
        if below >= element:
            looked += 1
            if looked > MOST_BELOW or depths[below] > DEEPEST:
                return MAYBE
            if chain_holds(begin, end, below, first, names, parents, depths, translation, chain_codes, chain_limits,
                           heads, passed, passed_values, path):  # fmt: skip
                return YES
        below = named[below - first, N_NEXT] if name else below + 1
    return NO


@part
def queue_element(
    element, first, state, parents, depths, spans, region_list, regions, tables, heads, passed, passed_values, last_of,
    last_stamps, counts, queue, queue_values,
):  # fmt: skip
    """Queue the places where the tests that an element and its ancestors pass may stand in its state's regions.

    False when there is no room for that.
    """
    begin, end = spans[state, S_FIRST], spans[state, S_END]
    places = np.uint64(0)
    for k in range(begin, end):
        places |= np.uint64(regions[region_list[k], R_PLACES])
    # Above an ancestor that it shares with an element of the same state, all has been looked up.
    before = np.int64(-1)
    if not spans[state, S_BELOW]:
        if last_stamps[state] == counts[J_STAMP]:
            before = np.int64(last_of[state])
        last_stamps[state] = counts[J_STAMP]
        last_of[state] = element
    above, up, depth = np.int64(element), np.int64(0), np.int64(depths[element])
    ups, downs = places & np.uint64(0xFFFFFFFF), places >> np.uint64(DOWN)
    if depth < DOWN:
        downs &= (np.uint64(2) << np.uint64(depth)) - ONE
    while above >= 0 and above != before and (ups or downs):
        here = ups & ONE != 0 or (depth < DOWN and downs >> np.uint64(depth) & ONE != 0)
        if here and heads[above - first] >= 0:
            for k in range(begin, end):
                region = region_list[k]
                wanted = np.uint64(regions[region, R_PLACES])
                for turn in range(2):
                    place = up if turn == 0 else DOWN + depth
                    if place >= (DOWN if turn == 0 else ANYWHERE) or not wanted >> np.uint64(place) & ONE:
                        continue
                    base, mask = regions[region, R_BASE], regions[region, R_MASK]
                    at = heads[above - first]
                    while at >= 0:
                        n = counts[J_QUEUED]
                        if n == len(queue):
                            return False
                        key = np.int64(place) << TEST_BITS | passed[at, 0]
                        slot = base + run_slot(key, mask)
                        prefetch(tables, slot * T_COLUMNS)
                        queue[n, Q_AT] = region
                        queue[n, Q_KEY] = key
                        queue[n, Q_ELEMENT] = element
                        queue_values[n] = passed_values[at]
                        counts[J_QUEUED] = n + 1
                        at = passed[at, 1]
        above = np.int64(parents[above])
        before = np.int64(parents[before]) if before >= 0 else before
        ups >>= ONE
        up += 1
        depth -= 1
        if depth < DOWN:
            downs &= (np.uint64(2) << np.uint64(depth)) - ONE
    return True


@rare
def find_runs(regions, tables, numbered, counts, queue, queue_values):
    """Of what is queued leave the runs that there are, with their rows."""
    kept = 0
    for n in range(counts[J_QUEUED]):
        region, key = queue[n, Q_AT], queue[n, Q_KEY]
        base, mask = regions[region, R_BASE], regions[region, R_MASK]
        slot = run_slot(key, mask)
        found = tables[base + slot, T_KEY]
        while found != key and found != NO_RUN:
            slot = (slot + 1) & mask
            found = tables[base + slot, T_KEY]
        if found == key:
            run = tables[base + slot, T_RUN]
            row = run >> RUN_BITS
            prefetch(numbered, row * W_COLUMNS)
            queue[kept, Q_AT] = row
            queue[kept, Q_KEY] = row + (run & ((1 << RUN_BITS) - 1))
            queue[kept, Q_ELEMENT] = queue[n, Q_ELEMENT]
            queue_values[kept] = queue_values[n]
            kept += 1
    counts[J_QUEUED] = kept


@rare
def take_rows(
    first, names, parents, depths, ends, translation, rows, numbered, limits, rest_begin, rests, rest_limits,
    chain_begin, chain_codes, chain_limits, chain_patterns, path, named, heads, passed, passed_values, counts, queue,
    queue_values, marks, summary, looked, looked_summary, called, called_summary,
):  # fmt: skip
    """Mark the patterns of the runs in the queue that match, and those that have to be verified."""
    for n in range(counts[J_QUEUED]):
        element, value = queue[n, Q_ELEMENT], queue_values[n]
        for row in range(queue[n, Q_AT], queue[n, Q_KEY]):
            if limits[row, W_LIMIT] > value:
                break
            entry = rows[row, W_ENTRY]
            if entry <= CALLED:
                mark_with_summary(called, called_summary, CALLED - entry)
                continue
            second = numbered[row, W_SECOND]
            if second != NONE:
                mark_with_summary(looked, looked_summary, entry)
                if second == CHAIN:
                    chain = np.int64(rows[row, W_MORE])
                    held_below = chain_below(chain, element, first, names, parents, depths, ends, translation,
                                             chain_begin, chain_codes, chain_limits, counts[J_STAMP], named,
                                             heads, passed, passed_values, path)  # fmt: skip
                    if held_below == YES:
                        mark_with_summary(marks, summary, entry)
                    elif held_below == MAYBE:
                        mark_with_summary(called, called_summary, chain_patterns[chain])
                    continue
                if not test_holds(second, limits[row, W_SECOND_LIMIT], element, first, parents, depths, heads, passed,
                                  passed_values):  # fmt: skip
                    continue
                held, pattern = True, np.int64(rows[row, W_MORE])
                k = rest_begin[pattern] + 1 if pattern != NONE else np.int64(0)
                while held and pattern != NONE and k < rest_begin[pattern + 1]:
                    held = test_holds(rests[k], rest_limits[k], element, first, parents, depths, heads, passed,
                                      passed_values)  # fmt: skip
                    k += 1
                if not held:
                    continue
            mark_with_summary(marks, summary, entry)


@part
def count_marks(marks, summary, scratch):
    """How many numbers are marked; the marks are wiped."""
    return read_few_marks(marks, summary, scratch, np.int64(0))


@kernel(
    "int64(ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1],"
    " ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_u1[::1], ro_u1[::1], ro_i4[::1], ro_i4[::1],"
    " int64, int64, int64, ro_i1[:, ::1], ro_i4[::1], ro_i4[:, ::1], ro_u8[::1], ro_f8[::1], ro_i4[::1], ro_u1[::1],"
    " i8[::1], f8[:, ::1], i8[::1],"
    " ro_i4[:, ::1], ro_i4[::1], ro_i8[:, ::1], ro_i8[:, ::1], ro_i4[:, ::1], ro_i8[:, ::1], ro_f8[:, ::1],"
    " ro_i8[::1], ro_i8[::1], ro_f8[::1], ro_i8[::1], ro_i8[::1], ro_f8[::1], ro_i4[::1],"
    " i4[::1], i8[:, ::1], i8[::1], i8[:, ::1], f8[::1], u1[::1], i4[::1], i4[:, ::1], f8[::1], i4[::1], i8[::1],"
    " i8[:, ::1], f8[::1], u8[::1], u8[::1], u8[::1], u8[::1], u8[::1], u8[::1], i4[::1], b1[::1], i8[::1], i4[::1],"
    " i8[::1], i4[::1], int64)"
)
def join_documents(
    offsets, names, parents, depths, ends, attribute_begin, attribute_names, attribute_start, attribute_length,
    text_begin, text_end, text_parent, text_start, text_length, data, arena, translation, states,
    longest, known, known_groups, asks, slots, tests, hashes, numbers, groups, literals, hits, samples, sampled,
    spans, region_list, regions, tables, rows, numbered, limits, rest_begin, rests, rest_limits,
    chain_begin, chain_codes, chain_limits, chain_patterns, path, named, counts, values, value_numbers, joined, heads,
    passed, passed_values, last_of, last_stamps, queue, queue_values,
    marks, summary, looked, looked_summary, called, called_summary, spare, unknown, out_offsets, out, called_offsets,
    called_out, start,
):  # fmt: skip
    """The entries of each document from `start` on, ascending; the first document that is not done, with why.

    And the patterns that have to be verified, in `called_out`. `unknown` marks the documents that are left to the
    verifier as a whole.
    """
    for document in range(start, len(offsets) - 1):
        first, last = offsets[document], offsets[document + 1]
        written = out_offsets[document]
        out_offsets[document + 1] = written
        called_offsets[document + 1] = called_offsets[document]
        if called_offsets[document] + 64 * len(called) + 8 > len(called_out):
            counts[J_WHY] = FULL
            return np.int64(document)
        counts[J_STAMP] += 1
        counts[J_PASSED] = counts[J_QUEUED] = 0
        found = True
        for element in range(first, last):
            state = states[element]
            span = spans[state, S_FIRST] if 0 <= state < spans.shape[0] else UNKNOWN
            if state >= 0 and span == UNKNOWN:
                counts[J_WHY] = MISS
                return np.int64(document)
            found = found and state >= 0 and span != TOO_LARGE
        if found:
            found = note_values(
                first, last, names, attribute_begin, attribute_names, attribute_start, attribute_length, text_begin,
                text_end, text_parent, text_start, text_length, data, arena, translation, longest, asks, slots, tests,
                hashes, numbers, groups, literals, known, known_groups, values, value_numbers, joined, counts, heads,
                passed, passed_values, hits, samples, sampled,
            )  # fmt: skip
        unknown[document] = not found
        if not found:
            continue
        if len(chain_codes):
            link_names(first, last, names, translation, counts[J_STAMP], named)
        for element in range(first, last):
            state = states[element]
            if spans[state, S_FIRST] < spans[state, S_END] and not queue_element(
                element, first, state, parents, depths, spans, region_list, regions, tables, heads, passed,
                passed_values, last_of, last_stamps, counts, queue, queue_values,
            ):  # fmt: skip
                counts[J_WHY] = CROWDED
                return np.int64(document)
        find_runs(regions, tables, numbered, counts, queue, queue_values)
        take_rows(first, names, parents, depths, ends, translation, rows, numbered, limits, rest_begin, rests,
                  rest_limits, chain_begin, chain_codes, chain_limits, chain_patterns, path, named, heads, passed,
                  passed_values, counts, queue, queue_values, marks, summary, looked, looked_summary, called,
                  called_summary)  # fmt: skip
        if written + 64 * len(marks) + 8 > len(out):
            # Rarely: is there room for those that there are?
            count = count_marks(marks, summary, spare)
            if written + count + 8 > len(out):
                counts[J_WHY] = FULL
                count_marks(looked, looked_summary, spare)
                read_few_marks(called, called_summary, called_out, called_offsets[document])
                return np.int64(document)
            for k in range(count):
                out[written + k] = spare[k]
            written += count
        else:
            written = read_few_marks(marks, summary, out, written)
        # Those that were looked at and do not match, besides those that do.
        for k in range(out_offsets[document], written):
            place = np.uint64(out[k])
            looked[place >> np.uint64(6)] &= ~(ONE << (place & np.uint64(63)))
        counts[J_LOOKED] += written - out_offsets[document] + count_marks(looked, looked_summary, spare)
        out_offsets[document + 1] = written
        called_offsets[document + 1] = read_few_marks(called, called_summary, called_out, called_offsets[document])
    counts[J_WHY] = DONE
    return np.int64(len(offsets) - 1)


@kernel("void(ro_i8[:, ::1], ro_i4[::1], ro_i8[::1], ro_i8[::1], i8[:, ::1])")
def place_runs(regions, region_of, keys, runs, tables):
    """Put runs into the tables of their regions."""
    for k in range(len(keys)):
        base, mask = regions[region_of[k], R_BASE], regions[region_of[k], R_MASK]
        slot = run_slot(keys[k], mask)
        while tables[base + slot, T_KEY] != NO_RUN:
            slot = (slot + 1) & mask
        tables[base + slot, T_KEY] = keys[k]
        tables[base + slot, T_RUN] = runs[k]
