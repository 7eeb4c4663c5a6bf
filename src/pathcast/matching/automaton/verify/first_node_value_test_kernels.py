# mypy: allow-untyped-defs, allow-untyped-calls
"""Value tests of first nodes: a `First` condition tests only the value of the first node of a path, in document order.

A path's element steps are sets inside the context. The last step is searched in document order, in the list of its
name, so that the first node inside these sets ends the search.

Cost: the occurrences of the names of a path inside the context. Contexts come in document order, so a search continues
where the previous one ended.
"""

import numpy as np

from pathcast.kernels import apart, part

from .value_condition_kernels import (
    ANY_NAME,
    C_KIND,
    C_PARTS,
    C_PARTS_END,
    C_TEST,
    DEEP,
    H_FIRST,
    H_FROM,
    H_LATER,
    K_SET,
    L_ATTRIBUTE,
    L_ELEMENT,
    L_OWNER,
    PATH_ATTRIBUTE,
    PATH_ELEMENT,
    element_passes,
    has_bit,
    put_bit,
    step_passes,
    test_passes,
)


@part
def first_from(which, name, low, stamp, occurrences):
    """The first element (`which` 0) or attribute (1) of a name from element `low` on, or -1.

    Contexts come in document order, so the search continues from the last result.
    """
    heads, stamps, lists = occurrences
    if stamps[H_FIRST + which, name] != stamp:
        return np.int64(-1)
    at = np.int64(heads[H_FIRST + which, name])
    if stamps[H_LATER + which, name] == stamp and heads[H_FROM + which, name] <= low:
        at = np.int64(heads[H_LATER + which, name])
    while at >= 0 and (lists[L_OWNER, at] if which else at) < low:
        at = np.int64(lists[L_ATTRIBUTE if which else L_ELEMENT, at])
    heads[H_LATER + which, name], heads[H_FROM + which, name] = at, low
    stamps[H_LATER + which, name] = stamp
    return at


@part
def is_inside(element, context, own, axis_deep, parents, first, bits, word):
    """Whether an element is below one of a set inside `context` (-1: the document); `own`: or is one itself.

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
def first_passes(row, context, document, values, tests, occurrences, known, bits, room):
    """Whether the first node of the path of condition `row` passes its test; `context` -1 is the document.

    The path's element steps are sets inside the context, alternating in `room.sets`.
    """
    first, width, stamp = document.first, document.width, document.stamp
    parents, rows, parts, lists = document.parents, tests.rows, tests.parts, occurrences.lists
    attributes, texts, content, sets, joined = values.attributes, values.texts, values.content, room.sets, room.joined
    here, there = np.int64(0), width
    low, high = np.int64(0), document.size
    steps, last = rows[row, C_PARTS], rows[row, C_PARTS_END]
    at_document = context < 0
    if not at_document:
        low, high = context, np.int64(document.ends[first + context] - first)
        for w in range(low >> 6, ((high - 1) >> 6) + 1):
            sets[here + w] = 0
        put_bit(sets, here, context)
    elif steps == last:
        return element_passes(first, row, tests, texts, content, joined)
    for k in range(steps, last):
        step = np.int64(parts[k])
        kind, name, is_last = rows[step, C_KIND], rows[step, C_TEST], k == last - 1
        deep = kind >= DEEP
        kind &= DEEP - 1
        if kind == PATH_ELEMENT:
            for w in range(low >> 6, ((high - 1) >> 6) + 1):
                sets[there + w] = 0
            element = low if name == ANY_NAME else first_from(0, name, low, stamp, occurrences)
            found = False
            while 0 <= element < high:
                if at_document:
                    held = deep or element == 0
                else:
                    held = element > low and is_inside(element, low, False, deep, parents, first, sets, here)
                if held and has_bit(bits, width * np.int64(known[step, K_SET]), element):
                    if is_last:
                        return element_passes(first + element, row, tests, texts, content, joined)
                    found = True
                    put_bit(sets, there, element)
                element = element + 1 if name == ANY_NAME else np.int64(lists[L_ELEMENT, element])
            if not found:
                return False
            here, there = there, here
            at_document = False
        elif kind == PATH_ATTRIBUTE:
            base = attributes.begins[first]
            attribute = first_from(1, name, low, stamp, occurrences)
            while attribute >= 0 and lists[L_OWNER, attribute] < high:
                owner = np.int64(lists[L_OWNER, attribute])
                held = deep if at_document else is_inside(owner, low, True, deep, parents, first, sets, here)
                start, length = attributes.starts[base + attribute], np.int64(attributes.lengths[base + attribute])
                if held and step_passes(start, length, step, tests, content, known):
                    return test_passes(row, start, length, tests, content)
                attribute = np.int64(lists[L_ATTRIBUTE, attribute])
            return False
        else:
            for index in range(texts.begins[first + low], texts.ends[first + low]):
                owner = np.int64(texts.parents[index] - first)
                held = deep if at_document else is_inside(owner, low, True, deep, parents, first, sets, here)
                start, length = texts.starts[index], np.int64(texts.lengths[index])
                if held and step_passes(start, length, step, tests, content, known):
                    return test_passes(row, start, length, tests, content)
            return False
    return False
