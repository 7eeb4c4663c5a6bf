# mypy: allow-untyped-defs, allow-untyped-calls
"""The run: each document path, root to leaf, in two stages (Hou & Jacobsen, ICDE 2006).

Predicate matching: for every two tags of the path the index gives the predicates that their distance satisfies: one
with `=`, and those with `≥` up to the distance. Each notes the pair of places, since a tag may occur several times.

Occurrence determination: a chain holds when pairs can be linked, the second place of each being the first of the
next. The chains below the access predicates that were satisfied are descended, each node with the set of places at
which the beginning up to it can end; a node is entered when its predicate has a pair that continues one of them.

The sets are words, so that paths of more than LONGEST elements are not for this engine. The original follows one
occurrence after the other and goes back where it fails; sets give the same answers without going back.
Selections are postponed, as in YFilter: they are tried on the elements of the path once a chain holds.
"""

import numpy as np

from pathcast.kernels import kernel, part, rare
from pathcast.matching.arrays.bitset_kernels import ONE, mark_with_summary

from ..streaming.streaming_kernels import DONE, GATED, STAMP, WHY, WRITTEN, finish, is_marked
from ..yfilter.result_kernels import (
    DETERMINED,
    FEW_PAIRS,
    LEVEL_STAMP,
    MARKED,
    PATHS,
    SATISFIED,
    TRIED,
    open_gate,
)
from ..yfilter.run_kernels import GATE
from ..yfilter.selection_kernels import select_on_stack

# Columns of a node of the tree of chains.
C_PREDICATE, C_BEGIN, C_END, C_ENTRY, C_TASKS, C_TASKS_END, C_COLUMNS = range(7)
# Rows of `pairs` and of `pair_rows`: predicates of a pair of tags with `=`, then those with `≥`.
P_FIRST, P_SECOND, P_NEXT, P_ROWS = range(4)
R_BEGIN, R_LEAST, R_END = range(3)
LONGEST = 62
# Tags that every path has.
DOCUMENT_TAG, END_TAG = 0, 1
TAG_BITS = 24


@part
def find_pair(keys, slots, first, second):
    """The row of a pair of tags, or -1."""
    key = np.int64(first) << TAG_BITS | np.int64(second)
    mask = len(slots) - 1
    slot = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
    while True:
        row = slots[slot]
        if row < 0 or keys[row] == key:
            return row
        slot = (slot + 1) & mask


@part
def note_pair(row, place, other_place, distance, index, noted, used, found, state):
    """Note a pair of places with every predicate that its distance satisfies: pairs in use, access predicates found."""
    _, _, pair_rows, distances, access_begin = index
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
            if access_begin[predicate] < access_begin[predicate + 1]:
                satisfied[found] = predicate
                found += 1
        pairs[P_FIRST, used], pairs[P_SECOND, used], pairs[P_NEXT, used] = place, other_place, heads[predicate]
        heads[predicate] = used
        used += 1
    return used, found


@part
def match_predicates(length, stack, index, noted, state):
    """Predicate matching for the document path on the stack; how many access predicates hold."""
    pair_keys, pair_slots = index[0], index[1]
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
            row = find_pair(pair_keys, pair_slots, tag, other)
            if row >= 0:
                used, found = note_pair(row, i, place, distance, index, noted, used, found, state)
    state[SATISFIED] += used
    return found


@part
def take(entry, asked, state):
    """Mark an entry."""
    marks, summary = asked
    mark_with_summary(marks, summary, entry)
    state[MARKED] += 1


@part
def try_task(kind, number, length, first, stack, queries, content, asked, gates, state):
    """What is to be done for a query whose chain holds: open its gate, or try its selections on the path."""
    query_begin, query_entry, steps, selects, room = queries
    if kind == GATE:
        open_gate(number, gates, state)
        return
    entry = query_entry[number]
    if is_marked(asked[0], entry):
        return
    state[TRIED] += 1
    queried = (query_begin, steps, selects)
    if select_on_stack(number, 1, length, first, stack[0], stack[1], queried, room, content) >= 0:
        take(entry, asked, state)


@part
def continued(predicate, before, noted):
    """The places at which a chain can end, given those of its beginning: where a pair of the predicate leads."""
    _, heads, pairs, _ = noted
    reached = np.uint64(0)
    pair = heads[predicate]
    while pair >= 0:
        if (before >> np.uint64(pairs[P_FIRST, pair])) & ONE:
            reached |= ONE << np.uint64(pairs[P_SECOND, pair])
        pair = pairs[P_NEXT, pair]
    return reached


