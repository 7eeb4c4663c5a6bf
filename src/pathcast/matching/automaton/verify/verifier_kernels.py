# mypy: allow-untyped-defs, allow-untyped-calls
"""Verification: which candidates match a document, by the longest path of each, from the root downwards.

    a step /x[…]     the elements x whose parent is in the set of the step before (//: some ancestor) and at which
                     all its parts hold; when there are none, the pattern is settled

Paths that begin alike share their steps, which makes them a tree. Candidates come in the order of that tree, so that
one step and its set for each level is all that has to be remembered: a candidate begins where it leaves the one before.
In any other order answers are the same, and more is looked up. A pattern's steps lie side by side (`programs`): what a
candidate costs is mostly waiting for memory.

A condition is the set of elements at which it holds, from its parts upwards:

    a node x[…]      the elements x at which all its parts hold; it holds at their parents (//: at all their ancestors)
    @a, text()       the elements that have one which passes its tests (//: and their ancestors); `and`, `or` and `not`
                     of these are choices, value by value
    and, or, not     word by word
    a test on .      value by value, only for elements that passed everything else (`boolean_test_kernels.py`); first
                     nodes of paths as well, and `and`, `or` and `not` with such tests among them

Sets have numbers, and operations on them are remembered (`element_set_kernels.py`). When there is no room for more
sets, all is forgotten and worked out anew as it is needed.

Invariant: what a level remembers is right for the document, whatever the levels above it have come to remember since.
"""

import numpy as np

from pathcast.kernels import kernel, part, prefetch, rare

from .boolean_test_kernels import passing
from .condition_kernels import (
    ALL,
    ALL_OF,
    ANY_OF,
    ATTRIBUTE,
    C_COLUMNS,
    C_KIND,
    C_PART,
    C_PARTS,
    C_PARTS_END,
    C_TEST,
    DEEP,
    DOCUMENT,
    ELEMENT,
    EMPTY,
    FIRST_ROOT,
    K_COLUMNS,
    K_EPOCH,
    K_SET,
    L_ATTRIBUTE,
    L_OWNER,
    NOT,
    PATH_ELEMENT,
    ROOT,
    SELF,
    TEXT_NODE,
    V_ATTRIBUTE,
    V_TEXT,
    first_passes,
    is_tried,
    link,
    mark_up,
    value_passes,
)
from .element_set_kernels import (
    ALL_UP,
    BELOW,
    BOTH,
    CHILD,
    T_EPOCH,
    T_FULL,
    T_SETS,
    T_STAMP,
    T_WORK,
    UP,
    begin_epoch,
    interned,
    made,
    word_by_word,
)

# A step in a program: its number, its name and axis (2 · name, + 1 for //), and what it asks: NOTHING, a condition, or
# (below NOTHING: NOTHING - 1 - condition) one that is tried on elements one by one. A step that asks several has as
# many places, the later ones with SAME for their name, all but the last with numbers below NOTHING.
P_STEP, P_NAME, P_ASKS, P_COLUMNS = range(4)
NOTHING = -1
SAME = -(1 << 30)
MOST_ASKS = 16
# How many candidates ahead their programs are fetched, what these ask, and the first part of that.
FAR, NEAR, NEXT = 16, 8, 4
# Columns of what a level remembers: its step and the set of its elements.
M_STEP, M_SET, M_COLUMNS = range(3)
NO_STEP = -1
# Columns of what patterns have cost: how often they were tried, and how many bytes of values were looked at.
TRIES, BYTES, COSTS = range(3)


