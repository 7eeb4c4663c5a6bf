# mypy: allow-untyped-defs, allow-untyped-calls
"""The run: each document path, root to leaf, in two stages (Hou & Jacobsen, ICDE 2006).

Predicate matching: for every two tags of the path the index gives the predicates that their distance satisfies: one
with `=`, and those with `≥` up to the distance. Each records the pair of positions, since a tag may occur several
times.

Occurrence determination: a chain holds if pairs can be linked, the second position of each being the first of the next.
The search descends the chains below the satisfied access predicates; each node has the set of positions at which the
prefix up to it can end. A node is entered if its predicate has a pair that continues one of them.

The sets are words, so this engine does not take paths of more than LONGEST elements. The original follows one
occurrence after the other and backtracks; sets give the same answers without backtracking.
Selections are postponed, as in YFilter: they are tested on the elements of the path once a chain holds.
"""

from typing import NamedTuple

import numpy as np

from pathcast.documents.document_batch_layout_kernels import Elements
from pathcast.kernels import Int32s, Int64s, Matrix, UInt64s, Writable, kernel, part, rare
from pathcast.kernels.hash_table_kernels import find_key, key_hash
from pathcast.matching.arrays.bitset_kernels import ONE, mark_with_summary

from ..streaming.match_recording_kernels import (
    DONE,
    GATED,
    STAMP,
    WHY,
    WRITTEN,
    Answers,
    Wanted,
    finish,
    is_marked,
    open_gate,
)
from ..streaming.value_tests_kernels import TestedValues
from ..yfilter.document_matching_kernels import GATE
from ..yfilter.match_output_kernels import DETERMINED, FEW_PAIRS, LEVEL_STAMP, MARKED, PATHS, SATISFIED, TRIED
from ..yfilter.postponed_selection_kernels import Queries, StepPlaces, select_on_stack

# Columns of a node of the tree of chains.
C_PREDICATE, C_BEGIN, C_END, C_ENTRY, C_TASKS, C_TASKS_END, C_COLUMNS = range(7)
# Rows of `pairs` and of `pair_rows`: predicates of a pair of tags with `=`, then those with `≥`.
P_FIRST, P_SECOND, P_NEXT, P_ROWS = range(4)
R_BEGIN, R_LEAST, R_END = range(3)
LONGEST = 62
# Tags that every path has.
DOCUMENT_TAG, END_TAG = 0, 1
TAG_BITS = 24


class Chains(NamedTuple):
    """The tree of chains; those with access predicate `p` begin at `access_begins[p]`. Tasks: kinds and numbers."""

    nodes: Matrix[Int32s]
    access_begins: Int32s
    task_kinds: Int32s
    task_numbers: Int32s


class PairIndex(NamedTuple):
    """A hash table from pairs of tags to the rows of their predicates, and the distance of each predicate."""

    keys: Int64s
    slots: Int32s
    rows: Matrix[Int32s]
    distances: Int32s


class LengthTable(NamedTuple):
    """The entries that demand only a length, by length."""

    needed: Int32s
    entries: Int32s


class BareTasks(NamedTuple):
    """The queries without a tag name: the length that each needs, its kind of task, and its number."""

    needed: Int32s
    kinds: Int32s
    numbers: Int32s


class BpaTables(NamedTuple):
    """All tables of the patterns."""

    chains: Chains
    pairs: PairIndex
    lengths: LengthTable
    bare: BareTasks
    queries: Queries


class NotedPairs(NamedTuple):
    """The pairs of positions of a document path: a list for each predicate that has the path's stamp.

    `satisfied` lists the access predicates among these.
    """

    stamps: Writable[Int64s]
    heads: Writable[Int32s]
    pairs: Writable[Matrix[Int32s]]
    satisfied: Writable[Int32s]


class Frames(NamedTuple):
    """The descent into the chains: for each level the remaining nodes, and the end positions of the prefix."""

    nodes: Writable[Matrix[Int32s]]
    places: Writable[UInt64s]


