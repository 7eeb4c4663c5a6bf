# mypy: allow-untyped-defs, allow-untyped-calls
"""Prolog and namespaces: declarations, comments, values and namespaces, as parts of the scanner.

Each part checks one production of XML 1.0 or of Namespaces in XML and returns the place after it, or -1: ask expat.
"""

import numpy as np

from pathcast.kernels import part, rare

from ..expanded_name_table_kernels import CLOSE_BRACE, OPEN_BRACE
from .character_kernels import (
    AMP,
    APOSTROPHE,
    BLANK,
    CLASS,
    EQUALS,
    GT,
    HYPHEN,
    NEWLINE,
    PUBLIC,
    QUESTION,
    QUOTE,
    RETURN,
    SPACE,
    TAB,
    VALUE,
    begins,
    comment_bytes,
    name,
    put,
    reference,
    same_bytes,
    skip_space,
    utf8,
)
from .scanner_array_layout_kernels import (
    B_PREFIX,
    B_PREFIX_END,
    B_URI,
    B_URI_END,
    LONGEST_NAMESPACE,
    MAX_BINDINGS,
    N_BINDINGS,
    N_PREFIXES,
)


def _word(text: bytes) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.frombuffer(text, dtype=np.uint8).copy()


BOM, XML_DECLARATION, DOCTYPE, CDATA = _word(b"\xef\xbb\xbf"), _word(b"<?xml"), _word(b"<!DOCTYPE"), _word(b"<![CDATA[")
VERSION, ENCODING, STANDALONE = _word(b"version"), _word(b"encoding"), _word(b"standalone")
ONE, UTF_8, UTF8, YES, NO = _word(b"1.0"), _word(b"utf-8"), _word(b"utf8"), _word(b"yes"), _word(b"no")
SYSTEM_ID, PUBLIC_ID, XMLNS, XML = _word(b"SYSTEM"), _word(b"PUBLIC"), _word(b"xmlns"), _word(b"xml")
XML_URI = _word(b"http://www.w3.org/XML/1998/namespace")
W3 = _word(b"http://www.w3.org/")


@part
def equals_quote(data, p):
    """` = "`: the place after the quote and the quote; -1 when something else stands there."""
    p = skip_space(data, p)
    if data[p] != EQUALS:
        return -1, 0
    p = skip_space(data, p + 1)
    quote = data[p]
    if quote != QUOTE and quote != APOSTROPHE:
        return -1, 0
    return p + 1, quote


@rare
def declared(data, p, wanted):
    """` = "wanted"`, ASCII letters in any case when `wanted` is in lower case; the place after it, or -1."""
    p, quote = equals_quote(data, p)
    if p < 0:
        return p
    for k in range(len(wanted)):
        c = data[p + k]
        if c != wanted[k] and not (65 <= c <= 90 and c + 32 == wanted[k]):
            return -1
    p += len(wanted)
    return p + 1 if data[p] == quote else -1


@rare
def xml_declaration(data, p):
    """`<?xml version="1.0" encoding="utf-8" standalone="yes"?>` at `p`, as far as it is there."""
    p += len(XML_DECLARATION)
    q = skip_space(data, p)
    if q == p or not begins(data, q, VERSION):
        return -1
    p = declared(data, q + len(VERSION), ONE)
    if p < 0:
        return p
    q = skip_space(data, p)
    if q > p and begins(data, q, ENCODING):
        q += len(ENCODING)
        p = declared(data, q, UTF_8)
        if p < 0:
            p = declared(data, q, UTF8)
        if p < 0:
            return p
        q = skip_space(data, p)
    if q > p and begins(data, q, STANDALONE):
        q += len(STANDALONE)
        p, quote = equals_quote(data, q)
        if p < 0:
            return p
        if begins(data, p, YES):
            p += len(YES)
        elif begins(data, p, NO):
            p += len(NO)
        else:
            return -1
        if data[p] != quote:
            return -1
        q = skip_space(data, p + 1)
    if data[q] != QUESTION or data[q + 1] != GT:
        return -1
    return q + 2


@rare
def literal(data, p, allowed):
    """A quoted literal of one class of characters."""
    quote = data[p]
    if quote != QUOTE and quote != APOSTROPHE:
        return -1
    p += 1
    while CLASS[data[p]] & allowed:
        p += 1
    return p + 1 if data[p] == quote else -1


@rare
def doctype(data, p):
    """`<!DOCTYPE name SYSTEM "…">` at `p`, without an internal subset."""
    q = skip_space(data, p + len(DOCTYPE))
    if q == p + len(DOCTYPE):
        return -1
    p, colon = name(data, q)
    if p < 0 or colon >= 0:
        return -1
    q = skip_space(data, p)
    if q > p and data[q] != GT:
        if begins(data, q, SYSTEM_ID):
            p = q + len(SYSTEM_ID)
        elif begins(data, q, PUBLIC_ID):
            q += len(PUBLIC_ID)
            p = skip_space(data, q)
            if p == q:
                return -1
            p = literal(data, p, PUBLIC)
            if p < 0:
                return -1
        else:
            return -1
        q = skip_space(data, p)
        if q == p:
            return -1
        p = literal(data, q, VALUE)
        if p < 0:
            return -1
        q = skip_space(data, p)
    return q + 1 if data[q] == GT else -1


@rare
def comment(data, p, end):
    """The rest of a comment whose `<!--` ends at `p`."""
    while p < end:
        n = comment_bytes(data, p)
        if n:
            p += n
            continue
        c = data[p]
        if c == HYPHEN and data[p + 1] == HYPHEN:
            return p + 3 if data[p + 2] == GT else -1
        n = 1 if c == HYPHEN else utf8(data, p)
        if n == 0:
            return -1
        p += n
    return -1


