# mypy: allow-untyped-defs, allow-untyped-calls
"""Verification: which candidates match a document, by the longest path of each, from the root downwards.

    a step /x[…]     the elements x whose parent is in the set of the step before (//: some ancestor) and at which
                     all its parts hold; if there are none, the pattern does not match

Paths with common prefixes share their steps, which form a tree. Candidates come in the order of that tree, so that one
step and its set per level is all that has to be kept: a candidate starts where it departs from the previous one. In any
other order the results are the same, with more look-ups. A pattern's steps are contiguous (`Programs`): a candidate
mostly costs waiting for memory.

A condition is the set of elements at which it holds, from its parts upwards:

    a node x[…]      the elements x at which all its parts hold; it holds at their parents (//: at all their ancestors)
    @a, text()       the elements that have one which passes its tests (//: and their ancestors); `and`, `or` and `not`
                     of these are choices, value by value
    and, or, not     word by word
    a test on .      value by value, only for elements that passed everything else (`boolean_test_kernels.py`); first
                     nodes of paths as well, and `and`, `or` and `not` with such tests among them

Sets have numbers, and operations on them are cached (`element_set_kernels.py`). When there is no room for more sets,
all are dropped and computed again on demand.

Invariant: the set of a level is right for the document, whatever has been stored in the levels above since.
"""

from typing import NamedTuple

import numpy as np

from pathcast.documents.document_batch_layout_kernels import Elements, Values
from pathcast.kernels import Bools, Int32s, Int64s, Matrix, Writable, kernel, part, prefetch, rare

from .boolean_test_kernels import passing
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
    ElementSets,
    begin_epoch,
    interned,
    made,
    word_by_word,
)
from .first_node_value_test_kernels import first_passes
from .value_condition_kernels import (
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
    ConditionTable,
    DocumentTree,
    Occurrences,
    PathRoom,
    ValueMemo,
    is_tried,
    link,
    mark_up,
    value_passes,
)

# A step in `Programs.steps`: its number, its name and axis (2 · name, + 1 for //), and what it demands: NOTHING, a
# condition, or (below NOTHING: NOTHING - 1 - condition) one that is evaluated per element. A step with several
# conditions has as many places, the later ones with SAME as name, all but the last with numbers below NOTHING.
P_STEP, P_NAME, P_ASKS, P_COLUMNS = range(4)
NOTHING = -1
SAME = -(1 << 30)
MOST_ASKS = 16
# How many candidates ahead to prefetch programs, their conditions, and the first part of these.
FAR, NEAR, NEXT = 16, 8, 4
# Columns of a level: its step and the set of its elements.
M_STEP, M_SET, M_COLUMNS = range(3)
NO_STEP = -1
# Columns of the cost of patterns: how often they were tried, and how many bytes of values were read.
TRIES, BYTES, COSTS = range(3)


class Programs(NamedTuple):
    """The steps of patterns, `begins[p] : begins[p + 1]` those of pattern `p`, and the cost of each pattern."""

    steps: Int32s
    begins: Int64s
    costs: Writable[Matrix[Int64s]]


class Candidates(NamedTuple):
    """The candidates of each document, `offsets[i] : offsets[i + 1]`; and which of them match."""

    offsets: Int64s
    patterns: Int32s
    answers: Writable[Bools]


class VerifyScratch(NamedTuple):
    """The buffers of a verification.

    `known` has the known sets of conditions, `levels` the step and set per level, `pending` the open conditions.
    """

    sets: ElementSets
    results: Writable[Matrix[Int64s]]
    occurrences: Occurrences
    memo: ValueMemo
    room: PathRoom
    known: Writable[Matrix[Int32s]]
    levels: Writable[Matrix[Int32s]]
    pending: Writable[Matrix[Int32s]]


