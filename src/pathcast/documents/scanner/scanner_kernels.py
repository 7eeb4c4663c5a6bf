# mypy: allow-untyped-defs, allow-untyped-calls
"""The scanner: XML bytes to element arrays, without a call or an object per element.

It accepts a document only when it has checked every rule of XML 1.0 and of namespaces that applies to it; whatever it
does not check itself (an internal DTD subset, other encodings, names beyond ASCII, more than `MAX_BINDINGS`
namespaces in scope, …), and every wrong document, gets `ASK`: the expat reader decides and reports the error. So the
two agree by construction, unless the scanner accepts too much, and the fuzz tests check for that.

Most markup is plain, and `plain_markup` reads it by an index of structural places; after each piece of markup inside
the root it continues if it can. The parts here read what is not plain, one text and one piece of markup at a time.

Text nodes and attribute values are places in the data where the bytes are the value already; otherwise (references,
carriage returns, CDATA sections beside text) they are decoded into the arena.

Invariant: places only grow, the data end with a zero byte, and no loop passes one: it ends, inside its buffers.
Cost: 1.5 ns per byte where most bytes are markup.
"""

import numpy as np

from pathcast.kernels import Int8s, Int64s, UInt8s, Writable, bit_count, kernel, rare

from ..expanded_name_table_kernels import NameIndex
from .character_kernels import BANG, CLASS, EQUALS, HYPHEN, LT, QUESTION, SLASH, SPACE, begins, skip_space
from .plain_markup_fast_path_kernels import plain_markup
from .prolog_and_namespace_kernels import (
    BOM,
    CDATA,
    DOCTYPE,
    XML_DECLARATION,
    comment,
    doctype,
    instruction,
    xml_declaration,
)
from .scanner_array_layout_kernels import (
    A_NAME,
    ASK,
    E_ATTRIBUTES,
    E_END,
    E_NAME,
    E_POSITION,
    E_TEXT_BEGIN,
    E_TEXT_END,
    L_DEPTH,
    L_NAMES,
    L_SIZE,
    N_ARENA,
    N_ATTRIBUTES,
    N_BINDINGS,
    N_ELEMENTS,
    N_FULL,
    N_INDEX_BEGIN,
    N_MOST,
    N_NAMES,
    N_PLACE,
    N_PLACES,
    N_PREFIXES,
    N_STAMP,
    N_TEXTS,
    OK,
    S_BINDINGS,
    S_ELEMENT,
    T_LENGTH,
    T_PARENT,
    ScanRows,
    ScanScratch,
)
from .structural_byte_index_kernels import WINDOW, equals_signs, tag_openings
from .tag_kernels import end_tag, start_tag
from .text_kernels import cdata, plain_text, text


@rare
def prolog(data, p):
    """A byte-order mark and an XML declaration, as far as they are there."""
    if begins(data, p, BOM):
        p += len(BOM)
    if begins(data, p, XML_DECLARATION) and CLASS[data[p + len(XML_DECLARATION)]] & SPACE:
        p = xml_declaration(data, p)
    return p


@rare
def misc(data, p, end, rooted, typed):
    """A comment, processing instruction or document type at `p`: the place after it (or -1); whether it was a type."""
    if data[p + 1] == QUESTION:
        return instruction(data, p + 2, end), False
    if data[p + 2] == HYPHEN and data[p + 3] == HYPHEN:
        return comment(data, p + 4, end), False
    if rooted or typed or not begins(data, p, DOCTYPE):
        return np.int64(-1), False
    return doctype(data, p), True