@rare
def instruction(data, p, end):
    """The rest of a processing instruction whose `<?` ends at `p`."""
    begin = p
    p, colon = name(data, p)
    if p < 0 or colon >= 0:
        return -1
    if (
        p - begin == 3
        and data[begin] | 32 == XML[0]
        and data[begin + 1] | 32 == XML[1]
        and data[begin + 2] | 32 == XML[2]
    ):
        return -1
    if data[p] == QUESTION and data[p + 1] == GT:
        return p + 2
    if not CLASS[data[p]] & SPACE:
        return -1
    while p < end:
        c = data[p]
        if c == QUESTION and data[p + 1] == GT:
            return p + 2
        if c < 0x80:
            if c < 0x20 and not CLASS[c] & SPACE:
                return -1
            p += 1
        else:
            n = utf8(data, p)
            if n == 0:
                return -1
            p += n
    return -1


@rare
def copied(data, begin, end, arena, used):
    """Copy bytes into the arena; its new length."""
    for p in range(begin, end):
        arena[used] = data[p]
        used += 1
    return used


@rare
def decoded_value(data, begin, p, quote, arena, used):
    """The value from `begin` on, where something at `p` has to be decoded: the place after it, the arena's length."""
    used = copied(data, begin, p, arena, used)
    while True:
        c = data[p]
        if c == quote:
            return p + 1, used
        if CLASS[c] & VALUE or c == QUOTE or c == APOSTROPHE:
            arena[used] = c
            used += 1
            p += 1
        elif c == AMP:
            p, code = reference(data, p)
            if p < 0:
                return -1, used
            used = put(arena, used, code)
        elif c == TAB or c == NEWLINE or c == RETURN:
            p += 2 if c == RETURN and data[p + 1] == NEWLINE else 1
            arena[used] = BLANK
            used += 1
        elif c >= 0x80:
            n = utf8(data, p)
            if n == 0:
                return -1, used
            used = copied(data, p, p + n, arena, used)
            p += n
        else:
            return -1, used


@rare
def spelt(data, begin, colon, end, bindings, bound, spelling):
    """Write a name as `{uri}local` if it is in a namespace, otherwise unchanged; return its length, or -1."""
    local = colon + 1 if colon >= 0 else begin
    if colon - begin == 3 and begins(data, begin, XML):
        if len(XML_URI) + (end - local) + 16 > len(spelling):
            return -1
        spelling[0] = OPEN_BRACE
        used = copied(XML_URI, np.int64(0), np.int64(len(XML_URI)), spelling, np.int64(1))
        spelling[used] = CLOSE_BRACE
        return copied(data, local, end, spelling, used + 1)
    length = colon - begin if colon >= 0 else 0
    for index in range(bound - 1, -1, -1):
        prefix = bindings[B_PREFIX, index]
        if bindings[B_PREFIX_END, index] - prefix != length or not same_bytes(
            data, begin, data, prefix, prefix + length
        ):
            continue
        uri, uri_end = bindings[B_URI, index], bindings[B_URI_END, index]
        if uri == uri_end:
            break
        if (uri_end - uri) + (end - local) + 16 > len(spelling):
            return -1
        spelling[0] = OPEN_BRACE
        used = copied(data, uri, uri_end, spelling, np.int64(1))
        spelling[used] = CLOSE_BRACE
        return copied(data, local, end, spelling, used + 1)
    if colon >= 0 or (end - local) + 16 > len(spelling):
        return -1
    return copied(data, begin, end, spelling, np.int64(0))


@rare
def bind(data, colon, end, value, length, bindings, bound, counts):
    """Add the binding `xmlns="…"` or `xmlns:p="…"`; return the new number of bindings, or -1.

    A prefix that replaces another one counts. Each different prefix therefore counts at least once, and prefixes that
    every record of a document declares in the same order count only once.
    """
    if bound >= MAX_BINDINGS or value < 0 or length > LONGEST_NAMESPACE:
        return -1
    prefix = colon + 1 if colon >= 0 else end
    if colon >= 0 and (length == 0 or begins(data, prefix, XML)):
        return -1
    if length >= len(W3) and begins(data, value, W3):
        # Two namespaces with this beginning are reserved; expat decides which one this is.
        rest = length - len(W3)
        if rest in (len(b"XML/1998/namespace"), len(b"2000/xmlns/")):
            return -1
    for p in range(value, value + length):
        if data[p] >= 0x80:
            return -1
    if bound >= counts[N_BINDINGS]:
        counts[N_BINDINGS] = bound + 1
        counts[N_PREFIXES] += colon >= 0
    elif colon >= 0:
        other = bindings[B_PREFIX, bound]
        same = bindings[B_PREFIX_END, bound] - other == end - prefix and same_bytes(data, other, data, prefix, end)
        counts[N_PREFIXES] += not same
    bindings[B_PREFIX, bound] = prefix
    bindings[B_PREFIX_END, bound] = end
    bindings[B_URI, bound] = value
    bindings[B_URI_END, bound] = value + length
    return bound + 1


@rare
def bound_twice(data, bindings, first, bound):
    """Whether one start tag binds a prefix twice."""
    for a in range(first, bound):
        prefix, end = bindings[B_PREFIX, a], bindings[B_PREFIX_END, a]
        for b in range(a + 1, bound):
            other = bindings[B_PREFIX, b]
            if bindings[B_PREFIX_END, b] - other == end - prefix and same_bytes(data, other, data, prefix, end):
                return True
    return False
