# mypy: allow-untyped-defs, allow-untyped-calls
"""The hash table of value tests, for kernels: by element, place, kind and literal.

A test on any element has the element ANY. A group of ranges (the same value against different thresholds) has one entry
for all. The tests that short values pass are cached, since documents repeat such values. Tests are added while other
threads look up values; a look-up ignores tests beyond the number that its thread knows.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Floats, Int8s, Int32s, Int64s, Matrix, UInt8s, UInt64s, Writable, kernel, part, rare
from pathcast.kernels.hash_table_kernels import FNV_PRIME, FNV_SEED, MIX_A, MIX_B, probe

from .value_comparison_kernels import number, same_text

ANY, SELF_VALUE, TEXT_VALUE = -1, -2, -3
EQUAL_TEXT, EQUAL_NUMBER, LOW, HIGH, GRAM = range(5)
# Rows of the table of tests, and the kinds of tests of a value.
D_ELEMENT, D_PLACE, D_KIND, D_LITERAL, D_LENGTH, D_ROWS = range(6)
ASKS_TEXT, ASKS_NUMBER, ASKS_RANGE = 1, 2, 4
# Rows of `asks`, by name + 1: attributes, string-values and text nodes; at 0: of any element. The last row is a filter
# of the string-values that tests on any element compare with, by length and last byte.
OF_ATTRIBUTE, OF_SELF, OF_TEXT, WHICHEVER, ASKED_ROWS = range(5)
SPREAD = 131
GRAM_BYTES = 4
# Columns of the cache of values: their bytes, whose they are, and by kind the tests that they pass (NO_TEST: none), or
# the groups of ranges. The last row is for long values.
V_BYTES, V_WHOSE, V_TESTS, V_COLUMNS, KINDS = 0, 1, 2, 6, 4
NO_TEST = -1
VALUES = 1 << 12
SHORT = 8


class ValueTestTable(NamedTuple):
    """The first `size` value tests and `groups` groups of ranges, for looking up values.

    Column k of `rows` describes test k, `numbers` has the number or threshold that it compares with, `group_of` the
    group of a range (-1: not a range). The texts of literals are consecutive in `literals`.
    """

    size: int
    groups: int
    rows: Matrix[Int32s]
    numbers: Floats
    group_of: Int32s
    literals: UInt8s
    hashes: UInt64s
    slots: Int32s


class ValueFilter(NamedTuple):
    """The values that tests are about: which kinds of test, by name (`asks`), and which four-byte pieces (`grams`).

    `longest` is the greatest length in bytes of a string-value that can pass a test of its text.
    """

    longest: int
    asks: Matrix[Int8s]
    has_grams: bool
    grams: UInt64s


class ValueStatistics(NamedTuple):
    """How often each test was passed, and the latest values of each group of ranges."""

    hits: Writable[Int64s]
    samples: Writable[Matrix[Floats]]
    sampled: Writable[Int64s]


class ValueTests(NamedTuple):
    """The value tests as of some moment; kernels count in the statistics."""

    table: ValueTestTable
    filter: ValueFilter
    statistics: ValueStatistics


class ValueCache(NamedTuple):
    """Cached tests of values, and the numbers of these values."""

    rows: Writable[Matrix[Int64s]]
    numbers: Writable[Floats]


class Value(NamedTuple):
    """The bytes of a value."""

    data: UInt8s
    start: int
    length: int


class ValueKey(NamedTuple):
    """The key of a test: its kind, the element and place that it is about, and a value."""

    hashed: np.uint64
    element: np.int32
    place: np.int32
    kind: np.int32
    number: float
    value: Value


@part
def value_at(start, length, content):
    """The bytes of a value of a document (`document_batch_layout_kernels.py`)."""
    if start >= 0:
        return Value(content.data, start, int(length))
    return Value(content.arena, -1 - start, int(length))


@part
def hash_byte(hashed, byte):
    """Add one byte to a hash."""
    return (hashed ^ np.uint64(byte)) * FNV_PRIME


@part
def hash_test(hashed, element, place, kind):
    """The hash of a test, given the hash of its value."""
    mixed = (hashed ^ np.uint64(element + 8) * MIX_A) * FNV_PRIME ^ np.uint64(place + 8) * MIX_A + np.uint64(kind)
    mixed ^= mixed >> np.uint64(29)
    return mixed * MIX_A >> np.uint64(20)


@part
def asked_of_whichever(text, asks):
    """The kinds of tests on any element that this string-value, which starts at 0, may pass, by the filter."""
    last = np.int64(text.data[text.length - 1]) if text.length else np.int64(0)
    return asks[WHICHEVER, (text.length * SPREAD + last) % asks.shape[1]]


@part
def asked_of_name(asks, row, name):
    """The kinds of tests on values of a name, or of elements with this name."""
    return asks[row, name + 1] if 0 <= name < asks.shape[1] - 1 else 0


@part
def hash_number(value):
    """A hash that is equal for equal numbers."""
    scaled = value * 1024.0
    whole = np.int64(scaled) if -9e18 < scaled < 9e18 else np.int64(0)
    return FNV_SEED ^ np.uint64(whole) * MIX_A


@part
def gram_place(gram):
    """The bit of a four-byte piece in the filter."""
    return np.int64(gram * MIX_A >> np.uint64(48))


@part
def is_same_range(other, test, rows):
    """Whether two tests are ranges of one group."""
    kind = rows[D_KIND, test]
    return (
        (kind == LOW or kind == HIGH)
        and rows[D_KIND, other] == kind
        and rows[D_ELEMENT, other] == rows[D_ELEMENT, test]
        and rows[D_PLACE, other] == rows[D_PLACE, test]
    )


@kernel
def index_tests(
    rows: Matrix[Int32s],
    numbers: Floats,
    literals: UInt8s,
    first: int,
    count: int,
    hashes: Writable[UInt64s],
    slots: Writable[Int32s],
    grams: Writable[UInt64s],
) -> None:
    """Insert the tests from `first` on into the table; of a group of ranges only one, for all of them."""
    for test in range(first, count):
        kind = rows[D_KIND, test]
        hashed = FNV_SEED
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
        mixed = hash_test(hashed, rows[D_ELEMENT, test], rows[D_PLACE, test], kind)
        other, slot = probe(slots, mixed, is_same_range, test, rows)
        if other < 0:
            slots[slot] = test


@part
def is_passed(test, key, table):
    """Whether a test has the kind, element and place of the key, and its value passes it; ranges always pass."""
    rows, value = table.rows, key.value
    return (
        test < table.size
        and table.hashes[test] == key.hashed
        and rows[D_KIND, test] == key.kind
        and rows[D_ELEMENT, test] == key.element
        and rows[D_PLACE, test] == key.place
        and (key.kind != EQUAL_NUMBER or table.numbers[test] == key.number)
        and (
            key.kind != EQUAL_TEXT
            or same_text(
                value.data, value.start, value.length, table.literals, rows[D_LITERAL, test], rows[D_LENGTH, test]
            )
        )
    )


@rare
def find_test(key, table):
    """The test that a value passes, or -1; for ranges, one test of their group.

    Another thread may insert later tests into the slots meanwhile.
    """
    mixed = hash_test(key.hashed, key.element, key.place, key.kind)
    return probe(table.slots, mixed, is_passed, key, table)[0]


@rare
def resolve(value, holder, place, asked, row, table, cache):
    """Find the tests that a value passes, and write them to `row` of the cache."""
    passed = cache.rows
    for kind in range(KINDS):
        passed[row, V_TESTS + kind] = NO_TEST
    if asked & ASKS_TEXT:
        hashed = FNV_SEED
        for k in range(value.length):
            hashed = hash_byte(hashed, value.data[value.start + k])
        test = find_test(ValueKey(hashed, holder, place, np.int32(EQUAL_TEXT), 0.0, value), table)
        if test >= 0:
            passed[row, V_TESTS + EQUAL_TEXT] = test
    found = np.nan
    if asked & (ASKS_NUMBER | ASKS_RANGE):
        found = number(value.data, value.start, value.length)
    cache.numbers[row] = found
    if np.isnan(found):
        return
    if asked & ASKS_NUMBER:
        test = find_test(ValueKey(hash_number(found), holder, place, np.int32(EQUAL_NUMBER), found, value), table)
        if test >= 0:
            passed[row, V_TESTS + EQUAL_NUMBER] = test
    if asked & ASKS_RANGE:
        for kind in range(LOW, HIGH + 1):
            test = find_test(ValueKey(FNV_SEED, holder, place, np.int32(kind), 0.0, value), table)
            if test >= 0 and table.group_of[test] < table.groups:
                passed[row, V_TESTS + kind] = table.group_of[test]


@part
def remembered(value, holder, place, asked, table, cache):
    """The row of the cache with the tests that a value passes: short values are looked up once and cached."""
    rows, length = cache.rows, value.length
    row = np.int64(VALUES)
    text = np.uint64(0)
    whose = np.int64(0)
    if length <= SHORT:
        for k in range(length):
            text |= np.uint64(value.data[value.start + k]) << np.uint64(8 * k)
        whose = np.int64(place + 8) << 36 | np.int64(holder + 8) << 4 | (length + 1)
        row = np.int64((text * MIX_A ^ np.uint64(whose)) * MIX_B >> np.uint64(52))
    if row == VALUES or rows[row, V_WHOSE] != whose or rows[row, V_BYTES] != np.int64(text):
        resolve(value, holder, place, asked, row, table, cache)
        rows[row, V_WHOSE] = whose
        rows[row, V_BYTES] = np.int64(text)
    return row
