# mypy: allow-untyped-defs, allow-untyped-calls
"""A structure annotation matched and passed on, for kernels: numbers of label paths in, entries or other numbers out.

What each label path satisfies is remembered; a document satisfies what its distinct label paths do.
"""

import numpy as np

from ..kernels import kernel
from ..matching.marks_kernels import mark_with_summary, read_few_marks
from .structure_kernels import AT, CUT, NO_PARENT, NO_PATH, NONE, OK, TOO_DEEP, WHY, WRONG, put, take

UNKNOWN = -1
# `counts`: entries written, label paths whose entries are not known yet, the stamp of the last document.
C_ENTRIES, C_MISSING, C_STAMP, C_ROWS = range(4)


@kernel(
    "int64(ro_u1[::1], int64, int64, int64, int64, ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_i4[::1],"
    " i8[::1], i4[::1], i4[::1], i4[::1], u8[::1], u8[::1], i8[::1], i8[::1])",
    late=True,
)
def match_elements(
    data, begin, end, elements, known, path_parent, path_depth, memo_begin, memo_count, memo,
    seen, stack, missing, out, marks, summary, counts, state,
):  # fmt: skip
    """The entries of one document, ascending, in `out`: OK, or why not. Paths that are not known are in `missing`."""
    counts[C_STAMP] += 1
    stamp = counts[C_STAMP]
    state[AT] = begin
    state[WRONG] = 0
    lacking = 0
    opened = 0
    for element in range(elements):
        path = take(data, end, state)
        if state[WRONG] != 0:
            state[WHY] = CUT
            break
        if path >= known:
            state[WHY] = NO_PATH
            break
        level = path_depth[path]
        if level >= len(stack):
            state[WHY] = TOO_DEEP
            break
        if level > opened + 1 or (level == 1 and element > 0):
            state[WHY] = NO_PARENT
            break
        if path_parent[path] != (stack[level - 1] if level > 1 else NONE):
            state[WHY] = NO_PARENT
            break
        stack[level] = path
        opened = level
        if seen[path] == stamp:
            continue
        seen[path] = stamp
        count = memo_count[path]
        if count == UNKNOWN:
            missing[lacking] = path
            lacking += 1
            continue
        at = memo_begin[path]
        for k in range(at, at + count):
            mark_with_summary(marks, summary, memo[k])
    else:
        state[WHY] = OK
    counts[C_ENTRIES] = read_few_marks(marks, summary, out, 0)
    counts[C_MISSING] = lacking
    return state[WHY]


@kernel(
    "int64(ro_u1[::1], int64, int64, int64, int64, ro_i4[::1], ro_i4[::1], ro_i4[::1],"
    " i8[::1], i4[::1], i4[::1], u1[::1], i8[::1], i8[::1])",
    late=True,
)
def relay_elements(
    data, begin, end, elements, known, path_parent, path_depth, numbers, seen, stack, missing, out, counts, state,
):  # fmt: skip
    """Write a document's elements with the numbers that label paths have on another link: OK, or why not.

    Paths without a number are in `missing`, those above them before them. `counts` gets the bytes written, `state`
    where the elements end. `out` has room for five bytes an element.
    """
    counts[C_STAMP] += 1
    stamp = counts[C_STAMP]
    state[AT] = begin
    state[WRONG] = 0
    lacking = 0
    opened = 0
    written = 0
    for element in range(elements):
        path = take(data, end, state)
        if state[WRONG] != 0:
            state[WHY] = CUT
            break
        if path >= known:
            state[WHY] = NO_PATH
            break
        level = path_depth[path]
        if level >= len(stack):
            state[WHY] = TOO_DEEP
            break
        if level > opened + 1 or (level == 1 and element > 0):
            state[WHY] = NO_PARENT
            break
        if path_parent[path] != (stack[level - 1] if level > 1 else NONE):
            state[WHY] = NO_PARENT
            break
        stack[level] = path
        opened = level
        number = numbers[path]
        if number == UNKNOWN:
            if seen[path] != stamp:
                seen[path] = stamp
                missing[lacking] = path
                lacking += 1
            continue
        written = put(out, written, np.int64(number))
    else:
        state[WHY] = OK
    counts[C_ENTRIES] = written
    counts[C_MISSING] = lacking
    return state[WHY]