@rare
def value_set(
    row, kind, first, count, width, stamp, state, slots, rows, limits, literal_hashes, literals, parts, parents, ends,
    heads, head_stamps, lists, attribute_begin, attribute_start, attribute_length, text_begin, text_end, text_parent,
    text_start, text_length, data, arena, joined, known, bits, scratch, hashes, hash_stamps, numbers, number_stamps,
):  # fmt: skip
    """The elements at which a condition on values holds, of those of the whole document."""
    deep = kind >= DEEP
    kind &= DEEP - 1
    word = state[T_SETS] * width
    for k in range(word, word + width):
        bits[k] = 0
    if kind == ATTRIBUTE:
        base, name = attribute_begin[first], rows[row, C_TEST]
        attribute = np.int64(heads[1, name] if head_stamps[1, name] == stamp else -1)
        while attribute >= 0:
            if value_passes(
                row, attribute, attribute_start[base + attribute], np.int64(attribute_length[base + attribute]),
                stamp, rows, limits, literal_hashes, literals, parts, data, arena, known, hashes[V_ATTRIBUTE],
                hash_stamps[V_ATTRIBUTE], numbers[V_ATTRIBUTE], number_stamps[V_ATTRIBUTE],
            ):  # fmt: skip
                mark_up(bits, word, np.int64(lists[L_OWNER, attribute]), parents, first, deep)
            attribute = np.int64(lists[L_ATTRIBUTE, attribute])
    elif kind == TEXT_NODE:
        for index in range(text_begin[first], text_end[first]):
            if value_passes(
                row, np.int64(index - text_begin[first]), text_start[index], np.int64(text_length[index]), stamp,
                rows, limits, literal_hashes, literals, parts, data, arena, known, hashes[V_TEXT], hash_stamps[V_TEXT],
                numbers[V_TEXT], number_stamps[V_TEXT],
            ):  # fmt: skip
                mark_up(bits, word, np.int64(text_parent[index] - first), parents, first, deep)
    elif first_passes(
        row, np.int64(-1), first, count, width, stamp, rows, limits, literals, parts, parents, ends, heads,
        head_stamps, lists, attribute_begin, attribute_start, attribute_length, text_begin, text_end, text_parent,
        text_start, text_length, data, arena, joined, known, bits, scratch,
    ):  # fmt: skip
        return np.int64(ALL)
    return interned(state, bits, width, slots)


@part
def settle(
    asked, first, count, width, stamp, state, slots, results, rows, limits, literal_hashes, literals, parts, parents,
    ends, heads, head_stamps, lists, attribute_begin, attribute_start, attribute_length, text_begin, text_end,
    text_parent, text_start, text_length, data, arena, joined, known, bits, scratch, hashes, hash_stamps, numbers,
    number_stamps, pending,
):  # fmt: skip
    """Work out a condition, after those that it is made of; without room for that, `state` says so."""
    epoch = state[T_EPOCH]
    top = np.int64(0)
    pending[0, 0], pending[1, 0] = asked, rows[asked, C_PARTS]
    while top >= 0:
        row = np.int64(pending[0, top])
        full = rows[row, C_KIND]
        kind = full & (DEEP - 1)
        if pending[1, top] < rows[row, C_PARTS_END]:
            below = np.int64(rows[row, C_PART] if pending[1, top] == rows[row, C_PARTS] else parts[pending[1, top]])
            pending[1, top] += 1
            if known[below, K_EPOCH] != epoch and rows[below, C_KIND] != SELF:
                top += 1
                if top == pending.shape[1]:
                    state[T_FULL] = 1
                    return
                pending[0, top], pending[1, top] = below, rows[below, C_PARTS]
            continue
        top -= 1
        found = np.int64(EMPTY)
        of, at = row, full
        if kind == ROOT:
            of = np.int64(rows[row, C_PART])
            at = rows[of, C_KIND]
        if kind == ROOT and at & (DEEP - 1) != ELEMENT:
            # An attribute or text node: somewhere, as the document itself has none.
            if at >= DEEP and known[of, K_SET] != EMPTY:
                found = np.int64(ALL)
        elif kind == ELEMENT or kind == ROOT or kind == ALL_OF or kind == PATH_ELEMENT:
            found = np.int64(ALL)
            if kind != ALL_OF:
                operation = np.int64(CHILD if kind == ROOT and at < DEEP else BELOW)
                found = made(operation, np.int64(DOCUMENT), np.int64(rows[of, C_TEST]), state, bits, width, slots,
                             results, first, count, stamp, parents, ends, heads, head_stamps, lists)  # fmt: skip
            k = rows[of, C_PARTS]
            while found != EMPTY and k < rows[of, C_PARTS_END]:
                below = np.int64(rows[of, C_PART] if k == rows[of, C_PARTS] else parts[k])
                k += 1
                if not is_tried(rows[below, C_KIND]):
                    found = made(np.int64(BOTH), found, np.int64(known[below, K_SET]), state, bits, width, slots,
                                 results, first, count, stamp, parents, ends, heads, head_stamps, lists)  # fmt: skip
                else:
                    found = passing(
                        below, found, False, top + 1, pending, results, first, count, width, stamp, state, slots, rows,
                        limits, literal_hashes, literals, parts, parents, ends, heads, head_stamps, lists,
                        attribute_begin, attribute_start, attribute_length, text_begin, text_end, text_parent,
                        text_start, text_length, data, arena, joined, known, bits, scratch, hashes, hash_stamps,
                        numbers, number_stamps,
                    )  # fmt: skip
            if kind == ROOT and found != EMPTY:
                found = np.int64(ALL)
            elif kind == ELEMENT and found != EMPTY:
                found = made(np.int64(ALL_UP if full >= DEEP else UP), found, np.int64(0), state, bits, width, slots,
                             results, first, count, stamp, parents, ends, heads, head_stamps, lists)  # fmt: skip
        elif kind == ANY_OF or kind == NOT:
            found = word_by_word(kind, row, width, state, slots, rows, parts, known, bits)
        elif kind == ATTRIBUTE or kind == TEXT_NODE or kind == FIRST_ROOT:
            found = value_set(
                row, full, first, count, width, stamp, state, slots, rows, limits, literal_hashes, literals, parts,
                parents, ends, heads, head_stamps, lists, attribute_begin, attribute_start, attribute_length,
                text_begin, text_end, text_parent, text_start, text_length, data, arena, joined, known, bits, scratch,
                hashes, hash_stamps, numbers, number_stamps,
            )  # fmt: skip
        known[row, K_EPOCH] = epoch
        known[row, K_SET] = found