@rare
def value_set(row, kind, document, values, conditions, scratch):
    """The elements of the whole document at which a condition on values holds."""
    deep = kind >= DEEP
    kind &= DEEP - 1
    first, width, stamp = document.first, document.width, document.stamp
    sets, known, memo, content = scratch.sets, scratch.known, scratch.memo, values.content
    bits = sets.bits
    word = sets.state[T_SETS] * width
    for k in range(word, word + width):
        bits[k] = 0
    if kind == ATTRIBUTE:
        attributes = values.attributes
        heads, stamps, lists = scratch.occurrences
        base, name = attributes.begins[first], conditions.rows[row, C_TEST]
        attribute = np.int64(heads[1, name] if stamps[1, name] == stamp else -1)
        while attribute >= 0:
            start, length = attributes.starts[base + attribute], np.int64(attributes.lengths[base + attribute])
            if value_passes(row, V_ATTRIBUTE, attribute, start, length, stamp, conditions, content, known, memo):
                mark_up(bits, word, np.int64(lists[L_OWNER, attribute]), document.parents, first, deep)
            attribute = np.int64(lists[L_ATTRIBUTE, attribute])
    elif kind == TEXT_NODE:
        texts = values.texts
        begin = texts.begins[first]
        for index in range(begin, texts.ends[first]):
            start, length = texts.starts[index], np.int64(texts.lengths[index])
            number = np.int64(index - begin)
            if value_passes(row, V_TEXT, number, start, length, stamp, conditions, content, known, memo):
                mark_up(bits, word, np.int64(texts.parents[index] - first), document.parents, first, deep)
    else:
        root = np.int64(-1)
        if first_passes(row, root, document, values, conditions, scratch.occurrences, known, bits, scratch.room):
            return np.int64(ALL)
    return interned(sets, width)


@part
def settle(asked, document, values, conditions, scratch):
    """Compute a condition, after its parts; if there is no room, `state` reports it."""
    rows, parts = conditions.rows, conditions.parts
    sets, results, occurrences = scratch.sets, scratch.results, scratch.occurrences
    known, pending = scratch.known, scratch.pending
    epoch = sets.state[T_EPOCH]
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
                    sets.state[T_FULL] = 1
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
            # An attribute or text node: anywhere, as the document node itself has none.
            if at >= DEEP and known[of, K_SET] != EMPTY:
                found = np.int64(ALL)
        elif kind == ELEMENT or kind == ROOT or kind == ALL_OF or kind == PATH_ELEMENT:
            found = np.int64(ALL)
            if kind != ALL_OF:
                operation = np.int64(CHILD if kind == ROOT and at < DEEP else BELOW)
                name = np.int64(rows[of, C_TEST])
                found = made(operation, np.int64(DOCUMENT), name, document, sets, results, occurrences)
            k = rows[of, C_PARTS]
            while found != EMPTY and k < rows[of, C_PARTS_END]:
                below = np.int64(rows[of, C_PART] if k == rows[of, C_PARTS] else parts[k])
                k += 1
                if not is_tried(rows[below, C_KIND]):
                    other = np.int64(known[below, K_SET])
                    found = made(np.int64(BOTH), found, other, document, sets, results, occurrences)
                else:
                    found = passing(below, found, False, top + 1, document, values, conditions, scratch)
            if kind == ROOT and found != EMPTY:
                found = np.int64(ALL)
            elif kind == ELEMENT and found != EMPTY:
                operation = np.int64(ALL_UP if full >= DEEP else UP)
                found = made(operation, found, np.int64(0), document, sets, results, occurrences)
        elif kind == ANY_OF or kind == NOT:
            found = word_by_word(kind, row, document.width, rows, parts, known, sets)
        elif kind == ATTRIBUTE or kind == TEXT_NODE or kind == FIRST_ROOT:
            found = value_set(row, full, document, values, conditions, scratch)
        known[row, K_EPOCH] = epoch
        known[row, K_SET] = found


@part
def fetch_ahead(candidate, end, patterns, programs, known, rows, epoch):
    """Prefetch what the next candidates will need."""
    steps, begins = programs.steps, programs.begins
    if candidate + FAR < end:
        at = begins[patterns[candidate + FAR]]
        prefetch(steps, at)
        prefetch(steps, at + 16)
    if candidate + NEAR < end:
        pattern = patterns[candidate + NEAR]
        for k in range(begins[pattern] + P_ASKS, begins[pattern + 1], P_COLUMNS):
            if steps[k] > NOTHING:
                prefetch(known, np.int64(steps[k]) * K_COLUMNS)
                prefetch(rows, np.int64(steps[k]) * C_COLUMNS)
    if candidate + NEXT < end:
        pattern = patterns[candidate + NEXT]
        for k in range(begins[pattern] + P_ASKS, begins[pattern + 1], P_COLUMNS):
            asked = np.int64(steps[k])
            if asked > NOTHING and known[asked, K_EPOCH] != epoch and rows[asked, C_PART] >= 0:
                prefetch(known, np.int64(rows[asked, C_PART]) * K_COLUMNS)
                prefetch(rows, np.int64(rows[asked, C_PART]) * C_COLUMNS)


