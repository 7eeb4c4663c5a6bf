# mypy: allow-untyped-defs, allow-untyped-calls
"""Verification: tree patterns on one document, every condition at most once.

A condition's answer is a set of elements, those at which it holds, as bits. Sets are made from their parts upwards:

    a node /x[…]     the elements x at which all its parts hold; it holds at their parents (//: at all their ancestors)
    @a, text()       the elements that have one which passes its tests (//: and their ancestors)
    and, or, not     word by word
    a test on .      value by value, only for elements that passed everything else

Elements of a name, and attributes of a name, are linked lists made once a document, so that a node costs its name's
occurrences and not the document's size.

Cost: linear in the document for each distinct condition; some 30 ns for one on a small document.
"""

import numpy as np

from ...kernels import kernel, lowest_bit, part, rare
from .value_kernels import passes

# SELF tests the values of elements that passed everything else, SELF_SET those of all elements.
ELEMENT, ATTRIBUTE, TEXT_NODE, ROOT, SELF, SELF_SET, ALL_OF, ANY_OF, NOT = range(9)
DEEP = 16
ANY_NAME = -1
# Rows of the condition table.
C_KIND, C_TEST, C_LITERAL, C_LENGTH, C_PARTS, C_PARTS_END = range(6)
ONE = np.uint64(1)


@part
def put_bit(bits, word, element):
    """Mark an element in the set that begins at `word`; whether it was marked already."""
    at = word + (element >> 6)
    bit = ONE << np.uint64(element & 63)
    if bits[at] & bit:
        return True
    bits[at] |= bit
    return False


@rare
def element_passes(
    element, row, rows, limits, literals, text_begin, text_end, text_start, text_length, data, arena, joined
):
    """Whether an element's string-value passes the test of condition `row`."""
    begin, end = text_begin[element], text_end[element]
    test, literal, wanted = rows[C_TEST, row], rows[C_LITERAL, row], rows[C_LENGTH, row]
    if end - begin == 1:
        start = text_start[begin]
        if start >= 0:
            return passes(test, limits[row], literals, literal, wanted, data, start, np.int64(text_length[begin]))
        return passes(test, limits[row], literals, literal, wanted, arena, -1 - start, np.int64(text_length[begin]))
    length = np.int64(0)
    for index in range(begin, end):
        start, size = text_start[index], text_length[index]
        for k in range(size):
            joined[length + k] = data[start + k] if start >= 0 else arena[-1 - start + k]
        length += size
    return passes(test, limits[row], literals, literal, wanted, joined, np.int64(0), length)


@rare
def value_passes(start, length, row, rows, limits, literals, parts, data, arena):
    """Whether the value of an attribute or text node passes all tests of condition `row`."""
    for k in range(rows[C_PARTS, row], rows[C_PARTS_END, row]):
        test = parts[k]
        if start >= 0:
            held = passes(
                rows[C_TEST, test],
                limits[test],
                literals,
                rows[C_LITERAL, test],
                rows[C_LENGTH, test],
                data,
                start,
                length,
            )
        else:
            held = passes(
                rows[C_TEST, test], limits[test], literals, rows[C_LITERAL, test], rows[C_LENGTH, test],
                arena, -1 - start, length,
            )  # fmt: skip
        if not held:
            return False
    return True


@part
def mark_up(bits, word, element, parents, first, deep):
    """Mark an element, and with `deep` all above it, up to the first that is marked already."""
    while element >= 0:
        if put_bit(bits, word, element) or not deep:
            return
        above = parents[first + element]
        element = above - first if above >= 0 else -1


@rare
def link(first, count, names, translation, attribute_begin, attribute_names, stamp, heads, head_stamps, nexts,
         attribute_heads, attribute_head_stamps, attribute_nexts, owners):  # fmt: skip
    """Make the lists of elements and of attributes of each name; the last of a name comes first."""
    base = attribute_begin[first]
    for element in range(count - 1, -1, -1):
        name = translation[names[first + element]]
        if name >= 0:
            nexts[element] = heads[name] if head_stamps[name] == stamp else -1
            heads[name] = element
            head_stamps[name] = stamp
        for attribute in range(attribute_begin[first + element], attribute_begin[first + element + 1]):
            name = translation[attribute_names[attribute]]
            if name >= 0:
                k = attribute - base
                attribute_nexts[k] = attribute_heads[name] if attribute_head_stamps[name] == stamp else -1
                attribute_heads[name] = k
                attribute_head_stamps[name] = stamp
                owners[k] = element


