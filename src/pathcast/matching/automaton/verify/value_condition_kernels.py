# mypy: allow-untyped-defs, allow-untyped-calls
"""Tests of values, for conditions on one document (`candidate_verifier_kernels.py`).

The elements of a name, and the attributes of a name, are linked lists built once per document, so that a condition
costs the occurrences of its name and not the document's size. The hash and the number of a value are computed on first
use. Sets of elements are bits, `width` words each, one after the other in `bits`.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Floats, Int32s, Int64s, Matrix, UInt8s, UInt64s, Writable, apart, part, rare

from ..values.value_comparison_kernels import (
    CONTAINS,
    DIFFERENT,
    DIFFERENT_TEXT,
    STARTS_WITH,
    compares,
    find,
    is_of_numbers,
    number,
    passes,
    short_hash,
)

# SELF, CHOICE and FIRST are evaluated on the elements that passed everything else (`boolean_test_kernels.py`); any
# other kind is the set of elements at which it holds. FIRST_ROOT is FIRST at the document; PATH_… are the steps of its
# path. A STEP is a step of a pattern's longest path. A CHOICE is `and`, `or` and `not` of tests: its first part is the
# SELF to start with, the others are the conditions that its tests need. The parts of an ATTRIBUTE or TEXT_NODE (and of
# such a step) are SELF, tests of its value, which may start choices (`choice_passes`); and conditions on the document
# that choices need.
ELEMENT, ATTRIBUTE, TEXT_NODE, ROOT, SELF, CHOICE, ALL_OF, ANY_OF, NOT, STEP, FIRST, FIRST_ROOT = range(12)
PATH_ELEMENT, PATH_ATTRIBUTE, PATH_TEXT = 12, 13, 14
DEEP = 16
ANY_NAME = -1
# Columns of `ConditionTable.rows`: `test` is the name of a node, or the kind of a value test. A step has the previous
# step (-1: the document) in place of a literal. The first part (NO_PART: none) is in the row itself; two rows fill a
# cache line.
C_KIND, C_TEST, C_LITERAL, C_LENGTH, C_PARTS, C_PARTS_END, C_PART, C_COLUMNS = 0, 1, 2, 3, 4, 5, 6, 8
NO_PART = -1
C_BEFORE = C_LITERAL
# Columns of the known set of a condition: the epoch, and the set.
K_EPOCH, K_SET, K_COLUMNS = range(3)
# The permanent sets: no element, all elements, and the document (which is not a set of elements).
EMPTY, ALL, DOCUMENT, SETS = range(4)
# Parts of a choice: where it continues after a pass, where after a fail; and the condition in place of its test.
X_PASSED, X_FAILED, X_CONDITION = range(3)
# Rows of `Occurrences.lists`: the next element of the name, the next attribute, and each attribute's element.
L_ELEMENT, L_ATTRIBUTE, L_OWNER, L_ROWS = range(4)
# Rows of `Occurrences.heads`, each twice, for elements and for attributes: the first one of a name; the first from some
# element on, as last searched; and that element. Rows of their stamps: the first two.
H_FIRST, H_LATER, H_FROM, H_ROWS, H_STAMPS = 0, 2, 4, 6, 4
# Rows of the computed values: of attributes and of text nodes; and of their stamps.
V_ATTRIBUTE, V_TEXT, V_ROWS = range(3)
ONE = np.uint64(1)


class ConditionTable(NamedTuple):
    """The conditions of all patterns: per condition a row of columns, the limit of a number test, the literal's hash.

    `literals` has the texts of literals one after the other, `parts` the numbers of the conditions' parts.
    """

    rows: Matrix[Int32s]
    limits: Floats
    hashes: UInt64s
    literals: UInt8s
    parts: Int32s


class Tests(NamedTuple):
    """The fields of a `ConditionTable` that tests of values need if nothing is computed in advance."""

    rows: Matrix[Int32s]
    limits: Floats
    literals: UInt8s
    parts: Int32s


class DocumentTree(NamedTuple):
    """One document: its first element, its number of elements, the words per set of these, and its stamp.

    `parents` and `ends` are those of all documents.
    """

    first: int
    size: int
    width: int
    stamp: int
    parents: Int32s
    ends: Int32s


class Occurrences(NamedTuple):
    """The elements and the attributes of each name in the document, as lists; a head with an older stamp is empty."""

    heads: Writable[Matrix[Int32s]]
    stamps: Writable[Matrix[Int64s]]
    lists: Writable[Matrix[Int32s]]


class ValueMemo(NamedTuple):
    """Hashes and numbers of values, valid for the document with their stamp."""

    hashes: Writable[Matrix[UInt64s]]
    numbers: Writable[Matrix[Floats]]
    hash_stamps: Writable[Matrix[Int64s]]
    number_stamps: Writable[Matrix[Int64s]]


class PathRoom(NamedTuple):
    """Room for two sets of elements, and for an element's text."""

    sets: Writable[UInt64s]
    joined: Writable[UInt8s]


