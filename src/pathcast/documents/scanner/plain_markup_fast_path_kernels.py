# mypy: allow-untyped-defs, allow-untyped-calls
"""Plain markup: tags and text without references, read from structural place to structural place.

The second stage of the scanner's fast path; the first one is `structural_byte_index_kernels.py`. It reads as many tags
and texts as are plain and stops before the first text or tag that is not: one with a reference, a namespace
declaration, a line end in a value, spaces around `=`, a comment, or a mistake. The scanner's other parts read that one
byte by byte.

An index has every structural place of a tag up to its end, so a byte without an entry is part of a name or, between
quotes, stands for itself; a byte that is known to be structural needs no check that it has an entry. Entries beyond the
last place lead to zero bytes, which match nothing; then a new index begins at the last place that was reached.

Invariant: what is read is counted only at the end of its tag, so a tag that turns out not to be plain leaves nothing
behind but names in the table.
Cost: about 4 µs for 140 tags with 195 attributes, and 1 µs for the index of their 3,800 bytes.
Tried and dropped, because they were not faster: keys beside the slots of the name table, a hash with one
multiplication less, a name table that fits into 4 KB.
"""

import numpy as np

from pathcast.kernels import apart, item, part, rare, set_item, word

from ..expanded_name_table_kernels import find
from .character_kernels import (
    APOSTROPHE,
    CLASS,
    COLON,
    EQUALS,
    GT,
    LT,
    NAME_START,
    PADDING,
    QUOTE,
    SLASH,
    SPACE,
    VALUE,
    hash_name,
    same_bytes,
)
from .scanner_array_layout_kernels import (
    A_LENGTH,
    A_NAME,
    E_ATTRIBUTES,
    E_DEPTH,
    E_END,
    E_NAME,
    E_PARENT,
    E_POSITION,
    E_TEXT_BEGIN,
    E_TEXT_END,
    L_ATTRIBUTES,
    L_DEPTH,
    L_NAME,
    N_ATTRIBUTES,
    N_ELEMENTS,
    N_INDEX_BEGIN,
    N_PLACE,
    N_PLACES,
    N_STAMP,
    N_TEXTS,
    S_BINDINGS,
    S_ELEMENT,
    S_NAME,
    S_NAME_END,
    T_LENGTH,
    T_PARENT,
)
from .structural_byte_index_kernels import WINDOW, index_structure
from .tag_kernels import missing_name, spelt_name

# What a tag did to the open elements.
NOT_PLAIN, OPENED, CLOSED, COMPLETE = range(4)
_XMLNS = np.uint64(int.from_bytes(b"xmlns", "little"))
_EQUALS_QUOTE, _EQUALS_APOSTROPHE = np.uint64(EQUALS | QUOTE << 8), np.uint64(EQUALS | APOSTROPHE << 8)
_TWO_BYTES, _EIGHT = np.uint64(0xFFFF), np.uint64(8)


@part
def plain_name(data, begin, colon, end, bound, names, scratch):
    """The number of a name, which is added if it is new; -1 if its prefix is not bound, or if there is no room.

    Without a prefix (`colon` -1) it is in a namespace if there are bindings, `bound` of them. -1 for `xmlns`, too.
    """
    if colon >= 0 or bound:
        return spelt_name(data, begin, colon, end, scratch.bindings, bound, scratch.spelling, names, scratch.counts)
    first, second, hashed = hash_name(data, begin, end)
    number = find(names, first, second, hashed, data, begin, end)
    if first == _XMLNS:
        return np.int64(-1)
    return number if number >= 0 else missing_name(number, first, second, data, begin, end, names, scratch.counts)


@part
def is_name_start(data, p):
    """Whether the byte at `p` may begin a name."""
    return CLASS[item(data, p)] & NAME_START != 0


@rare
def after_space(data, places, k):
    """The last entry of the run of white space at entry `k`."""
    while CLASS[item(data, item(places, k + 1))] & SPACE and item(places, k + 1) == item(places, k) + 1:
        k += 1
    return k


@rare
def closing_quote(data, places, k, quote):
    """The first entry from `k` on that does not stand for itself in a value with this quote."""
    while True:
        c = item(data, item(places, k))
        if c == quote or not (CLASS[c] & VALUE or c == QUOTE or c == APOSTROPHE):
            return k
        k += 1


@part
def plain_attributes(data, k, bound, names, rows, scratch, limits):
    """The attributes after the name that ends at entry `k`: the entry of the tag's `>` or `/`, and how many there are.

    The number is -1 if the tag is not plain; the entry is near the first place that is not.
    """
    counts, stamps, places = scratch.counts, scratch.stamps, scratch.places
    longest, first = limits[L_NAME], counts[N_ATTRIBUTES]
    counts[N_STAMP] += 1
    stamp, attribute = counts[N_STAMP], first
    place = np.int64(item(places, k))
    while CLASS[item(data, place)] & SPACE:
        begin = place + 1
        if not is_name_start(data, begin):
            k = after_space(data, places, k)
            begin = np.int64(item(places, k)) + 1
            if not is_name_start(data, begin):
                k, place = k + 1, begin
                break
        colon, end = np.int64(-1), np.int64(item(places, k + 1))
        if item(data, end) == COLON:
            k += 1
            colon, end = end, np.int64(item(places, k + 1))
            if not is_name_start(data, colon + 1):
                return k, np.int64(-1)
        pair = word(data, end) & _TWO_BYTES
        quote, stop = pair >> _EIGHT, np.int64(item(places, k + 3))
        if (pair != _EQUALS_QUOTE and pair != _EQUALS_APOSTROPHE) or end - begin > longest:
            return k, np.int64(-1)
        if item(data, stop) != quote:
            k = closing_quote(data, places, k + 3, quote) - 3
            stop = np.int64(item(places, k + 3))
            if item(data, stop) != quote:
                return k, np.int64(-1)
        number = plain_name(data, begin, colon, end, bound if colon >= 0 else np.int64(0), names, scratch)
        if number < 0 or item(stamps, number) == stamp:
            return k, np.int64(-1)
        set_item(stamps, number, stamp)
        set_item(rows.attributes[A_NAME], attribute, number)
        set_item(rows.attributes[A_LENGTH], attribute, stop - end - 2)
        set_item(rows.attribute_starts, attribute, end + 2)
        attribute += 1
        k += 4
        place = stop + 1
    found = attribute - first
    # The place is structural, and is in the index unless the index ends before it.
    return k, found if item(places, k) == place and found <= limits[L_ATTRIBUTES] else np.int64(-1)