@kernel(
    "void(ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1],"
    " ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_u1[::1], ro_u1[::1], ro_i4[::1],"
    " ro_i4[:, ::1], ro_f8[::1], ro_u1[::1], ro_i4[::1],"
    " ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_i8[::1], ro_i8[::1], ro_i4[::1], b1[::1],"
    " i8[::1], i8[::1], i8[::1], b1[::1], u8[::1], u8[::1], i4[:, ::1], i8[:, ::1], i4[:, ::1], u1[::1])"
)
def verify(
    offsets, names, parents, attribute_begin, attribute_names, attribute_start, attribute_length,
    text_begin, text_end, text_parent, text_start, text_length, data, arena, translation,
    rows, limits, literals, parts,
    programs, program_begin, roots, task_document, task_begin, candidates, answers,
    state, stamps, places, at_document, bits, scratch, heads, head_stamps, lists, joined,
):  # fmt: skip
    """For each task, a document and some candidate patterns, which of them match.

    `state[0]` is the stamp of the last task. `bits` has room for every condition of a task's candidates.
    """
    for task in range(len(task_document)):
        document = task_document[task]
        state[0] += 1
        stamp = state[0]
        first = offsets[document]
        count = offsets[document + 1] - first
        width = (count + 63) >> 6
        link(first, count, names, translation, attribute_begin, attribute_names, stamp, heads[0], head_stamps[0],
             lists[0], heads[1], head_stamps[1], lists[1], lists[2])  # fmt: skip
        base = attribute_begin[first]
        used = np.int64(0)
        for candidate in range(task_begin[task], task_begin[task + 1]):
            pattern = candidates[candidate]
            for p in range(program_begin[pattern], program_begin[pattern + 1]):
                row = programs[p]
                if stamps[row] == stamp:
                    continue
                stamps[row] = stamp
                places[row] = used
                word = used
                used += width
                for k in range(word, used):
                    bits[k] = 0
                kind = rows[C_KIND, row]
                deep = kind >= DEEP
                kind &= DEEP - 1
                at_document[row] = False
                if kind == ELEMENT:
                    # The elements of the name, then those at which every part holds.
                    name = rows[C_TEST, row]
                    for k in range(width):
                        scratch[k] = 0
                    if name == ANY_NAME:
                        for element in range(count):
                            scratch[element >> 6] |= ONE << np.uint64(element & 63)
                    elif head_stamps[0, name] == stamp:
                        element = heads[0, name]
                        while element >= 0:
                            scratch[element >> 6] |= ONE << np.uint64(element & 63)
                            element = lists[0, element]
                    for k in range(rows[C_PARTS, row], rows[C_PARTS_END, row]):
                        below = parts[k]
                        if rows[C_KIND, below] != SELF:
                            at = places[below]
                            for w in range(width):
                                scratch[w] &= bits[at + w]
                        else:
                            for w in range(width):
                                left = scratch[w]
                                while left:
                                    bit = left & (~left + ONE)
                                    left ^= bit
                                    element = first + 64 * w + lowest_bit(bit)
                                    if not element_passes(element, below, rows, limits, literals, text_begin, text_end,
                                                          text_start, text_length, data, arena, joined):  # fmt: skip
                                        scratch[w] ^= bit
                    at_document[row] = bool(scratch[0] & ONE)
                    for w in range(width):
                        left = scratch[w]
                        if left and deep:
                            at_document[row] = True
                        while left:
                            above = parents[first + 64 * w + lowest_bit(left)]
                            left &= left - ONE
                            if above >= 0:
                                mark_up(bits, word, np.int64(above - first), parents, first, deep)
                elif kind == ATTRIBUTE:
                    name = rows[C_TEST, row]
                    attribute = np.int64(heads[1, name] if head_stamps[1, name] == stamp else -1)
                    while attribute >= 0:
                        start, length = attribute_start[base + attribute], np.int64(attribute_length[base + attribute])
                        if value_passes(start, length, row, rows, limits, literals, parts, data, arena):
                            mark_up(bits, word, np.int64(lists[2, attribute]), parents, first, deep)
                            at_document[row] = deep
                        attribute = np.int64(lists[1, attribute])
                elif kind == TEXT_NODE:
                    for index in range(text_begin[first], text_end[first]):
                        start, length = text_start[index], np.int64(text_length[index])
                        if value_passes(start, length, row, rows, limits, literals, parts, data, arena):
                            mark_up(bits, word, np.int64(text_parent[index] - first), parents, first, deep)
                            at_document[row] = deep
                elif kind == SELF_SET:
                    for element in range(count):
                        if element_passes(first + element, row, rows, limits, literals, text_begin, text_end,
                                          text_start, text_length, data, arena, joined):  # fmt: skip
                            put_bit(bits, word, np.int64(element))
                elif kind == ROOT:
                    if at_document[parts[rows[C_PARTS, row]]]:
                        for k in range(word, used):
                            bits[k] = ~np.uint64(0)
                elif kind == NOT:
                    at = places[parts[rows[C_PARTS, row]]]
                    for w in range(width):
                        bits[word + w] = ~bits[at + w]
                else:
                    if kind == ALL_OF:
                        for k in range(word, used):
                            bits[k] = ~np.uint64(0)
                    for k in range(rows[C_PARTS, row], rows[C_PARTS_END, row]):
                        at = places[parts[k]]
                        for w in range(width):
                            if kind == ALL_OF:
                                bits[word + w] &= bits[at + w]
                            else:
                                bits[word + w] |= bits[at + w]
            answers[candidate] = at_document[roots[pattern]]
