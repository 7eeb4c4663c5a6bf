# mypy: allow-untyped-defs, allow-untyped-calls
"""Characters: the classes of XML's characters, UTF-8, references and names, as parts of the scanner.

Every part takes the data and a place, and returns the place after the part, or -1 when the document must go to the
expat reader: because it is wrong, or because it is valid but too rare for a fast path. The data end with a zero byte,
which no class contains, so that a loop over a class needs no other end.
"""

from typing import Any

import numpy as np

from pathcast.kernels import Bytes, item, leading, part, rare, word
from pathcast.kernels.hash_table_kernels import MIX_A

NAME_START, NAME, SPACE, TEXT, VALUE, PUBLIC = 1, 2, 4, 8, 16, 32


def _classes() -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    table = np.zeros(256, dtype=np.uint8)
    letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    for code in letters + b"_":
        table[code] |= NAME_START
    for code in letters + b"_-.0123456789":
        table[code] |= NAME
    for code in b" \t\r\n":
        table[code] |= SPACE
    for code in range(0x20, 0x80):
        if code not in b"<&]":
            table[code] |= TEXT
        if code not in b"<&\"'":
            table[code] |= VALUE
    for code in b"\t\n":
        table[code] |= TEXT
    for code in letters + b"0123456789 -+,./:=?;!*#@$_%()":
        table[code] |= PUBLIC
    return table


CLASS = _classes()

MIX_C = np.uint64(0xD6E8FEB86659FD93)
# LOW_BYTES[n + 8] keeps the n lowest bytes of a number: none before 0, all eight after 8.
LOW_BYTES = np.array([(1 << 8 * min(max(n, 0), 8)) - 1 for n in range(-8, 17)], dtype=np.uint64)
# Kernels read sixteen bytes at a time: this many zero bytes follow the last document.
PADDING = 16

LT, GT, AMP, QUOTE, APOSTROPHE, SLASH, BANG, QUESTION = 60, 62, 38, 34, 39, 47, 33, 63
EQUALS, COLON, HYPHEN, OPEN, CLOSE, RETURN, NEWLINE, TAB, BLANK, HASH, SEMICOLON = (
    61,
    58,
    45,
    91,
    93,
    13,
    10,
    9,
    32,
    35,
    59,
)
LETTER_X = 120


@part
def skip_space(data, p):
    """The first place from `p` on that is not white space."""
    while CLASS[data[p]] & SPACE:
        p += 1
    return p


@part
def begins(data, p, word):
    """Whether `word` stands at `p`."""
    for k in range(len(word)):
        if data[p + k] != word[k]:
            return False
    return True


@rare
def utf8(data, p):
    """The length of the character at `p`, which is not ASCII; 0 when it is not valid UTF-8 or no XML character."""
    a = data[p]
    if a < 0xC2 or a > 0xF4:
        return 0
    b = data[p + 1]
    if b & 0xC0 != 0x80:
        return 0
    if a < 0xE0:
        return 2
    c = data[p + 2]
    if c & 0xC0 != 0x80:
        return 0
    if a < 0xF0:
        if (a == 0xE0 and b < 0xA0) or (a == 0xED and b > 0x9F) or (a == 0xEF and b == 0xBF and c > 0xBD):
            return 0
        return 3
    if data[p + 3] & 0xC0 != 0x80:
        return 0
    if (a == 0xF0 and b < 0x90) or (a == 0xF4 and b > 0x8F):
        return 0
    return 4


@rare
def legal(code):
    """Whether a character reference may name this character."""
    if code < 0x20:
        return code in (TAB, NEWLINE, RETURN)
    return code < 0xD800 or 0xE000 <= code < 0xFFFE or 0x10000 <= code < 0x110000


@rare
def put(arena, used, code):
    """Write a character as UTF-8; the arena's new length."""
    if code < 0x80:
        arena[used] = code
        return used + 1
    if code < 0x800:
        arena[used] = 0xC0 | code >> 6
        arena[used + 1] = 0x80 | code & 0x3F
        return used + 2
    if code < 0x10000:
        arena[used] = 0xE0 | code >> 12
        arena[used + 1] = 0x80 | code >> 6 & 0x3F
        arena[used + 2] = 0x80 | code & 0x3F
        return used + 3
    arena[used] = 0xF0 | code >> 18
    arena[used + 1] = 0x80 | code >> 12 & 0x3F
    arena[used + 2] = 0x80 | code >> 6 & 0x3F
    arena[used + 3] = 0x80 | code & 0x3F
    return used + 4


