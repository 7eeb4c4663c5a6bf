# mypy: allow-untyped-defs, allow-untyped-calls
r"""Markup and values: documents cut into markup, which repeats, and values, which do not.

    <a x="1">\n  <b>hi</b></a>      token    <a x="   ">   ⏎··<b>   </b>   </a>
                                    value          1               hi

A token is the markup up to a value or to the end of a tag, with the white space before it; what may stand between two
tokens is one value: an attribute's, a text without the white space around it, a comment, a CDATA section or the data
of a processing instruction. Tokens and values in order are the document, byte for byte, whatever its spelling; so the
cut need not be clever, only complete.

A token is identified by its bytes, the kind of the element that it opens, closes or lies in, the column of the value
that follows, and whether it opens or closes that element. The kind of an element is the end of its label path: its
parent's name and its own; it is represented by the first label path with this end. (Whole paths would make as many
tokens as paths, without bound in a recursive schema.) Documents of one schema share a few hundred tokens.

The documents are well-formed (they were read before), but this is not relied on: a document with anything unexpected
becomes raw, a single value after an empty token.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Int8s, Int32s, Int64s, UInt8s, Writable, kernel, part, rare

from .token_table_kernels import (
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
    ColumnTable,
    TokenTable,
    column_number,
    token_number,
)

NO_VALUE = -3
# Per document: to be cut, raw by request, or raw because it does not fit; or the buffer that is full.
CUT, ASKED, UNFIT, FULL_TOKENS, FULL_COLUMNS, FULL_OUT = range(6)
MAX_TOKEN = 1 << 12
# What may stand in a start tag (its end may end the element, too), and between tags; or nothing that is known here.
ATTRIBUTE, NAMESPACE, TAG_END, EMPTY_END, START_TAG, END_TAG, TEXT, OTHER, DOCUMENT_END, BROKEN = range(10)


def _word(text: bytes) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.frombuffer(text, dtype=np.uint8).copy()


COMMENT, COMMENT_END, CDATA, CDATA_END = _word(b"<!--"), _word(b"-->"), _word(b"<![CDATA["), _word(b"]]>")
INSTRUCTION_END, DECLARATION, XMLNS, BOM = _word(b"?>"), _word(b"<?xml"), _word(b"xmlns"), _word(b"\xef\xbb\xbf")


class ReadDocuments(NamedTuple):
    """Documents that were read: their bytes, and where bytes, elements and each element's attributes begin."""

    data: UInt8s
    data_offsets: Int64s
    offsets: Int64s
    attribute_begins: Int32s


class Labels(NamedTuple):
    """The label path of each element, the sort of value of each attribute; parent and kind of each label path.

    `kinds` has one more entry at its end, for the place of no element.
    """

    paths: Int32s
    attribute_kinds: Int32s
    parents: Int32s
    kinds: Int32s


class Output(NamedTuple):
    """Tokens and values, and where those of each document begin."""

    token_begins: Writable[Int64s]
    tokens: Writable[Int32s]
    value_begins: Writable[Int64s]
    value_starts: Writable[Int64s]
    value_lengths: Writable[Int32s]


class Piece(NamedTuple):
    """A token from `start` to `value`, and a value from there to `end`."""

    start: int
    value: int
    end: int


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


@part
def read_attribute(data, p, end):
    """Where the value of an attribute begins and ends (`NONE`: nowhere), and whether it declares a namespace."""
    name = p
    while p < end and data[p] != 61 and not is_space(data[p]):
        p += 1
    name_end = p
    p = skip_space(data, skip_space(data, p, end) + 1, end)
    if p >= end or (data[p] != 34 and data[p] != 39):
        return np.int64(NONE), np.int64(NONE), False
    close = find_byte(data, p + 1, end, data[p])
    if close >= end:
        return np.int64(NONE), np.int64(NONE), False
    declares = stands_at(data, name, name_end, XMLNS)
    return p + 1, close, declares and (name_end - name == len(XMLNS) or data[name + len(XMLNS)] == 58)


