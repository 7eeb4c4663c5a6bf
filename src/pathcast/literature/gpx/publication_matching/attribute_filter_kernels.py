# mypy: allow-untyped-defs, allow-untyped-calls
"""Attribute filters inline (section 3.1.4): the filters that the attributes of a publication's elements satisfy.

A document's values are read once, as numbers and as numbers of literals. A filter is a number of steps away from a tag,
mostly 0: the attributes of each level are checked from every tag, or from the document, that has filters on them.

Cost: one look-up per attribute and tag with filters on it, and one step per satisfied filter.
"""

from typing import NamedTuple

import numpy as np

from pathcast.documents.document_batch_layout_kernels import Attributes
from pathcast.kernels import Floats, Int8s, Int32s, Int64s, UInt8s, UInt64s, Writable, part, rare
from pathcast.kernels.hash_table_kernels import FNV_PRIME, FNV_SEED, find_key, probe
from pathcast.matching.automaton.values.value_comparison_kernels import number, same_text

from ..predicate_numbering_kernels import DOCUMENT, STEPS, STEPS_ABOVE, mixed
from .structure_predicate_kernels import OCCURRENCE_BITS, holds

ONE = np.uint64(1)
STEPS_BITS, ATTRIBUTE_BITS = 6, 22
ASKS_ANY, ASKS_TEXT, ASKS_NUMBER = 1, 2, 4
# The limits of a row are grouped by operator: =, ≥, ≤, !=.
LIMIT_KINDS = 4


class Literals(NamedTuple):
    """The distinct texts that filters compare with, and a hash table that finds them."""

    texts: UInt8s
    begins: Int64s
    hashes: Int64s
    slots: Int32s


class NumberTests(NamedTuple):
    """Comparisons with numbers: for each row and operator the limits, ascending, and the predicates they belong to."""

    limits: Floats
    begins: Int64s
    predicates: Int32s


class TextTests(NamedTuple):
    """Comparisons with `=` and a text: a hash table from a row and the number of a literal to a predicate."""

    keys: Int64s
    slots: Int32s
    predicates: Int32s


class UnlikeTests(NamedTuple):
    """Comparisons with `!=` and a text: for each row the numbers of literals, and the predicates they belong to."""

    begins: Int64s
    texts: Int32s
    predicates: Int32s


class FilterTests(NamedTuple):
    """All filters: a hash table from an attribute's place to a row, and the tests of each row."""

    keys: Int64s
    slots: Int32s
    exists: Int32s
    numbers: NumberTests
    texts: TextTests
    unlike: UnlikeTests


class Filters(NamedTuple):
    """The kinds of tests per attribute name (`asks`), the steps at which each tag has filters, and the filters."""

    asks: Int8s
    steps: UInt64s
    tests: FilterTests
    literals: Literals


class AttributeValues(NamedTuple):
    """The values of a document's attributes: as numbers, and as numbers of literals or -1."""

    numbers: Writable[Floats]
    texts: Writable[Int32s]


class DocumentAttributes(NamedTuple):
    """The attributes of a document: those of its batch, the first of its own, and their values."""

    attributes: Attributes
    symbols: Int32s
    first: np.int64
    values: AttributeValues


@part
def key_index(key, keys, slots):
    """The index of a key in a hash table, or -1."""
    return find_key(slots, mixed(key, 0), key, keys)[0]


@part
def is_same_literal(index, text, literals):
    """Whether a literal has this hash and this text."""
    hashed, data, start, length = text
    begin, end = literals.begins[index], literals.begins[index + 1]
    return literals.hashes[index] == hashed and same_text(data, start, length, literals.texts, begin, end - begin)


@rare
def literal_number(data, start, length, literals):
    """The number of the literal with this text, or -1."""
    hashed = FNV_SEED
    for k in range(length):
        hashed = (hashed ^ np.uint64(data[start + k])) * FNV_PRIME
    key = np.int64(hashed)
    return probe(literals.slots, mixed(key, 0), is_same_literal, (key, data, start, length), literals)[0]


