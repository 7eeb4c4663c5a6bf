"""Markup: declarations, comments, values and namespaces, as parts of the scanner.

Each part checks one production of XML 1.0 or of Namespaces in XML and gives the place after it, or -1: ask expat.
"""

import numpy as np

from ..kernels import part
from .bytes_kernels import (
    AMP, APOSTROPHE, BLANK, CLASS, EQUALS, FNV_FACTOR, FNV_START, GT, HYPHEN, NEWLINE, PUBLIC, QUESTION, QUOTE, RETURN,
    SPACE, TAB, VALUE, begins, hash_on, name, put, reference, skip_space, utf8,
)  # fmt: skip
from .names_kernels import CLOSE_BRACE, OPEN_BRACE, find

from .tables_kernels import B_PREFIX, B_PREFIX_END, B_URI, B_URI_END, MAX_BINDINGS, N_OWN, N_OWN_BYTES


def _word(text: bytes) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.frombuffer(text, dtype=np.uint8).copy()


BOM, XML_DECLARATION, DOCTYPE, CDATA = _word(b"\xef\xbb\xbf"), _word(b"<?xml"), _word(b"<!DOCTYPE"), _word(b"<![CDATA[")
VERSION, ENCODING, STANDALONE = _word(b"version"), _word(b"encoding"), _word(b"standalone")
ONE, UTF_8, YES, NO = _word(b"1.0"), _word(b"utf-8"), _word(b"yes"), _word(b"no")
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
    if quote not in (QUOTE, APOSTROPHE):
        return -1, 0
    return p + 1, quote


@part
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


@part
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
        p = declared(data, q + len(ENCODING), UTF_8)
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


@part
def literal(data, p, allowed):
    """A quoted literal of one class of characters."""
    quote = data[p]
    if quote not in (QUOTE, APOSTROPHE):
        return -1
    p += 1
    while CLASS[data[p]] & allowed:
        p += 1
    return p + 1 if data[p] == quote else -1


@part
def doctype(data, p):
    """`<!DOCTYPE name SYSTEM "…">` at `p`, without an internal subset."""
    q = skip_space(data, p + len(DOCTYPE))
    if q == p + len(DOCTYPE):
        return -1
    p, colon, _ = name(data, q)
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


@part
def comment(data, p, end):
    """The rest of a comment whose `<!--` ends at `p`."""
    while p < end:
        c = data[p]
        if c == HYPHEN and data[p + 1] == HYPHEN:
            return p + 3 if data[p + 2] == GT else -1
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


@part
def instruction(data, p, end):
    """The rest of a processing instruction whose `<?` ends at `p`."""
    begin = p
    p, colon, _ = name(data, p)
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


@part
def copied(data, begin, end, arena, used):
    """Copy bytes into the arena; its new length."""
    for p in range(begin, end):
        arena[used] = data[p]
        used += 1
    return used


@part
def attribute_value(data, p, quote, arena, used):
    """The value from `p` to the closing quote: the place after it, where the value starts, its length, the arena's length."""
    begin = p
    while True:
        c = data[p]
        if CLASS[c] & VALUE:
            p += 1
        elif c == quote:
            return p + 1, begin, p - begin, used
        elif c in (QUOTE, APOSTROPHE):
            p += 1
        elif c >= 0x80:
            n = utf8(data, p)
            if n == 0:
                return -1, begin, 0, used
            p += n
        else:
            break
    # Something has to be decoded: from here on the value is written to the arena.
    start = used
    used = copied(data, begin, p, arena, used)
    while True:
        c = data[p]
        if c == quote:
            return p + 1, -1 - start, used - start, used
        if CLASS[c] & VALUE or c in (QUOTE, APOSTROPHE):
            arena[used] = c
            used += 1
            p += 1
        elif c == AMP:
            p, code = reference(data, p)
            if p < 0:
                return -1, begin, 0, used
            used = put(arena, used, code)
        elif c in (TAB, NEWLINE, RETURN):
            p += 2 if c == RETURN and data[p + 1] == NEWLINE else 1
            arena[used] = BLANK
            used += 1
        elif c >= 0x80:
            n = utf8(data, p)
            if n == 0:
                return -1, begin, 0, used
            used = copied(data, p, p + n, arena, used)
            p += n
        else:
            return -1, begin, 0, used


