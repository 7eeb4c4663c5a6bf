# mypy: allow-untyped-defs, allow-untyped-calls
"""Tags: start tags with their attributes, names and namespaces, and end tags, as parts of the scanner.

Names are resolved at the end of their tag, because a namespace may be declared after its use: `attributes_of` notes
their places, `number_names` looks them up, the element's own name last.
"""

import numpy as np

from pathcast.kernels import part, rare

from ..expanded_name_table_kernels import GIVEN_UP, add_name, find
from .character_kernels import (
    APOSTROPHE,
    CLASS,
    GT,
    QUOTE,
    SLASH,
    SPACE,
    begins,
    hash_name,
    name,
    same_bytes,
    skip_space,
    value_bytes,
)
from .prolog_and_namespace_kernels import XMLNS, bind, bound_twice, decoded_value, equals_quote, spelt
from .scanner_array_layout_kernels import (
    A_LENGTH,
    A_NAME,
    E_ATTRIBUTES,
    E_DEPTH,
    E_NAME,
    E_PARENT,
    L_ATTRIBUTES,
    L_NAME,
    N_ARENA,
    N_ATTRIBUTES,
    N_CROWDED,
    N_ELEMENTS,
    N_STAMP,
    S_BINDINGS,
    S_ELEMENT,
    S_NAME,
    S_NAME_END,
    W_COLON,
    W_NAME,
    W_NAME_END,
)


@part
def attribute_value(data, p, quote, arena, counts):
    """A value from `p` on: the place after its quote (or -1), where it starts (before 0: in the arena), its length."""
    start = p
    while True:
        n = value_bytes(data, p)
        p += n
        if n == 16:
            continue
        c = data[p]
        if c == quote:
            return p + 1, start, p - start
        if c == QUOTE or c == APOSTROPHE:
            p += 1
        else:
            used = counts[N_ARENA]
            p, counts[N_ARENA] = decoded_value(data, start, p, quote, arena, used)
            return p, -1 - used, counts[N_ARENA] - used


@part
def attributes_of(data, p, bound, rows, scratch, limits):
    """The rest of a start tag from the end of its name on.

    Gives the place after it (or -1), the namespaces in scope, how many attributes wait and whether the tag closes
    itself. Attribute values are written, names noted in `waiting`.
    """
    counts, waiting = scratch.counts, scratch.waiting
    first, attribute, wait = bound, counts[N_ATTRIBUTES], 0
    while True:
        c = data[p]
        if CLASS[c] & SPACE:
            p = skip_space(data, p + 1)
            c = data[p]
            if c != GT and c != SLASH:
                begin = p
                p, colon = name(data, begin)
                if p < 0 or p - begin > limits[L_NAME] or wait + (bound - first) >= limits[L_ATTRIBUTES]:
                    return np.int64(-1), bound, wait, False
                end = p
                p, quote = equals_quote(data, p)
                if p < 0:
                    return np.int64(-1), bound, wait, False
                p, start, length = attribute_value(data, p, quote, rows.arena, counts)
                if p < 0:
                    return np.int64(-1), bound, wait, False
                prefix_end = end if colon < 0 else colon
                if prefix_end - begin == 5 and begins(data, begin, XMLNS):
                    bound = bind(data, colon, end, start, length, scratch.bindings, bound, counts)
                    if bound < 0:
                        return np.int64(-1), bound, wait, False
                    continue
                rows.attribute_starts[attribute + wait] = start
                rows.attributes[A_LENGTH, attribute + wait] = length
                waiting[W_NAME, wait] = begin
                waiting[W_COLON, wait] = colon
                waiting[W_NAME_END, wait] = end
                wait += 1
                continue
        if c == GT:
            return p + 1, bound, wait, False
        if c == SLASH and data[p + 1] == GT:
            return p + 2, bound, wait, True
        return np.int64(-1), bound, wait, False