class RunScratch(NamedTuple):
    """The buffers of a run; `stack` has rows: element, symbol, by position."""

    stack: Writable[Matrix[Int32s]]
    noted: NotedPairs
    frames: Frames
    places: StepPlaces


@part
def row_of_pair(keys, slots, first, second):
    """The row of a pair of tags, or -1."""
    key = np.int64(first) << TAG_BITS | np.int64(second)
    return find_key(slots, key_hash(key), key, keys)[0]


@part
def note_pair(row, place, other_place, distance, tables, noted, used, found, state):
    """Record a pair of positions for every predicate that its distance satisfies; return pairs, access predicates."""
    pair_rows, distances, access_begins = tables.pairs.rows, tables.pairs.distances, tables.chains.access_begins
    stamps, heads, pairs, satisfied = noted
    for predicate in range(pair_rows[R_BEGIN, row], pair_rows[R_END, row]):
        exact = predicate < pair_rows[R_LEAST, row]
        if distances[predicate] > distance:
            if exact:
                continue
            break
        if exact and distances[predicate] != distance:
            continue
        if used == pairs.shape[1]:
            state[WHY] = FEW_PAIRS
            break
        if stamps[predicate] != state[LEVEL_STAMP]:
            stamps[predicate] = state[LEVEL_STAMP]
            heads[predicate] = -1
            if access_begins[predicate] < access_begins[predicate + 1]:
                satisfied[found] = predicate
                found += 1
        pairs[P_FIRST, used], pairs[P_SECOND, used], pairs[P_NEXT, used] = place, other_place, heads[predicate]
        heads[predicate] = used
        used += 1
    return used, found


@part
def match_predicates(length, tables, scratch, state):
    """Predicate matching for the document path on the stack; return how many access predicates hold."""
    stack = scratch.stack
    used, found = 0, 0
    for i in range(length + 1):
        if i > 0 and stack[1, i] == 0:
            continue
        tag = stack[1, i] + 1 if i > 0 else np.int32(DOCUMENT_TAG)
        for j in range(i + 1, length + 2):
            if j <= length:
                if stack[1, j] == 0:
                    continue
                other, distance, place = stack[1, j] + 1, np.int64(j - i), np.int64(j)
            elif i == 0:
                continue
            else:
                other, distance, place = np.int32(END_TAG), np.int64(length - i), length
            row = row_of_pair(tables.pairs.keys, tables.pairs.slots, tag, other)
            if row >= 0:
                used, found = note_pair(row, i, place, distance, tables, scratch.noted, used, found, state)
    state[SATISFIED] += used
    return found


@part
def take(entry, wanted, state):
    """Mark an entry."""
    mark_with_summary(wanted.marks, wanted.summary, entry)
    state[MARKED] += 1


@part
def try_task(kind, number, length, first, queries, scratch, tested, wanted, answers, state):
    """Process a query whose chain holds: open its gate, or test its selections on the path."""
    if kind == GATE:
        open_gate(number, answers, state)
        return
    entry = queries.entries[number]
    if is_marked(wanted.marks, entry):
        return
    state[TRIED] += 1
    stack = scratch.stack
    if select_on_stack(number, 1, length, first, stack[0], stack[1], queries, scratch.places, tested) >= 0:
        take(entry, wanted, state)


@part
def continued(predicate, before, noted):
    """The positions at which a chain can end, given those of its prefix: where pairs of the predicate lead."""
    heads, pairs = noted.heads, noted.pairs
    reached = np.uint64(0)
    pair = heads[predicate]
    while pair >= 0:
        if (before >> np.uint64(pairs[P_FIRST, pair])) & ONE:
            reached |= ONE << np.uint64(pairs[P_SECOND, pair])
        pair = pairs[P_NEXT, pair]
    return reached


