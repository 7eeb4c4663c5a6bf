# mypy: allow-untyped-defs, allow-untyped-calls
"""A structure annotation matched and passed on, for kernels: numbers of label paths in, entries or other numbers out.

What each label path satisfies is remembered: plain paths that are entries, and plain paths that trees are made of
(`trees_as_paths.py`). A document satisfies what its distinct label paths do. A tree whose paths are all there holds
for certain where at most one element can lie on each of its branching nodes; else, if it is made of elements alone, it
is laid over the elements (`online_bindings_kernels.py`), and if it asks about values, it is handed on.
"""

import numpy as np

from pathcast.kernels import kernel, part
from pathcast.matching.arrays.bitset_kernels import mark_with_summary, read_few_marks

from ..annotations.online_bindings_kernels import CHILD, HOLDS, chain_elements, find_holding, unchain_elements
from ..router_messages_kernels import put_number
from .structure_kernels import AT, CUT, NO_PARENT, NO_PATH, NONE, OK, TOO_DEEP, WHY, WRONG, take

UNKNOWN = -1
# `counts`: entries written, label paths whose entries are not known yet, the stamp of the last document; trees that
# values decide, distinct label paths, the stamp of the last embedding.
C_ENTRIES, C_MISSING, C_STAMP, C_OPEN, C_DISTINCT, C_LAID, C_ROWS = range(7)
# A branching node whose elements can't be counted by a plain path.
UNCOUNTED = -1
# What a tree is made of: elements alone; values, too.
ELEMENTS, VALUES = range(2)
# What the paths of a tree tell: it does not match, it does, it may.
NO, YES, PERHAPS = range(3)


@part
def next_path(data, end, known, first, opened, path_parent, path_depth, stack, state):
    """Read the next element's label path and hang it on what is open; -1, and why in `state`, where that can't be."""
    path = take(data, end, state)
    state[WHY] = OK
    if state[WRONG] != 0:
        state[WHY] = CUT
    elif path >= known:
        state[WHY] = NO_PATH
    elif path_depth[path] >= len(stack):
        state[WHY] = TOO_DEEP
    if state[WHY] != OK:
        return np.int64(-1)
    level = path_depth[path]
    above = stack[level - 1] if level > 1 else NONE
    if level > opened + 1 or (level == 1 and not first) or path_parent[path] != above:
        state[WHY] = NO_PARENT
        return np.int64(-1)
    stack[level] = path
    return path


@part
def read_elements(data, begin, end, elements, known, link, scratch, missing, memo_count, counts, state):
    """Read a document's elements: parents, symbols, distinct label paths and how many elements have each."""
    path_parent, path_depth, path_symbol = link
    seen, number, distinct, stack, above, parents, symbols = scratch[:7]
    counts[C_STAMP] += 1
    stamp, found, lacking, opened = counts[C_STAMP], 0, 0, 0
    state[AT], state[WRONG], state[WHY] = begin, 0, OK
    for element in range(elements):
        path = next_path(data, end, known, element == 0, opened, path_parent, path_depth, stack, state)
        if path < 0:
            break
        opened = path_depth[path]
        above[opened] = element
        parents[element] = above[opened - 1] if opened > 1 else NONE
        symbols[element] = path_symbol[path]
        if seen[path] == stamp:
            number[path] += 1
            continue
        seen[path] = stamp
        number[path] = 1
        distinct[found] = path
        found += 1
        if memo_count[path] == UNKNOWN:
            missing[lacking] = path
            lacking += 1
    counts[C_MISSING], counts[C_DISTINCT] = lacking, found


@part
def by_paths(tree, stamp, trees, hit_stamps, hits):
    """What a tree's paths tell of a document that has some of them."""
    leaf_begin, leaf, branch_begin, branch = trees[4:]
    for at in range(leaf_begin[tree], leaf_begin[tree + 1]):
        if hit_stamps[leaf[at]] != stamp:
            return NO
    for at in range(branch_begin[tree], branch_begin[tree + 1]):
        if branch[at] == UNCOUNTED or hits[branch[at]] != 1:
            return PERHAPS
    return YES


