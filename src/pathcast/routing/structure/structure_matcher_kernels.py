# mypy: allow-untyped-defs, allow-untyped-calls
"""Match and relay structure annotations, for kernels: numbers of label paths in, entries or other numbers out.

The plain paths that each label path satisfies are cached: plain paths that are entries, and plain paths that are parts
of trees (`tree_pattern_decomposition.py`). A document satisfies what its distinct label paths satisfy. A tree whose
paths all occur is certain to match if each of its branching nodes can map to at most one element; otherwise a tree of
elements alone is embedded in the elements (`aggregate_wildcard_binder_kernels.py`), and a tree with conditions on
values is handed on.
"""

from typing import NamedTuple

import numpy as np

from pathcast.documents.structure.element_decoder_kernels import NONE
from pathcast.documents.structure.header_and_dictionary_decoder_kernels import CUT, NO_PARENT, NO_PATH, OK, TOO_DEEP
from pathcast.documents.structure.varint_kernels import AT, WHY, WRONG, put_number, take_number
from pathcast.kernels import Int32s, Int64s, UInt8s, UInt64s, Writable, kernel, part
from pathcast.matching.arrays.bitset_kernels import mark_with_summary, read_few_marks

from ..annotations.aggregate_wildcard_binder_kernels import (
    CHILD,
    HOLDS,
    Search,
    Steps,
    chain_elements,
    find_holding,
    unchain_elements,
)

UNKNOWN = -1
# `counts`: entries written, label paths whose entries are not cached yet, the stamp of the last document; trees that
# depend on values, distinct label paths, the stamp of the last embedding.
C_ENTRIES, C_MISSING, C_STAMP, C_OPEN, C_DISTINCT, C_LAID, C_ROWS = range(7)
# A branching node whose elements a plain path cannot count.
UNCOUNTED = -1
# The kind of a tree: elements alone; with values.
ELEMENTS, VALUES = range(2)
# The result of the paths of a tree: no match, a match, a possible match.
NO, YES, PERHAPS = range(3)


class Message(NamedTuple):
    """A message: the start of its elements, its end, and its numbers of elements and of known label paths."""

    begin: int
    end: int
    elements: int
    known: int


class LinkPaths(NamedTuple):
    """The label paths of a link: parent, depth, and the symbol of the last name in the trees."""

    parents: Int32s
    depths: Int32s
    symbols: Int32s


class PathMemo(NamedTuple):
    """The entries and the parts of trees that each label path satisfies; count `UNKNOWN` if not cached yet."""

    begins: Int64s
    counts: Int32s
    entries: Int32s
    part_begins: Int64s
    part_counts: Int32s
    parts: Int32s


class Trees(NamedTuple):
    """The trees indexed by one part each; the entry and kind of each tree, the parts of its leaves and branches."""

    trigger_begins: Int32s
    triggered: Int32s
    entries: Int32s
    kinds: UInt8s
    leaf_begins: Int32s
    leaves: Int32s
    branch_begins: Int32s
    branches: Int32s


class Occurring(NamedTuple):
    """Scratch: by label path, the stamp of the last document with it and its number of elements; by part, the same."""

    stamps: Writable[Int64s]
    numbers: Writable[Int32s]
    distinct: Writable[Int32s]
    part_stamps: Writable[Int64s]
    part_numbers: Writable[Int32s]


class Opened(NamedTuple):
    """Scratch: the open label paths and elements by depth; parent and symbol of each element."""

    paths: Writable[Int32s]
    elements: Writable[Int32s]
    parents: Writable[Int32s]
    symbols: Writable[Int32s]


class Answer(NamedTuple):
    """Results: entries, trees that depend on values, label paths that are not cached yet; and marks of entries."""

    entries: Writable[Int32s]
    handed_on: Writable[Int32s]
    missing: Writable[Int32s]
    marks: Writable[UInt64s]
    summary: Writable[UInt64s]


@part
def next_path(data, message, first, opened, path_parents, path_depths, stack, state):
    """Read the next element's label path and attach it to the open elements; -1 and a reason in `state` on failure."""
    path = take_number(data, message.end, state)
    state[WHY] = OK
    if state[WRONG] != 0:
        state[WHY] = CUT
    elif path >= message.known:
        state[WHY] = NO_PATH
    elif path_depths[path] >= len(stack):
        state[WHY] = TOO_DEEP
    if state[WHY] != OK:
        return np.int64(-1)
    level = path_depths[path]
    above = stack[level - 1] if level > 1 else NONE
    if level > opened + 1 or (level == 1 and not first) or path_parents[path] != above:
        state[WHY] = NO_PARENT
        return np.int64(-1)
    stack[level] = path
    return path


@part
def read_elements(data, message, link, memo_counts, occurring, opened, missing, counts, state):
    """Read a document's elements: parents, symbols, distinct label paths and the number of elements of each."""
    counts[C_STAMP] += 1
    stamp, found, lacking, level = counts[C_STAMP], 0, 0, 0
    state[AT], state[WRONG], state[WHY] = message.begin, 0, OK
    for element in range(message.elements):
        path = next_path(data, message, element == 0, level, link.parents, link.depths, opened.paths, state)
        if path < 0:
            break
        level = link.depths[path]
        opened.elements[level] = element
        opened.parents[element] = opened.elements[level - 1] if level > 1 else NONE
        opened.symbols[element] = link.symbols[path]
        if occurring.stamps[path] == stamp:
            occurring.numbers[path] += 1
            continue
        occurring.stamps[path] = stamp
        occurring.numbers[path] = 1
        occurring.distinct[found] = path
        found += 1
        if memo_counts[path] == UNKNOWN:
            missing[lacking] = path
            lacking += 1
    counts[C_MISSING], counts[C_DISTINCT] = lacking, found