@rare
def number_reference(data, p):
    """`&#60;` or `&#x3c;` at `p`: the place after it and the character; -1 when it is no legal one."""
    code, digits = 0, 0
    p += 2
    if data[p] == LETTER_X:
        p += 1
        while True:
            c = data[p]
            if 48 <= c <= 57:
                digit = c - 48
            elif 97 <= c <= 102:
                digit = c - 87
            elif 65 <= c <= 70:
                digit = c - 55
            else:
                break
            code = min(code * 16 + digit, 0x110000)
            digits += 1
            p += 1
    else:
        while 48 <= data[p] <= 57:
            code = min(code * 10 + (data[p] - 48), 0x110000)
            digits += 1
            p += 1
    if digits == 0 or data[p] != SEMICOLON or not legal(code):
        return -1, 0
    return p + 1, code


@rare
def reference(data, p):
    """A reference at `p`: the place after it and the character; -1 when it is not one of XML's own."""
    if data[p + 1] == HASH:
        return number_reference(data, p)
    a, b = data[p + 1], data[p + 2]
    if a == 0 or b == 0:
        return -1, 0
    if b == 116 and data[p + 3] == SEMICOLON:
        if a == 108:
            return p + 4, LT
        if a == 103:
            return p + 4, GT
    elif a == 97 and b == 109 and data[p + 3] == 112 and data[p + 4] == SEMICOLON:
        return p + 5, AMP
    elif a == 97 and b == 112 and data[p + 3] == 111 and data[p + 4] == 115 and data[p + 5] == SEMICOLON:
        return p + 6, APOSTROPHE
    elif a == 113 and b == 117 and data[p + 3] == 111 and data[p + 4] == 116 and data[p + 5] == SEMICOLON:
        return p + 6, QUOTE
    return -1, 0


def in_names(b: Bytes) -> Any:
    """Letters, digits, `_`, `-` and `.`."""
    return b.either(b.with_bits(0x20).between(97, 122), b.between(48, 57), b.between(45, 46), b.equal(95))


@leading
def value_bytes(b: Bytes) -> Any:
    """ASCII that stands for itself in an attribute's value; no quote of either kind."""
    special = b.either(b.equal(LT), b.equal(AMP), b.equal(QUOTE), b.equal(APOSTROPHE))
    return b.builder.and_(b.between(0x20, 0x7F), b.builder.not_(special))


def in_text(b: Bytes) -> Any:
    """ASCII that stands for itself in text; no `]`, which may begin a mistake."""
    special = b.either(b.equal(LT), b.equal(AMP), b.equal(CLOSE))
    plain = b.builder.and_(b.between(0x20, 0x7F), b.builder.not_(special))
    return b.either(plain, b.between(TAB, NEWLINE))


name_bytes, text_bytes = leading(in_names), leading(in_text)


@leading
def comment_bytes(b: Bytes) -> Any:
    """ASCII that may stand in a comment; no hyphen, which may end it."""
    plain = b.builder.and_(b.between(0x20, 0x7F), b.builder.not_(b.equal(HYPHEN)))
    return b.either(plain, b.between(TAB, NEWLINE), b.equal(RETURN))


@part
def name(data, p):
    """A name at `p`: the place after it and the place of its colon (-1: none); the place is -1 for no plain name."""
    colon = -1
    if not CLASS[data[p]] & NAME_START:
        return -1, colon
    while True:
        n = name_bytes(data, p)
        p += n
        if n == 16:
            continue
        c = data[p]
        if c == COLON:
            if colon >= 0 or not CLASS[data[p + 1]] & NAME_START:
                return -1, colon
            colon = p
            p += 1
        elif c >= 0x80:
            return -1, colon
        else:
            return p, colon


@part
def head(data, begin, length):
    """The first sixteen bytes of something as two numbers, zero after its end; without a branch."""
    most = min(length, 16)
    first = word(data, begin) & item(LOW_BYTES, most + 8)
    second = word(data, begin + 8) & item(LOW_BYTES, most)
    return first, second


@part
def hash_name(data, begin, end):
    """The first sixteen bytes of a name as two numbers, and the hash of all of it."""
    length = end - begin
    first, second = head(data, begin, length)
    hashed = (first ^ np.uint64(length)) * MIX_A ^ second * MIX_C
    hashed ^= hashed >> np.uint64(29)
    hashed *= MIX_A
    if length > 16:
        for p in range(begin + 16, end):
            hashed = (hashed ^ np.uint64(data[p])) * MIX_C
    return first, second, hashed ^ hashed >> np.uint64(32)


@part
def same_bytes(a, at, b, begin, end):
    """Whether `a` has at `at` the bytes that `b` has from begin to end."""
    length = end - begin
    first, second = head(a, at, length)
    first_b, second_b = head(b, begin, length)
    if first != first_b or second != second_b:
        return False
    for k in range(16, length):
        if a[at + k] != b[begin + k]:
            return False
    return True
