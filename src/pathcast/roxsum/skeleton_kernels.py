# mypy: allow-untyped-defs, allow-untyped-calls
r"""Skeletons: documents cut into markup, which repeats, and values, which do not.

    <a x="1">\n  <b>hi</b></a>      token    <a x="   ">   ⏎··<b>   </b>   </a>
                                    value          1               hi

A token is the markup up to a value or to the end of a tag, with the white space before it; what may stand between two
tokens is one value: an attribute's, a text without the white space around it, a comment, a CDATA section or the data
of a processing instruction. Tokens and values, written one after the other, are the document, byte for byte, whatever
its spelling; so the cut need not be clever, only complete.

A token is known by its bytes, the kind of the element that it opens, closes or lies in, the column of the value that
follows, and whether it opens or closes that element. The kind of an element is the end of its label path, its parent's
name and its own; it is written as the first label path that ends so. (Whole paths would make as many tokens as there
are paths, which in a recursive schema is no end.) Documents of one schema share a few hundred tokens.

The documents are known to be well-formed (they were read before), but nothing is taken on trust: whatever does not look
as expected makes the document a raw one, a single value after an empty token.
"""

import numpy as np

from ..kernels import kernel, part, rare
from .token_kernels import (
    CLOSES,
    GIVEN_UP,
    K_CDATA,
    K_COMMENT,
    K_INSTRUCTION,
    K_TEXT,
    N_FULL,
    N_OUT_TOKENS,
    N_OUT_VALUES,
    NONE,
    OPENS,
    RAW,
    column_number,
    token_number,
)

NO_VALUE = -3
FULL_TOKENS, FULL_COLUMNS, FULL_OUT = 1, 2, 3
# Document by document: to be cut, raw because it was asked for, or because it does not fit.
CUT, ASKED, UNFIT = 0, 1, 2
MAX_TOKEN = 1 << 12


def _word(text: bytes) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.frombuffer(text, dtype=np.uint8).copy()


COMMENT, COMMENT_END, CDATA, CDATA_END = _word(b"<!--"), _word(b"-->"), _word(b"<![CDATA["), _word(b"]]>")
INSTRUCTION_END, DECLARATION, XMLNS, BOM = _word(b"?>"), _word(b"<?xml"), _word(b"xmlns"), _word(b"\xef\xbb\xbf")


@part
def is_space(c):
    """Whether a byte is XML's white space."""
    return c == 32 or (9 <= c <= 10) or c == 13


@part
def skip_space(data, p, end):
    """The next place that is no white space."""
    while p < end and is_space(data[p]):
        p += 1
    return p


@rare
def stands_at(data, p, end, text):
    """Whether a text stands at a place."""
    if p + len(text) > end:
        return False
    for k in range(len(text)):
        if data[p + k] != text[k]:
            return False
    return True


@rare
def find_text(data, p, end, text):
    """Where a text next stands; `NONE` when it does not."""
    while p + len(text) <= end:
        if data[p] == text[0] and stands_at(data, p, end, text):
            return p
        p += 1
    return np.int64(NONE)


@part
def find_byte(data, p, end, wanted):
    """Where a byte next stands; `end` when it does not."""
    while p < end and data[p] != wanted:
        p += 1
    return p


@rare
def doctype_end(data, p, end):
    """The place after a DOCTYPE without an internal subset; `NONE` for one with a subset."""
    quote = 0
    while p < end:
        c = data[p]
        if quote:
            if c == quote:
                quote = 0
        elif c == 34 or c == 39:
            quote = c
        elif c == 91:
            return np.int64(NONE)
        elif c == 62:
            return p + 1
        p += 1
    return np.int64(NONE)