@part
def is_laid(tree, elements, nodes, parents, head, following, held, counts):
    """Whether a tree of elements can be laid over the document's."""
    begins, node_parents, node_axes, node_symbols = nodes
    begin, count = begins[tree], begins[tree + 1] - begins[tree]
    counts[C_LAID] += 1
    if not find_holding(
        counts[C_LAID], elements, begin, count, node_parents, node_axes, node_symbols, parents, head, following, held
    ):
        return False
    return node_axes[begin] != CHILD or held[HOLDS, 0, 0] == counts[C_LAID]


@kernel(
    "int64(ro_u1[::1], int64, int64, int64, int64, Tuple((ro_i4[::1], ro_i4[::1], ro_i4[::1])),"
    " Tuple((ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_i4[::1])),"
    " Tuple((ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_u1[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1])),"
    " Tuple((ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1])),"
    " Tuple((i8[::1], i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], i8[::1], i4[::1])),"
    " i4[:, :, ::1], i4[::1], i4[::1], i4[::1], u8[::1], u8[::1], i8[::1], i8[::1])",
    late=True,
)
def match_elements(
    data, begin, end, elements, known, link, memo, trees, nodes, scratch, held, missing, out, handed_on, marks, summary,
    counts, state,
):  # fmt: skip
    """The entries of one document, ascending, in `out`: OK, or why not. Paths that are not known are in `missing`.

    Trees that values decide are in `handed_on`, by number.
    """
    memo_begin, memo_count, memo_entries, part_begin, part_count, parts = memo
    trigger_begin, triggered, tree_entry, tree_kind = trees[:4]
    _, number, distinct, _, _, parents, symbols, head, following, hit_stamps, hits = scratch
    read_elements(data, begin, end, elements, known, link, scratch, missing, memo_count, counts, state)
    counts[C_ENTRIES], counts[C_OPEN] = 0, 0
    if state[WHY] != OK or counts[C_MISSING] > 0:
        return state[WHY]
    stamp, waiting = counts[C_STAMP], 0  # what trees wait for and is there is kept in `missing`, too
    for k in range(counts[C_DISTINCT]):
        path = distinct[k]
        for at in range(memo_begin[path], memo_begin[path] + memo_count[path]):
            mark_with_summary(marks, summary, memo_entries[at])
        for at in range(part_begin[path], part_begin[path] + part_count[path]):
            found = parts[at]
            if hit_stamps[found] != stamp:
                hit_stamps[found], hits[found] = stamp, 0
                if trigger_begin[found] < trigger_begin[found + 1]:
                    missing[waiting] = found
                    waiting += 1
            hits[found] += number[path]
    chained = False
    for k in range(waiting):
        for at in range(trigger_begin[missing[k]], trigger_begin[missing[k] + 1]):
            tree = triggered[at]
            told = by_paths(tree, stamp, trees, hit_stamps, hits)
            if told == NO:
                continue
            if tree_kind[tree] == VALUES:
                handed_on[counts[C_OPEN]] = tree
                counts[C_OPEN] += 1
                continue
            if told == PERHAPS:
                if not chained:
                    chain_elements(symbols, elements, head, following)
                    chained = True
                if not is_laid(tree, elements, nodes, parents, head, following, held, counts):
                    continue
            mark_with_summary(marks, summary, tree_entry[tree])
    if chained:
        unchain_elements(symbols, elements, head)
    counts[C_ENTRIES] = read_few_marks(marks, summary, out, 0)
    return OK


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
    stamp, lacking, opened, written = counts[C_STAMP], 0, 0, 0
    state[AT], state[WRONG], state[WHY] = begin, 0, OK
    for element in range(elements):
        path = next_path(data, end, known, element == 0, opened, path_parent, path_depth, stack, state)
        if path < 0:
            break
        opened = path_depth[path]
        number = numbers[path]
        if number == UNKNOWN:
            if seen[path] != stamp:
                seen[path] = stamp
                missing[lacking] = path
                lacking += 1
            continue
        written = put_number(out, written, np.int64(number))
    counts[C_ENTRIES] = written
    counts[C_MISSING] = lacking
    return state[WHY]