@part
def fetch_ahead(candidate, end, candidates, program_begin, programs, known, rows, epoch):
    """What the candidates to come will need is fetched while this one is looked at."""
    if candidate + FAR < end:
        at = program_begin[candidates[candidate + FAR]]
        prefetch(programs, at)
        prefetch(programs, at + 16)
    if candidate + NEAR < end:
        pattern = candidates[candidate + NEAR]
        for k in range(program_begin[pattern] + P_ASKS, program_begin[pattern + 1], P_COLUMNS):
            if programs[k] > NOTHING:
                prefetch(known, np.int64(programs[k]) * K_COLUMNS)
                prefetch(rows, np.int64(programs[k]) * C_COLUMNS)
    if candidate + NEXT < end:
        pattern = candidates[candidate + NEXT]
        for k in range(program_begin[pattern] + P_ASKS, program_begin[pattern + 1], P_COLUMNS):
            asked = np.int64(programs[k])
            if asked > NOTHING and known[asked, K_EPOCH] != epoch and rows[asked, C_PART] >= 0:
                prefetch(known, np.int64(rows[asked, C_PART]) * K_COLUMNS)
                prefetch(rows, np.int64(rows[asked, C_PART]) * C_COLUMNS)


@part
def forget_levels(memory):
    """Let no level remember a step."""
    for k in range(len(memory)):
        memory[k, M_STEP] = NO_STEP


@part
def asked_of(
    asked, of, enough, first, count, width, stamp, state, slots, results, rows, limits, literal_hashes, literals, parts,
    parents, ends, heads, head_stamps, lists, attribute_begin, attribute_start, attribute_length, text_begin, text_end,
    text_parent, text_start, text_length, data, arena, joined, known, bits, scratch, hashes, hash_stamps, numbers,
    number_stamps, pending,
):  # fmt: skip
    """The elements of a set at which holds what a step asks; EMPTY without room for that, which `state` says.

    With `enough`, some of those elements, if there are any.
    """
    row = asked if asked > NOTHING else NOTHING - 1 - asked
    if known[row, K_EPOCH] != state[T_EPOCH] and rows[row, C_KIND] != SELF:
        settle(
            row, first, count, width, stamp, state, slots, results, rows, limits, literal_hashes, literals, parts,
            parents, ends, heads, head_stamps, lists, attribute_begin, attribute_start, attribute_length, text_begin,
            text_end, text_parent, text_start, text_length, data, arena, joined, known, bits, scratch, hashes,
            hash_stamps, numbers, number_stamps, pending,
        )  # fmt: skip
    if state[T_FULL]:
        return np.int64(EMPTY)
    if asked > NOTHING:
        return made(np.int64(BOTH), of, np.int64(known[row, K_SET]), state, bits, width, slots, results, first, count,
                    stamp, parents, ends, heads, head_stamps, lists)  # fmt: skip
    return passing(
        row, of, enough, np.int64(0), pending, results, first, count, width, stamp, state, slots, rows, limits,
        literal_hashes, literals, parts, parents, ends, heads, head_stamps, lists, attribute_begin, attribute_start,
        attribute_length, text_begin, text_end, text_parent, text_start, text_length, data, arena, joined, known, bits,
        scratch, hashes, hash_stamps, numbers, number_stamps,
    )  # fmt: skip


