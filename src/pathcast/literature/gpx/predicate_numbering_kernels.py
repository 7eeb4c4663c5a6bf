# mypy: allow-untyped-defs, allow-untyped-calls
"""Numbering predicates: each distinct one is stored once, for all its paths (section 4.1's identifiers).

A predicate is two words. The first has its kind, operator, the occurrences of its tags and its value, the second the
tags. A filter has its attribute as second tag, and its steps from the first tag as second occurrence. A length is a
position from the end, that of the document. Plain paths come from the trie, in bulk: the predicate of a node is the
same for all paths through it, so it is computed once per node.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Int64s, Writable, kernel, part
from pathcast.kernels.hash_table_kernels import find_pair, first_slot, next_slot, pair_hash

POSITION, DISTANCE, FROM_END, FILTER = range(4)
EQUAL, AT_LEAST = 0, 1
# Operators of filters.
EXISTS, EQUAL_NUMBER, AT_LEAST_NUMBER, AT_MOST_NUMBER, UNLIKE_NUMBER, EQUAL_TEXT, UNLIKE_TEXT = range(7)
OPERATOR_SHIFT, FIRST_SHIFT, SECOND_SHIFT, VALUE_SHIFT = 2, 5, 17, 29
OCCURRENCE_MASK = 0xFFF
# A filter's steps from its tag, in place of a second occurrence: from -STEPS_ABOVE on; and the tag of the document.
STEPS_ABOVE, STEPS = 31, 64
DOCUMENT = (1 << 22) - 1
TAG_SHIFT = 32
NONE = -1


class PredicateTable(NamedTuple):
    """The distinct predicates, two words each, and a hash table that finds them."""

    slots: Writable[Int32s]
    forms: Writable[Int64s]
    tag_pairs: Writable[Int64s]


@part
def mixed(a, b):
    """A hash of two words."""
    return pair_hash(a, b) >> np.uint64(20)


@part
def packed(kind, operator, first, second, value):
    """The first word of a predicate."""
    return (
        np.int64(kind)
        | np.int64(operator) << OPERATOR_SHIFT
        | np.int64(first) << FIRST_SHIFT
        | np.int64(second) << SECOND_SHIFT
        | np.int64(value) << VALUE_SHIFT
    )


@part
def numbered(form, tags, table, count):
    """The number of a predicate; a new one is appended and gets the number `count`."""
    slots, forms, tag_pairs = table
    number, slot = find_pair(slots, mixed(form, tags), (form, tags), (forms, tag_pairs))
    if number < 0:
        slots[slot] = count
        forms[count] = form
        tag_pairs[count] = tags
        number = np.int64(count)
    return number


@kernel
def number_predicates(
    new_forms: Int64s, new_tags: Int64s, table: PredicateTable, count: int, out: Writable[Int32s]
) -> int:
    """Number predicates that are given as words; return the new number of distinct ones."""
    for index in range(len(new_forms)):
        number = numbered(new_forms[index], new_tags[index], table, count)
        out[index] = number
        count = max(count, number + 1)
    return count


@part
def occurrence(parents, steps, node):
    """The occurrence number of a node's tag on its path."""
    name = steps[node] >> 1
    seen = 1
    above = np.int64(parents[node])
    while above > 0:
        if steps[above] >> 1 == name:
            seen += 1
        above = np.int64(parents[above])
    return seen


@kernel
def encode_trie(
    parents: Int32s,
    steps: Int32s,
    nodes: Int32s,
    introduced: Writable[Int32s],
    table: PredicateTable,
    count: int,
    begin: Writable[Int64s],
    out: Writable[Int32s],
    lengths: Writable[Int32s],
) -> int:
    """The predicates of the paths that end in these nodes of the trie, in the order of their steps.

    Those of path `i` are `out[begin[i] : begin[i + 1]]`; a path of `*` alone has none, and its length in `lengths`
    (otherwise -1). `introduced` has the predicate of each node that was visited, otherwise -1.
    """
    written = np.int64(0)
    for path in range(len(nodes)):
        node = np.int64(nodes[path])
        start = written
        trailing = 0
        while node > 0 and steps[node] < 2:
            trailing += 1
            node = np.int64(parents[node])
        lengths[path] = trailing if node == 0 else NONE
        last = node
        while node > 0:
            # The previous step with a name, and the steps from there.
            distance, deep = 1, steps[node] & 1
            above = np.int64(parents[node])
            while above > 0 and steps[above] < 2:
                distance += 1
                deep |= steps[above] & 1
                above = np.int64(parents[above])
            if introduced[node] < 0:
                tag = np.int64(steps[node] >> 1) - 1
                if above == 0:
                    form = packed(POSITION, deep, 1, 0, distance)
                    tags = tag << TAG_SHIFT
                else:
                    first, second = occurrence(parents, steps, above), occurrence(parents, steps, node)
                    form = packed(DISTANCE, deep, first, second, distance)
                    tags = (np.int64(steps[above] >> 1) - 1) << TAG_SHIFT | tag
                number = numbered(form, tags, table, count)
                count = max(count, number + 1)
                introduced[node] = number
            # `tag ≥ 1` is implied where another predicate has the tag.
            said = above == 0 and deep == 1 and distance == 1 and (node != last or trailing > 0)
            if not said:
                out[written] = introduced[node]
                written += 1
            node = above
        low, high = start, written - 1
        while low < high:
            out[low], out[high] = out[high], out[low]
            low += 1
            high -= 1
        if last > 0 and trailing > 0:
            form = packed(FROM_END, AT_LEAST, occurrence(parents, steps, last), 0, trailing)
            number = numbered(form, (np.int64(steps[last] >> 1) - 1) << TAG_SHIFT, table, count)
            count = max(count, number + 1)
            out[written] = number
            written += 1
        begin[path + 1] = written
    return count


@kernel("void(ro_i8[::1], ro_i8[::1], ro_i8[::1], i4[::1])")
def index_keys(keys, first, size, slots):
    """Insert keys into open-addressing tables: key `k` into the one with `size[k]` slots from `first[k]` on."""
    for key in range(len(keys)):
        mask = np.uint64(size[key] - 1)
        begin = np.uint64(first[key])
        slot = first_slot(mixed(keys[key], 0), mask)
        while slots[begin + slot] >= 0:
            slot = next_slot(slot, mask)
        slots[begin + slot] = key
