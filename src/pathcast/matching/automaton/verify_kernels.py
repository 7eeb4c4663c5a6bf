# mypy: allow-untyped-defs, allow-untyped-calls
"""Verification: tree patterns on one document, every condition at most once.

A condition's answer is a set of elements, those at which it holds, as bits. Sets are made from their parts upwards:

    a node /x[…]     the elements x at which all its parts hold; it holds at their parents (//: at all their ancestors)
    @a, text()       the elements that have one which passes its tests (//: and their ancestors)
    and, or, not     word by word
    a test on .      value by value, only for elements that passed everything else

The longest path of a pattern is taken from the root downwards instead, for patterns begin alike more often than they
end alike:

    a step /x[…]     the elements x whose parent is in the set of the step before (//: some ancestor) and at which
                     all its parts hold; when there are none, the pattern is settled

Elements of a name, and attributes of a name, are linked lists made once a document, so that a node costs its name's
occurrences and not the document's size.

Cost: linear in the document for each distinct condition; some 30 ns for one on a small document.
"""

import numpy as np

from ...kernels import kernel, lowest_bit, part, rare
from .value_kernels import CONTAINS, DIFFERENT_TEXT, EQUAL_TEXT, STARTS_WITH, compares, number, passes, short_hash

# SELF tests the values of elements that passed everything else, SELF_SET those of all elements.
ELEMENT, ATTRIBUTE, TEXT_NODE, ROOT, SELF, SELF_SET, ALL_OF, ANY_OF, NOT, STEP = range(10)
DEEP = 16
ANY_NAME = -1
# Columns of the condition table. A step has the step before it (-1: the document) in the place of a literal.
C_KIND, C_TEST, C_LITERAL, C_LENGTH, C_PARTS, C_PARTS_END = range(6)
C_BEFORE = C_LITERAL
# Columns of what is known of a condition in a document: the stamp of the task, where its set lies and (of a step) that
# of the elements below, and whether it holds at the document (of a step: anywhere).
K_STAMP, K_PLACE, K_BELOW, K_HOLDS, K_COLUMNS = range(5)
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
    test, literal, wanted = rows[row, C_TEST], rows[row, C_LITERAL], rows[row, C_LENGTH]
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


@part
def value_passes(
    value, start, length, row, stamp, rows, limits, literal_hashes, literals, parts, data, arena, hashes, hash_stamps,
    numbers, number_stamps,
):  # fmt: skip
    """Whether attribute or text node `value` of the document passes all tests of condition `row`.

    Its hash and its number are worked out when they are first asked for.
    """
    for k in range(rows[row, C_PARTS], rows[row, C_PARTS_END]):
        part_row = parts[k]
        test = rows[part_row, C_TEST]
        if test == EQUAL_TEXT or test == DIFFERENT_TEXT:
            if hash_stamps[value] != stamp:
                hash_stamps[value] = stamp
                hashes[value] = hash_of(data, arena, start, length)
            if hashes[value] != literal_hashes[part_row]:
                if test == EQUAL_TEXT:
                    return False
                continue
        elif test != CONTAINS and test != STARTS_WITH:
            if number_stamps[value] != stamp:
                number_stamps[value] = stamp
                numbers[value] = number_of(data, arena, start, length)
            if not compares(test, numbers[value], limits[part_row]):
                return False
            continue
        if not text_passes(part_row, start, length, rows, literals, data, arena):
            return False
    return True


@rare
def passes_all(start, length, row, rows, limits, literals, parts, data, arena):
    """Whether the value of an attribute or text node passes all tests of condition `row`; for those who ask once."""
    for k in range(rows[row, C_PARTS], rows[row, C_PARTS_END]):
        test = parts[k]
        literal, wanted = rows[test, C_LITERAL], rows[test, C_LENGTH]
        if start >= 0:
            held = passes(rows[test, C_TEST], limits[test], literals, literal, wanted, data, start, length)
        else:
            held = passes(rows[test, C_TEST], limits[test], literals, literal, wanted, arena, -1 - start, length)
        if not held:
            return False
    return True


@rare
def hash_of(data, arena, start, length):
    """The hash of a value."""
    return short_hash(data, start, length) if start >= 0 else short_hash(arena, -1 - start, length)


@rare
def number_of(data, arena, start, length):
    """The number of a value."""
    return number(data, start, length) if start >= 0 else number(arena, -1 - start, length)