@rare
def read_instruction(data, p, end):
    """At <?: the kind of its value, where that begins and ends, and the place after all (`NONE`: it has no end)."""
    w = find_text(data, p + 2, end, INSTRUCTION_END)
    if w == NONE:
        return np.int32(NO_VALUE), p, p, np.int64(NONE)
    v = p + 2
    while v < w and not is_space(data[v]):
        v += 1
    declares = v - p == len(DECLARATION) and v < w and stands_at(data, p, end, DECLARATION)
    return np.int32(NO_VALUE if declares else K_INSTRUCTION), v, w, w + len(INSTRUCTION_END)


@rare
def read_declaration(data, p, end):
    """At <!: the kind of its value, where that begins and ends, and the place after all (`NONE`: it has no end)."""
    kind, v, w, after = np.int32(NO_VALUE), p, p, np.int64(NONE)
    if stands_at(data, p, end, COMMENT):
        kind, v = np.int32(K_COMMENT), p + len(COMMENT)
        w = find_text(data, v, end, COMMENT_END)
        after = w + len(COMMENT_END)
    elif stands_at(data, p, end, CDATA):
        kind, v = np.int32(K_CDATA), p + len(CDATA)
        w = find_text(data, v, end, CDATA_END)
        after = w + len(CDATA_END)
    else:
        after = doctype_end(data, p, end)
    return kind, v, w, after if w >= 0 else np.int64(NONE)


@part
def write_piece(data, piece, tag_kind, element_kind, kind, flags, columns, tokens, counts, output):
    """Write a token, and the value after it if it has a kind; `CUT`, or why not."""
    column = np.int64(NONE)
    if kind != NO_VALUE:
        column = column_number(element_kind, kind, columns, counts)
        if column == NONE:
            return FULL_COLUMNS
    if piece.value - piece.start > MAX_TOKEN:
        return UNFIT
    token = token_number(data, piece.start, piece.value, tag_kind, np.int32(column), flags, tokens, counts)
    if token == GIVEN_UP:
        return UNFIT
    if token == NONE:
        return FULL_TOKENS
    out, value = counts[N_OUT_TOKENS], counts[N_OUT_VALUES]
    if out + 2 > len(output.tokens) or value + 2 > len(output.value_starts):
        return FULL_OUT
    output.tokens[out] = token
    counts[N_OUT_TOKENS] = out + 1
    if kind != NO_VALUE:
        output.value_starts[value] = piece.value
        output.value_lengths[value] = piece.end - piece.value
        counts[N_OUT_VALUES] = value + 1
    return CUT


@part
def read_in_tag(data, p, end):
    """At a place in a start tag: what stands there, its value's kind (the reader's to know) and ends, what is after."""
    nothing = np.int32(NO_VALUE)
    if p >= end or (p + 1 == end and data[p] != 62):
        return BROKEN, nothing, p, p, p
    if data[p] == 62:
        return TAG_END, nothing, p, p, p + 1
    if data[p] == 47:
        return EMPTY_END, nothing, p, p, p + 2
    v, w, declares = read_attribute(data, p, end)
    if w == NONE:
        return BROKEN, nothing, p, p, p
    return NAMESPACE if declares else ATTRIBUTE, nothing, v, w, w + 1


@part
def read_between(data, p, end):
    """At a place in no tag: what stands there, the kind of its value, where that begins and ends, what is after."""
    nothing = np.int32(NO_VALUE)
    if p >= end:
        return DOCUMENT_END, nothing, p, p, p
    if data[p] != 60:
        after = w = find_byte(data, p, end, 60)
        while is_space(data[w - 1]):
            w -= 1
        return TEXT, np.int32(K_TEXT), p, w, after
    if p + 2 >= end:
        return BROKEN, nothing, p, p, p
    if data[p + 1] == 47:
        after = find_byte(data, p, end, 62) + 1
        return END_TAG if after <= end else BROKEN, nothing, p, p, after
    if data[p + 1] == 33 or data[p + 1] == 63:
        instructs = data[p + 1] == 63
        kind, v, w, after = read_instruction(data, p, end) if instructs else read_declaration(data, p, end)
        return OTHER if after != NONE else BROKEN, kind, v, w, after
    while p < end and data[p] != 62 and data[p] != 47 and not is_space(data[p]):
        p += 1
    return START_TAG, nothing, p, p, p


@part
def text_follows(data, p, end):
    """Whether text follows the white space, which then belongs to the token of the tag before it."""
    after = skip_space(data, p, end)
    return after < end and data[after] != 60