@part
def plain_start_tag(data, k, document, depth, bound, texts, names, rows, scratch, limits):
    """The start tag at entry `k`: the entry of its `>`, or near the place that is not plain, and what it did."""
    counts, stack, places, elements = scratch.counts, scratch.stack, scratch.places, rows.elements
    begin, colon, end = np.int64(item(places, k)) + 1, np.int64(-1), np.int64(item(places, k + 1))
    if item(data, end) == COLON:
        k += 1
        colon, end = end, np.int64(item(places, k + 1))
        if not is_name_start(data, colon + 1):
            return k, NOT_PLAIN
    if not is_name_start(data, begin) or end - begin > limits[L_NAME] or depth >= limits[L_DEPTH]:
        return k, NOT_PLAIN
    k, attributes = plain_attributes(data, k + 1, bound, names, rows, scratch, limits)
    if attributes < 0:
        return k, NOT_PLAIN
    change = OPENED
    if item(data, item(places, k)) != GT:
        if (
            item(data, item(places, k)) != SLASH
            or item(data, item(places, k + 1)) != GT
            or item(places, k + 1) != item(places, k) + 1
        ):
            return k, NOT_PLAIN
        change = COMPLETE
        k += 1
    number = plain_name(data, begin, colon, end, bound, names, scratch)
    if number < 0:
        return k, NOT_PLAIN
    element = counts[N_ELEMENTS]
    elements[E_NAME, element] = number
    elements[E_PARENT, element] = stack[S_ELEMENT, depth - 1]
    elements[E_DEPTH, element] = depth + 1
    elements[E_END, element] = element + 1
    elements[E_POSITION, element] = begin - 1 - document
    elements[E_ATTRIBUTES, element] = counts[N_ATTRIBUTES]
    elements[E_TEXT_BEGIN, element] = texts
    elements[E_TEXT_END, element] = texts
    stack[S_ELEMENT, depth] = element
    stack[S_NAME, depth] = begin
    stack[S_NAME_END, depth] = end
    stack[S_BINDINGS, depth] = bound
    counts[N_ELEMENTS] = element + 1
    counts[N_ATTRIBUTES] += attributes
    return k, change


@part
def plain_end_tag(data, k, depth, stack, places):
    """The end tag at entry `k`, which must close the innermost open element: the entry of its `>`, and what it did."""
    at, begin = np.int64(item(places, k)) + 2, stack[S_NAME, depth - 1]
    end = at + (stack[S_NAME_END, depth - 1] - begin)
    # A name has one structural place at most, its colon.
    k += 3 if item(places, k + 2) < end else 2
    if item(places, k) == end and item(data, end) == GT and same_bytes(data, begin, data, at, end):
        return k, CLOSED
    return k, NOT_PLAIN


@apart
def plain_markup(data, p, document, end, depth, bound, names, rows, scratch, limits):
    """Plain texts and tags from `p` on, inside the root: where the next is not plain; the depth and the bindings there.

    At depth 0 the root has been closed. `document` and `end` are the document's own edges.
    """
    counts, stack, places, elements = scratch.counts, scratch.stack, scratch.places, rows.elements
    k, count = counts[N_PLACE], counts[N_PLACES]
    while k < count and item(places, k) < p:
        k += 1
    while depth:
        at = np.int64(item(places, k)) if k < count else len(data) - PADDING
        parent, texts = stack[S_ELEMENT, depth - 1], counts[N_TEXTS]
        rows.texts[T_PARENT, texts] = parent
        rows.texts[T_LENGTH, texts] = at - p
        rows.text_starts[texts] = p
        texts += at > p
        near, change = k, NOT_PLAIN
        if item(data, at) == LT:
            if item(data, at + 1) == SLASH:
                near, change = plain_end_tag(data, k, depth, stack, places)
            else:
                near, change = plain_start_tag(data, k, document, depth, bound, texts, names, rows, scratch, limits)
        if change == NOT_PLAIN:
            # Only entries that exist say so; beyond them, a new index is needed if this one did not begin just here.
            begun = counts[N_INDEX_BEGIN]
            if near + 4 < count or begun + WINDOW >= end or p - begun < WINDOW // 2:
                break
            count, k = index_structure(data, p, end, places), np.int64(0)
            counts[N_INDEX_BEGIN], counts[N_PLACES] = p, count
            continue
        counts[N_TEXTS] = texts
        k, p = near + 1, np.int64(item(places, near)) + 1
        if change == CLOSED:
            elements[E_END, parent] = counts[N_ELEMENTS]
            elements[E_TEXT_END, parent] = texts
            depth -= 1
            bound = stack[S_BINDINGS, depth]
        elif change == OPENED:
            depth += 1
    counts[N_PLACE] = k
    return p, depth, bound