@part
def named(hashed, uris, uri, uri_end, data, local, local_end, known, own, counts, known_count):
    """The id of a name, given now if neither table has it; -1 for giving up."""
    found = find(known[0], known[1], known[2], known[3], hashed, uris, uri, uri_end, data, local, local_end)
    if found >= 0:
        return found
    own_slots, own_hashes, own_bytes, own_offsets = own
    found = find(own_slots, own_hashes, own_bytes, own_offsets, hashed, uris, uri, uri_end, data, local, local_end)
    if found >= 0:
        return known_count + found
    number, used = counts[N_OWN], counts[N_OWN_BYTES]
    if found == -(2**31) or number + 1 >= len(own_offsets):
        return -1
    if used + (local_end - local) + (uri_end - uri) + 2 > len(own_bytes):
        return -1
    own_slots[-1 - found] = number
    own_hashes[number] = hashed
    if uri < uri_end:
        own_bytes[used] = OPEN_BRACE
        used = copied(uris, uri, uri_end, own_bytes, used + 1)
        own_bytes[used] = CLOSE_BRACE
        used += 1
    used = copied(data, local, local_end, own_bytes, used)
    own_offsets[number + 1] = used
    counts[N_OWN] = number + 1
    counts[N_OWN_BYTES] = used
    return known_count + number


@part
def expanded_name(data, begin, colon, end, bindings, bound, known, own, counts, known_count):
    """The id of a name with a prefix, or of an element's name without one while a default namespace may be in scope."""
    prefix_end = max(colon, begin)
    local = colon + 1 if colon >= 0 else begin
    if colon - begin == len(XML) and begins(data, begin, XML):
        hashed = hash_on(XML_URI, 0, len(XML_URI), (FNV_START ^ np.uint64(OPEN_BRACE)) * FNV_FACTOR)
        hashed = hash_on(data, local, end, (hashed ^ np.uint64(CLOSE_BRACE)) * FNV_FACTOR)
        return named(hashed, XML_URI, 0, len(XML_URI), data, local, end, known, own, counts, known_count)
    for index in range(bound - 1, -1, -1):
        prefix = bindings[B_PREFIX, index]
        length = bindings[B_PREFIX_END, index] - prefix
        if length != prefix_end - begin:
            continue
        k = 0
        while k < length and data[prefix + k] == data[begin + k]:
            k += 1
        if k < length:
            continue
        uri, uri_end = bindings[B_URI, index], bindings[B_URI_END, index]
        if uri == uri_end:
            break
        hashed = hash_on(data, uri, uri_end, (FNV_START ^ np.uint64(OPEN_BRACE)) * FNV_FACTOR)
        hashed = hash_on(data, local, end, (hashed ^ np.uint64(CLOSE_BRACE)) * FNV_FACTOR)
        return named(hashed, data, uri, uri_end, data, local, end, known, own, counts, known_count)
    if colon >= 0:
        return np.int64(-1)
    hashed = hash_on(data, begin, end, FNV_START)
    return named(hashed, data, 0, 0, data, begin, end, known, own, counts, known_count)


@part
def bind(data, begin, colon, end, value, length, bindings, bound):
    """Take up `xmlns="…"` or `xmlns:p="…"`; the new number of bindings, or -1."""
    if bound >= MAX_BINDINGS or value < 0:
        return -1
    prefix = colon + 1 if colon >= 0 else end
    if colon >= 0 and (length == 0 or begins(data, prefix, XML)):
        return -1
    if length >= len(W3) and begins(data, value, W3):
        # Two names under it are reserved; which of them this is, expat shall say.
        rest = length - len(W3)
        if rest in (len(b"XML/1998/namespace"), len(b"2000/xmlns/")):
            return -1
    for p in range(value, value + length):
        if data[p] >= 0x80:
            return -1
    bindings[B_PREFIX, bound] = prefix
    bindings[B_PREFIX_END, bound] = end
    bindings[B_URI, bound] = value
    bindings[B_URI_END, bound] = value + length
    return bound + 1


@part
def bound_twice(data, bindings, first, bound):
    """Whether one start tag binds a prefix twice."""
    for a in range(first, bound):
        for b in range(a + 1, bound):
            length = bindings[B_PREFIX_END, a] - bindings[B_PREFIX, a]
            if length == bindings[B_PREFIX_END, b] - bindings[B_PREFIX, b]:
                k = 0
                while k < length and data[bindings[B_PREFIX, a] + k] == data[bindings[B_PREFIX, b] + k]:
                    k += 1
                if k == length:
                    return True
    return False