@part
def determine_occurrences(access, length, first, tables, scratch, tested, wanted, answers, state):
    """Descend the chains below an access predicate that holds, and process their ends."""
    chains, access_begins, task_kinds, task_numbers = tables.chains
    noted, (frames, frame_sets) = scratch.noted, scratch.frames
    frames[0, 0], frames[1, 0] = access_begins[access], access_begins[access + 1]
    frame_sets[0] = ~np.uint64(0)
    top = 0
    while top >= 0:
        node = frames[0, top]
        if node == frames[1, top]:
            top -= 1
            continue
        frames[0, top] += 1
        predicate = chains[node, C_PREDICATE]
        if noted.stamps[predicate] != state[LEVEL_STAMP]:
            continue
        reached = continued(predicate, frame_sets[top], noted)
        state[DETERMINED] += 1
        if reached == 0:
            continue
        if chains[node, C_BEGIN] < chains[node, C_END]:
            top += 1
            frames[0, top], frames[1, top] = chains[node, C_BEGIN], chains[node, C_END]
            frame_sets[top] = reached
        if chains[node, C_ENTRY] >= 0:
            take(chains[node, C_ENTRY], wanted, state)
        for task in range(chains[node, C_TASKS], chains[node, C_TASKS_END]):
            kind, number = task_kinds[task], task_numbers[task]
            try_task(kind, number, length, first, tables.queries, scratch, tested, wanted, answers, state)


@rare
def try_bare(length, first, tables, scratch, tested, wanted, answers, state):
    """Process the queries without a tag name for which the path is long enough."""
    needed, kinds, numbers = tables.bare
    for at in range(len(needed)):
        if needed[at] <= length:
            kind, number = kinds[at], numbers[at]
            try_task(kind, number, length, first, tables.queries, scratch, tested, wanted, answers, state)


@part
def run_document(first, end, elements, tested, tables, scratch, wanted, answers, state):
    """Run a document, as far as there is room."""
    stack, chains = scratch.stack, tables.chains.nodes
    longest = np.int64(0)
    if chains[0, C_ENTRY] >= 0:
        take(chains[0, C_ENTRY], wanted, state)
    for element in range(first, end):
        length = np.int64(elements.depths[element])
        stack[0, length], stack[1, length] = element, tested.symbols[elements.names[element]] + 1
        if elements.ends[element] > element + 1:
            continue
        # A leaf: one document path.
        longest = np.int64(max(longest, length))
        state[PATHS] += 1
        state[LEVEL_STAMP] += 1
        found = match_predicates(length, tables, scratch, state)
        for k in range(found):
            access = scratch.noted.satisfied[k]
            determine_occurrences(access, length, first, tables, scratch, tested, wanted, answers, state)
        if len(tables.bare.needed):
            try_bare(length, first, tables, scratch, tested, wanted, answers, state)
        if state[WHY] != DONE:
            return
    for k in range(len(tables.lengths.needed)):
        if tables.lengths.needed[k] > longest:
            break
        take(tables.lengths.entries[k], wanted, state)


@kernel
def run(
    first_document: int,
    elements: Elements,
    tested: TestedValues,
    tables: BpaTables,
    scratch: RunScratch,
    wanted: Wanted,
    answers: Answers,
    state: Writable[Int64s],
) -> int:
    """Run the documents from `first_document` on; return the first not done, with the reason in `state[WHY]`."""
    offsets, document = elements.offsets, first_document
    state[WHY] = DONE
    while document < len(offsets) - 1:
        gated = state[GATED]
        state[STAMP] += 1
        state[MARKED] = 0
        first, end = offsets[document], offsets[document + 1]
        if first < end:
            run_document(first, end, elements, tested, tables, scratch, wanted, answers, state)
        if not finish(state[MARKED], wanted, answers, state):
            state[GATED] = gated
            break
        document += 1
        answers.offsets[document] = state[WRITTEN]
        answers.gate_offsets[document] = state[GATED]
    return document
