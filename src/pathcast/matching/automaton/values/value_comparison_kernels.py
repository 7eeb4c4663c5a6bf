# mypy: allow-untyped-defs, allow-untyped-calls
"""Values in kernels: XPath 1.0's comparisons on UTF-8 bytes, like `patterns/xpath_value_comparison.py` to the last bit.

A value is a position and a length in an array of bytes. The plain twin is `pathcast.patterns.xpath_value_comparison`.
"""

import numpy as np

from pathcast.kernels import part, rare
from pathcast.kernels.hash_table_kernels import MIX_A, MIX_B

EQUAL_TEXT, DIFFERENT_TEXT, EQUAL, DIFFERENT, LESS, AT_MOST, MORE, AT_LEAST, CONTAINS, STARTS_WITH = range(10)
FRACTION_DIGITS = 20
LARGEST_EXPONENT = 1_000_000
# A search switches to hashes when it has compared more than MOST_ALIKE equal bytes per byte of progress.
MOST_ALIKE = 4
NAN = np.nan
# Powers of ten as C's pow() computes them, from -LARGEST_POWER on: a compiler may compute others.
LARGEST_POWER = 400
POWERS = np.array([10.0**k if k < 309 else np.inf for k in range(-LARGEST_POWER, LARGEST_POWER + 1)])


@part
def is_blank(c):
    """XML's white space."""
    return c == 32 or c == 9 or c == 10 or c == 13


@part
def is_of_numbers(c):
    """The characters of numbers, and white space."""
    return 48 <= c <= 57 or is_blank(c) or c == 46 or c == 45 or c == 43 or c == 101 or c == 69


@part
def power_of_ten(exponent):
    """10 to this power; 0 or infinite beyond the range of a number."""
    return POWERS[max(-LARGEST_POWER, min(LARGEST_POWER, exponent)) + LARGEST_POWER]


@rare
def number(data, p, length):
    """XPath's number of a text, as libxml2 computes it; NaN for a non-numeric text."""
    end = p + length
    while p < end and is_blank(data[p]):
        p += 1
    negative = p < end and data[p] == 45
    if negative:
        p += 1
    value, digits = 0.0, 0
    while p < end and 48 <= data[p] <= 57:
        value = value * 10 + (data[p] - 48)
        digits += 1
        p += 1
    if p < end and data[p] == 46:
        p += 1
        places, fraction, some = 0, 0.0, 0
        while p < end and data[p] == 48:
            places += 1
            some += 1
            p += 1
        most = places + FRACTION_DIGITS
        while p < end and 48 <= data[p] <= 57:
            if places < most:
                fraction = fraction * 10 + (data[p] - 48)
                places += 1
            some += 1
            p += 1
        if digits == 0 and some == 0:
            return NAN
        if some:
            value += fraction / power_of_ten(places)
        digits += some
    if digits == 0:
        return NAN
    if negative:
        value = -value
    if p < end and (data[p] == 101 or data[p] == 69):
        p += 1
        below = p < end and data[p] == 45
        if p < end and (data[p] == 45 or data[p] == 43):
            p += 1
        exponent = 0
        while p < end and 48 <= data[p] <= 57:
            if exponent < LARGEST_EXPONENT:
                exponent = exponent * 10 + (data[p] - 48)
            p += 1
        value *= power_of_ten(-exponent if below else exponent)
    while p < end and is_blank(data[p]):
        p += 1
    return value if p == end else NAN


@part
def same_text(a, p, length, b, q, wanted):
    """Whether two texts are equal."""
    if length != wanted:
        return False
    for k in range(length):
        if a[p + k] != b[q + k]:
            return False
    return True


@part
def short_hash(data, p, length):
    """A hash of a text's first sixteen bytes and its length; `shared_pattern_conditions.py` has its plain twin."""
    first, second = np.uint64(0), np.uint64(0)
    for k in range(min(length, 8)):
        first |= np.uint64(data[p + k]) << np.uint64(8 * k)
    for k in range(8, min(length, 16)):
        second |= np.uint64(data[p + k]) << np.uint64(8 * k - 64)
    return (first * MIX_A ^ second) * MIX_B ^ np.uint64(length)


@rare
def find_by_hash(a, p, length, b, q, wanted):
    """As `find`, in time independent of how alike the texts are: only pieces with the same hash are compared."""
    here, there, power = np.uint64(0), np.uint64(0), np.uint64(1)
    for k in range(min(wanted, length)):
        here = here * MIX_A + np.uint64(a[p + k])
        there = there * MIX_A + np.uint64(b[q + k])
        power *= MIX_A
    for begin in range(p, p + length - wanted + 1):
        if here == there and same_text(a, begin, wanted, b, q, wanted):
            return np.int64(begin)
        if begin + wanted < p + length:
            here = here * MIX_A + np.uint64(a[begin + wanted]) - power * np.uint64(a[begin])
    return np.int64(-1)


@rare
def find(a, p, length, b, q, wanted):
    """The first position of a non-empty text in another, or -1."""
    beginning, alike = b[q], 0
    for begin in range(p, p + length - wanted + 1):
        if a[begin] != beginning:
            continue
        k = 1
        while k < wanted and a[begin + k] == b[q + k]:
            k += 1
        if k == wanted:
            return np.int64(begin)
        alike += k
        if alike > MOST_ALIKE * (begin - p + wanted):
            return find_by_hash(a, begin + 1, p + length - begin - 1, b, q, wanted)
    return np.int64(-1)


@part
def compares(test, value, limit):
    """Whether a number passes a test against another one."""
    if test == EQUAL:
        return value == limit
    if test == DIFFERENT:
        return value != limit
    if test == LESS:
        return value < limit
    if test == AT_MOST:
        return value <= limit
    if test == MORE:
        return value > limit
    return value >= limit


@rare
def passes(test, limit, literals, q, wanted, data, p, length):
    """Whether the value passes a test against a number `limit` or the text at `q`."""
    if test == EQUAL_TEXT:
        return same_text(data, p, length, literals, q, wanted)
    if test == DIFFERENT_TEXT:
        return not same_text(data, p, length, literals, q, wanted)
    if test == CONTAINS:
        return find(data, p, length, literals, q, wanted) >= 0
    if test == STARTS_WITH:
        return length >= wanted and same_text(data, p, wanted, literals, q, wanted)
    return compares(test, number(data, p, length), limit)
