# mypy: allow-untyped-defs, allow-untyped-calls
"""The run: start and end tags drive a stack of sets of active states (YFilter, Diao et al., TODS 2003).

At a start tag, every active state of the level above is asked four things: does it loop (then it stays), has it a
child by this name, has it one by `*`, and has what was reached a state below by an empty move. What is reached is the
new level; an end tag pops it. An accepting state lists its plain path and the tasks of other queries: selections that
were postponed (tried at once, on the stack), ends of nested paths (noted, joined when the document ends), and gates
of queries that another engine takes.

A looping state is reached from itself and by the empty move, hence a stamp; every other one has a single way in.
States from which nothing leads on are not pushed.

As a stream (`state[STREAM]`) one document is run: entries are written as they match, with the number of start tags
read, and the run stops when no link waits any more. What is certain only after more of the document (a test of text)
is pending until then. With `expiry`, an entry is not looked at after so many start tags.
"""

import numpy as np

from ...kernels import kernel, part
from ..marks_kernels import mark_with_summary, read_few_marks
from ..streaming_kernels import (
    DONE,
    FEW_GATES,
    FEW_OUT,
    GATED,
    OWN_REASON,
    OWN_STATE,
    READ,
    SKIPPING,
    STAMP,
    STREAM,
    WAITING,
    WHY,
    WRITTEN,
    announce,
    is_marked,
    is_spared,
    wipe,
)
from .postponed_kernels import NO_ROOM, join, select_on_stack

# Columns of a state (S_LOW and S_HIGH: bits for the symbols that lead on, by their last six bits); kinds of tasks.
S_BEGIN, S_END, S_STAR, S_DEEP, S_ENTRY, S_TASKS, S_LOW, S_HIGH, S_COLUMNS = range(9)
SELECT, JOIN, GATE = range(3)
# What room may be lacking for, besides, and further places in `state`.
FEW_ACTIVE, FEW_LOG, FEW_POOL = range(OWN_REASON, OWN_REASON + 3)
LEVEL_STAMP, VISITS, TRIED, JOINED, STATE_SIZE = range(OWN_STATE, OWN_STATE + 5)
SEARCH_AT_ONCE = 8


@part
def named_child(state_symbols, begin, end, symbol):
    """The state in a range of children that this symbol leads to, or -1."""
    while end - begin > SEARCH_AT_ONCE:
        middle = (begin + end) >> 1
        if state_symbols[middle] <= symbol:
            begin = middle
        else:
            end = middle
    for child in range(begin, end):
        if state_symbols[child] == symbol:
            return child
    return -1


