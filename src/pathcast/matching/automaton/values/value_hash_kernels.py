# mypy: allow-untyped-defs, allow-untyped-calls
"""The hash table of value tests, for kernels: by element, place, kind and literal.

A test on whichever element has the element ANY. Of a group of ranges (the same value against different thresholds) one
stands in the table for all. What short values pass is remembered: documents repeat them. Tests are added while other
threads look up; these go by the number that they know of.
"""

import numpy as np

from pathcast.kernels import kernel, part, rare

from .comparison_kernels import number, same_text

ANY, SELF_VALUE, TEXT_VALUE = -1, -2, -3
EQUAL_TEXT, EQUAL_NUMBER, LOW, HIGH, GRAM = range(5)
# Rows of the table of tests, and what a value is asked about.
D_ELEMENT, D_PLACE, D_KIND, D_LITERAL, D_LENGTH, D_ROWS = range(6)
ASKS_TEXT, ASKS_NUMBER, ASKS_RANGE = 1, 2, 4
# Rows of `asks`, by name + 1: attributes, string-values and text nodes; at 0: of whichever element. The last one is a
# filter of the string-values that whichever element is asked for, by length and last byte.
OF_ATTRIBUTE, OF_SELF, OF_TEXT, WHICHEVER, ASKED_ROWS = range(5)
SPREAD = 131
GRAM_BYTES = 4
# Columns of what is remembered of values: their bytes, whose they are, and by kind the tests that they pass (NO_TEST:
# none), of ranges the groups. The last row is for values that are not short.
V_BYTES, V_WHOSE, V_TESTS, V_COLUMNS, KINDS = 0, 1, 2, 6, 4
NO_TEST = -1
VALUES = 1 << 12
SHORT = 8
HASH_A, HASH_B = np.uint64(0x9E3779B97F4A7C15), np.uint64(0x100000001B3)
HASH_C = np.uint64(0xC2B2AE3D27D4EB4F)
SEED = np.uint64(0xCBF29CE484222325)


@part
def hash_byte(hashed, byte):
    """Take one byte more into a hash."""
    return (hashed ^ np.uint64(byte)) * HASH_B


@part
def slot_of(hashed, element, place, kind, mask):
    """Where the search for a test begins."""
    mixed = (hashed ^ np.uint64(element + 8) * HASH_A) * HASH_B ^ np.uint64(place + 8) * HASH_A + np.uint64(kind)
    mixed ^= mixed >> np.uint64(29)
    return np.int64(mixed * HASH_A >> np.uint64(20) & np.uint64(mask))


@part
def asked_of_whichever(data, length, asks):
    """What whichever element's string-value is asked about, if this one may equal one of them."""
    last = np.int64(data[length - 1]) if length else np.int64(0)
    return asks[WHICHEVER, (length * SPREAD + last) % asks.shape[1]]


@part
def hash_number(value):
    """A hash that is equal for equal numbers."""
    scaled = value * 1024.0
    whole = np.int64(scaled) if -9e18 < scaled < 9e18 else np.int64(0)
    return SEED ^ np.uint64(whole) * HASH_A


@part
def gram_place(gram):
    """A four-byte piece's bit in the filter."""
    return np.int64(gram * HASH_A >> np.uint64(48))


@kernel("void(ro_i4[:, ::1], ro_f8[::1], ro_u1[::1], int64, int64, u8[::1], i4[::1], u8[::1])")
def index_tests(rows, numbers, literals, first, count, hashes, slots, grams):
    """Put the tests from `first` on into the table; of a group of ranges only one, which stands for all."""
    mask = len(slots) - 1
    for test in range(first, count):
        kind = rows[D_KIND, test]
        hashed = SEED
        if kind == EQUAL_NUMBER:
            hashed = hash_number(numbers[test])
        elif kind == EQUAL_TEXT or kind == GRAM:
            gram = np.uint64(0)
            for k in range(rows[D_LENGTH, test]):
                byte = literals[rows[D_LITERAL, test] + k]
                hashed = hash_byte(hashed, byte)
                gram = gram >> np.uint64(8) | np.uint64(byte) << np.uint64(24)
            if kind == GRAM:
                place = gram_place(gram)
                grams[place >> 6] |= np.uint64(1) << np.uint64(place & 63)
                hashed = gram
        hashes[test] = hashed
        slot = slot_of(hashed, rows[D_ELEMENT, test], rows[D_PLACE, test], kind, mask)
        known = False
        while slots[slot] >= 0 and not known:
            other = slots[slot]
            known = (
                (kind == LOW or kind == HIGH)
                and rows[D_KIND, other] == kind
                and rows[D_ELEMENT, other] == rows[D_ELEMENT, test]
                and rows[D_PLACE, other] == rows[D_PLACE, test]
            )
            slot = (slot + 1) & mask
        if not known:
            slots[slot] = test


