# mypy: allow-untyped-defs, allow-untyped-calls
"""Values and first nodes of paths, for conditions on one document (`verifier_kernels.py`).

Elements of a name, and attributes of a name, are linked lists made once a document, so that a condition costs its
name's occurrences and not the document's size. A value's hash and its number are worked out when they are first asked
for. Sets of elements are bits, `width` words each, one after the other in `bits`.
"""

import numpy as np

from pathcast.kernels import apart, part, rare

from ..values.comparison_kernels import (
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

# SELF, CHOICE and FIRST are tried on the elements that passed everything else (`boolean_test_kernels.py`); any other
# kind is the set of elements at which it holds. FIRST_ROOT is FIRST at the document; PATH_… are the steps of its path.
# A STEP is a step of a pattern's longest path. A CHOICE is `and`, `or` and `not` of tests: its first part is the SELF
# to begin with, the others are the conditions that its tests ask about. The parts of an ATTRIBUTE or TEXT_NODE (and of
# such a step) are SELF, tests of its value, which may be the beginnings of choices (`choice_passes`); and conditions on
# the document that choices ask about.
ELEMENT, ATTRIBUTE, TEXT_NODE, ROOT, SELF, CHOICE, ALL_OF, ANY_OF, NOT, STEP, FIRST, FIRST_ROOT = range(12)
PATH_ELEMENT, PATH_ATTRIBUTE, PATH_TEXT = 12, 13, 14
DEEP = 16
ANY_NAME = -1
# Columns of the condition table: `test` is the name of a node, or the kind of a value test. A step has the step before
# it (-1: the document) in the place of a literal. The first part (NO_PART: there is none) stands in the row itself; two
# rows are a cache line.
C_KIND, C_TEST, C_LITERAL, C_LENGTH, C_PARTS, C_PARTS_END, C_PART, C_COLUMNS = 0, 1, 2, 3, 4, 5, 6, 8
NO_PART = -1
C_BEFORE = C_LITERAL
# Columns of what is known of a condition: the epoch, and its set.
K_EPOCH, K_SET, K_COLUMNS = range(3)
# Numbers of the sets that are always there: no element, all elements, and the document (which is no set of elements).
EMPTY, ALL, DOCUMENT, SETS = range(4)
# Parts of a choice: where it goes on if its test is passed, where if not; and the condition in the place of its test.
X_PASSED, X_FAILED, X_CONDITION = range(3)
# Rows of `lists`: the next element of the name, the next attribute, and each attribute's element.
L_ELEMENT, L_ATTRIBUTE, L_OWNER, L_ROWS = range(4)
# Rows of `heads`, each twice, for elements and for attributes: the first one of a name; the first from some element on,
# when it was last asked for; and that element. Rows of their stamps: the first two.
H_FIRST, H_LATER, H_FROM, H_ROWS, H_STAMPS = 0, 2, 4, 6, 4
# Rows of the values that were worked out: of attributes and of text nodes; and of their stamps.
V_ATTRIBUTE, V_TEXT, V_ROWS = range(3)
ONE = np.uint64(1)


@part
def is_tried(kind):
    """Whether conditions of a kind are tried on the elements that passed everything else."""
    return kind == SELF or kind == CHOICE or kind == FIRST


@part
def has_bit(bits, word, element):
    """Whether the set that begins at `word` has an element."""
    return bits[np.uint64(word + (element >> 6))] >> np.uint64(element & 63) & ONE != 0


@part
def put_bit(bits, word, element):
    """Mark an element in the set that begins at `word`; whether it was marked already."""
    at = np.uint64(word + (element >> 6))
    bit = ONE << np.uint64(element & 63)
    if bits[at] & bit:
        return True
    bits[at] |= bit
    return False


@part
def mark_up(bits, word, element, parents, first, deep):
    """Mark an element, and with `deep` all above it, up to the first that is marked already."""
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
def test_passes(row, start, length, rows, limits, literals, data, arena):
    """Whether a value passes the test of condition `row`, with nothing worked out before."""
    test, literal, wanted = rows[row, C_TEST], rows[row, C_LITERAL], rows[row, C_LENGTH]
    if start >= 0:
        return passes(test, limits[row], literals, literal, wanted, data, start, length)
    return passes(test, limits[row], literals, literal, wanted, arena, -1 - start, length)


@part
def known_test_passes(
    row, value, start, length, stamp, rows, limits, literal_hashes, literals, data, arena, hashes, hash_stamps, numbers,
    number_stamps,
):  # fmt: skip
    """As `test_passes`; the value's hash and number are those of `value`, kept for the document."""
    test = rows[row, C_TEST]
    if test <= DIFFERENT_TEXT:
        if hash_stamps[value] != stamp:
            hash_stamps[value] = stamp
            hashes[value] = hash_of(data, arena, start, length)
        if hashes[value] != literal_hashes[row]:
            return test == DIFFERENT_TEXT
    elif test < CONTAINS:
        if number_stamps[value] != stamp:
            number_stamps[value] = stamp
            numbers[value] = number_of(data, arena, start, length)
        return compares(test, numbers[value], limits[row])
    return test_passes(row, start, length, rows, limits, literals, data, arena)


@apart
def choice_passes(row, start, length, rows, limits, literals, parts, data, arena, known):
    """Whether a value passes a choice: `and`, `or` and `not` of tests, one after the other.

    Each test says which one comes next, if it is passed and if not; ALL_OF without parts ends that with yes, ANY_OF
    without parts with no. A condition on the document, which holds everywhere or nowhere, may stand for a test. By
    itself, beside choices that ask about it, it excludes nothing.
    """
    if rows[row, C_KIND] != SELF:
        return True
    while rows[row, C_KIND] == SELF:
        at = rows[row, C_PARTS]
        if rows[row, C_PARTS_END] > at + X_CONDITION:
            held = known[parts[at + X_CONDITION], K_SET] != EMPTY
        else:
            held = test_passes(row, start, length, rows, limits, literals, data, arena)
        row = np.int64(parts[at + (X_PASSED if held else X_FAILED)])
    return rows[row, C_KIND] == ALL_OF


@part
def value_passes(
    row, value, start, length, stamp, rows, limits, literal_hashes, literals, parts, data, arena, known, hashes,
    hash_stamps, numbers, number_stamps,
):  # fmt: skip
    """Whether attribute or text node `value` of the document passes all tests of condition `row`."""
    for k in range(rows[row, C_PARTS], rows[row, C_PARTS_END]):
        test = np.int64(parts[k])
        if rows[test, C_PART] != NO_PART:
            passed = choice_passes(test, start, length, rows, limits, literals, parts, data, arena, known)
        else:
            passed = known_test_passes(test, value, start, length, stamp, rows, limits, literal_hashes, literals, data,
                                       arena, hashes, hash_stamps, numbers, number_stamps)  # fmt: skip
        if not passed:
            return False
    return True


@rare
def passes_all(start, length, row, rows, limits, literals, parts, data, arena):
    """As `value_passes`, for those who ask once and have no choices."""
    for k in range(rows[row, C_PARTS], rows[row, C_PARTS_END]):
        if not test_passes(np.int64(parts[k]), start, length, rows, limits, literals, data, arena):
            return False
    return True


@rare
def step_passes(start, length, row, rows, limits, literals, parts, data, arena, known):
    """As `value_passes`, for a step of a path whose first node is looked for."""
    for k in range(rows[row, C_PARTS], rows[row, C_PARTS_END]):
        test = np.int64(parts[k])
        if rows[test, C_PART] != NO_PART:
            passed = choice_passes(test, start, length, rows, limits, literals, parts, data, arena, known)
        else:
            passed = test_passes(test, start, length, rows, limits, literals, data, arena)
        if not passed:
            return False
    return True


@rare
def element_passes(
    element, row, rows, limits, literals, text_begin, text_end, text_start, text_length, data, arena, joined
):
    """Whether an element's string-value passes the test of condition `row`; no more of it is read than that takes."""
    begin, end = text_begin[element], text_end[element]
    if end - begin == 1:
        return test_passes(row, text_start[begin], np.int64(text_length[begin]), rows, limits, literals, data, arena)
    test, wanted = rows[row, C_TEST], np.int64(rows[row, C_LENGTH])
    length = np.int64(0)
    for index in range(begin, end):
        start, size = text_start[index], np.int64(text_length[index])
        if test <= DIFFERENT_TEXT or test == STARTS_WITH:
            size = min(size, wanted + 1 - length)
        for k in range(size):
            byte = data[start + k] if start >= 0 else arena[-1 - start + k]
            if DIFFERENT_TEXT < test < CONTAINS and not is_of_numbers(byte):
                return test == DIFFERENT
            joined[length + k] = byte
        length += size
    return passes(test, limits[row], literals, rows[row, C_LITERAL], wanted, joined, np.int64(0), length)


@rare
def contains_further(
    element,
    row,
    since,
    at,
    until,
    rows,
    limits,
    literals,
    text_begin,
    text_end,
    text_start,
    text_length,
    data,
    arena,
    joined,
):
    """Whether an element's string-value contains the text of condition `row`, and what is known by then.

    That is: from text node `since` on, the text is first found from node `at` to node `until`; or, if `at` is -1,
    nowhere before node `until`. Elements come in document order, so all together cost what the document has of text.
    """
    begin, end = np.int64(text_begin[element]), np.int64(text_end[element])
    if since <= begin <= at:
        return until < end, since, at, until
    if at < 0 and since <= begin and end <= until:
        return False, since, at, until
    literal, wanted = rows[row, C_LITERAL], np.int64(rows[row, C_LENGTH])
    if end - begin == 1:
        if test_passes(row, text_start[begin], np.int64(text_length[begin]), rows, limits, literals, data, arena):
            return True, begin, begin, begin
        return False, begin, np.int64(-1), end
    length = np.int64(0)
    for index in range(begin, end):
        start, size = text_start[index], np.int64(text_length[index])
        for k in range(size):
            joined[length + k] = data[start + k] if start >= 0 else arena[-1 - start + k]
        low = max(np.int64(0), length - wanted + 1)
        found = find(joined, low, length + size - low, literals, literal, wanted)
        if found >= 0:
            at = np.int64(index)
            while found < length:
                at -= 1
                length -= text_length[at]
            return True, begin, at, np.int64(index)
        length += size
    return False, begin, np.int64(-1), end


@apart
def link(first, count, names, translation, attribute_begin, attribute_names, stamp, heads, head_stamps, lists):
    """Make the lists of elements and of attributes of each name, in document order."""
    base = attribute_begin[first]
    for element in range(count - 1, -1, -1):
        name = translation[names[first + element]]
        if 0 <= name < heads.shape[1]:
            lists[L_ELEMENT, element] = heads[0, name] if head_stamps[0, name] == stamp else -1
            heads[0, name] = element
            head_stamps[0, name] = stamp
        for attribute in range(attribute_begin[first + element + 1] - 1, attribute_begin[first + element] - 1, -1):
            name = translation[attribute_names[attribute]]
            if 0 <= name < heads.shape[1]:
                k = attribute - base
                lists[L_ATTRIBUTE, k] = heads[1, name] if head_stamps[1, name] == stamp else -1
                heads[1, name] = k
                head_stamps[1, name] = stamp
                lists[L_OWNER, k] = element


@part
def first_from(which, name, low, stamp, heads, head_stamps, lists):
    """The first element (`which` 0) or attribute (1) of a name from element `low` on, or -1.

    Contexts come in document order, so what was found for the last one is where the search goes on.
    """
    if head_stamps[H_FIRST + which, name] != stamp:
        return np.int64(-1)
    at = np.int64(heads[H_FIRST + which, name])
    if head_stamps[H_LATER + which, name] == stamp and heads[H_FROM + which, name] <= low:
        at = np.int64(heads[H_LATER + which, name])
    while at >= 0 and (lists[L_OWNER, at] if which else at) < low:
        at = np.int64(lists[L_ATTRIBUTE if which else L_ELEMENT, at])
    heads[H_LATER + which, name], heads[H_FROM + which, name] = at, low
    head_stamps[H_LATER + which, name] = stamp
    return at


@part
def is_inside(element, context, own, axis_deep, parents, first, bits, word):
    """Whether an element lies below one of a set inside `context` (-1: the document); `own`: or is one itself.

    Without `axis_deep`: is a child of one; with `own`: is one.
    """
    if not own:
        above = parents[first + element]
        element = np.int64(above - first) if above >= 0 else np.int64(-1)
    while element >= context and element >= 0:
        if has_bit(bits, word, element):
            return True
        if not axis_deep:
            return False
        above = parents[first + element]
        element = np.int64(above - first) if above >= 0 else np.int64(-1)
    return False


@apart
def first_passes(
    row, context, first, count, width, stamp, rows, limits, literals, parts, parents, ends, heads, head_stamps, lists,
    attribute_begin, attribute_start, attribute_length, text_begin, text_end, text_parent, text_start, text_length,
    data, arena, joined, known, bits, scratch,
):  # fmt: skip
    """Whether the first node of the path of condition `row` passes its test; `context` -1 is the document.

    The path's element steps are sets inside the context, in `scratch` by turns.
    """
    here, there = np.int64(0), width
    low, high = np.int64(0), count
    steps, last = rows[row, C_PARTS], rows[row, C_PARTS_END]
    at_document = context < 0
    if not at_document:
        low, high = context, np.int64(ends[first + context] - first)
        for w in range(low >> 6, ((high - 1) >> 6) + 1):
            scratch[here + w] = 0
        put_bit(scratch, here, context)
    elif steps == last:
        return element_passes(first, row, rows, limits, literals, text_begin, text_end, text_start, text_length, data,
                              arena, joined)  # fmt: skip
    for k in range(steps, last):
        step = np.int64(parts[k])
        kind, name, is_last = rows[step, C_KIND], rows[step, C_TEST], k == last - 1
        deep = kind >= DEEP
        kind &= DEEP - 1
        if kind == PATH_ELEMENT:
            for w in range(low >> 6, ((high - 1) >> 6) + 1):
                scratch[there + w] = 0
            if name == ANY_NAME:
                element = low
            else:
                element = first_from(0, name, low, stamp, heads, head_stamps, lists)
            found = False
            while 0 <= element < high:
                if at_document:
                    held = deep or element == 0
                else:
                    held = element > low and is_inside(element, low, False, deep, parents, first, scratch, here)
                if held and has_bit(bits, width * np.int64(known[step, K_SET]), element):
                    if is_last:
                        return element_passes(first + element, row, rows, limits, literals, text_begin, text_end,
                                              text_start, text_length, data, arena, joined)  # fmt: skip
                    found = True
                    put_bit(scratch, there, element)
                element = element + 1 if name == ANY_NAME else np.int64(lists[L_ELEMENT, element])
            if not found:
                return False
            here, there = there, here
            at_document = False
        elif kind == PATH_ATTRIBUTE:
            base = attribute_begin[first]
            attribute = first_from(1, name, low, stamp, heads, head_stamps, lists)
            while attribute >= 0 and lists[L_OWNER, attribute] < high:
                owner = np.int64(lists[L_OWNER, attribute])
                if at_document:
                    held = deep
                else:
                    held = is_inside(owner, low, True, deep, parents, first, scratch, here)
                start, length = attribute_start[base + attribute], np.int64(attribute_length[base + attribute])
                if held and step_passes(start, length, step, rows, limits, literals, parts, data, arena, known):
                    return test_passes(row, start, length, rows, limits, literals, data, arena)
                attribute = np.int64(lists[L_ATTRIBUTE, attribute])
            return False
        else:
            for index in range(text_begin[first + low], text_end[first + low]):
                owner = np.int64(text_parent[index] - first)
                held = deep if at_document else is_inside(owner, low, True, deep, parents, first, scratch, here)
                start, length = text_start[index], np.int64(text_length[index])
                if held and step_passes(start, length, step, rows, limits, literals, parts, data, arena, known):
                    return test_passes(row, start, length, rows, limits, literals, data, arena)
            return False
    return False