@part
def number_names(data, wait, bound, names, attributes, scratch):
    """The ids of the names that wait, those of `wait` attributes and last the element's, which is given; or -1.

    An attribute's name that was seen in this tag already is a mistake: `stamps` has the last tag of each name.
    """
    counts, stamps, _, waiting, bindings, spelling, _ = scratch
    attribute = counts[N_ATTRIBUTES]
    counts[N_STAMP] += 1
    stamp = counts[N_STAMP]
    number = np.int64(0)
    for index in range(wait + 1):
        q, q_end = waiting[W_NAME, index], waiting[W_NAME_END, index]
        if waiting[W_COLON, index] < 0 and (index < wait or bound == 0):
            a, b, hashed = hash_name(data, q, q_end)
            number = find(names, a, b, hashed, data, q, q_end)
            if number < 0:
                number = missing_name(number, a, b, data, q, q_end, names, counts)
        else:
            colon = waiting[W_COLON, index]
            number = spelt_name(data, q, colon, q_end, bindings, bound, spelling, names, counts)
        if number < 0:
            return number
        if index < wait:
            if stamps[number] == stamp:
                return np.int64(-1)
            stamps[number] = stamp
            attributes[A_NAME, attribute + index] = number
    return number


@rare
def missing_name(found, first, second, data, begin, end, names, counts):
    """The number of a name that `find` did not find: it joins the table, if there is room; or -1."""
    if found == GIVEN_UP:
        counts[N_CROWDED] = 1
        return np.int64(-1)
    return add_name(-1 - found, first, second, data, begin, end, names, counts)


@rare
def spelt_name(data, begin, colon, end, bindings, bound, spelling, names, counts):
    """The id of a name that may lie in a namespace; -1 for asking expat."""
    length = spelt(data, begin, colon, end, bindings, bound, spelling)
    if length < 0:
        return np.int64(-1)
    begin = np.int64(0)
    a, b, hashed = hash_name(spelling, begin, length)
    number = find(names, a, b, hashed, spelling, begin, length)
    if number < 0:
        return missing_name(number, a, b, spelling, begin, length, names, counts)
    return number


@part
def start_tag(data, p, bound, depth, names, rows, scratch, limits):
    """A start tag at `p`: the place after it (or -1), the namespaces in scope, and whether it closes itself."""
    counts, stack, waiting, elements = scratch.counts, scratch.stack, scratch.waiting, rows.elements
    begin = p + 1
    end, colon = name(data, begin)
    if end < 0 or end - begin > limits[L_NAME]:
        return np.int64(-1), bound, False
    element, first = counts[N_ELEMENTS], bound
    elements[E_ATTRIBUTES, element] = counts[N_ATTRIBUTES]
    p, bound, wait, closes = attributes_of(data, end, bound, rows, scratch, limits)
    if p < 0 or (bound > first + 1 and bound_twice(data, scratch.bindings, first, bound)):
        return np.int64(-1), bound, False
    waiting[W_NAME, wait] = begin
    waiting[W_COLON, wait] = colon
    waiting[W_NAME_END, wait] = end
    number = number_names(data, wait, bound, names, rows.attributes, scratch)
    if number < 0:
        return np.int64(-1), bound, False
    elements[E_NAME, element] = number
    elements[E_PARENT, element] = stack[S_ELEMENT, depth - 1] if depth else -1
    elements[E_DEPTH, element] = depth + 1
    stack[S_ELEMENT, depth] = element
    stack[S_NAME, depth] = begin
    stack[S_NAME_END, depth] = end
    stack[S_BINDINGS, depth] = first
    counts[N_ELEMENTS] = element + 1
    counts[N_ATTRIBUTES] += wait
    return p, bound, closes


@part
def end_tag(data, p, stack, depth):
    """An end tag at `p` that must close the innermost open element: the place after it, or -1."""
    p += 2
    begin, end = stack[S_NAME, depth - 1], stack[S_NAME_END, depth - 1]
    if not same_bytes(data, p, data, begin, end):
        return -1
    p = skip_space(data, p + (end - begin))
    return p + 1 if data[p] == GT else -1
