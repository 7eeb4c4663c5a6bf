# mypy: allow-untyped-defs, allow-untyped-calls
"""Character data: text and CDATA sections as text nodes, as parts of the scanner.

A text node is a place in the data where the bytes are the value already; once something in it has to be decoded
(references, carriage returns, a CDATA section beside text) it continues in the arena.
"""

import numpy as np

from pathcast.kernels import part, rare

from .character_kernels import AMP, CLASS, CLOSE, GT, LT, NEWLINE, RETURN, SPACE, TEXT, put, reference, text_bytes, utf8
from .prolog_and_namespace_kernels import copied


@part
def plain_text(data, p):
    """The first place from `p` on that needs a look."""
    while True:
        n = text_bytes(data, p)
        p += n
        if n < 16:
            return p


@rare
def text(data, begin, p, end, arena, used, kind, start, stop):
    """Character data from `begin`, plain as far as `p`, to the next markup: more of the text node.

    The node is `kind` 0: none yet; 1: the bytes from start to stop; 2: the arena from start on. Gives the place of the
    markup (or -1), the arena's length and the node.
    """
    while True:
        c = data[p]
        if CLASS[c] & TEXT or (c == CLOSE and not (data[p + 1] == CLOSE and data[p + 2] == GT)):
            p += 1
            continue
        if c >= 0x80:
            n = utf8(data, p)
            if n == 0:
                return np.int64(-1), used, kind, start, stop
            p += n
            continue
        if (c != LT and c != AMP and c != RETURN) or p >= end:
            return np.int64(-1), used, kind, start, stop
        if c == LT:
            if p == begin:
                return p, used, kind, start, stop
            if kind == 0:
                return p, used, np.int64(1), begin, p
        if kind != 2:
            begun = used
            used = copied(data, start, stop, arena, used) if kind == 1 else used
            kind, start = np.int64(2), begun
        used = copied(data, begin, p, arena, used)
        if c == LT:
            return p, used, kind, start, stop
        if c == AMP:
            p, code = reference(data, p)
            if p < 0:
                return np.int64(-1), used, kind, start, stop
            used = put(arena, used, code)
        else:
            p += 2 if data[p + 1] == NEWLINE else 1
            arena[used] = NEWLINE
            used += 1
        begin = p


@rare
def cdata(data, p, end, arena, used, kind, start, stop):
    """A CDATA section whose `<![CDATA[` ends at `p`, as more of the text node; see `text`."""
    begin = p
    plain = True
    while p < end:
        c = data[p]
        if c == CLOSE and data[p + 1] == CLOSE and data[p + 2] == GT:
            break
        if c < 0x80:
            if c < 0x20 and not CLASS[c] & SPACE:
                return np.int64(-1), used, kind, start, stop
            plain &= c != RETURN
            p += 1
        else:
            n = utf8(data, p)
            if n == 0:
                return np.int64(-1), used, kind, start, stop
            p += n
    if p >= end:
        return np.int64(-1), used, kind, start, stop
    if p == begin:
        return p + 3, used, kind, start, stop
    if kind == 0 and plain:
        return p + 3, used, np.int64(1), begin, p
    if kind != 2:
        begun = used
        if kind == 1:
            used = copied(data, start, stop, arena, used)
        kind, start = np.int64(2), begun
    q = begin
    while q < p:
        c = data[q]
        if c == RETURN:
            c = NEWLINE
            if data[q + 1] == NEWLINE:
                q += 1
        arena[used] = c
        used += 1
        q += 1
    return p + 3, used, kind, start, stop