@part
def determine_occurrences(
    access, length, first, stack, tree, access_begin, noted, frame, queries, content, asked, gates, state
):  # fmt: skip
    """Descend the chains below an access predicate that holds, and take what they end in."""
    chains, task_kind, task_number = tree
    frames, frame_sets = frame
    frames[0, 0], frames[1, 0] = access_begin[access], access_begin[access + 1]
    frame_sets[0] = ~np.uint64(0)
    top = 0
    while top >= 0:
        node = frames[0, top]
        if node == frames[1, top]:
            top -= 1
            continue
        frames[0, top] += 1
        predicate = chains[node, C_PREDICATE]
        if noted[0][predicate] != state[LEVEL_STAMP]:
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
            take(chains[node, C_ENTRY], asked, state)
        for task in range(chains[node, C_TASKS], chains[node, C_TASKS_END]):
            try_task(
                task_kind[task], task_number[task], length, first, stack, queries, content, asked, gates, state
            )  # fmt: skip


@rare
def try_bare(bare, length, first, stack, queries, content, asked, gates, state):
    """The queries that name no tag: all that the path is long enough for."""
    bare_needed, bare_kind, bare_number = bare
    for at in range(len(bare_needed)):
        if bare_needed[at] <= length:
            try_task(bare_kind[at], bare_number[at], length, first, stack, queries, content, asked, gates, state)


@part
def run_document(
    first, end, names, depths, stack, tree, index, bare, lengths, noted, frame, queries, content, asked, gates, state
):  # fmt: skip
    """Run a document, as far as there is room."""
    ends, translation = content[0], content[12]
    longest = np.int64(0)
    if tree[0][0, C_ENTRY] >= 0:
        take(tree[0][0, C_ENTRY], asked, state)
    for element in range(first, end):
        length = np.int64(depths[element])
        stack[0, length], stack[1, length] = element, translation[names[element]] + 1
        if ends[element] > element + 1:
            continue
        # A leaf: one document path.
        longest = np.int64(max(longest, length))
        state[PATHS] += 1
        state[LEVEL_STAMP] += 1
        found = match_predicates(length, stack, index, noted, state)
        for k in range(found):
            determine_occurrences(
                noted[3][k], length, first, stack, tree, index[4], noted, frame, queries, content, asked, gates, state
            )
        if len(bare[0]):
            try_bare(bare, length, first, stack, queries, content, asked, gates, state)
        if state[WHY] != DONE:
            return
    length_needed, length_entry = lengths
    for k in range(len(length_needed)):
        if length_needed[k] > longest:
            break
        take(length_entry[k], asked, state)


@kernel(
    "int64(ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], int64,"
    " ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1],"
    " ro_u1[::1], ro_u1[::1], ro_i4[::1],"
    " ro_i4[:, ::1], ro_f8[::1], ro_u1[::1], ro_i4[::1], ro_i4[::1], ro_i4[:, ::1], ro_i4[::1], ro_i4[::1],"
    " i4[:, ::1], i4[:, ::1], u1[::1],"
    " ro_i4[:, ::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_i4[:, ::1], ro_i4[::1], ro_i4[::1], ro_i4[::1],"
    " ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1],"
    " i4[:, ::1], i8[::1], i4[::1], i4[:, ::1], i4[::1], i4[:, ::1], u8[::1],"
    " u8[::1], u8[::1], i8[::1], i4[::1], i8[::1], i4[::1], i8[::1], i8[::1])"
)
def run(
    offsets, names, depths, ends, first_document,
    attribute_begin, attribute_names, attribute_start, attribute_length, text_begin, text_end, text_parent, text_start,
    text_length, data, arena, translation,
    rows, limits, literals, parts, selects, steps, query_begin, query_entry, places, times, joined,
    chains, access_begin, pair_keys, pair_slots, pair_rows, distances, length_needed, length_entry,
    task_kind, task_number, bare_needed, bare_kind, bare_number,
    stack, stamps, heads, pairs, satisfied, frames, frame_sets,
    marks, summary, state, out, gate_stamps, out_gates, out_offsets, gate_offsets,
):  # fmt: skip
    """Run the documents from `first_document` on; the first one that is not done, with why in `state[WHY]`.

    `stack` has rows: element, symbol, by place.
    """
    content = (
        ends, attribute_begin, attribute_names, attribute_start, attribute_length, text_begin, text_end, text_parent,
        text_start, text_length, data, arena, translation, rows, limits, literals, parts, joined,
    )  # fmt: skip
    state[WHY] = DONE
    document = first_document
    while document < len(offsets) - 1:
        gated = state[GATED]
        state[STAMP] += 1
        state[MARKED] = 0
        if offsets[document] < offsets[document + 1]:
            run_document(
                offsets[document], offsets[document + 1], names, depths, stack, (chains, task_kind, task_number),
                (pair_keys, pair_slots, pair_rows, distances, access_begin), (bare_needed, bare_kind, bare_number),
                (length_needed, length_entry), (stamps, heads, pairs, satisfied), (frames, frame_sets),
                (query_begin, query_entry, steps, selects, (places, times)), content, (marks, summary),
                (gate_stamps, out_gates), state,
            )  # fmt: skip
        if not finish(state[MARKED], marks, summary, out, state):
            state[GATED] = gated
            break
        document += 1
        out_offsets[document] = state[WRITTEN]
        gate_offsets[document] = state[GATED]
    return document
