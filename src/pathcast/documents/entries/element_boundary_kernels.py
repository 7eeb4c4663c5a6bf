# mypy: allow-untyped-defs, allow-untyped-calls
"""Element boundaries: where the children of one element begin and end, in a buffer that holds a part of a file.

The kernel knows XML's tokens and nothing else: a start tag ends at the first `>` outside quotes, an end tag at its
first `>`, a comment at `-->`, a CDATA section at `]]>`, an instruction at `?>`. It counts open elements and compares no
names, but for the children themselves. So it needs no memory for open elements, and an entry with a mistake that leaves
the tokens and the number of tags alone ends where it would end without the mistake. `BROKEN` means that no end is sure:
a `<` that begins no token or stands inside a tag, `--` inside a comment, an end tag for another child.

The state is resumed with more data: the kernel stops before a token's end that the data may cut, and numbers that hold
places count from the buffer's first byte.

Cost: 64 bytes per comparison, and some 2 ns per tag and per quote.
"""

from typing import Any

import numpy as np

from pathcast.kernels import Bytes, Int64s, Matrix, UInt8s, Writable, kernel, lowest_bit, matching, part, rare

from ..scanner.character_kernels import (
    APOSTROPHE,
    BANG,
    CLASS,
    COLON,
    GT,
    LT,
    NAME_START,
    QUESTION,
    QUOTE,
    SLASH,
    SPACE,
)

# `state`: the place to continue from, in which token, the number of open elements, whose children are reported (the
# number of open elements around them), whether to return at each child's start tag, whether the root has begun, the
# place of the current tag's `<`, the length of the name of the open child, the place of a mistake, the complete rows.
PLACE, TOKEN, DEPTH, WATCHED, STOPS, ROOTED, TAG, NAME_LENGTH, AT, COUNT, FIELDS = range(11)
TEXT, START, DOUBLE, SINGLE, END, COMMENT, CDATA, INSTRUCTION = range(8)
# Rows per child: where its start tag begins, its name ends and the tag ends, where its end tag begins (-1: none) and
# ends, whether the start tag may have an attribute that begins with `xml`, whether the name is that of the last child.
BEGIN, NAME_END, TAG_END, CLOSE, STOP, IS_XML, IS_SAME, ROWS = range(8)
# Why the kernel returned: it needs more data, the rows are full, the parent's end tag, a child's start tag, a document
# type, or a mistake.
MORE, FULL, PARENT, CHILD, DOCTYPE, STRAY, OPEN_TAG, HYPHENS, MISNAMED, OUTSIDE, SECOND, LONG = range(12)
BROKEN = STRAY
# Zero bytes that must follow the data.
AFTER = 64

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_HYPHEN, _CLOSE, _OPEN, _D = 45, 93, 91, 68


@matching
def openings(b: Bytes) -> Any:
    """`<`."""
    return b.equal(LT)


@matching
def closings(b: Bytes) -> Any:
    """`>`."""
    return b.equal(GT)


@matching
def double_quotes(b: Bytes) -> Any:
    """The double quote."""
    return b.equal(QUOTE)


@matching
def single_quotes(b: Bytes) -> Any:
    """The single quote."""
    return b.equal(APOSTROPHE)


@rare
def same(data, at, text, length):
    """Whether the first bytes of `text` stand at `at`."""
    for k in range(length):
        if data[at + k] != text[k]:
            return False
    return True


@rare
def only_space(data, p, end):
    """The first place from `p` on that is not white space, at most `end`."""
    while p < end and CLASS[data[p]] & SPACE:
        p += 1
    return p


@rare
def declaration(data, q, end, depth, rooted):
    """The token that begins with `<!` at `q`: where its content is, -1 if the data cut it; the token or a mistake."""
    a = data[q + 2]
    if q + 2 >= end:
        return np.int64(-1), TEXT
    if a == _HYPHEN:
        if q + 3 >= end:
            return np.int64(-1), TEXT
        return q + 4, COMMENT if data[q + 3] == _HYPHEN else -STRAY
    if a == _D and not depth and not rooted:
        return q, -DOCTYPE
    word = (_OPEN, 67, 68, 65, 84, 65, _OPEN)
    if not depth:
        return q, -STRAY
    for k in range(7):
        if q + 2 + k >= end:
            return np.int64(-1), TEXT
        if data[q + 2 + k] != word[k]:
            return q, -STRAY
    return q + 9, CDATA


@rare
def skipped(data, p, end, token):
    """The rest of a comment, CDATA section or instruction: where to continue, and the token there or a mistake."""
    while p < end:
        c = data[p]
        if token == COMMENT and c == _HYPHEN:
            if p + 2 >= end:
                if p + 1 < end and data[p + 1] != _HYPHEN:
                    p += 1
                    continue
                return p, token
            if data[p + 1] == _HYPHEN:
                return (p + 3, TEXT) if data[p + 2] == GT else (p, -HYPHENS)
        elif token == CDATA and c == _CLOSE:
            if p + 2 >= end:
                return p, token
            if data[p + 1] == _CLOSE and data[p + 2] == GT:
                return p + 3, TEXT
        elif token == INSTRUCTION and c == QUESTION:
            if p + 1 >= end:
                return p, token
            if data[p + 1] == GT:
                return p + 2, TEXT
        p += 1
    return p, token