@kernel(
    "int64(ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1],"
    " ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_u1[::1], ro_u1[::1], ro_i4[::1],"
    " ro_i4[:, ::1], ro_f8[::1], ro_u8[::1], ro_u1[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1],"
    " ro_i8[::1], ro_i4[::1], int64, b1[::1], i8[:, ::1],"
    " i8[::1], i4[:, ::1], u8[::1], i8[::1], i8[:, ::1], u8[::1], i4[:, ::1], i8[:, ::1], i4[:, ::1], u1[::1],"
    " u8[:, ::1], f8[:, ::1], i8[:, ::1], i8[:, ::1], i4[:, ::1], i4[:, ::1])"
)
def verify(
    offsets, names, parents, ends, attribute_begin, attribute_names, attribute_start, attribute_length,
    text_begin, text_end, text_parent, text_start, text_length, data, arena, translation,
    rows, limits, literal_hashes, literals, parts, programs, program_begin,
    candidate_offsets, candidates, start, answers, costs,
    state, known, bits, slots, results, scratch, heads, head_stamps, lists, joined,
    hashes, numbers, hash_stamps, number_stamps, memory, pending,
):  # fmt: skip
    """For each document and candidate (the number of a pattern) from `start` on, whether it matches; and what it cost.

    The first candidate that takes more sets, or deeper conditions, than there is room for; or how many there are.
    """
    for document in range(len(offsets) - 1):
        candidate, end = max(start, candidate_offsets[document]), candidate_offsets[document + 1]
        first = offsets[document]
        count = offsets[document + 1] - first
        if candidate >= end or count == 0:
            continue
        width = (count + 63) >> 6
        begin_epoch(state, bits, width, count, slots)
        stamp = state[T_STAMP]
        link(first, count, names, translation, attribute_begin, attribute_names, stamp, heads, head_stamps, lists)
        forget_levels(memory)
        alone = True
        while candidate < end:
            fetch_ahead(candidate, end, candidates, program_begin, programs, known, rows, state[T_EPOCH])
            pattern = candidates[candidate]
            at, last = program_begin[pattern], program_begin[pattern + 1]
            of = np.int64(DOCUMENT if at < last else EMPTY)
            level = np.int64(0)
            while at < last and of != EMPTY:
                step = programs[at + P_STEP]
                if memory[level, M_STEP] == step:
                    of = np.int64(memory[level, M_SET])
                    at += P_COLUMNS
                    level += 1
                    continue
                name, asked = np.int64(programs[at + P_NAME]), np.int64(programs[at + P_ASKS])
                if name != SAME:
                    of = made(np.int64(BELOW if name & 1 else CHILD), of, name >> 1, state, bits, width, slots, results,
                              first, count, stamp, parents, ends, heads, head_stamps, lists)  # fmt: skip
                at += P_COLUMNS
                # Of the last step one element will do; but only a set without any is then complete.
                enough = at == last and asked < NOTHING
                if of != EMPTY and asked != NOTHING:
                    of = asked_of(
                        asked, of, enough, first, count, width, stamp, state, slots, results, rows, limits,
                        literal_hashes, literals, parts, parents, ends, heads, head_stamps, lists, attribute_begin,
                        attribute_start, attribute_length, text_begin, text_end, text_parent, text_start, text_length,
                        data, arena, joined, known, bits, scratch, hashes, hash_stamps, numbers, number_stamps, pending,
                    )  # fmt: skip
                memory[level, M_STEP] = NO_STEP if enough and of != EMPTY else step
                memory[level, M_SET] = of
                level += 1
            if state[T_FULL]:
                # Once more, with nothing remembered; if that was so already, somebody has to make room.
                if alone:
                    return np.int64(candidate)
                begin_epoch(state, bits, width, count, slots)
                forget_levels(memory)
                alone = True
                continue
            alone = False
            answers[candidate] = of != EMPTY
            costs[pattern, TRIES] += 1
            costs[pattern, BYTES] += state[T_WORK]
            state[T_WORK] = 0
            candidate += 1
    return np.int64(len(candidates))