@part
def cut_document(read, index, labels, columns, tokens, counts, output):
    """Cut one document; return `CUT`, `UNFIT`, or the buffer that is full.

    The token that is open begins at `start`; `tag_node` is where it stands, and `flags` what it does there. Elements
    and their attributes must come as they were read: `element` is the last that began, `attribute` the next one of it,
    `current` the label path of what is open.
    """
    data, begin, end = read.data, read.data_offsets[index], read.data_offsets[index + 1]
    last_element, attribute_begins = read.offsets[index + 1], read.attribute_begins
    element, attribute = read.offsets[index] - 1, np.int64(0)
    current, tag_node, flags = np.int32(NONE), np.int32(NONE), 0
    in_tag = False
    start = begin
    p = begin + len(BOM) if stands_at(data, begin, end, BOM) else begin
    while True:
        p = skip_space(data, p, end)
        what, kind, v, w, p = read_in_tag(data, p, end) if in_tag else read_between(data, p, end)
        if what == NAMESPACE:
            continue
        if what == START_TAG:
            element += 1
            if element >= last_element or labels.parents[labels.paths[element]] != current:
                return UNFIT
            current = tag_node = labels.paths[element]
            attribute = np.int64(attribute_begins[element])
            flags |= OPENS
            in_tag = True
            continue
        if what == ATTRIBUTE:
            if attribute >= attribute_begins[element + 1]:
                return UNFIT
            kind = labels.attribute_kinds[attribute]
            attribute += 1
        elif what == DOCUMENT_END:
            if current != NONE or element + 1 != last_element:
                return UNFIT
            if start == end:
                return CUT
        elif what == BROKEN or (what != OTHER and current == NONE):
            return UNFIT
        elif in_tag:
            if attribute != attribute_begins[element + 1]:
                return UNFIT
            in_tag = False
        elif what == END_TAG:
            tag_node = current
        if what == END_TAG or what == EMPTY_END:
            flags |= CLOSES
            current = labels.parents[current]
        if kind == NO_VALUE:
            # A tag has ended. White space before the next tag belongs to the next token.
            if text_follows(data, p, end):
                continue
            v = w = p
        tag_kind, element_kind = labels.kinds[tag_node], labels.kinds[current]
        piece = Piece(start, v, w)
        result = write_piece(data, piece, tag_kind, element_kind, kind, flags, columns, tokens, counts, output)
        if result != CUT:
            return result
        start = w
        flags = 0
        if not in_tag:
            tag_node = current


@part
def write_raw(begin, end, counts, output):
    """Write a whole document as one value; return `UNFIT`, or `FULL_OUT`."""
    out, value = counts[N_OUT_TOKENS], counts[N_OUT_VALUES]
    if out + 2 > len(output.tokens) or value + 2 > len(output.value_starts):
        return FULL_OUT
    output.tokens[out] = RAW
    output.value_starts[value] = begin
    output.value_lengths[value] = end - begin
    counts[N_OUT_TOKENS], counts[N_OUT_VALUES] = out + 1, value + 1
    return UNFIT


@kernel
def cut_documents(
    read: ReadDocuments,
    labels: Labels,
    status: Writable[Int8s],
    first: int,
    columns: ColumnTable,
    tokens: TokenTable,
    counts: Writable[Int64s],
    output: Output,
) -> int:
    """Cut the documents from `first` on; return the first without room (`counts[N_FULL]`: where), or how many."""
    for index in range(first, len(read.offsets) - 1):
        n_tokens, n_values = counts[N_OUT_TOKENS], counts[N_OUT_VALUES]
        result = UNFIT
        if status[index] == CUT:
            result = cut_document(read, index, labels, columns, tokens, counts, output)
        if result != CUT:
            counts[N_OUT_TOKENS], counts[N_OUT_VALUES] = n_tokens, n_values
        if result == UNFIT:
            result = write_raw(read.data_offsets[index], read.data_offsets[index + 1], counts, output)
            if status[index] == CUT and result == UNFIT:
                status[index] = UNFIT
        if result >= FULL_TOKENS:
            counts[N_FULL] = result
            return index
        output.token_begins[index + 1] = counts[N_OUT_TOKENS]
        output.value_begins[index + 1] = counts[N_OUT_VALUES]
    return len(read.offsets) - 1
