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

from ...kernels import kernel, part
from ..marks_kernels import ONE, mark_with_summary, read_few_marks
from ..streaming_kernels import is_marked, wipe
from ..yfilter.postponed_kernels import select_on_stack
from ..yfilter.run_kernels import GATE

# Columns of a node of the tree of chains.
C_PREDICATE, C_BEGIN, C_END, C_ENTRY, C_TASKS, C_TASKS_END, C_COLUMNS = range(7)
LONGEST = 62
# Tags that every path has.
DOCUMENT_TAG, END_TAG = 0, 1
TAG_BITS = 24
# Why a run stopped, and places in `state`.
DONE, FEW_OUT, FEW_PAIRS, FEW_GATES = range(4)
STAMP, PATH_STAMP, WRITTEN, GATED, WHY, PATHS, SATISFIED, DETERMINED, TRIED = range(9)
STATE_SIZE = 9


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


@kernel(
    "int64(ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], int64,"
    " ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1],"
    " ro_u1[::1], ro_u1[::1], ro_i4[::1],"
    " ro_i4[:, ::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_i4[:, ::1], ro_i4[::1], ro_i4[::1], ro_i4[::1],"
    " ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1],"
    " ro_i4[:, ::1], ro_f8[::1], ro_u1[::1], ro_i4[::1], ro_i4[::1], ro_i4[:, ::1], ro_i4[::1], ro_i4[::1],"
    " i8[::1], i4[:, ::1], i4[:, ::1], i4[:, ::1], u8[::1], u8[::1],"
    " i8[::1], i4[::1], i4[:, ::1], i4[::1], i4[:, ::1], u8[::1], u1[::1], i8[::1],"
    " i8[::1], i4[::1], i8[::1], i4[::1])"
)
def run(
    offsets, names, depths, ends, first_document,
    attribute_begin, attribute_names, attribute_start, attribute_length, text_begin, text_end, text_parent, text_start,
    text_length, data, arena, translation,
    chains, access_begin, pair_keys, pair_slots, pair_rows, distances, length_needed, length_entry,
    task_kind, task_number, bare_needed, bare_kind, bare_number,
    rows, limits, literals, parts, selects, steps, query_begin, query_entry,
    state, stack, places, times, marks, summary,
    stamps, heads, pairs, satisfied, frames, frame_sets, joined, gate_stamps,
    out_offsets, out, gate_offsets, out_gates,
):  # fmt: skip
    """Run the documents from `first_document` on; the first one that is not done, with why in `state[WHY]`.

    `stack` has rows: element, symbol, by place. `pairs` has rows: first place, second place, the predicate's next pair.
    """
    written, gated = state[WRITTEN], state[GATED]
    document = first_document
    why = DONE
    while document < len(offsets) - 1 and why == DONE:
        state[STAMP] += 1
        stamp = state[STAMP]
        first, end = offsets[document], offsets[document + 1]
        gated_before, marked = gated, 0
        longest = np.int64(0)
        if end > first and chains[0, C_ENTRY] >= 0:
            mark_with_summary(marks, summary, chains[0, C_ENTRY])
            marked += 1
        for element in range(first, end):
            length = np.int64(depths[element])
            stack[0, length], stack[1, length] = element, translation[names[element]] + 1
            if ends[element] > element + 1:
                continue
            # A leaf: one document path.
            longest = np.int64(max(longest, length))
            state[PATHS] += 1
            state[PATH_STAMP] += 1
            path_stamp = state[PATH_STAMP]
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
                    if row < 0:
                        continue
                    for predicate in range(pair_rows[0, row], pair_rows[2, row]):
                        exact = predicate < pair_rows[1, row]
                        if distances[predicate] > distance:
                            if exact:
                                continue
                            break
                        if exact and distances[predicate] != distance:
                            continue
                        if used == pairs.shape[1]:
                            why = FEW_PAIRS
                            break
                        if stamps[predicate] != path_stamp:
                            stamps[predicate] = path_stamp
                            heads[predicate] = -1
                            if access_begin[predicate] < access_begin[predicate + 1]:
                                satisfied[found] = predicate
                                found += 1
                        pairs[0, used], pairs[1, used], pairs[2, used] = i, place, heads[predicate]
                        heads[predicate] = used
                        used += 1
            if why != DONE:
                break
            state[SATISFIED] += used
            # Chains below the satisfied access predicates, and in the last turn the queries that name no tag.
            for access in range(found + 1):
                top = 0
                if access < found:
                    predicate = satisfied[access]
                    frames[0, 0], frames[1, 0] = access_begin[predicate], access_begin[predicate + 1]
                    frame_sets[0] = ~np.uint64(0)
                else:
                    frames[0, 0], frames[1, 0] = 0, len(bare_needed)
                while top >= 0:
                    node = frames[0, top]
                    if node == frames[1, top]:
                        top -= 1
                        continue
                    frames[0, top] += 1
                    if access == found:
                        if bare_needed[node] > length:
                            continue
                        task, task_end = node, node + 1
                    else:
                        predicate = chains[node, C_PREDICATE]
                        if stamps[predicate] != path_stamp:
                            continue
                        before, reached = frame_sets[top], np.uint64(0)
                        pair = heads[predicate]
                        while pair >= 0:
                            if (before >> np.uint64(pairs[0, pair])) & ONE:
                                reached |= ONE << np.uint64(pairs[1, pair])
                            pair = pairs[2, pair]
                        state[DETERMINED] += 1
                        if reached == 0:
                            continue
                        if chains[node, C_BEGIN] < chains[node, C_END]:
                            top += 1
                            frames[0, top], frames[1, top] = chains[node, C_BEGIN], chains[node, C_END]
                            frame_sets[top] = reached
                        entry = chains[node, C_ENTRY]
                        if entry >= 0:
                            mark_with_summary(marks, summary, entry)
                            marked += 1
                        task, task_end = chains[node, C_TASKS], chains[node, C_TASKS_END]
                    for at in range(task, task_end):
                        if access == found:
                            kind, number = bare_kind[at], bare_number[at]
                        else:
                            kind, number = task_kind[at], task_number[at]
                        if kind == GATE:
                            if gate_stamps[number] != stamp:
                                if gated == len(out_gates):
                                    why = FEW_GATES
                                    break
                                gate_stamps[number] = stamp
                                out_gates[gated] = number
                                gated += 1
                            continue
                        entry = query_entry[number]
                        if is_marked(marks, entry):
                            continue
                        state[TRIED] += 1
                        time = select_on_stack(
                            number, 1, length, first, ends, stack[0], stack[1], query_begin, steps, selects, places,
                            times, attribute_begin, attribute_names, attribute_start, attribute_length, text_begin,
                            text_end, text_parent, text_start, text_length, data, arena, translation, rows, limits,
                            literals, parts, joined,
                        )  # fmt: skip
                        if time >= 0:
                            mark_with_summary(marks, summary, entry)
                            marked += 1
        if why == DONE:
            for k in range(len(length_needed)):
                if length_needed[k] > longest:
                    break
                mark_with_summary(marks, summary, length_entry[k])
                marked += 1
            if written + min(marked, 64 * len(marks)) + 8 > len(out):
                why = FEW_OUT
        if why != DONE:
            gated = gated_before
            wipe(marks, summary)
            break
        written = read_few_marks(marks, summary, out, written)
        document += 1
        out_offsets[document] = written
        gate_offsets[document] = gated
    state[WRITTEN], state[GATED], state[WHY] = written, gated, why
    return document