@rare
def document(data, begin, end, names, rows, scratch, limits):
    """One document: `OK`, or `ASK` with some rows written that the caller takes back."""
    counts, stack, elements, arena = scratch.counts, scratch.stack, rows.elements, rows.arena
    if end - begin > limits[L_SIZE]:
        return ASK
    p = prolog(data, begin)
    if p < 0:
        return ASK
    depth, bound = np.int64(0), np.int64(0)
    rooted, typed = False, False
    counts[N_PREFIXES] = counts[N_BINDINGS] = 0
    counts[N_INDEX_BEGIN], counts[N_PLACES], counts[N_PLACE] = begin - WINDOW, 0, 0
    kind, start, stop = np.int64(0), np.int64(0), np.int64(0)
    while True:
        if depth and not kind:
            p, depth, bound = plain_markup(data, p, begin, end, depth, bound, names, rows, scratch, limits)
        if depth:
            q = plain_text(data, p)
            if data[q] == LT and (q == p or kind == 0):
                if q > p:
                    kind, start, stop = np.int64(1), p, q
                p = q
            else:
                used = counts[N_ARENA]
                p, counts[N_ARENA], kind, start, stop = text(data, p, q, end, arena, used, kind, start, stop)
        else:
            p = skip_space(data, p)
            if p >= end:
                return OK if p == end and rooted else ASK
            if data[p] != LT:
                return ASK
        if p < 0 or p >= end:
            return ASK
        c = data[p + 1]
        if c == BANG and depth and begins(data, p, CDATA):
            p, counts[N_ARENA], kind, start, stop = cdata(
                data, p + len(CDATA), end, arena, counts[N_ARENA], kind, start, stop
            )
            if p < 0:
                return ASK
            continue
        if kind:
            row = counts[N_TEXTS]
            rows.texts[T_PARENT, row] = stack[S_ELEMENT, depth - 1]
            rows.texts[T_LENGTH, row] = stop - start if kind == 1 else counts[N_ARENA] - start
            rows.text_starts[row] = start if kind == 1 else -1 - start
            counts[N_TEXTS] = row + 1
            kind = np.int64(0)
        if c == SLASH:
            if not depth:
                return ASK
            p = end_tag(data, p, stack, depth)
            depth -= 1
        elif c == BANG or c == QUESTION:
            p, is_type = misc(data, p, end, rooted, typed)
            if p < 0:
                return ASK
            typed |= is_type
            continue
        else:
            if (rooted and not depth) or depth >= limits[L_DEPTH]:
                return ASK
            element = counts[N_ELEMENTS]
            elements[E_POSITION, element] = p - begin
            elements[E_TEXT_BEGIN, element] = counts[N_TEXTS]
            p, bound, closes = start_tag(data, p, bound, depth, names, rows, scratch, limits)
            rooted = True
            if p >= 0 and not closes:
                depth += 1
                continue
        if p < 0:
            return ASK
        element = stack[S_ELEMENT, depth]
        elements[E_END, element] = counts[N_ELEMENTS]
        elements[E_TEXT_END, element] = counts[N_TEXTS]
        bound = stack[S_BINDINGS, depth]


@rare
def has_too_many_names(rows, element, attribute, scratch, limits):
    """Whether a document, whose rows begin at `element` and `attribute`, may have too many names and prefixes."""
    counts, stamps = scratch.counts, scratch.stamps
    n_elements, n_attributes, most = counts[N_ELEMENTS], counts[N_ATTRIBUTES], limits[L_NAMES] - counts[N_PREFIXES]
    if n_elements - element + (n_attributes - attribute) <= most:
        return False
    counts[N_STAMP] += 1
    stamp, found = counts[N_STAMP], np.int64(0)
    for row in range(element, n_elements):
        number = rows.elements[E_NAME, row]
        found += stamps[number] != stamp
        stamps[number] = stamp
    for row in range(attribute, n_attributes):
        number = rows.attributes[A_NAME, row]
        found += stamps[number] != stamp
        stamps[number] = stamp
    return found > most


@kernel
def scan(
    data: UInt8s,
    data_offsets: Int64s,
    first: int,
    names: NameIndex,
    rows: ScanRows,
    scratch: ScanScratch,
    limits: Int64s,
    offsets: Writable[Int64s],
    status: Writable[Int8s],
) -> int:
    """Scan the documents of a batch from `first` on whose `status` is `OK`; those that get `ASK` leave no rows behind.

    Returns how many documents are done: all, or those before one whose names had no room; that one is scanned again.
    """
    count, counts = len(data_offsets) - 1, scratch.counts
    for index in range(first, count):
        n_elements, n_attributes, n_texts = counts[N_ELEMENTS], counts[N_ATTRIBUTES], counts[N_TEXTS]
        n_arena = counts[N_ARENA]
        if status[index] == OK:
            if not counts[N_FULL]:
                counts[N_MOST] = counts[N_NAMES] + limits[L_NAMES]
            counts[N_FULL] = 0
            begin, end = data_offsets[index], data_offsets[index + 1]
            status[index] = document(data, begin, end, names, rows, scratch, limits)
            if status[index] == OK and has_too_many_names(rows, n_elements, n_attributes, scratch, limits):
                status[index] = ASK
        if status[index] != OK:
            counts[N_ELEMENTS], counts[N_ATTRIBUTES], counts[N_TEXTS] = n_elements, n_attributes, n_texts
            counts[N_ARENA] = n_arena
            if counts[N_FULL]:
                status[index] = OK
                return index
        offsets[index + 1] = counts[N_ELEMENTS]
    rows.elements[E_ATTRIBUTES, counts[N_ELEMENTS]] = counts[N_ATTRIBUTES]
    return count


@kernel(brief=True)
def bounds(data: UInt8s, most: Writable[Int64s]) -> None:
    """How many elements (and text nodes) and attributes the data can have at most: `<` and `=`."""
    tags, equals = 0, 0
    blocks = len(data) // 64 * 64
    for p in range(0, blocks, 64):
        tags += bit_count(tag_openings(data, p))
        equals += bit_count(equals_signs(data, p))
    for p in range(blocks, len(data)):
        tags += data[p] == LT
        equals += data[p] == EQUALS
    most[0] = tags
    most[1] = equals