@kernel(
    "int64(ro_u1[::1], ro_i8[::1], ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1],"
    " i1[::1], int64, i4[::1], i4[::1], i4[::1], i4[::1], u8[::1], i4[:, ::1], i8[::1], u1[::1], i8[::1],"
    " i8[::1], i4[::1], i8[::1], i8[::1], i4[::1])"
)
def cut_documents(
    data, data_offsets, offsets, paths, node_parent, node_kind, attribute_begin, attribute_kind, status, first,
    column_slots, column_node, column_kind, slots, hashes, meta, token_offsets, stored, counts,
    out_token_begin, out_tokens, out_value_begin, out_value_start, out_value_length,
):  # fmt: skip
    """Cut the documents from `first` on; the first that found no room (`counts[N_FULL]` says where), or their number.

    `node_kind` has one more entry at its end, for the place of no element.
    """
    for index in range(first, len(offsets) - 1):
        begin, end = data_offsets[index], data_offsets[index + 1]
        n_tokens, n_values = counts[N_OUT_TOKENS], counts[N_OUT_VALUES]
        element, last_element = offsets[index] - 1, offsets[index + 1]
        attribute = np.int64(0)
        current, tag_node, flags = np.int32(NONE), np.int32(NONE), 0
        p = start = begin
        if stands_at(data, p, end, BOM):
            p += len(BOM)
        in_tag, fits = False, status[index] == CUT
        while fits:
            # The next token is data[start:cut]; after it a value v..w of this kind at this node, or none.
            kind, at, cut, v, w = np.int32(NO_VALUE), np.int32(NONE), p, p, p
            ended = False
            if in_tag:
                p = skip_space(data, p, end)
                if p + 1 >= end and (p >= end or data[p] != 62):
                    fits = False
                elif data[p] == 62 or data[p] == 47:
                    if attribute != attribute_begin[element + 1]:
                        fits = False
                        break
                    if data[p] == 47:
                        flags |= CLOSES
                        current = node_parent[current]
                        p += 1
                    p += 1
                    in_tag, ended = False, True
                else:
                    name = p
                    while p < end and data[p] != 61 and not is_space(data[p]):
                        p += 1
                    name_end = p
                    p = skip_space(data, p, end)
                    p = skip_space(data, p + 1, end)
                    if p >= end or (data[p] != 34 and data[p] != 39):
                        fits = False
                        break
                    v = p + 1
                    w = find_byte(data, v, end, data[p])
                    p = w + 1
                    if w >= end:
                        fits = False
                        break
                    declares = stands_at(data, name, name_end, XMLNS)
                    if declares and (name_end - name == len(XMLNS) or data[name + len(XMLNS)] == 58):
                        continue
                    if attribute >= attribute_begin[element + 1]:
                        fits = False
                        break
                    kind, at, cut = attribute_kind[attribute], current, v
                    attribute += 1
            else:
                p = skip_space(data, p, end)
                if p >= end:
                    fits = current == NONE and element + 1 == last_element
                    if not fits or start == end:
                        break
                    cut = end
                elif data[p] != 60:
                    if current == NONE:
                        fits = False
                        break
                    kind, at, cut, v = np.int32(K_TEXT), current, p, p
                    p = w = find_byte(data, p, end, 60)
                    while is_space(data[w - 1]):
                        w -= 1
                elif p + 2 >= end:
                    fits = False
                elif data[p + 1] == 47:
                    p = find_byte(data, p, end, 62) + 1
                    if current == NONE or p > end:
                        fits = False
                        break
                    tag_node = current
                    flags |= CLOSES
                    current = node_parent[current]
                    ended = True
                elif data[p + 1] == 33:
                    if stands_at(data, p, end, COMMENT):
                        kind, at, v = np.int32(K_COMMENT), current, p + len(COMMENT)
                        w = find_text(data, v, end, COMMENT_END)
                        p = w + len(COMMENT_END)
                    elif stands_at(data, p, end, CDATA):
                        kind, at, v = np.int32(K_CDATA), current, p + len(CDATA)
                        w = find_text(data, v, end, CDATA_END)
                        p = w + len(CDATA_END)
                    else:
                        w = p = doctype_end(data, p, end)
                        ended = True
                    cut = v
                    fits = w >= 0
                elif data[p + 1] == 63:
                    w = find_text(data, p, end, INSTRUCTION_END)
                    if w < 0:
                        fits = False
                        break
                    if stands_at(data, p, end, DECLARATION) and is_space(data[p + len(DECLARATION)]):
                        p = w + len(INSTRUCTION_END)
                        ended = True
                    else:
                        v = p + 2
                        while v < w and not is_space(data[v]):
                            v += 1
                        kind, at, cut = np.int32(K_INSTRUCTION), current, v
                        p = w + len(INSTRUCTION_END)
                else:
                    element += 1
                    if element >= last_element:
                        fits = False
                        break
                    if node_parent[paths[element]] != current:
                        fits = False
                        break
                    current = tag_node = paths[element]
                    attribute = np.int64(attribute_begin[element])
                    flags |= OPENS
                    while p < end and data[p] != 62 and data[p] != 47 and not is_space(data[p]):
                        p += 1
                    in_tag = True
                    continue
            if not fits:
                break
            rest = w
            if kind == NO_VALUE:
                if ended:
                    # A tag has ended. Text goes on its token; white space before the next tag on the next token.
                    q = skip_space(data, p, end)
                    if q < end and data[q] != 60:
                        continue
                    cut = p
                rest = cut
            column = np.int64(NONE)
            if kind != NO_VALUE:
                column = column_number(node_kind[at], kind, column_slots, column_node, column_kind, counts)
                if column == NONE:
                    counts[N_OUT_TOKENS], counts[N_OUT_VALUES] = n_tokens, n_values
                    counts[N_FULL] = FULL_COLUMNS
                    return index
            if cut - start > MAX_TOKEN:
                fits = False
                break
            token = token_number(
                data, start, cut, node_kind[tag_node], np.int32(column), flags,
                slots, hashes, meta, token_offsets, stored, counts,
            )  # fmt: skip
            if token == GIVEN_UP:
                fits = False
                break
            out, value = counts[N_OUT_TOKENS], counts[N_OUT_VALUES]
            if token == NONE or out + 2 > len(out_tokens) or value + 2 > len(out_value_start):
                counts[N_OUT_TOKENS], counts[N_OUT_VALUES] = n_tokens, n_values
                counts[N_FULL] = FULL_TOKENS if token == NONE else FULL_OUT
                return index
            out_tokens[out] = token
            counts[N_OUT_TOKENS] = out + 1
            if kind != NO_VALUE:
                out_value_start[value] = v
                out_value_length[value] = w - v
                counts[N_OUT_VALUES] = value + 1
            start = rest
            flags = 0
            if not in_tag:
                tag_node = current
            if p >= end and start == end:
                fits = current == NONE and element + 1 == last_element
                break
        if not fits:
            if n_tokens + 2 > len(out_tokens) or n_values + 2 > len(out_value_start):
                counts[N_OUT_TOKENS], counts[N_OUT_VALUES] = n_tokens, n_values
                counts[N_FULL] = FULL_OUT
                return index
            if status[index] == CUT:
                status[index] = UNFIT
            out_tokens[n_tokens] = RAW
            out_value_start[n_values] = begin
            out_value_length[n_values] = end - begin
            counts[N_OUT_TOKENS], counts[N_OUT_VALUES] = n_tokens + 1, n_values + 1
        out_token_begin[index + 1] = counts[N_OUT_TOKENS]
        out_value_begin[index + 1] = counts[N_OUT_VALUES]
    return len(offsets) - 1