@kernel(
    "int64(ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], int64,"
    " ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1],"
    " ro_u1[::1], ro_u1[::1], ro_i4[::1],"
    " ro_i4[:, ::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1],"
    " ro_i4[:, ::1], ro_f8[::1], ro_u1[::1], ro_i4[::1], ro_i4[::1],"
    " ro_i4[:, ::1], ro_i4[::1], ro_i4[::1],"
    " ro_i4[:, ::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_b1[::1], ro_i4[::1],"
    " i8[::1], i4[::1], i4[:, ::1], i8[::1], i4[:, ::1], i4[:, ::1], u8[::1], u8[::1], ro_u8[::1],"
    " i4[:, ::1], i8[::1], i4[:, ::1], i8[::1], i4[::1], i8[::1], i4[:, ::1], i8[:, ::1], i4[::1], u1[::1],"
    " i8[::1], ro_i4[::1], i8[::1], ro_i4[::1],"
    " i8[::1], i4[::1], i4[::1], i4[:, ::1], i8[::1], i4[::1])"
)
def run(
    offsets, names, parents, depths, ends, first_document,
    attribute_begin, attribute_names, attribute_start, attribute_length, text_begin, text_end, text_parent, text_start,
    text_length, data, arena, translation,
    states, state_symbols, task_begin, task_kind, task_number,
    rows, limits, literals, parts, selects,
    steps, query_begin, query_entry,
    nodes, join_begin, join_entry, join_paths, join_late, path_join,
    state, active, levels, deep_stamps, places, times, marks, summary, skips,
    log, path_stamps, join_counts, join_stamps, ready, serial, node_lists, element_marks, pool, joined,
    gate_stamps, link, link_stamps, expiry,
    out_offsets, out, out_times, pending, gate_offsets, out_gates,
):  # fmt: skip
    """Run the documents from `first_document` on; the first one that is not done, with why in `state[WHY]`.

    `levels` has rows: where a level's states begin and end, the element, its symbol. `log` has rows: element, next
    record of the path; and, over paths, the first record. `join_counts` has rows: paths found, whether all were.
    """
    streaming, skipping = state[STREAM] == 1, state[SKIPPING] == 1
    written, gated = state[WRITTEN], state[GATED]
    first_looping = len(states) - len(deep_stamps)
    heads = log[2]
    document = first_document
    why = DONE
    while document < len(offsets) - 1 and why == DONE:
        state[STAMP] += 1
        stamp = state[STAMP]
        first, end = offsets[document], offsets[document + 1]
        logged, complete, marked, waits, gated_before = 0, 0, 0, 0, gated
        visits = 0
        if end > first:
            entry = states[0, S_ENTRY]
            if entry >= 0 and not (skipping and is_marked(skips, entry)):
                if streaming:
                    written = announce(
                        entry, 0, stamp, marks, summary, link, link_stamps, state, out, out_times, written
                    )
                else:
                    mark_with_summary(marks, summary, entry)
                    marked += 1
            tasks = states[0, S_TASKS]
            if tasks >= 0 and gated + task_begin[tasks + 1] - task_begin[tasks] > len(out_gates):
                why = FEW_GATES
            elif tasks >= 0:
                for task in range(task_begin[tasks], task_begin[tasks + 1]):
                    gate_stamps[task_number[task]] = stamp
                    out_gates[gated] = task_number[task]
                    gated += 1
        active[0] = 0
        n = np.int64(1)
        if states[0, S_DEEP] >= 0:
            active[1] = states[0, S_DEEP]
            n = np.int64(2)
        levels[0, 0], levels[1, 0] = 0, n
        element = first
        while element < end and why == DONE:
            if streaming:
                # What was certain before this start tag.
                k = 0
                while k < waits:
                    if pending[1, k] > element - first:
                        k += 1
                        continue
                    entry, time = pending[0, k], pending[1, k]
                    waits -= 1
                    pending[0, k], pending[1, k] = pending[0, waits], pending[1, waits]
                    written = announce(
                        entry, time, stamp, marks, summary, link, link_stamps, state, out, out_times, written
                    )
                if len(link) and state[WAITING] == 0:
                    break
            depth = np.int64(depths[element])
            symbol = translation[names[element]] + 1
            levels[2, depth], levels[3, depth] = element, symbol
            above, above_end = levels[0, depth - 1], levels[1, depth - 1]
            begin = np.int64(above_end)
            n = begin
            state[LEVEL_STAMP] += 1
            level_stamp = state[LEVEL_STAMP]
            if n + 5 * (above_end - above) > len(active):
                why = FEW_ACTIVE
                break
            visits += above_end - above
            half, bit = S_LOW + (symbol >> 5 & 1), np.int32(1) << (symbol & 31)
            for index in range(above, above_end):
                source = active[index]
                if source >= first_looping and deep_stamps[source - first_looping] != level_stamp:
                    deep_stamps[source - first_looping] = level_stamp
                    active[n] = source
                    n += 1
                for turn in range(2):
                    if turn == 0:
                        target = np.int64(states[source, S_STAR])
                    elif symbol > 0 and states[source, half] & bit:
                        target = np.int64(
                            named_child(state_symbols, states[source, S_BEGIN], states[source, S_END], symbol)
                        )
                    else:
                        target = np.int64(-1)
                    if target < 0:
                        continue
                    if states[target, S_BEGIN] < states[target, S_END] or states[target, S_STAR] >= 0:
                        active[n] = target
                        n += 1
                    deep = states[target, S_DEEP]
                    if deep >= 0 and deep_stamps[deep - first_looping] != level_stamp:
                        deep_stamps[deep - first_looping] = level_stamp
                        active[n] = deep
                        n += 1
                    entry = states[target, S_ENTRY]
                    if entry >= 0 and not is_spared(entry, element - first, skipping, skips, expiry):
                        if streaming:
                            written = announce(
                                entry, element - first + 1, stamp, marks, summary, link, link_stamps, state, out,
                                out_times, written,
                            )  # fmt: skip
                        else:
                            mark_with_summary(marks, summary, entry)
                            marked += 1
                    tasks = states[target, S_TASKS]
                    if tasks < 0:
                        continue
                    for task in range(task_begin[tasks], task_begin[tasks + 1]):
                        number = task_number[task]
                        if task_kind[task] == GATE:
                            if gate_stamps[number] != stamp:
                                if gated == len(out_gates):
                                    why = FEW_GATES
                                    break
                                gate_stamps[number] = stamp
                                out_gates[gated] = number
                                gated += 1
                            continue
                        if task_kind[task] == SELECT:
                            entry = query_entry[number]
                            if is_marked(marks, entry) or is_spared(entry, element - first, skipping, skips, expiry):
                                continue
                            state[TRIED] += 1
                            time = select_on_stack(
                                number, depth, depth, first, ends, levels[2], levels[3], query_begin, steps, selects,
                                places, times,
                                attribute_begin, attribute_names, attribute_start, attribute_length, text_begin,
                                text_end, text_parent, text_start, text_length, data, arena, translation,
                                rows, limits, literals, parts, joined,
                            )  # fmt: skip
                            if time < 0:
                                continue
                            if streaming and time > element - first + 1:
                                if waits == pending.shape[1]:
                                    why = FEW_LOG
                                    break
                                pending[0, waits], pending[1, waits] = entry, time
                                waits += 1
                                continue
                        else:
                            nested = path_join[number]
                            entry = join_entry[nested]
                            if is_marked(marks, entry) or is_spared(entry, element - first, skipping, skips, expiry):
                                continue
                            if logged == log.shape[1]:
                                why = FEW_LOG
                                break
                            if join_stamps[nested] != stamp:
                                join_stamps[nested] = stamp
                                join_counts[0, nested], join_counts[1, nested] = 0, 0
                            if path_stamps[number] != stamp:
                                path_stamps[number] = stamp
                                heads[number] = -1
                                join_counts[0, nested] += 1
                                if join_counts[0, nested] == join_paths[nested]:
                                    join_counts[1, nested] = 1
                                    ready[complete] = nested
                                    complete += 1
                            log[0, logged], log[1, logged] = element, heads[number]
                            heads[number] = logged
                            logged += 1
                            if not streaming or join_counts[1, nested] == 0 or join_late[nested]:
                                continue
                            state[JOINED] += 1
                            found = join(
                                nested, first, end - first, names, parents, ends, join_begin, nodes, selects,
                                heads, log[0], log[1], serial, node_lists, element_marks[0],
                                element_marks[1], pool,
                                attribute_begin, attribute_names, attribute_start, attribute_length, text_begin,
                                text_end, text_parent, text_start, text_length, data, arena, translation,
                                rows, limits, literals, parts, joined,
                            )  # fmt: skip
                            if found == NO_ROOM:
                                why = FEW_POOL
                                break
                            if not found:
                                continue
                        if streaming:
                            written = announce(
                                entry, element - first + 1, stamp, marks, summary, link, link_stamps, state, out,
                                out_times, written,
                            )  # fmt: skip
                        else:
                            mark_with_summary(marks, summary, entry)
                            marked += 1
            levels[0, depth], levels[1, depth] = begin, n
            element += 1
            if streaming and len(link) and state[WAITING] == 0:
                break
        state[READ] = element - first
        if why == DONE and element == end:
            for k in range(complete):
                nested = ready[k]
                entry = join_entry[nested]
                if is_marked(marks, entry) or (streaming and not join_late[nested]):
                    continue
                state[JOINED] += 1
                found = join(
                    nested, first, end - first, names, parents, ends, join_begin, nodes, selects,
                    heads, log[0], log[1], serial, node_lists, element_marks[0], element_marks[1], pool,
                    attribute_begin, attribute_names, attribute_start, attribute_length, text_begin, text_end,
                    text_parent, text_start, text_length, data, arena, translation, rows, limits, literals, parts,
                    joined,
                )  # fmt: skip
                if found == NO_ROOM:
                    why = FEW_POOL
                    break
                if found and streaming:
                    written = announce(
                        entry, end - first, stamp, marks, summary, link, link_stamps, state, out, out_times, written
                    )
                elif found:
                    mark_with_summary(marks, summary, entry)
                    marked += 1
            for k in range(waits):
                written = announce(
                    pending[0, k], pending[1, k], stamp, marks, summary, link, link_stamps, state, out, out_times,
                    written,
                )  # fmt: skip
        if not streaming and why == DONE and written + min(marked, 64 * len(marks)) + 8 > len(out):
            why = FEW_OUT
        if streaming or why != DONE:
            wipe(marks, summary)
        if why != DONE:
            gated = gated_before
            break
        if not streaming:
            written = read_few_marks(marks, summary, out, written)
        state[VISITS] += visits
        document += 1
        out_offsets[document] = written
        gate_offsets[document] = gated
    state[WRITTEN], state[GATED], state[WHY] = written, gated, why
    return document