@part
def is_tried(kind):
    """Whether conditions of a kind are evaluated on the elements that passed everything else."""
    return kind == SELF or kind == CHOICE or kind == FIRST


@part
def has_bit(bits, word, element):
    """Whether the set that starts at `word` has an element."""
    return bits[np.uint64(word + (element >> 6))] >> np.uint64(element & 63) & ONE != 0


@part
def put_bit(bits, word, element):
    """Mark an element in the set that starts at `word`; return whether it was already marked."""
    at = np.uint64(word + (element >> 6))
    bit = ONE << np.uint64(element & 63)
    if bits[at] & bit:
        return True
    bits[at] |= bit
    return False


@part
def mark_up(bits, word, element, parents, first, deep):
    """Mark an element, and with `deep` all its ancestors, up to the first that is already marked."""
    while element >= 0:
        if put_bit(bits, word, element) or not deep:
            return
        above = parents[first + element]
        element = above - first if above >= 0 else -1


@rare
def hash_of(data, arena, start, length):
    """The hash of a value."""
    return short_hash(data, start, length) if start >= 0 else short_hash(arena, -1 - start, length)


@rare
def number_of(data, arena, start, length):
    """The number of a value."""
    return number(data, start, length) if start >= 0 else number(arena, -1 - start, length)


@rare
def test_passes(row, start, length, tests, content):
    """Whether a value passes the test of condition `row`, with nothing computed in advance."""
    rows, limit, literals = tests.rows, tests.limits[row], tests.literals
    test, literal, wanted = rows[row, C_TEST], rows[row, C_LITERAL], rows[row, C_LENGTH]
    if start >= 0:
        return passes(test, limit, literals, literal, wanted, content.data, start, length)
    return passes(test, limit, literals, literal, wanted, content.arena, -1 - start, length)


@part
def known_test_passes(row, which, value, start, length, stamp, conditions, content, memo):
    """As `test_passes`; the hash and number of the value are cached under `value` for the document."""
    test = conditions.rows[row, C_TEST]
    if test <= DIFFERENT_TEXT:
        if memo.hash_stamps[which, value] != stamp:
            memo.hash_stamps[which, value] = stamp
            memo.hashes[which, value] = hash_of(content.data, content.arena, start, length)
        if memo.hashes[which, value] != conditions.hashes[row]:
            return test == DIFFERENT_TEXT
    elif test < CONTAINS:
        if memo.number_stamps[which, value] != stamp:
            memo.number_stamps[which, value] = stamp
            memo.numbers[which, value] = number_of(content.data, content.arena, start, length)
        return compares(test, memo.numbers[which, value], conditions.limits[row])
    return test_passes(row, start, length, conditions, content)


@apart
def choice_passes(row, start, length, tests, content, known):
    """Whether a value passes a choice: `and`, `or` and `not` of tests, one after the other.

    Each test names the next one, for pass and for fail; ALL_OF without parts ends the choice with yes, ANY_OF without
    parts with no. A condition on the document, which holds everywhere or nowhere, may take the place of a test. On its
    own, beside choices that need it, it excludes nothing.
    """
    rows, parts = tests.rows, tests.parts
    if rows[row, C_KIND] != SELF:
        return True
    while rows[row, C_KIND] == SELF:
        at = rows[row, C_PARTS]
        if rows[row, C_PARTS_END] > at + X_CONDITION:
            held = known[parts[at + X_CONDITION], K_SET] != EMPTY
        else:
            held = test_passes(row, start, length, tests, content)
        row = np.int64(parts[at + (X_PASSED if held else X_FAILED)])
    return rows[row, C_KIND] == ALL_OF


@part
def value_passes(row, which, value, start, length, stamp, conditions, content, known, memo):
    """Whether attribute or text node (`which`) number `value` of the document passes all tests of condition `row`."""
    rows, parts = conditions.rows, conditions.parts
    for k in range(rows[row, C_PARTS], rows[row, C_PARTS_END]):
        test = np.int64(parts[k])
        if rows[test, C_PART] != NO_PART:
            passed = choice_passes(test, start, length, conditions, content, known)
        else:
            passed = known_test_passes(test, which, value, start, length, stamp, conditions, content, memo)
        if not passed:
            return False
    return True