@rare
def find_test(
    count, slots, rows, hashes, numbers, literals, hashed, element, place, kind, value, data, start, length,
):  # fmt: skip
    """The test of this kind, among the first `count`, that a value passes, or -1; for ranges, one of their group.

    Another thread may put later ones into the table meanwhile.
    """
    mask = len(slots) - 1
    slot = slot_of(hashed, element, place, kind, mask)
    while True:
        test = np.int64(slots[slot])
        if test < 0:
            return test
        if (
            test < count
            and hashes[test] == hashed
            and rows[D_KIND, test] == kind
            and rows[D_ELEMENT, test] == element
            and rows[D_PLACE, test] == place
            and (kind != EQUAL_NUMBER or numbers[test] == value)
            and (
                kind != EQUAL_TEXT
                or same_text(data, start, length, literals, rows[D_LITERAL, test], rows[D_LENGTH, test])
            )
        ):
            return test
        slot = (slot + 1) & mask


@rare
def resolve(
    data, start, length, holder, place, asked, row, slots, tests, hashes, numbers, groups, literals, known,
    known_groups, values, value_numbers,
):  # fmt: skip
    """Find the tests that a value passes, for `row` of what is remembered."""
    for kind in range(KINDS):
        values[row, V_TESTS + kind] = NO_TEST
    if asked & ASKS_TEXT:
        hashed = SEED
        for k in range(length):
            hashed = hash_byte(hashed, data[start + k])
        test = find_test(known, slots, tests, hashes, numbers, literals, hashed, holder, place, np.int32(EQUAL_TEXT),
                         0.0, data, start, length)  # fmt: skip
        if test >= 0:
            values[row, V_TESTS + EQUAL_TEXT] = test
    value = np.nan
    if asked & (ASKS_NUMBER | ASKS_RANGE):
        value = number(data, start, length)
    value_numbers[row] = value
    if np.isnan(value):
        return
    if asked & ASKS_NUMBER:
        test = find_test(known, slots, tests, hashes, numbers, literals, hash_number(value), holder, place,
                         np.int32(EQUAL_NUMBER), value, data, start, length)  # fmt: skip
        if test >= 0:
            values[row, V_TESTS + EQUAL_NUMBER] = test
    if asked & ASKS_RANGE:
        for kind in range(LOW, HIGH + 1):
            test = find_test(known, slots, tests, hashes, numbers, literals, SEED, holder, place, np.int32(kind), 0.0,
                             data, start, length)  # fmt: skip
            if test >= 0 and groups[test] < known_groups:
                values[row, V_TESTS + kind] = groups[test]


@part
def remembered(
    data, start, length, holder, place, asked, slots, tests, hashes, numbers, groups, literals, known, known_groups,
    values, value_numbers,
):  # fmt: skip
    """The row of `values` that has the tests which a value passes: short values are looked up once and remembered."""
    row = np.int64(VALUES)
    text = np.uint64(0)
    whose = np.int64(0)
    if length <= SHORT:
        for k in range(length):
            text |= np.uint64(data[start + k]) << np.uint64(8 * k)
        whose = np.int64(place + 8) << 36 | np.int64(holder + 8) << 4 | (length + 1)
        row = np.int64((text * HASH_A ^ np.uint64(whose)) * HASH_C >> np.uint64(52))
    if row == VALUES or values[row, V_WHOSE] != whose or values[row, V_BYTES] != np.int64(text):
        resolve(data, start, length, holder, place, asked, row, slots, tests, hashes, numbers, groups, literals, known,
                known_groups, values, value_numbers)  # fmt: skip
        values[row, V_WHOSE] = whose
        values[row, V_BYTES] = np.int64(text)
    return row