@part
def by_paths(tree, stamp, trees, occurring):
    """Whether a tree matches, cannot match or may match a document, by the tree's paths in it."""
    for at in range(trees.leaf_begins[tree], trees.leaf_begins[tree + 1]):
        if occurring.part_stamps[trees.leaves[at]] != stamp:
            return NO
    for at in range(trees.branch_begins[tree], trees.branch_begins[tree + 1]):
        branch = trees.branches[at]
        if branch == UNCOUNTED or occurring.part_numbers[branch] != 1:
            return PERHAPS
    return YES


@part
def is_laid(tree, elements, steps, parents, search, counts):
    """Whether a tree of elements can be embedded in the document's elements."""
    counts[C_LAID] += 1
    if not find_holding(tree, counts[C_LAID], elements, steps, parents, search):
        return False
    return steps.axes[steps.begins[tree]] != CHILD or search.held[HOLDS, 0, 0] == counts[C_LAID]


@part
def mark_paths(memo, trees, occurring, answer, counts):
    """Mark the entries of a document's label paths; return the number of parts that occur and index trees.

    These parts are written to `missing`, which is free by then.
    """
    stamp, waiting = counts[C_STAMP], 0
    for k in range(counts[C_DISTINCT]):
        path = occurring.distinct[k]
        for at in range(memo.begins[path], memo.begins[path] + memo.counts[path]):
            mark_with_summary(answer.marks, answer.summary, memo.entries[at])
        for at in range(memo.part_begins[path], memo.part_begins[path] + memo.part_counts[path]):
            found = memo.parts[at]
            if occurring.part_stamps[found] != stamp:
                occurring.part_stamps[found], occurring.part_numbers[found] = stamp, 0
                if trees.trigger_begins[found] < trees.trigger_begins[found + 1]:
                    answer.missing[waiting] = found
                    waiting += 1
            occurring.part_numbers[found] += occurring.numbers[path]
    return waiting


@kernel(late=True)
def match_elements(
    data: UInt8s,
    message: Message,
    link: LinkPaths,
    memo: PathMemo,
    forest: tuple[Trees, Steps],
    occurring: Occurring,
    opened: Opened,
    search: Search,
    answer: Answer,
    numbers: tuple[Writable[Int64s], Writable[Int64s]],
) -> int:
    """Write the entries of one document, ascending, to `answer`; return OK or the reason.

    Unknown paths go to `missing`, trees that depend on values to `handed_on`, by number. `forest` has the trees and
    their steps, `numbers` the counts (`C_…`) and the state of a reader.
    """
    (trees, steps), (counts, state) = forest, numbers
    read_elements(data, message, link, memo.counts, occurring, opened, answer.missing, counts, state)
    counts[C_ENTRIES], counts[C_OPEN] = 0, 0
    if state[WHY] != OK or counts[C_MISSING] > 0:
        return int(state[WHY])
    elements, parents, symbols = message.elements, opened.parents, opened.symbols
    chained = False
    for k in range(mark_paths(memo, trees, occurring, answer, counts)):
        found = answer.missing[k]
        for at in range(trees.trigger_begins[found], trees.trigger_begins[found + 1]):
            tree = trees.triggered[at]
            told = by_paths(tree, counts[C_STAMP], trees, occurring)
            if told == NO:
                continue
            if trees.kinds[tree] == VALUES:
                answer.handed_on[counts[C_OPEN]] = tree
                counts[C_OPEN] += 1
                continue
            if told == PERHAPS:
                if not chained:
                    chain_elements(symbols, elements, search)
                    chained = True
                if not is_laid(tree, elements, steps, parents, search, counts):
                    continue
            mark_with_summary(answer.marks, answer.summary, trees.entries[tree])
    if chained:
        unchain_elements(symbols, elements, search.head)
    counts[C_ENTRIES] = read_few_marks(answer.marks, answer.summary, answer.entries, 0)
    return OK


class Relayed(NamedTuple):
    """Label paths by their number on one link: the number on another (`UNKNOWN`: none), the last document with it."""

    numbers: Int32s
    stamps: Writable[Int64s]


@kernel(late=True)
def relay_elements(
    data: UInt8s,
    message: Message,
    path_parents: Int32s,
    path_depths: Int32s,
    relayed: Relayed,
    stack: Writable[Int32s],
    missing: Writable[Int32s],
    out: Writable[UInt8s],
    counts: Writable[Int64s],
    state: Writable[Int64s],
) -> int:
    """Write a document's elements with the numbers that label paths have on another link; return OK or the reason.

    Paths without a number go to `missing`, parents first. `counts` gets the number of bytes written, `state` the end of
    the elements. `out` must have five bytes per element.
    """
    counts[C_STAMP] += 1
    stamp, lacking, opened, written = counts[C_STAMP], 0, 0, 0
    state[AT], state[WRONG], state[WHY] = message.begin, 0, OK
    for element in range(message.elements):
        path = next_path(data, message, element == 0, opened, path_parents, path_depths, stack, state)
        if path < 0:
            break
        opened = int(path_depths[path])
        number = relayed.numbers[path]
        if number == UNKNOWN:
            if relayed.stamps[path] != stamp:
                relayed.stamps[path] = stamp
                missing[lacking] = path
                lacking += 1
            continue
        written = put_number(out, written, np.int64(number))
    counts[C_ENTRIES] = written
    counts[C_MISSING] = lacking
    return int(state[WHY])
