# mypy: allow-untyped-defs, allow-untyped-calls
"""Predicate matching: the predicates that the tuples of a publication satisfy (section 4.1).

A publication is a list of kept elements of a path, each with its tag, the tag's occurrence among those kept, and its
depth. `found` collects the satisfied predicates, `truth` says which they are: those with the publication's epoch. There
are two truths, so that what a path has in common with the one before outlasts a publication of its own: `base` is where
the one in use begins.
"""

import numpy as np

from ...kernels import part, rare
from ..automaton.value_kernels import number, same_text
from .predicate_kernels import mixed

OCCURRENCE_BITS, STEPS_BITS, ATTRIBUTE_BITS = 12, 6, 22
ASKS_ANY, ASKS_TEXT, ASKS_NUMBER = 1, 2, 4
TEXT_SEED, TEXT_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
ONE = np.uint64(1)


@part
def holds(predicate, truth, base, epoch, found, n):
    """Note that a predicate is satisfied, once; how many are."""
    if truth[base + predicate] != epoch:
        truth[base + predicate] = epoch
        found[n] = predicate
        n += 1
    return n


@part
def row_predicates(row, value, row_equal, row_least, cells, truth, base, epoch, found, n):
    """The predicates of a row that a value from 1 up satisfies: the one for `=`, and those for `≥` up to it."""
    equal, least, end = row_equal[row], row_least[row], row_equal[row + 1]
    if equal + value <= least:
        predicate = cells[equal + value - 1]
        if predicate >= 0:
            n = holds(predicate, truth, base, epoch, found, n)
    for at in range(least, min(end, least + value)):
        predicate = cells[at]
        if predicate >= 0:
            n = holds(predicate, truth, base, epoch, found, n)
    return n


@part
def distance_row_of(first, key, distance_begin, distance_slots, distance_keys, distance_row):
    """The row of two tags, or -1: a table per first tag, in it the key of the rest (Figure 1)."""
    begin = distance_begin[first]
    size = distance_begin[first + 1] - begin
    if size == 0:
        return np.int64(-1)
    mask = np.uint64(size - 1)
    slot = mixed(key, 0) & mask
    while True:
        index = distance_slots[np.uint64(begin) + slot]
        if index < 0:
            return np.int64(-1)
        if distance_keys[index] == key:
            return np.int64(distance_row[index])
        slot = (slot + ONE) & mask


@part
def key_index(key, keys, slots):
    """Where a key stands in a hash table, or -1."""
    mask = np.uint64(len(slots) - 1)
    slot = mixed(key, 0) & mask
    while True:
        index = np.int64(slots[slot])
        if index < 0 or keys[index] == key:
            return index
        slot = (slot + ONE) & mask


@rare
def literal_number(data, start, length, literals, literal_begin, literal_hashes, literal_slots):
    """The number of the literal with this text, or -1."""
    hashed = TEXT_SEED
    for k in range(length):
        hashed = (hashed ^ np.uint64(data[start + k])) * TEXT_PRIME
    mask = np.uint64(len(literal_slots) - 1)
    key = np.int64(hashed)
    slot = mixed(key, 0) & mask
    while True:
        index = np.int64(literal_slots[slot])
        if index < 0:
            return index
        begin = literal_begin[index]
        if literal_hashes[index] == key and same_text(
            data, start, length, literals, begin, literal_begin[index + 1] - begin
        ):
            return index
        slot = (slot + ONE) & mask


@rare
def read_values(
    first, end, attribute_names, attribute_start, attribute_length, data, arena, translation, asks,
    literals, literal_begin, literal_hashes, literal_slots, numbers, texts,
):  # fmt: skip
    """The values of a document's attributes that filters ask about: as numbers, and as numbers of literals."""
    for index in range(first, end):
        name = translation[attribute_names[index]]
        asked = asks[name] if 0 <= name < len(asks) else 0
        start, length = attribute_start[index], np.int64(attribute_length[index])
        at = index - first
        numbers[at], texts[at] = np.nan, -1
        if asked & ASKS_NUMBER:
            numbers[at] = number(data, start, length) if start >= 0 else number(arena, -1 - start, length)
        if asked & ASKS_TEXT:
            if start >= 0:
                texts[at] = literal_number(data, start, length, literals, literal_begin, literal_hashes, literal_slots)
            else:
                texts[at] = literal_number(
                    arena, -1 - start, length, literals, literal_begin, literal_hashes, literal_slots
                )


@rare
def filter_predicates(
    key, value, text, filter_keys, filter_slots, filter_exists, limits, limit_begin, limit_predicate,
    text_keys, text_slots, text_predicate, truth, base, epoch, found, n,
):  # fmt: skip
    """The filters that one attribute satisfies: the key is a tag, its occurrence, the steps from there, and a name."""
    row = key_index(key, filter_keys, filter_slots)
    if row < 0:
        return n
    if filter_exists[row] >= 0:
        n = holds(filter_exists[row], truth, base, epoch, found, n)
    if not np.isnan(value):
        first, least, most, end = (
            limit_begin[3 * row], limit_begin[3 * row + 1], limit_begin[3 * row + 2], limit_begin[3 * row + 3]
        )  # fmt: skip
        low, high = first, least
        while low < high:
            middle = (low + high) >> 1
            if limits[middle] < value:
                low = middle + 1
            else:
                high = middle
        if low < least and limits[low] == value:
            n = holds(limit_predicate[low], truth, base, epoch, found, n)
        at = least
        while at < most and limits[at] <= value:
            n = holds(limit_predicate[at], truth, base, epoch, found, n)
            at += 1
        at = end - 1
        while at >= most and limits[at] >= value:
            n = holds(limit_predicate[at], truth, base, epoch, found, n)
            at -= 1
    if text >= 0:
        index = key_index(row << 32 | np.int64(text), text_keys, text_slots)
        if index >= 0:
            n = holds(text_predicate[index], truth, base, epoch, found, n)
    return n