@rare
def text_passes(row, start, length, rows, literals, data, arena):
    """Whether a value passes the test of condition `row`, which is one on its text."""
    test, literal, wanted = rows[row, C_TEST], rows[row, C_LITERAL], rows[row, C_LENGTH]
    if start >= 0:
        return passes(test, 0.0, literals, literal, wanted, data, start, length)
    return passes(test, 0.0, literals, literal, wanted, arena, -1 - start, length)


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


@rare
def set_below(bits, word, below, width, first, ends):
    """The elements below those of the set at `word`, as a set at `below`."""
    for k in range(width):
        bits[below + k] = 0
    reach = np.int64(0)
    for w in range(width):
        left = bits[word + w]
        while left:
            element = np.int64(64 * w + lowest_bit(left))
            left &= left - ONE
            # The elements below one are those up to its end; what lies below another one already is passed over.
            begin, end = max(element + 1, reach), np.int64(ends[first + element] - first)
            while begin < end:
                if begin & 63 == 0 and end - begin >= 64:
                    bits[below + (begin >> 6)] = ~np.uint64(0)
                    begin += 64
                else:
                    bits[below + (begin >> 6)] |= ONE << np.uint64(begin & 63)
                    begin += 1
            reach = max(reach, end)


@part
def step_set(
    row, word, first, count, stamp, rows, limits, literals, parts, parents, heads, head_stamps, nexts, known,
    above, bits, text_begin, text_end, text_start, text_length, data, arena, joined,
):  # fmt: skip
    """Mark the elements of a step in the set at `word`; whether there is one.

    `above` is the set that the parent must be in or, for a deep step, the element itself; -1 after the document, which
    a root element is a child of.
    """
    name, deep, before = rows[row, C_TEST], rows[row, C_KIND] >= DEEP, rows[row, C_BEFORE]
    if name == ANY_NAME:
        element, last = np.int64(0), count
    else:
        element, last = np.int64(heads[name] if head_stamps[name] == stamp else -1), np.int64(-1)
    found = False
    while element >= 0 and element != last:
        held = element >= 0
        if before >= 0:
            of = element if deep else np.int64(parents[first + element] - first)
            held = of >= 0 and bits[above + (of >> 6)] >> np.uint64(of & 63) & ONE != 0
        elif not deep:
            held = element == 0
        k = rows[row, C_PARTS]
        while held and k < rows[row, C_PARTS_END]:
            part_row = parts[k]
            if rows[part_row, C_KIND] == SELF:
                held = element_passes(first + element, part_row, rows, limits, literals, text_begin, text_end,
                                      text_start, text_length, data, arena, joined)  # fmt: skip
            else:
                held = bits[known[part_row, K_PLACE] + (element >> 6)] >> np.uint64(element & 63) & ONE != 0
            k += 1
        if held:
            bits[word + (element >> 6)] |= ONE << np.uint64(element & 63)
            found = True
        element = element + 1 if name == ANY_NAME else np.int64(nexts[element])
    return found


