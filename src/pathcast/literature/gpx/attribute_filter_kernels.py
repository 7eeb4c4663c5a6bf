# mypy: allow-untyped-defs, allow-untyped-calls
"""Attribute filters inline (section 3.1.4): the filters that the attributes of a publication's elements satisfy.

A document's values are read once, as numbers and as numbers of literals. A filter stands at a number of steps from a
tag, mostly 0: the attributes of each level are looked at from every tag, or from the document, that asks for them.

Cost: a look-up for every attribute and every tag that asks for it, and a step for each filter that is satisfied.
"""

import numpy as np

from pathcast.kernels import part, rare
from pathcast.matching.automaton.values.comparison_kernels import number, same_text

from .predicate_kernels import DOCUMENT, STEPS, STEPS_ABOVE, mixed
from .tuple_kernels import OCCURRENCE_BITS, ONE, holds

STEPS_BITS, ATTRIBUTE_BITS = 6, 22
ASKS_ANY, ASKS_TEXT, ASKS_NUMBER = 1, 2, 4
# The limits of a row stand by operator: =, ≥, ≤, !=.
LIMIT_KINDS = 4
TEXT_SEED, TEXT_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


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


@part
def number_predicates(row, value, limits, limit_begin, limit_predicate, truths, n):
    """The comparisons of a row with numbers that a value satisfies; NaN differs from every number."""
    first, least, most, other, end = (
        limit_begin[LIMIT_KINDS * row], limit_begin[LIMIT_KINDS * row + 1], limit_begin[LIMIT_KINDS * row + 2],
        limit_begin[LIMIT_KINDS * row + 3], limit_begin[LIMIT_KINDS * row + 4],
    )  # fmt: skip
    for at in range(other, end):
        if limits[at] != value:
            n = holds(limit_predicate[at], truths, n)
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
        n = holds(limit_predicate[low], truths, n)
    at = least
    while at < most and limits[at] <= value:
        n = holds(limit_predicate[at], truths, n)
        at += 1
    at = other - 1
    while at >= most and limits[at] >= value:
        n = holds(limit_predicate[at], truths, n)
        at -= 1
    return n


@rare
def filter_predicates(key, value, text, filters, truths, n):
    """The filters that one attribute satisfies: the key is a tag, its occurrence, the steps from there, and a name."""
    (
        filter_keys, filter_slots, filter_exists, limits, limit_begin, limit_predicate,
        text_keys, text_slots, text_predicate, unlike_begin, unlike_text, unlike_predicate,
    ) = filters  # fmt: skip
    row = key_index(key, filter_keys, filter_slots)
    if row < 0:
        return n
    if filter_exists[row] >= 0:
        n = holds(filter_exists[row], truths, n)
    n = number_predicates(row, value, limits, limit_begin, limit_predicate, truths, n)
    for at in range(unlike_begin[row], unlike_begin[row + 1]):
        if unlike_text[at] != text:
            n = holds(unlike_predicate[at], truths, n)
    if text >= 0:
        index = key_index(row << 32 | np.int64(text), text_keys, text_slots)
        if index >= 0:
            n = holds(text_predicate[index], truths, n)
    return n


@part
def attribute_predicates(depth, fresh_from, count, publication, content, asks, filter_steps, filters, truths, n):
    """What the attributes of the path down to `depth` satisfy, seen from the document (-1) and from each tag.

    Of tags before `fresh_from`, only the attributes at `depth` are looked at; the others were when they were met.
    """
    kept_tag, kept_occurrence, kept_depth = publication
    path, attribute_begin, attribute_names, translation, zero, numbers, texts = content
    for seen_from in range(-1, count):
        tag, occurrence, from_depth = np.int64(DOCUMENT), np.int64(1), np.int64(0)
        wanted = filter_steps[len(filter_steps) - 1]
        if seen_from >= 0:
            tag, occurrence = np.int64(kept_tag[seen_from]), np.int64(kept_occurrence[seen_from])
            from_depth = np.int64(kept_depth[seen_from])
            wanted = filter_steps[tag]
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
            holder = path[level]
            key = (tag << OCCURRENCE_BITS | occurrence) << STEPS_BITS | steps
            for at in range(attribute_begin[holder], attribute_begin[holder + 1]):
                name = np.int64(translation[attribute_names[at]])
                if 0 <= name < len(asks) and asks[name]:
                    n = filter_predicates(
                        key << ATTRIBUTE_BITS | name, numbers[at - zero], texts[at - zero], filters, truths, n
                    )
    return n