@rare
def read_values(content, end, data, arena, asks, literals):
    """The values of a document's attributes that have filters: as numbers, and as numbers of literals."""
    attributes, symbols, first, (numbers, texts) = content
    for index in range(first, end):
        name = symbols[attributes.names[index]]
        asked = asks[name] if 0 <= name < len(asks) else 0
        start, length = attributes.starts[index], np.int64(attributes.lengths[index])
        at = index - first
        numbers[at], texts[at] = np.nan, -1
        if asked & ASKS_NUMBER:
            numbers[at] = number(data, start, length) if start >= 0 else number(arena, -1 - start, length)
        if asked & ASKS_TEXT:
            if start >= 0:
                texts[at] = literal_number(data, start, length, literals)
            else:
                texts[at] = literal_number(arena, -1 - start, length, literals)


@part
def number_predicates(row, value, tests, satisfied, n):
    """The numeric comparisons of a row that a value satisfies; NaN differs from every number."""
    limits, begins, predicates = tests
    at = LIMIT_KINDS * row
    first, least, most, other, end = begins[at], begins[at + 1], begins[at + 2], begins[at + 3], begins[at + 4]
    for at in range(other, end):
        if limits[at] != value:
            n = holds(predicates[at], satisfied, n)
    if np.isnan(value):
        return n
    low, high = first, least
    while low < high:
        middle = (low + high) >> 1
        if limits[middle] < value:
            low = middle + 1
        else:
            high = middle
    if low < least and limits[low] == value:
        n = holds(predicates[low], satisfied, n)
    at = least
    while at < most and limits[at] <= value:
        n = holds(predicates[at], satisfied, n)
        at += 1
    at = other - 1
    while at >= most and limits[at] >= value:
        n = holds(predicates[at], satisfied, n)
        at -= 1
    return n


@rare
def filter_predicates(key, value, text, tests, satisfied, n):
    """The filters that one attribute satisfies: the key is a tag, its occurrence, the steps from there, and a name."""
    row = key_index(key, tests.keys, tests.slots)
    if row < 0:
        return n
    if tests.exists[row] >= 0:
        n = holds(tests.exists[row], satisfied, n)
    n = number_predicates(row, value, tests.numbers, satisfied, n)
    unlike = tests.unlike
    for at in range(unlike.begins[row], unlike.begins[row + 1]):
        if unlike.texts[at] != text:
            n = holds(unlike.predicates[at], satisfied, n)
    if text >= 0:
        index = key_index(row << 32 | np.int64(text), tests.texts.keys, tests.texts.slots)
        if index >= 0:
            n = holds(tests.texts.predicates[index], satisfied, n)
    return n


@part
def attribute_predicates(depth, fresh_from, count, path, content, filters, satisfied, n):
    """The filters that attributes of the path down to `depth` satisfy, from the document (-1) and from each tag.

    For tags before `fresh_from`, only the attributes at `depth` are checked; the others were checked earlier.
    """
    tags, occurrences, depths = path.publication
    attributes, symbols, zero, (numbers, texts) = content
    asks = filters.asks
    for seen_from in range(-1, count):
        tag, occurrence, from_depth = np.int64(DOCUMENT), np.int64(1), np.int64(0)
        wanted = filters.steps[len(filters.steps) - 1]
        if seen_from >= 0:
            tag, occurrence = np.int64(tags[seen_from]), np.int64(occurrences[seen_from])
            from_depth = np.int64(depths[seen_from])
            wanted = filters.steps[tag]
        if wanted == 0:
            continue
        highest = np.int64(1)
        if seen_from < fresh_from:
            highest = depth
        elif from_depth > STEPS_ABOVE:
            highest = from_depth - STEPS_ABOVE
        lowest = min(depth, from_depth + STEPS - STEPS_ABOVE - 1)
        for level in range(highest, lowest + 1):
            steps = level - from_depth + STEPS_ABOVE
            if not wanted >> np.uint64(steps) & ONE:
                continue
            holder = path.elements[level]
            key = (tag << OCCURRENCE_BITS | occurrence) << STEPS_BITS | steps
            for at in range(attributes.begins[holder], attributes.begins[holder + 1]):
                name = np.int64(symbols[attributes.names[at]])
                if 0 <= name < len(asks) and asks[name]:
                    whole_key, value, text = key << ATTRIBUTE_BITS | name, numbers[at - zero], texts[at - zero]
                    n = filter_predicates(whole_key, value, text, filters.tests, satisfied, n)
    return n