@kernel(
    "void(ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1],"
    " ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_u1[::1], ro_u1[::1], ro_i4[::1],"
    " ro_i4[:, ::1], ro_f8[::1], ro_u8[::1], ro_u1[::1], ro_i4[::1],"
    " ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_i8[::1], ro_i8[::1], ro_i4[::1], b1[::1],"
    " i8[::1], i8[:, ::1], u8[::1], u8[::1], i4[:, ::1], i8[:, ::1], i4[:, ::1], u1[::1],"
    " u8[:, ::1], f8[:, ::1], i8[:, ::1])"
)
def verify(
    offsets, names, parents, ends, attribute_begin, attribute_names, attribute_start, attribute_length,
    text_begin, text_end, text_parent, text_start, text_length, data, arena, translation,
    rows, limits, literal_hashes, literals, parts,
    programs, program_begin, roots, task_document, task_begin, candidates, answers,
    state, known, bits, scratch, heads, head_stamps, lists, joined, hashes, numbers, value_stamps,
):  # fmt: skip
    """For each task, a document and some candidate patterns, which of them match.

    `state[0]` is the stamp of the last task. `bits` has room for every condition of a task's candidates, twice.
    `known` has what is known of each condition in the document.
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
                kind = rows[row, C_KIND]
                deep = kind >= DEEP
                kind &= DEEP - 1
                if known[row, K_STAMP] == stamp:
                    if kind == STEP and not known[row, K_HOLDS]:
                        break
                    continue
                known[row, K_STAMP] = stamp
                known[row, K_PLACE] = used
                word = used
                used += width
                for k in range(word, used):
                    bits[k] = 0
                known[row, K_HOLDS] = 0
                if kind == STEP:
                    known[row, K_BELOW] = -1
                    before = rows[row, C_BEFORE]
                    above = np.int64(-1)
                    if before >= 0:
                        above = known[before, K_PLACE]
                        if deep:
                            if known[before, K_BELOW] < 0:
                                known[before, K_BELOW] = used
                                set_below(bits, above, used, width, first, ends)
                                used += width
                            above = known[before, K_BELOW]
                    known[row, K_HOLDS] = step_set(
                        row, word, first, count, stamp, rows, limits, literals, parts, parents, heads[0],
                        head_stamps[0], lists[0], known, above, bits, text_begin, text_end, text_start, text_length,
                        data, arena, joined,
                    )  # fmt: skip
                    if not known[row, K_HOLDS]:
                        break
                elif kind == ELEMENT:
                    # The elements of the name, then those at which every part holds.
                    name = rows[row, C_TEST]
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
                    for k in range(rows[row, C_PARTS], rows[row, C_PARTS_END]):
                        below = parts[k]
                        if rows[below, C_KIND] != SELF:
                            at = known[below, K_PLACE]
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
                    known[row, K_HOLDS] = np.int64(scratch[0] & ONE)
                    for w in range(width):
                        left = scratch[w]
                        if left and deep:
                            known[row, K_HOLDS] = 1
                        while left:
                            above = parents[first + 64 * w + lowest_bit(left)]
                            left &= left - ONE
                            if above >= 0:
                                mark_up(bits, word, np.int64(above - first), parents, first, deep)
                elif kind == ATTRIBUTE:
                    name = rows[row, C_TEST]
                    attribute = np.int64(heads[1, name] if head_stamps[1, name] == stamp else -1)
                    while attribute >= 0:
                        start, length = attribute_start[base + attribute], np.int64(attribute_length[base + attribute])
                        if value_passes(attribute, start, length, row, stamp, rows, limits, literal_hashes, literals,
                                        parts, data, arena, hashes[0], value_stamps[0], numbers[0],
                                        value_stamps[1]):  # fmt: skip
                            mark_up(bits, word, np.int64(lists[2, attribute]), parents, first, deep)
                            known[row, K_HOLDS] = np.int64(deep)
                        attribute = np.int64(lists[1, attribute])
                elif kind == TEXT_NODE:
                    for index in range(text_begin[first], text_end[first]):
                        start, length = text_start[index], np.int64(text_length[index])
                        if value_passes(index - text_begin[first], start, length, row, stamp, rows, limits,
                                        literal_hashes, literals, parts, data, arena, hashes[1], value_stamps[2],
                                        numbers[1], value_stamps[3]):  # fmt: skip
                            mark_up(bits, word, np.int64(text_parent[index] - first), parents, first, deep)
                            known[row, K_HOLDS] = np.int64(deep)
                elif kind == SELF_SET:
                    for element in range(count):
                        if element_passes(first + element, row, rows, limits, literals, text_begin, text_end,
                                          text_start, text_length, data, arena, joined):  # fmt: skip
                            put_bit(bits, word, np.int64(element))
                elif kind == ROOT:
                    if known[parts[rows[row, C_PARTS]], K_HOLDS]:
                        for k in range(word, used):
                            bits[k] = ~np.uint64(0)
                elif kind == NOT:
                    at = known[parts[rows[row, C_PARTS]], K_PLACE]
                    for w in range(width):
                        bits[word + w] = ~bits[at + w]
                else:
                    if kind == ALL_OF:
                        for k in range(word, used):
                            bits[k] = ~np.uint64(0)
                    for k in range(rows[row, C_PARTS], rows[row, C_PARTS_END]):
                        at = known[parts[k], K_PLACE]
                        for w in range(width):
                            if kind == ALL_OF:
                                bits[word + w] &= bits[at + w]
                            else:
                                bits[word + w] |= bits[at + w]
            root = roots[pattern]
            answers[candidate] = known[root, K_STAMP] == stamp and known[root, K_HOLDS] != 0