@part
def forget_levels(levels):
    """Clear the steps of all levels."""
    for k in range(len(levels)):
        levels[k, M_STEP] = NO_STEP


@part
def asked_of(asked, of, enough, document, values, conditions, scratch):
    """The elements of a set that satisfy what a step demands; EMPTY if there is no room, which `state` reports.

    With `enough`, some of those elements, if there are any.
    """
    sets, known = scratch.sets, scratch.known
    row = asked if asked > NOTHING else NOTHING - 1 - asked
    if known[row, K_EPOCH] != sets.state[T_EPOCH] and conditions.rows[row, C_KIND] != SELF:
        settle(row, document, values, conditions, scratch)
    if sets.state[T_FULL]:
        return np.int64(EMPTY)
    if asked > NOTHING:
        other = np.int64(known[row, K_SET])
        return made(np.int64(BOTH), of, other, document, sets, scratch.results, scratch.occurrences)
    return passing(row, of, enough, np.int64(0), document, values, conditions, scratch)


@kernel
def verify(
    elements: Elements,
    values: Values,
    translation: Int32s,
    conditions: ConditionTable,
    programs: Programs,
    candidates: Candidates,
    scratch: VerifyScratch,
    start: int,
) -> int:
    """For each document and candidate from `start` on, whether it matches; and what it cost.

    Returns the first candidate that needs more sets, or deeper conditions, than there is room for; or their number.
    """
    sets, levels = scratch.sets, scratch.levels
    state, steps, costs = sets.state, programs.steps, programs.costs
    for number in range(len(elements.offsets) - 1):
        candidate, end = max(start, candidates.offsets[number]), candidates.offsets[number + 1]
        first = elements.offsets[number]
        count = elements.offsets[number + 1] - first
        if candidate >= end or count == 0:
            continue
        width = (count + 63) >> 6
        begin_epoch(sets, width, count)
        document = DocumentTree(first, count, width, state[T_STAMP], elements.parents, elements.ends)
        link(document, elements.names, values.attributes, translation, scratch.occurrences)
        forget_levels(levels)
        alone = True
        while candidate < end:
            fetch_ahead(candidate, end, candidates.patterns, programs, scratch.known, conditions.rows, state[T_EPOCH])
            pattern = candidates.patterns[candidate]
            at, last = programs.begins[pattern], programs.begins[pattern + 1]
            of = np.int64(DOCUMENT if at < last else EMPTY)
            level = np.int64(0)
            while at < last and of != EMPTY:
                step = steps[at + P_STEP]
                if levels[level, M_STEP] == step:
                    of = np.int64(levels[level, M_SET])
                    at += P_COLUMNS
                    level += 1
                    continue
                name, asked = np.int64(steps[at + P_NAME]), np.int64(steps[at + P_ASKS])
                if name != SAME:
                    axis = np.int64(BELOW if name & 1 else CHILD)
                    of = made(axis, of, name >> 1, document, sets, scratch.results, scratch.occurrences)
                at += P_COLUMNS
                # For the last step one element suffices; but then only an empty set is complete.
                enough = at == last and asked < NOTHING
                if of != EMPTY and asked != NOTHING:
                    of = asked_of(asked, of, enough, document, values, conditions, scratch)
                levels[level, M_STEP] = NO_STEP if enough and of != EMPTY else step
                levels[level, M_SET] = of
                level += 1
            if state[T_FULL]:
                # Retry with nothing cached; if nothing was cached already, the caller has to make room.
                if alone:
                    return int(candidate)
                begin_epoch(sets, width, count)
                forget_levels(levels)
                alone = True
                continue
            alone = False
            candidates.answers[candidate] = of != EMPTY
            costs[pattern, TRIES] += 1
            costs[pattern, BYTES] += state[T_WORK]
            state[T_WORK] = 0
            candidate += 1
    return len(candidates.patterns)