@rare
def begin_child(data, tag, stop, names, state, rows, row):
    """Write the row of a child whose start tag lies between two places; False if its name is too long."""
    end, is_same = tag + 1, True
    length = state[NAME_LENGTH]
    while not (CLASS[data[end]] & SPACE) and data[end] != SLASH and data[end] != GT:
        k = end - tag - 1
        if k >= len(names):
            return False
        if k >= length or names[k] != data[end]:
            is_same = False
            names[k] = data[end]
        end += 1
    rows[IS_SAME, row] = is_same and end - tag - 1 == length
    state[NAME_LENGTH] = end - tag - 1
    rows[BEGIN, row], rows[NAME_END, row], rows[TAG_END, row] = tag, end, stop
    rows[CLOSE, row] = rows[STOP, row] = -1
    found = 0
    for p in range(end, stop - 3):
        if CLASS[data[p]] & SPACE and data[p + 1] == 120 and data[p + 2] == 109 and data[p + 3] == 108:
            found = 1
    rows[IS_XML, row] = found
    return True


@rare
def ends_child(data, tag, stop, names, length):
    """Whether an end tag has the name of the open child."""
    if stop - tag < length + 3 or not same(data, tag + 2, names, length):
        return False
    return only_space(data, tag + 2 + length, stop) == stop - 1


@part
def opened(data, q, end, depth, rooted):
    """The token that begins with the `<` at `q`: where to continue, -1 if the data cut it; the token or a mistake."""
    if q + 1 >= end:
        return np.int64(-1), TEXT
    c = data[q + 1]
    if c == SLASH:
        return q + 2, END if depth else -OUTSIDE
    if CLASS[c] & NAME_START or c >= 0x80 or c == COLON:
        return q + 1, START if depth or not rooted else -SECOND
    if c == QUESTION:
        return q + 2, INSTRUCTION
    if c == BANG:
        return declaration(data, q, end, depth, rooted)
    return q, -STRAY


@part
def next_place(bits, p, block):
    """The first place from `p` on whose bit is set, in the 64 bytes of a block; the block's end if there is none."""
    return block + lowest_bit(bits & (_ALL << np.uint64(p - block)))


@rare
def child_opened(data, tag, stop, names, state, rows, row):
    """Write down a child whose start tag ends at `stop`: the number of complete rows, and why to return."""
    state[ROOTED] = 1
    if not begin_child(data, tag, stop, names, state, rows, row):
        return row, LONG
    if data[stop - 2] == SLASH:
        rows[STOP, row] = stop
        row += 1
    if state[STOPS]:
        return row, CHILD
    return row, FULL if row == rows.shape[1] - 1 else MORE


@rare
def child_closed(data, tag, stop, names, state, rows, row):
    """Write down the end of a child, if the end tag has its name: the number of complete rows, and why to return."""
    if not ends_child(data, tag, stop, names, state[NAME_LENGTH]):
        return row, MISNAMED
    rows[CLOSE, row], rows[STOP, row] = tag, stop
    row += 1
    return row, FULL if row == rows.shape[1] - 1 else MORE


@part
def tag_opened(data, p, block, lt, end, depth, rooted):
    """The next token after text at `p`: its `<` (the block's end: none here), where to continue, the token or mistake.

    Without open elements there may be white space only.
    """
    if not depth:
        p = only_space(data, p, end)
        if p >= end or data[p] != LT:
            return p, p, TEXT if p >= end else -OUTSIDE
        tag = p
    else:
        tag = next_place(lt, p, block)
        if tag >= block + 64:
            return tag, tag, TEXT
    p, token = opened(data, tag, end, depth, rooted)
    return tag, p, token


@kernel
def find_children(
    data: UInt8s, end: int, names: Writable[UInt8s], state: Writable[Int64s], rows: Writable[Matrix[Int64s]]
) -> int:
    """Write a row per child of the watched element, from the state on; return why it stopped.

    The data end at `end`, with `AFTER` zero bytes behind them. `COUNT` rows are complete; the one after them is that of
    the open child, if there is one. `names` has the name of the last child.
    """
    p, token, depth, watched = state[PLACE], state[TOKEN], state[DEPTH], state[WATCHED]
    tag, row, why = state[TAG], state[COUNT], MORE
    block = np.int64(-64)
    lt = gt = double = single = np.uint64(0)
    while p < end and why == MORE:
        if p >= block + 64:
            block = p
            lt, gt = openings(data, block), closings(data, block)
            double, single = double_quotes(data, block), single_quotes(data, block)
        if token == TEXT:
            tag, p, token = tag_opened(data, p, block, lt, end, depth, state[ROOTED])
            if token < 0:
                p, token, why = tag, TEXT, -token
            elif p < 0:
                p = tag
                break
            continue
        if token >= COMMENT:
            p, token = skipped(data, p, end, token)
            if token < 0:
                token, why = TEXT, -token
            elif token != TEXT:
                break
            continue
        found = lt
        if token == START:
            found |= gt | double | single
        elif token == END:
            found |= gt
        else:
            found |= double if token == DOUBLE else single
        p = next_place(found, p, block)
        if p >= block + 64:
            continue
        c = data[p]
        p += 1
        if c == LT:
            why = OPEN_TAG
        elif c != GT:
            token = START if token != START else (DOUBLE if c == QUOTE else SINGLE)
        elif token == START:
            token = TEXT
            if depth == watched:
                row, why = child_opened(data, tag, p, names, state, rows, row)
            depth += data[p - 2] != SLASH
        else:
            token = TEXT
            depth -= 1
            if depth < watched:
                why = PARENT
            elif depth == watched:
                row, why = child_closed(data, tag, p, names, state, rows, row)
                depth += why == MISNAMED
    state[PLACE], state[TOKEN], state[DEPTH], state[COUNT] = min(p, end), token, depth, row
    state[TAG], state[AT] = tag, p if why == HYPHENS else tag
    return why
