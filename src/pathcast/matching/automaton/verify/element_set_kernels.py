# mypy: allow-untyped-defs, allow-untyped-calls
"""Sets of elements of one document, each with a number: equal sets are stored once, and operations are cached.

    child(S, a)    the elements a with a parent in S         up(S)         the parents of S
    below(S, a)    the elements a below one of S             all_up(S)     the ancestors of S
    both(S, T)     the elements of S and T                   either(S, T)  the elements of S or T
                                                             without(S, T) the elements of S that are not in T

Patterns need few distinct sets per document: a hundred or two, for thousands of steps and conditions. Nearly every
operation is therefore one look-up by its number and its operands.

A cached result is overwritten by another result with the same slot. `state` has an epoch: sets, results and known
conditions are valid for one epoch, and a new one starts with each document and when there is no more room for sets.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Int64s, UInt64s, Writable, apart, lowest_bit, part
from pathcast.kernels.hash_table_kernels import MIX_A, MIX_B, first_slot, next_slot, slot_mask

from .value_condition_kernels import (
    ALL,
    ANY_NAME,
    C_PARTS,
    C_PARTS_END,
    DOCUMENT,
    EMPTY,
    K_SET,
    L_ELEMENT,
    NOT,
    ONE,
    SETS,
    has_bit,
    mark_up,
    put_bit,
)

# TRIED: the elements of a set that pass a test, which is given in place of a second set
# (`boolean_test_kernels.py`).
CHILD, BELOW, UP, ALL_UP, BOTH, EITHER, WITHOUT, TRIED = range(8)
OPERATIONS = 8
# `state`: the last stamp, the epoch, the number of sets and its bound, whether one more was needed, and about how many
# bytes of values were read.
T_STAMP, T_EPOCH, T_SETS, T_CAPACITY, T_FULL, T_WORK, T_COUNTS = range(7)


class ElementSets(NamedTuple):
    """Sets of elements: their bits one after the other, and a hash table of them.

    A slot is an epoch and the number of a set. The results of operations on sets are stored beside: a row is an
    operation with its operands, and an epoch with the set.
    """

    state: Writable[Int64s]
    bits: Writable[UInt64s]
    slots: Writable[Int64s]


@part
def interned(sets, width):
    """The number of the set written after the last one: a new number, unless an equal set exists.

    Without room for one more, EMPTY is returned and `state` reports it: nothing computed since then counts.
    """
    state, bits, slots = sets.state, sets.bits, sets.slots
    count, epoch = state[T_SETS], state[T_EPOCH]
    word = count * width
    hashed = np.uint64(0)
    for k in range(word, word + width):
        hashed = (hashed ^ bits[np.uint64(k)]) * MIX_A
        hashed ^= hashed >> np.uint64(29)
    mask = slot_mask(slots)
    slot = first_slot(hashed * MIX_B >> np.uint64(20), mask)
    while slots[slot] >> 32 == epoch:
        other = slots[slot] & 0xFFFFFFFF
        at = other * width
        same = True
        for k in range(width):
            if bits[np.uint64(at + k)] != bits[np.uint64(word + k)]:
                same = False
                break
        if same:
            return other
        slot = next_slot(slot, mask)
    if count + 1 >= state[T_CAPACITY]:
        state[T_FULL] = 1
        return np.int64(EMPTY)
    slots[slot] = epoch << 32 | count
    state[T_SETS] = count + 1
    return count


@apart
def begin_epoch(sets, width, count):
    """Drop all sets except the permanent ones."""
    state, bits, slots = sets.state, sets.bits, sets.slots
    state[T_STAMP] += 1
    state[T_EPOCH] = state[T_STAMP]
    state[T_FULL] = 0
    state[T_CAPACITY] = min(len(bits) // width, len(slots) >> 1)
    for k in range(SETS * width):
        bits[k] = 0
    for w in range(count >> 6):
        bits[ALL * width + w] = ~np.uint64(0)
    if count & 63:
        bits[ALL * width + (count >> 6)] = (ONE << np.uint64(count & 63)) - ONE
    for number in range(2):
        state[T_SETS] = number
        interned(sets, width)
    state[T_SETS] = SETS


@apart
def worked_out(operation, a, b, document, sets, occurrences):
    """Compute the set of an operation; `b` is a name or, for `both`, `either` and `without`, a set."""
    state, bits = sets.state, sets.bits
    heads, stamps, lists = occurrences
    first, width, stamp = document.first, document.width, document.stamp
    parents, ends = document.parents, document.ends
    word, of = state[T_SETS] * width, a * width
    for k in range(word, word + width):
        bits[k] = 0
    if operation >= BOTH:
        for k in range(width):
            other = bits[b * width + k]
            if operation == BOTH:
                bits[word + k] = bits[of + k] & other
            elif operation == EITHER:
                bits[word + k] = bits[of + k] | other
            else:
                bits[word + k] = bits[of + k] & ~other
        return interned(sets, width)
    if operation == UP or operation == ALL_UP:
        for w in range(width):
            left = bits[of + w]
            while left:
                element = np.int64(64 * w + lowest_bit(left))
                left &= left - ONE
                above = parents[first + element]
                if above >= 0:
                    mark_up(bits, word, np.int64(above - first), parents, first, operation == ALL_UP)
        return interned(sets, width)
    if a == DOCUMENT:
        if b == ANY_NAME:
            for each in range(document.size if operation == BELOW else 1):
                put_bit(bits, word, np.int64(each))
        else:
            element = np.int64(heads[0, b] if stamps[0, b] == stamp else -1)
            while element >= 0 and (operation == BELOW or element == 0):
                put_bit(bits, word, element)
                element = np.int64(lists[L_ELEMENT, element])
    elif b != ANY_NAME:
        element = np.int64(heads[0, b] if stamps[0, b] == stamp else -1)
        while element >= 0:
            if operation == BELOW:
                held = has_bit(bits, of, element)
            else:
                held = element > 0 and has_bit(bits, of, np.int64(parents[first + element] - first))
            if held:
                put_bit(bits, word, element)
            element = np.int64(lists[L_ELEMENT, element])
    else:
        reach = np.int64(0)
        for w in range(width):
            left = bits[of + w]
            while left:
                element = np.int64(64 * w + lowest_bit(left))
                left &= left - ONE
                begin, end = np.int64(element + 1), np.int64(ends[first + element] - first)
                if operation == CHILD:
                    while begin < end:
                        put_bit(bits, word, begin)
                        begin = np.int64(ends[first + begin] - first)
                    continue
                # The elements below one are contiguous, up to its end; skip elements that are below an earlier one.
                begin = np.int64(max(begin, reach))
                while begin < end:
                    if begin & 63 == 0 and end - begin >= 64:
                        bits[word + (begin >> 6)] = ~np.uint64(0)
                        begin += 64
                    else:
                        bits[word + (begin >> 6)] |= ONE << np.uint64(begin & 63)
                        begin += 1
                reach = max(reach, end)
    return interned(sets, width)


@part
def result_place(key, results):
    """The slot of the cached result of an operation."""
    return first_slot(np.uint64(key) * MIX_A >> np.uint64(40), slot_mask(results))


@part
def made(operation, a, b, document, sets, results, occurrences):
    """The set of an operation, cached or computed."""
    state = sets.state
    key = (a << 32 | (b + 1)) * OPERATIONS + operation
    place = result_place(key, results)
    if results[place, 0] == key and results[place, 1] >> 32 == state[T_EPOCH]:
        return results[place, 1] & 0xFFFFFFFF
    of = a
    if operation == BELOW and b != ANY_NAME and a != DOCUMENT:
        # By way of all elements below, a set that other names need, too.
        whole = (a << 32) * OPERATIONS + BELOW
        at = result_place(whole, results)
        if results[at, 0] == whole and results[at, 1] >> 32 == state[T_EPOCH]:
            of = results[at, 1] & 0xFFFFFFFF
        else:
            of = worked_out(BELOW, a, np.int64(ANY_NAME), document, sets, occurrences)
            results[at, 0] = whole
            results[at, 1] = state[T_EPOCH] << 32 | of
    found = worked_out(operation, of, b, document, sets, occurrences)
    results[place, 0] = key
    results[place, 1] = state[T_EPOCH] << 32 | found
    return found


@apart
def word_by_word(kind, row, width, rows, parts, known, sets):
    """The set of an `or` or a `not`."""
    bits = sets.bits
    word = sets.state[T_SETS] * width
    for k in range(width):
        bits[word + k] = 0
    for k in range(rows[row, C_PARTS], rows[row, C_PARTS_END]):
        at = np.int64(known[parts[k], K_SET]) * width
        for w in range(width):
            bits[word + w] |= bits[at + w]
    if kind == NOT:
        for w in range(width):
            bits[word + w] = ~bits[word + w] & bits[ALL * width + w]
    return interned(sets, width)