@rare
def passes_all(start, length, row, tests, content):
    """As `value_passes`, for a single test without choices."""
    rows, parts = tests.rows, tests.parts
    for k in range(rows[row, C_PARTS], rows[row, C_PARTS_END]):
        if not test_passes(np.int64(parts[k]), start, length, tests, content):
            return False
    return True


@rare
def step_passes(start, length, row, tests, content, known):
    """As `value_passes`, for a step of a path in a `First` condition."""
    rows, parts = tests.rows, tests.parts
    for k in range(rows[row, C_PARTS], rows[row, C_PARTS_END]):
        test = np.int64(parts[k])
        if rows[test, C_PART] != NO_PART:
            passed = choice_passes(test, start, length, tests, content, known)
        else:
            passed = test_passes(test, start, length, tests, content)
        if not passed:
            return False
    return True


@rare
def element_passes(element, row, tests, texts, content, joined):
    """Whether an element's string-value passes the test of condition `row`; reads no more of it than necessary."""
    rows, data, arena = tests.rows, content.data, content.arena
    begin, end = texts.begins[element], texts.ends[element]
    if end - begin == 1:
        return test_passes(row, texts.starts[begin], np.int64(texts.lengths[begin]), tests, content)
    test, wanted = rows[row, C_TEST], np.int64(rows[row, C_LENGTH])
    length = np.int64(0)
    for index in range(begin, end):
        start, size = texts.starts[index], np.int64(texts.lengths[index])
        if test <= DIFFERENT_TEXT or test == STARTS_WITH:
            size = min(size, wanted + 1 - length)
        for k in range(size):
            byte = data[start + k] if start >= 0 else arena[-1 - start + k]
            if DIFFERENT_TEXT < test < CONTAINS and not is_of_numbers(byte):
                return test == DIFFERENT
            joined[length + k] = byte
        length += size
    literals, literal = tests.literals, rows[row, C_LITERAL]
    return passes(test, tests.limits[row], literals, literal, wanted, joined, np.int64(0), length)


@rare
def contains_further(element, row, since, at, until, tests, texts, content, joined):
    """Whether an element's string-value contains the text of condition `row`, and the state of the search.

    The state: from text node `since` on, the text is first found from node `at` to node `until`; or, if `at` is -1,
    nowhere before node `until`. Elements come in document order, so all together cost one pass over the text.
    """
    begin, end = np.int64(texts.begins[element]), np.int64(texts.ends[element])
    if since <= begin <= at:
        return until < end, since, at, until
    if at < 0 and since <= begin and end <= until:
        return False, since, at, until
    literal, wanted = tests.rows[row, C_LITERAL], np.int64(tests.rows[row, C_LENGTH])
    if end - begin == 1:
        if test_passes(row, texts.starts[begin], np.int64(texts.lengths[begin]), tests, content):
            return True, begin, begin, begin
        return False, begin, np.int64(-1), end
    data, arena = content.data, content.arena
    length = np.int64(0)
    for index in range(begin, end):
        start, size = texts.starts[index], np.int64(texts.lengths[index])
        for k in range(size):
            joined[length + k] = data[start + k] if start >= 0 else arena[-1 - start + k]
        low = max(np.int64(0), length - wanted + 1)
        found = find(joined, low, length + size - low, tests.literals, literal, wanted)
        if found >= 0:
            at = np.int64(index)
            while found < length:
                at -= 1
                length -= texts.lengths[at]
            return True, begin, at, np.int64(index)
        length += size
    return False, begin, np.int64(-1), end


@apart
def link(document, names, attributes, translation, occurrences):
    """Build the lists of elements and of attributes of each name, in document order."""
    heads, stamps, lists = occurrences
    first, stamp = document.first, document.stamp
    base = attributes.begins[first]
    for element in range(document.size - 1, -1, -1):
        name = translation[names[first + element]]
        if 0 <= name < heads.shape[1]:
            lists[L_ELEMENT, element] = heads[0, name] if stamps[0, name] == stamp else -1
            heads[0, name] = element
            stamps[0, name] = stamp
        begin, end = attributes.begins[first + element], attributes.begins[first + element + 1]
        for attribute in range(end - 1, begin - 1, -1):
            name = translation[attributes.names[attribute]]
            if 0 <= name < heads.shape[1]:
                k = attribute - base
                lists[L_ATTRIBUTE, k] = heads[1, name] if stamps[1, name] == stamp else -1
                heads[1, name] = k
                stamps[1, name] = stamp
                lists[L_OWNER, k] = element
